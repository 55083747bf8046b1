package kvtest

import (
	"bytes"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

func limitCases() []testCase {
	return []testCase{
		{name: "Limit/KeysAndValuesAtTheLimit", run: limitAt},
		{name: "Limit/KeyTooLarge", exact: true, run: limitKey},
		{name: "Limit/ValueTooLarge", exact: true, run: limitValue},
		{name: "Limit/TransactionTooLarge", exact: true, run: limitTx},
		{name: "Limit/ConflictRangesCount", exact: true, run: limitConflictRanges},
		{name: "Limit/IllegalKeys", exact: true, run: limitIllegal},
		{name: "Limit/IllegalReads", exact: true, run: limitIllegalReads},
		{name: "Limit/LastLegalRange", run: limitLastRange},
		{name: "Limit/MistakePoisons", exact: true, run: limitPoisons},
	}
}

// stampOffsetSize is what a stamped key or value may be shorter than others:
// FoundationDB counts its offset.
const stampOffsetSize = 4

// longKey returns one of the case's keys of that size.
func (b *bundle) longKey(size int) []byte {
	return append(bytes.Clone(b.prefix), bytes.Repeat([]byte{'k'}, size-len(b.prefix))...)
}

func limitAt(b *bundle) {
	key, value := b.longKey(kv.MaxKeySize), bytes.Repeat([]byte{'v'}, kv.MaxValueSize)
	stamped := b.longKey(kv.MaxKeySize - stampOffsetSize)
	var got []byte
	b.update(func(tx kv.Tx) {
		tx.Set(key, value)
		tx.Atomic(kv.ByteMax, b.key("a"), value)
		tx.SetVersionstampedKey(stamped, len(b.prefix), nil)
		tx.SetVersionstampedValue(b.key("b"), value[stampOffsetSize:], 0)
	})
	_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) (err error) {
		got, err = a.Get(key).Wait(b.ctx)
		return err
	})
	require.NoError(b, err)
	require.True(b, bytes.Equal(value, got))
	require.Len(b, b.get("a"), kv.MaxValueSize)
	require.Len(b, b.get("b"), kv.MaxValueSize-stampOffsetSize)
}

// refuses commits a transaction with the mutation in it, and expects want and
// nothing written.
func (b *bundle) refuses(want error, what string, mutate func(kv.Tx)) {
	b.Helper()
	tx := b.begin()
	tx.Set(b.key("with"), nil)
	mutate(tx)
	_, err := tx.Commit(b.ctx)
	require.ErrorIs(b, err, want, what)
	require.Equal(b, "", b.scan("", ""), what)
}

func limitKey(b *bundle) {
	long := b.longKey(kv.MaxKeySize + 1)
	for what, mutate := range map[string]func(kv.Tx){
		"Set":                    func(tx kv.Tx) { tx.Set(long, nil) },
		"Atomic":                 func(tx kv.Tx) { tx.Atomic(kv.Add, long, []byte{1}) },
		"SetVersionstampedKey":   func(tx kv.Tx) { tx.SetVersionstampedKey(long, 100, nil) },
		"SetVersionstampedValue": func(tx kv.Tx) { tx.SetVersionstampedValue(long, []byte(blank), 0) },
	} {
		b.refuses(kv.ErrKeyTooLarge, what, mutate)
	}
}

func limitValue(b *bundle) {
	long := make([]byte, kv.MaxValueSize+1)
	for what, mutate := range map[string]func(kv.Tx){
		"Set":                    func(tx kv.Tx) { tx.Set(b.key("a"), long) },
		"Atomic":                 func(tx kv.Tx) { tx.Atomic(kv.Add, b.key("a"), long) },
		"SetVersionstampedKey":   func(tx kv.Tx) { b.stampKey(tx, "s", string(long)) },
		"SetVersionstampedValue": func(tx kv.Tx) { tx.SetVersionstampedValue(b.key("a"), long, 0) },
	} {
		b.refuses(kv.ErrValueTooLarge, what, mutate)
	}
}

// fill sets n of the largest values.
func (b *bundle) fill(tx kv.Tx, n int) {
	value := make([]byte, kv.MaxValueSize)
	for i := range n {
		tx.Set(b.key(fmt.Sprint(i)), value)
	}
}

func limitTx(b *bundle) {
	b.refuses(kv.ErrTxTooLarge, "values", func(tx kv.Tx) { b.fill(tx, kv.MaxTxSize/kv.MaxValueSize) })
	b.update(func(tx kv.Tx) { b.fill(tx, kv.MaxTxSize/kv.MaxValueSize-1) })
}

func limitConflictRanges(b *bundle) {
	add := func(n int, add func(kv.Range)) {
		for i := range n {
			from := append(b.key(fmt.Sprintf("%04d", i)), make([]byte, kv.MaxKeySize/2)...)
			add(kv.Range{Begin: from, End: kv.After(from)})
		}
	}
	enough := kv.MaxTxSize/kv.MaxKeySize + 1
	b.refuses(kv.ErrTxTooLarge, "read conflict ranges", func(tx kv.Tx) { add(enough, tx.AddReadConflictRange) })
	b.refuses(kv.ErrTxTooLarge, "write conflict ranges", func(tx kv.Tx) { add(enough, tx.AddWriteConflictRange) })
	b.refuses(kv.ErrTxTooLarge, "both", func(tx kv.Tx) {
		add(enough/2+1, tx.AddReadConflictRange)
		add(enough/2+1, tx.AddWriteConflictRange)
	})
	b.update(func(tx kv.Tx) {
		tx.Set(b.key("a"), nil)
		add(enough*9/10, tx.AddReadConflictRange)
	})
}

func limitIllegal(b *bundle) {
	for _, key := range [][]byte{{0xff}, {0xff, 0xff}, []byte("\xff/a")} {
		beyond := kv.Range{Begin: b.key("a"), End: append(bytes.Clone(key), 0)}
		inverted := kv.Range{Begin: b.key("b"), End: b.key("a")}
		stamped := append(bytes.Clone(key), blank...)
		for what, mutate := range map[string]func(kv.Tx){
			"Set":                    func(tx kv.Tx) { tx.Set(key, nil) },
			"Clear":                  func(tx kv.Tx) { tx.Clear(key) },
			"ClearRange":             func(tx kv.Tx) { tx.ClearRange(beyond) },
			"Atomic":                 func(tx kv.Tx) { tx.Atomic(kv.Add, key, []byte{1}) },
			"SetVersionstampedKey":   func(tx kv.Tx) { tx.SetVersionstampedKey(stamped, len(key), nil) },
			"SetVersionstampedValue": func(tx kv.Tx) { tx.SetVersionstampedValue(key, []byte(blank), 0) },
			"AddReadConflictKey":     func(tx kv.Tx) { tx.AddReadConflictKey(key) },
			"AddReadConflictRange":   func(tx kv.Tx) { tx.AddReadConflictRange(beyond) },
			"AddWriteConflictKey":    func(tx kv.Tx) { tx.AddWriteConflictKey(key) },
			"AddWriteConflictRange":  func(tx kv.Tx) { tx.AddWriteConflictRange(beyond) },
			"inverted ClearRange":    func(tx kv.Tx) { tx.ClearRange(inverted) },
			"inverted read range":    func(tx kv.Tx) { tx.AddReadConflictRange(inverted) },
			"inverted write range":   func(tx kv.Tx) { tx.AddWriteConflictRange(inverted) },
		} {
			b.refuses(kv.ErrIllegalKey, what, mutate)
		}
	}
}

func limitIllegalReads(b *bundle) {
	tx := b.begin()
	for _, r := range []kv.Reader{tx, tx.Snapshot()} {
		_, err := r.Get([]byte{0xff}).Wait(b.ctx)
		require.ErrorIs(b, err, kv.ErrIllegalKey)
		for _, illegal := range []kv.Range{
			{Begin: b.key("a"), End: []byte{0xff, 0}},
			{Begin: []byte{0xff, 0}, End: []byte{0xff, 1}},
			{Begin: b.key("b"), End: b.key("a")},
		} {
			_, err = r.GetRange(illegal, kv.RangeOptions{Limit: 1}).Wait(b.ctx)
			require.ErrorIs(b, err, kv.ErrIllegalKey)
		}
	}
}

func limitLastRange(b *bundle) {
	var page kv.Page
	_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) (err error) {
		page, err = a.Snapshot().GetRange(kv.Prefix([]byte{0xfe, 'k', 'v'}), kv.RangeOptions{Limit: 1}).Wait(b.ctx)
		if err != nil {
			return err
		}
		_, err = a.Snapshot().GetRange(kv.Range{Begin: []byte{0xfe, 0xff}, End: []byte{0xff}}, kv.RangeOptions{Limit: 1}).
			Wait(b.ctx)
		return err
	})
	require.NoError(b, err)
	require.Empty(b, page.Items)
}

func limitPoisons(b *bundle) {
	tx := b.begin()
	tx.Set(b.key("before"), nil)
	tx.Set(b.longKey(kv.MaxKeySize+1), nil)
	tx.Set([]byte{0xff}, nil)
	tx.Set(b.key("after"), nil)
	tx.ClearRange(kv.Range{Begin: b.prefix, End: kv.AfterPrefix(b.prefix)})
	_, err := tx.Commit(b.ctx)
	require.ErrorIs(b, err, kv.ErrKeyTooLarge)
	_, err = tx.Commit(b.ctx)
	require.ErrorIs(b, err, kv.ErrUsed)
	require.Equal(b, "", b.scan("", ""))
}
