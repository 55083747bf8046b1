package remote

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

// claimSize is how many futures a transaction of the benchmark takes.
const claimSize = 16

// BenchmarkTransaction reports what transactions cost in the process that has
// the store open, and in another one over a Unix socket.
func BenchmarkTransaction(b *testing.B) {
	for _, kind := range []string{"memory", "disk"} {
		for _, place := range []string{"inprocess", "unix"} {
			for _, what := range []struct {
				name string
				run  func(b *testing.B, db kv.Database)
			}{{"get", benchmarkGet}, {"set", benchmarkSet}, {"claim", benchmarkClaim}, {"claim8", benchmarkClaims}} {
				b.Run(kind+"/"+what.name+"/"+place, func(b *testing.B) { what.run(b, benchmarkStore(b, kind, place)) })
			}
		}
	}
}

func benchmarkStore(b *testing.B, kind, place string) kv.Database {
	dir := ""
	if kind == "disk" {
		dir = filepath.Join(b.TempDir(), "store")
	}
	if place == "unix" {
		path := socketPath(b)
		startChild(b, path, dir)
		return dial(b, Address{Network: "unix", Target: path})
	}
	store := embedded.OpenMemory(embedded.Options{})
	if kind == "disk" {
		var err error
		store, err = embedded.Open(context.Background(), dir, embedded.Options{})
		require.NoError(b, err)
	}
	b.Cleanup(func() { require.NoError(b, store.Close()) })
	return store
}

// benchmarkGet reads one key and commits nothing.
func benchmarkGet(b *testing.B, db kv.Database) {
	update(b, db, func(tx kv.Tx) { tx.Set([]byte("key"), make([]byte, 100)) })
	for b.Loop() {
		get(b, db, "key")
	}
}

// benchmarkSet writes one key.
func benchmarkSet(b *testing.B, db kv.Database) {
	for b.Loop() {
		update(b, db, func(tx kv.Tx) { tx.Set([]byte("key"), make([]byte, 100)) })
	}
}

// benchmarkClaim takes futures one batch after the other.
func benchmarkClaim(b *testing.B, db kv.Database) {
	for b.Loop() {
		claim(b, db, 0)
	}
}

// benchmarkClaims takes futures in eight goroutines, each in its own place.
func benchmarkClaims(b *testing.B, db kv.Database) {
	var places atomic.Int64
	b.SetParallelism(2) // times the cores, which are four on the machine of the figures
	b.RunParallel(func(pb *testing.PB) {
		place := int(places.Add(1))
		for pb.Next() {
			claim(b, db, place)
		}
	})
}

// claim does what a claim of the data model does: it reads the first futures of
// an index, puts them into its read conflicts, clears them there, and writes a
// claim for each. It also puts back what the next one takes.
func claim(b *testing.B, db kv.Database, place int) {
	ctx := context.Background()
	index := fmt.Appendf(nil, "futura/%04d/ready/", place)
	_, err := kv.Transact(ctx, db, kv.Retry{Options: kv.Options{NoSync: true}}, func(a kv.Attempt) error {
		alive := a.Get(fmt.Appendf(nil, "futura/%04d/alive", place))
		page, err := a.Snapshot().GetRange(kv.Prefix(index), kv.RangeOptions{Limit: claimSize}).Wait(ctx)
		if err != nil {
			return err
		}
		if _, err := alive.Wait(ctx); err != nil {
			return err
		}
		for i := range claimSize {
			key := fmt.Appendf(index[:len(index):len(index)], "%032d", i)
			if i < len(page.Items) {
				key = page.Items[i].Key
			}
			a.AddReadConflictKey(key)
			a.Clear(key)
			a.Set(fmt.Appendf(nil, "futura/%04d/futures/%032d/claim", place, i), make([]byte, 60))
			a.Set(fmt.Appendf(index[:len(index):len(index)], "%032d", i), make([]byte, 20))
		}
		return nil
	})
	require.NoError(b, err)
}
