package kvtest

import (
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

func readCases() []testCase {
	return []testCase{
		{name: "Read/Values", run: readValues},
		{name: "Read/OwnWrites", run: readOwnWrites},
		{name: "Read/OwnClearInTheMiddle", run: readOwnClear},
		{name: "Read/SnapshotSeesOwnWrites", run: readSnapshotOwnWrites},
		{name: "Read/OwnAtomicOperations", run: readOwnAtomics},
		{name: "Read/Ranges", run: readRanges},
		{name: "Read/PagesByBytes", run: readPagesByBytes},
		{name: "Read/LimitAcrossOwnWrites", run: readLimitOwnWrites},
		{name: "Read/ByteOrder", run: readByteOrder},
		{name: "Read/AsksAtOnce", run: readAsksAtOnce},
		{name: "Read/WaitedForAfterCommit", run: readAfterCommit},
		{name: "Read/OneVersion", exact: true, run: readOneVersion},
		{name: "Read/CancelledWritesNothing", run: readCancelled},
	}
}

// readAfterCommit waits for reads once their transaction is over: they are what it would have read.
func readAfterCommit(b *bundle) {
	b.put("a", "b")
	var value kv.Pending[[]byte]
	var page kv.Pending[kv.Page]
	b.once(func(tx kv.Tx) error {
		value, page = tx.Get(b.key("a")), tx.Snapshot().GetRange(b.span("a", "c"), kv.RangeOptions{Limit: 9})
		tx.Set(b.key("a"), []byte("new"))
		tx.Clear(b.key("b"))
		return nil
	})
	if got, err := value.Wait(b.ctx); !b.o.Faults || !kv.Retryable(err) {
		require.NoError(b, err)
		require.Equal(b, "a", string(got))
	}
	if got, err := page.Wait(b.ctx); !b.o.Faults || !kv.Retryable(err) {
		require.NoError(b, err)
		require.Len(b, got.Items, 2)
		require.Equal(b, "a", string(got.Items[0].Value))
	}
	require.Equal(b, "a=new", b.scan("a", "c"))
}

func readValues(b *bundle) {
	b.update(func(tx kv.Tx) {
		tx.Set(b.key("full"), []byte("v"))
		tx.Set(b.key("empty"), []byte{})
		tx.Set(b.key("nil"), nil)
	})
	b.expect(func(p *probe) {
		p.get("full")
		p.get("empty")
		p.get("nil")
		p.get("none")
		p.scan("", "", kv.RangeOptions{})
	}, "full=v", "empty=", "nil=", "none=<absent>", "empty= full=v nil=")
	b.update(func(tx kv.Tx) { tx.Clear(b.key("full")) })
	require.Equal(b, "empty= nil=", b.scan("", ""))
}

func readOwnWrites(b *bundle) {
	b.put("b", "d")
	b.expect(func(p *probe) {
		p.set("a", "1")
		p.set("b", "2")
		p.get("a")
		p.get("b")
		p.scan("", "", kv.RangeOptions{})
		p.Clear(b.key("b"))
		p.get("b")
		p.scan("", "", kv.RangeOptions{})
		p.scan("", "", kv.RangeOptions{Reverse: true})
		p.ClearRange(b.span("", ""))
		p.get("d")
		p.scan("", "", kv.RangeOptions{})
		p.set("c", "3")
		p.scan("", "", kv.RangeOptions{})
	}, "a=1", "b=2", "a=1 b=2 d=d", "b=<absent>", "a=1 d=d", "d=d a=1", "d=<absent>", "", "c=3")
	require.Equal(b, "b=b d=d", b.scan("", ""))
}

// readPagesByBytes goes through a range page by page, none of which goes on behind the row that reaches the bound.
func readPagesByBytes(b *bundle) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("%02d", i))
	}
	b.put(names...)
	b.once(func(a kv.Tx) error {
		a.Set(b.key("055"), []byte("own"))
		a.Clear(b.key("10"))
		var values []string
		r := b.span("", "")
		for more := true; more; {
			page, err := a.GetRange(r, kv.RangeOptions{Bytes: 100}).Wait(b.ctx)
			if err != nil {
				return err
			}
			size := 0
			for _, item := range page.Items {
				require.Less(b, size, 100)
				size += len(item.Key) + len(item.Value)
				values = append(values, string(item.Value))
			}
			if more = page.More; more {
				require.NotEmpty(b, page.Items)
				r.Begin = kv.After(page.Items[len(page.Items)-1].Key)
			}
		}
		want := slices.Delete(slices.Insert(slices.Clone(names), 6, "own"), 11, 12)
		require.Equal(b, want, values)
		return nil
	})
}

func readOwnClear(b *bundle) {
	b.put("a", "b", "c", "d", "e")
	b.expect(func(p *probe) {
		p.ClearRange(b.span("b", "d"))
		p.scan("", "", kv.RangeOptions{})
		p.scan("", "", kv.RangeOptions{Reverse: true})
		p.scan("", "", kv.RangeOptions{Limit: 2})
		p.scan("", "", kv.RangeOptions{Limit: 2, Reverse: true})
		p.set("c", "new")
		p.scan("b", "e", kv.RangeOptions{})
		p.scan("b", "c", kv.RangeOptions{})
	}, "a=a d=d e=e", "e=e d=d a=a", "a=a d=d ...", "e=e d=d ...", "c=new d=d", "")
}

func readSnapshotOwnWrites(b *bundle) {
	b.put("a", "b")
	b.expect(func(p *probe) {
		p.set("a", "own")
		p.Clear(b.key("b"))
		p.set("c", "own")
		p.getFrom(p.Snapshot(), "a")
		p.getFrom(p.Snapshot(), "b")
		p.scanFrom(p.Snapshot(), "", "", kv.RangeOptions{})
	}, "a=own", "b=<absent>", "a=own c=own")
}

func readOwnAtomics(b *bundle) {
	b.update(func(tx kv.Tx) { tx.Set(b.key("n"), []byte{'a', 1}) })
	b.expect(func(p *probe) {
		p.Atomic(kv.Add, b.key("n"), []byte{1, 'a' - 1})
		p.get("n")
		p.Atomic(kv.Add, b.key("n"), []byte{1})
		p.get("n")
		p.Clear(b.key("n"))
		p.Atomic(kv.Add, b.key("n"), []byte("zz"))
		p.get("n")
		p.Atomic(kv.CompareAndClear, b.key("n"), []byte("zz"))
		p.get("n")
		p.Atomic(kv.ByteMax, b.key("m"), []byte("m"))
		p.scan("", "", kv.RangeOptions{})
	}, "n=ba", "n=c", "n=zz", "n=<absent>", "m=m")
}

func readRanges(b *bundle) {
	b.put("a", "b", "c", "d")
	b.expect(func(p *probe) {
		p.scan("a", "c", kv.RangeOptions{})
		p.scan("a", "c", kv.RangeOptions{Reverse: true})
		p.scan("b", "b", kv.RangeOptions{})
		p.scan("aa", "az", kv.RangeOptions{})
		p.scan("", "", kv.RangeOptions{Limit: 3})
		p.scan("", "", kv.RangeOptions{Limit: 3, Reverse: true})
		p.scan("", "", kv.RangeOptions{Limit: 4})
		p.scan("", "", kv.RangeOptions{Limit: 5})
		p.scan("bb", "", kv.RangeOptions{Limit: 1})
		p.scan("", "bb", kv.RangeOptions{Limit: 1, Reverse: true})
		p.scanFrom(p.Snapshot(), "b", "d", kv.RangeOptions{})
	}, "a=a b=b", "b=b a=a", "", "", "a=a b=b c=c ...", "d=d c=c b=b ...", "a=a b=b c=c d=d ...",
		"a=a b=b c=c d=d", "c=c ...", "b=b ...", "b=b c=c")
}

func readLimitOwnWrites(b *bundle) {
	b.put("b", "d", "f")
	b.expect(func(p *probe) {
		p.set("a", "own")
		p.Clear(b.key("b"))
		p.set("e", "own")
		p.scan("", "", kv.RangeOptions{Limit: 1})
		p.scan("", "", kv.RangeOptions{Limit: 2})
		p.scan("", "", kv.RangeOptions{Limit: 3})
		p.scan("", "", kv.RangeOptions{Limit: 2, Reverse: true})
		p.scan("", "", kv.RangeOptions{Limit: 5})
	}, "a=own ...", "a=own d=d ...", "a=own d=d e=own ...", "f=f e=own ...", "a=own d=d e=own f=f")
}

func readByteOrder(b *bundle) {
	names := []string{
		"", "\x00", "\x00\x00", "\x00\xff", "a", "a\x00", "a\x00\x00", "a\xff", "b", "\xfe\xff", "\xff", "\xff\xff",
	}
	b.put(names...)
	var forward, backward []string
	for i := range names {
		forward = append(forward, string(b.key(names[i])))
		backward = append(backward, string(b.key(names[len(names)-1-i])))
	}
	require.Equal(b, forward, b.rowKeys(kv.RangeOptions{}))
	require.Equal(b, backward, b.rowKeys(kv.RangeOptions{Reverse: true}))
	b.expect(func(p *probe) { p.scan("a", "a\x00", kv.RangeOptions{}) }, "a=a")
}

// rowKeys reads the keys of everything, four at a time.
func (b *bundle) rowKeys(o kv.RangeOptions) []string {
	o.Limit = 4
	var keys []string
	_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) error {
		keys = nil
		rest := kv.Prefix(b.prefix)
		for more := true; more; {
			page, err := a.GetRange(rest, o).Wait(b.ctx)
			if err != nil {
				return err
			}
			for _, item := range page.Items {
				keys = append(keys, string(item.Key))
				if o.Reverse {
					rest.End = item.Key
				} else {
					rest.Begin = kv.After(item.Key)
				}
			}
			more = page.More
		}
		return nil
	})
	require.NoError(b, err)
	return keys
}

func readAsksAtOnce(b *bundle) {
	b.put("a", "b")
	b.expect(func(p *probe) {
		before := p.Get(b.key("a"))
		rows := p.GetRange(b.span("", ""), kv.RangeOptions{})
		p.set("a", "own")
		p.Clear(b.key("b"))
		after := p.Get(b.key("a"))
		value, err := after.Wait(b.ctx)
		p.note(err, "after %s", show(value))
		page, err := rows.Wait(b.ctx)
		p.note(err, "rows %s", b.showPage(page))
		value, err = before.Wait(b.ctx)
		p.note(err, "before %s", show(value))
	}, "after own", "rows a=a b=b", "before a")
}

func readOneVersion(b *bundle) {
	b.put("a", "b")
	tx := b.begin()
	first, err := tx.Get(b.key("a")).Wait(b.ctx)
	require.NoError(b, err)
	b.update(func(tx kv.Tx) {
		tx.Set(b.key("a"), []byte("new"))
		tx.Set(b.key("b"), []byte("new"))
		tx.Set(b.key("c"), []byte("new"))
	})
	second, err := tx.Get(b.key("b")).Wait(b.ctx)
	require.NoError(b, err)
	page, err := tx.Snapshot().GetRange(b.span("", ""), kv.RangeOptions{}).Wait(b.ctx)
	require.NoError(b, err)
	require.Equal(b, "a b", string(first)+" "+string(second))
	require.Equal(b, "a=a b=b", b.showPage(page))
	require.Equal(b, "a=new b=new c=new", b.scan("", ""))
}

func readCancelled(b *bundle) {
	tx := b.begin()
	tx.Set(b.key("a"), []byte("v"))
	tx.Cancel()
	tx.Cancel()
	require.Equal(b, "", b.scan("", ""))
}
