//go:build fdb

package fdbkv_test

import (
	"encoding/binary"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// BenchmarkCommit writes one key per transaction.
func BenchmarkCommit(b *testing.B) {
	db := open(b)
	k := key(b, "a")
	for b.Loop() {
		tx := db.Begin(kv.Options{})
		tx.Set(k, []byte("value"))
		_, err := tx.Commit(b.Context())
		require.NoError(b, err)
	}
}

// BenchmarkCommitParallel writes one key per transaction from many goroutines.
func BenchmarkCommitParallel(b *testing.B) {
	db := open(b)
	prefix := key(b, "a")
	var next atomic.Uint64
	b.SetParallelism(64)
	b.RunParallel(func(loop *testing.PB) {
		for loop.Next() {
			tx := db.Begin(kv.Options{})
			tx.Set(binary.BigEndian.AppendUint64(prefix[:len(prefix):len(prefix)], next.Add(1)), []byte("value"))
			_, err := tx.Commit(b.Context())
			require.NoError(b, err)
		}
	})
}

// BenchmarkGet reads a hundred keys, asked together, per transaction.
func BenchmarkGet(b *testing.B) {
	db := open(b)
	k := key(b, "a")
	set(b, db, k, "value")
	for b.Loop() {
		tx := db.Begin(kv.Options{})
		answers := make([]kv.Pending[[]byte], 100)
		for i := range answers {
			answers[i] = tx.Snapshot().Get(k)
		}
		for _, answer := range answers {
			_, err := answer.Wait(b.Context())
			require.NoError(b, err)
		}
		tx.Cancel()
	}
}

// BenchmarkBegin makes and drops a transaction, which Commit and Get do besides.
func BenchmarkBegin(b *testing.B) {
	db := open(b)
	for b.Loop() {
		db.Begin(kv.Options{Tag: "futura-bench"}).Cancel()
	}
}
