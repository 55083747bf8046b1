package kvopen_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
)

// Any kind of store opens by its name: memory:, embedded:DIR,
// remote:unix:PATH, remote:tcp:HOST:PORT or fdb:CLUSTERFILE.
func ExampleOpen() {
	ctx := context.Background()
	db, err := kvopen.Open(ctx, "memory:", kvopen.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(db.Close())
	// Output: <nil>
}
