package kvtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/anomaly"
)

// listForm is how a list of the workload is stored.
type listForm int

const (
	// whole is one value, which an append reads and writes.
	whole listForm = iota
	// numbered is a row for each element. An append reads the last one, in reverse, for the next number.
	numbered
	// stamped is a row for each element under a stamp. An append reads nothing.
	stamped
	listForms
)

func formOf(list int) listForm { return listForm(list) % listForms }

// listTx is a transaction of the workload.
type listTx struct {
	*appender
	kv.Tx
	recorded *anomaly.Tx
	// snapshot is set for a transaction that reads nothing but snapshots and writes nothing.
	snapshot bool
	wrote    bool
	// stamps are how many rows the transaction has stamped, by list.
	stamps map[int]byte
}

func (t *listTx) operate(ctx context.Context, plans []plan) error {
	for _, p := range plans {
		name := fmt.Sprint("list", p.list)
		if p.appends {
			// What is appended counts as recorded even if the append fails.
			element := t.draw(p.list)
			t.recorded.Ops = append(t.recorded.Ops, anomaly.Append(name, element))
			if err := t.appendTo(ctx, p.list, element); err != nil {
				return err
			}
		} else if t.stamps[p.list] == 0 { // what is stamped can't be read before its commit
			elements, err := t.read(ctx, p.list)
			if err != nil {
				return err
			}
			t.recorded.Ops = append(t.recorded.Ops, anomaly.Read(name, elements...))
		}
		if t.random.IntN(2) == 0 {
			runtime.Gosched()
		}
	}
	return nil
}

// base is what the keys of a list begin with.
func (t *listTx) base(list int) []byte { return fmt.Appendf(slices.Clone(t.prefix), "%d/", list) }

func bytesOf(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func (t *listTx) appendTo(ctx context.Context, list, element int) error {
	base := t.base(list)
	switch formOf(list) {
	case whole:
		value, err := t.Get(base).Wait(ctx)
		if err != nil {
			return err
		}
		t.Set(base, append(value, bytesOf(element)...))
	case numbered:
		page, err := t.GetRange(kv.Prefix(base), kv.RangeOptions{Limit: 1, Reverse: true}).Wait(ctx)
		if err != nil {
			return err
		}
		next := 0
		if len(page.Items) > 0 {
			next = int(binary.BigEndian.Uint64(page.Items[0].Key[len(base):])) + 1
		}
		t.Set(append(base, bytesOf(next)...), bytesOf(element))
	default:
		key := append(append(base, make([]byte, kv.StampSize)...), t.stamps[list])
		t.SetVersionstampedKey(key, len(base), bytesOf(element))
		t.stamps[list]++
	}
	t.wrote = true
	return nil
}

// read reads a list. A transaction that writes sometimes reads a snapshot and declares that it has read it.
func (t *listTx) read(ctx context.Context, list int) ([]int, error) {
	base := t.base(list)
	keys, reader := kv.Prefix(base), kv.Reader(t.Tx)
	if t.snapshot {
		reader = t.Snapshot()
	} else if t.random.IntN(4) == 0 {
		t.AddReadConflictRange(keys)
		reader = t.Snapshot()
	}
	if formOf(list) == whole {
		value, err := reader.Get(base).Wait(ctx)
		return elementsOf(value), err
	}
	page, err := reader.GetRange(keys, kv.RangeOptions{}).Wait(ctx)
	var elements []int
	for _, item := range page.Items {
		elements = append(elements, elementsOf(item.Value)...)
	}
	return elements, err
}

func elementsOf(value []byte) (elements []int) {
	for chunk := range slices.Chunk(value, 8) {
		elements = append(elements, int(binary.BigEndian.Uint64(chunk)))
	}
	return elements
}
