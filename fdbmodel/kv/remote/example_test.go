package remote_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
)

// One process serves its store, others use it.
func ExampleServe() {
	dir, err := os.MkdirTemp("", "remote")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	store := embedded.OpenMemory(embedded.Options{})
	defer store.Close()
	listener, err := remote.ListenUnix(filepath.Join(dir, "store.sock"))
	if err != nil {
		panic(err)
	}
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- remote.Serve(serving, listener, store, remote.ServerOptions{}) }()

	ctx := context.Background()
	address := remote.Address{Network: "unix", Target: filepath.Join(dir, "store.sock")}
	db, err := remote.Open(ctx, address, remote.Options{})
	if err != nil {
		panic(err)
	}
	_, err = kv.Transact(ctx, db, kv.Retry{}, func(tx kv.Attempt) error {
		tx.Set([]byte("greeting"), []byte("hello"))
		return nil
	})
	fmt.Println(err, db.Close())
	stop()
	fmt.Println(<-served)
	// Output:
	// <nil> <nil>
	// <nil>
}
