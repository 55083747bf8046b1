//go:build fdb

package fdbkv_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/futura-run/futura/fdbmodel/kv/fdbkv"
)

// A missing cluster file is reported at once.
func ExampleOpen() {
	_, err := fdbkv.Open(context.Background(), "nowhere/fdb.cluster", fdbkv.Options{})
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output: true
}
