package stack_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/danielgtaylor/huma/v2"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

// Each route names the permission that it needs.
func ExampleStack_Handle() {
	tokens := stack.NewTokens("operator", "a secret")
	tokens.Add("dashboard", "another", stack.Read)
	s := stack.New(stack.Options{Title: "Shop", Tokens: tokens})
	s.Handle(stack.Route{
		Permission: stack.Admin,
		Operation:  huma.Operation{OperationID: "close-shop", Method: "POST", Path: "/shop:close"},
		Handle: func(w http.ResponseWriter, _ *http.Request) error {
			_, err := io.WriteString(w, "closed")
			return err
		},
	})
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	for _, secret := range []string{"another", "a secret"} {
		request, err := http.NewRequest("POST", server.URL+"/shop:close", nil)
		if err != nil {
			panic(err)
		}
		request.Header.Set("Authorization", "Bearer "+secret)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			panic(err)
		}
		answer.Body.Close()
		fmt.Println(answer.Status)
	}
	// Output:
	// 403 Forbidden
	// 200 OK
}
