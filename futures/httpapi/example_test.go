package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

// The API is a handler to mount beside an application's own.
func ExampleHandler() {
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	client, err := futures.New(ctx, db, futures.Options{})
	if err != nil {
		panic(err)
	}
	defer client.Close(ctx)
	server := httptest.NewServer(httpapi.Handler(client, httpapi.Options{Token: "a secret"}))
	defer server.Close()

	request, err := http.NewRequest("POST", server.URL+"/api/v1/futures",
		strings.NewReader(`{"function":"go:price","args":"tea"}`))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer a secret")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	answer.Body.Close()
	fmt.Println(answer.Status, strings.HasPrefix(answer.Header.Get("Location"), "/api/v1/futures/"))
	// Output: 201 Created true
}
