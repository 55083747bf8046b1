package faultkv_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
)

// A commit is made, and its answer is lost. The retry is told so.
func ExampleDatabase_FailNext() {
	ctx := context.Background()
	db := faultkv.Wrap(embedded.OpenMemory(embedded.Options{}), faultkv.Options{})
	defer db.Close()
	db.FailNext(faultkv.UnknownCommitted, func(tag string) bool { return tag == "visit" })

	retry := kv.Retry{Options: kv.Options{Tag: "visit"}}
	_, err := kv.Transact(ctx, db, retry, func(tx kv.Attempt) error {
		value, err := tx.Get([]byte("visitor")).Wait(ctx)
		fmt.Printf("attempt %d, may have committed: %v, found %q\n", tx.Number, tx.MaybeCommitted, value)
		tx.Set([]byte("visitor"), []byte("Ada"))
		return err
	})
	fmt.Println(err)
	// Output:
	// attempt 1, may have committed: false, found ""
	// attempt 2, may have committed: true, found "Ada"
	// <nil>
}
