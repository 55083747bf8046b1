package kv_test

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

func ExampleTransact() {
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()

	visits := []byte("visits")
	for range 3 {
		_, err := kv.Transact(ctx, db, kv.Retry{}, func(tx kv.Attempt) error {
			value, err := tx.Get(visits).Wait(ctx)
			if err != nil {
				return err // Transact retries a conflict and returns any other error
			}
			var n uint64
			if value != nil {
				n = binary.BigEndian.Uint64(value)
			}
			tx.Set(visits, binary.BigEndian.AppendUint64(nil, n+1))
			return nil
		})
		if err != nil {
			panic(err)
		}
	}
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	value, err := tx.Get(visits).Wait(ctx)
	fmt.Println(binary.BigEndian.Uint64(value), err)
	// Output: 3 <nil>
}

func ExamplePrefix() {
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	_, err := kv.Transact(ctx, db, kv.Retry{}, func(tx kv.Attempt) error {
		for _, name := range []string{"fruit/apple", "fruit/pear", "tool/saw"} {
			tx.Set([]byte(name), nil)
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	page, err := tx.GetRange(kv.Prefix([]byte("fruit/")), kv.RangeOptions{Limit: 10}).Wait(ctx)
	for _, item := range page.Items {
		fmt.Println(string(item.Key))
	}
	fmt.Println(page.More, err)
	// Output:
	// fruit/apple
	// fruit/pear
	// false <nil>
}
