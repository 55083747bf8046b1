package embedded_test

import (
	"context"
	"fmt"
	"os"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

// A commit is on disk when it returns: a later opening finds it.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "embedded")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	for range 2 {
		db, err := embedded.Open(ctx, dir, embedded.Options{})
		if err != nil {
			panic(err)
		}
		_, err = kv.Transact(ctx, db, kv.Retry{}, func(tx kv.Attempt) error {
			value, err := tx.Get([]byte("greeting")).Wait(ctx)
			if err != nil {
				return err
			}
			fmt.Printf("found %q\n", value)
			tx.Set([]byte("greeting"), []byte("hello"))
			return nil
		})
		if err != nil {
			panic(err)
		}
		if err := db.Close(); err != nil {
			panic(err)
		}
	}
	// Output:
	// found ""
	// found "hello"
}
