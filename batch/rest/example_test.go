package rest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/batch/memstore"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// The API of a head is a handler to mount. Its tokens say who may do what.
func ExampleHandler() {
	h := head.New(head.Options{Store: memstore.New()})
	tokens := stack.NewTokens("admin", "a secret")
	server := httptest.NewServer(rest.Handler(h, rest.Options{Stack: stack.Options{Tokens: tokens}}))
	defer server.Close()

	for _, secret := range []string{"a guess", "a secret"} {
		request, err := http.NewRequest("GET", server.URL+"/api/v1/batches", nil)
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
	// 401 Unauthorized
	// 200 OK
}
