package fdbmodel

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/internal/lane"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
	"github.com/futura-run/futura/internal/storetest"
)

// writtenTx records what is written. It has no reads.
type writtenTx struct {
	kv.Tx
	written []string
}

func (w *writtenTx) note(format string, args ...any) {
	w.written = append(w.written, fmt.Sprintf(format, args...))
}

func (w *writtenTx) Set(key, value []byte) { w.note("set %x %x", key, value) }
func (w *writtenTx) Clear(key []byte)      { w.note("clear %x", key) }
func (w *writtenTx) Atomic(op kv.AtomicOp, key, param []byte) {
	w.note("atomic %v %x %x", op, key, param)
}
func (w *writtenTx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	w.note("stamped key %x %d %x", key, offset, value)
}
func (w *writtenTx) SetVersionstampedValue(key, value []byte, offset int) {
	w.note("stamped value %x %x %d", key, value, offset)
}
func (w *writtenTx) AddReadConflictKey([]byte) {}

// written returns what changes to futures write, sorted.
func written(keys layout.Keyspace, change func(*WriteSet)) []string {
	tx := &writtenTx{}
	w := newWriteSet(keys, tx, 1, new(lane.Known))
	change(w)
	_ = w.Flush(context.Background())
	slices.Sort(tx.written)
	return tx.written
}

// waitingRow draws a future that a worker can claim, and its entry in the index.
func waitingRow(t *rapid.T, keys layout.Keyspace, worker layout.WorkerID) (layout.Row, layout.ReadyEntry) {
	name := rapid.StringMatching("[a-z]{1,9}")
	row := layout.Row{Spec: &layout.Spec{
		Function: "go:" + name.Draw(t, "function"), Queue: name.Draw(t, "queue"), Priority: rapid.Uint8().Draw(t, "priority"),
		Requirements: layout.Requirements{
			CPU: rapid.Int64Min(0).Draw(t, "cpu"), RAM: rapid.Int64Min(0).Draw(t, "ram"), GPU: rapid.Int64Min(0).Draw(t, "gpu"),
		},
		Session: layout.SessionID(name.Draw(t, "session")), MaxRetries: 3,
	}}
	copy(row.ID[:], rapid.SliceOfN(rapid.Byte(), len(row.ID), len(row.ID)).Draw(t, "id"))
	row.Attempts.Failed = rapid.IntRange(0, 3).Draw(t, "failed")
	row.Attempts.Crashes = rapid.IntRange(0, 2).Draw(t, "crashes")
	for range rapid.IntRange(0, 5).Draw(t, "deaths") {
		row.Attempts.Deaths = row.Attempts.Deaths.With(layout.Death{Worker: layout.WorkerID(name.Draw(t, "dead"))})
	}
	if row.Attempts.Failed > 0 {
		row.Exception = &layout.Exception{Kind: layout.KindError}
	}
	if rapid.Bool().Draw(t, "assigned") {
		row.Attempts.Assigned, row.Attempts.Reason = worker, name.Draw(t, "reason")
		if rapid.Bool().Draw(t, "held") {
			row.Spec.Owner = name.Draw(t, "owner")
		}
	}
	place := layout.PlaceOf(&row)
	item := kv.KeyValue{Key: place.Key(keys, &row), Value: place.Value(&row)}
	entry, _, err := layout.ParseReady(item, keys.ReadyQueue(row.ID.Shard(keys.Shards), row.Spec.Queue), row.Spec.Queue)
	if place.Kind == layout.PlaceAssigned {
		entry, err = layout.ParseAssigned(item, keys.AssignedTo(worker))
	}
	require.NoError(t, err)
	return row, entry
}

// TestBlindWritesAreThoseOfTheTable compares the writes that are made from an
// entry of the index with those of the table's transitions of the whole row.
func TestBlindWritesAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	keys := layout.NewKeyspace("blind")
	keys.Shards = 4
	rapid.Check(t, func(t *rapid.T) {
		token := layout.Token{Worker: "w", Sequence: rapid.Int64Min(1).Draw(t, "sequence")}
		n := rapid.IntRange(1, 4).Draw(t, "futures")
		waiting, claimed, entries := make([]layout.Row, n), make([]layout.Row, n), make([]layout.ReadyEntry, n)
		for i := range n {
			waiting[i], entries[i] = waitingRow(t, keys, token.Worker)
		}
		next := func(w *WriteSet, row layout.Row, kind state.EventKind) layout.Row {
			after, outcome := state.Next(row, state.Event{Kind: kind, Token: token})
			require.Equal(t, Applied, outcome)
			w.Apply(&row, &after)
			return after
		}
		require.Equal(t, written(keys, func(w *WriteSet) {
			for i := range n {
				claimed[i] = next(w, waiting[i], state.EventClaim)
			}
		}), written(keys, func(w *WriteSet) { w.claim(entries, token) }))
		require.Equal(t, written(keys, func(w *WriteSet) {
			for i := range n {
				next(w, claimed[i], state.EventRelinquish)
			}
		}), written(keys, func(w *WriteSet) {
			for i := range n {
				w.unclaim(&entries[i])
			}
		}))
	})
}

// TestEndsOfOneTransaction has more ends in one transaction than a value of mail
// holds, and one that is later than the transaction by the clock.
func TestEndsOfOneTransaction(t *testing.T) {
	t.Parallel()
	const ends, late = 3 * index.MaxMailValue / index.MaxInlineNotice, 100
	w, _, _ := claimersOn(t, storetest.New(t), 1)
	tx := w.db.Begin(kv.Options{})
	changes := newWriteSet(w.c.keys, tx, 1, new(lane.Known))
	want := make([]layout.Notice, ends)
	for i := range want {
		claim := &layout.Claim{Token: layout.Token{Worker: "w", Sequence: 1}}
		row := layout.Row{ID: layout.BatchItemID("b", i), Spec: &layout.Spec{Session: "s"}, Claim: claim}
		row.Result = &layout.Result{Token: claim.Token, Value: make([]byte, index.MaxInlineNotice), At: int64(i % (late + 1))}
		want[i] = layout.Notice{ID: row.ID, State: layout.Realized, Result: row.Result}
		changes.ends.Update(nil, &row)
		changes.mail.Update(nil, &row)
	}
	require.NoError(t, changes.Flush(w.ctx))
	_, err := tx.Commit(w.ctx)
	require.NoError(t, err)
	var notices []layout.Notice
	require.NoError(t, w.c.EachKey(w.ctx, kv.Prefix(w.c.keys.Mailbox("s")), func(item kv.KeyValue) (err error) {
		notices, err = layout.AppendNotices(notices, item)
		return err
	}))
	require.Len(t, notices, ends)
	for i := range notices {
		require.Equal(t, want[i].ID, notices[i].ID)
	}
	var entry layout.DoneEntry
	require.NoError(t, w.c.EachKey(w.ctx, kv.Prefix(w.c.keys.DoneOf(want[0].ID.Shard(1))), func(item kv.KeyValue) error {
		return layout.Decode(item.Key, item.Value, &entry)
	}))
	require.EqualValues(t, late, entry.At, "no end is later than its entry in the done list")
	require.Len(t, layout.UnpackIDs(entry.IDs), ends)
}
