package sharing_test

import (
	"context"
	"fmt"
	"os"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
)

// The first owns the store. When it closes it, the second takes over.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fs")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	first, err := sharing.Open(ctx, dir, sharing.Options{})
	if err != nil {
		panic(err)
	}
	second, err := sharing.Open(ctx, dir, sharing.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(first.IsOwner(), second.IsOwner())
	_, err = kv.Transact(ctx, first, kv.Retry{}, func(tx kv.Attempt) error {
		tx.Set([]byte("greeting"), []byte("hello"))
		return nil
	})
	fmt.Println(err, first.Close())
	var value []byte
	_, err = kv.Transact(ctx, second, kv.Retry{}, func(tx kv.Attempt) (err error) {
		value, err = tx.Get([]byte("greeting")).Wait(ctx)
		return err
	})
	fmt.Println(string(value), err, second.Close())
	// Output:
	// true false
	// <nil> <nil>
	// hello <nil> <nil>
}
