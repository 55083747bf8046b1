package reference_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest/reference"
)

// Two transactions read a key and write it: the later commit conflicts.
func ExampleOpen() {
	ctx := context.Background()
	db := reference.Open(reference.Options{})
	defer db.Close()
	a, b := db.Begin(kv.Options{}), db.Begin(kv.Options{})
	for _, tx := range []kv.Tx{a, b} {
		if _, err := tx.Get([]byte("seat")).Wait(ctx); err != nil {
			panic(err)
		}
	}
	a.Set([]byte("seat"), []byte("Ada"))
	b.Set([]byte("seat"), []byte("Bob"))
	_, first := a.Commit(ctx)
	_, second := b.Commit(ctx)
	fmt.Println(first, errors.Is(second, kv.ErrConflict))
	// Output: <nil> true
}
