package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/dashboard"
	"github.com/futura-run/futura/futures/httpapi"
)

func ExampleRegister() {
	ctx := context.Background()
	store := embedded.OpenMemory(embedded.Options{})
	defer store.Close()
	client, err := futures.New(ctx, store, futures.Options{})
	if err != nil {
		panic(err)
	}
	defer client.Close(ctx)
	api := httpapi.New(client, httpapi.Options{Token: "0123456789abcdef"})
	dashboard.Register(api)
	server := httptest.NewServer(api.Handler())
	defer server.Close()
	answer, err := http.Get(server.URL + dashboard.Path)
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.StatusCode, answer.Header.Get("Content-Type"), answer.Body.Close())
	// Output: 200 text/html; charset=utf-8 <nil>
}
