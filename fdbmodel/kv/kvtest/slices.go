package kvtest

import (
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

func sliceCases() []testCase {
	return []testCase{
		{name: "Slices/PassedIn", run: slicesIn},
		{name: "Slices/PassedInAndRead", run: slicesInRead},
		{name: "Slices/PassedInAsConflicts", exact: true, run: slicesInConflicts},
		{name: "Slices/Returned", run: slicesOut},
	}
}

// scrap returns bytes that spoil turns into others.
type scrap struct{ all [][]byte }

func (s *scrap) of(b []byte) []byte {
	b = append([]byte(nil), b...)
	s.all = append(s.all, b)
	return b
}

func (s *scrap) span(r kv.Range) kv.Range { return kv.Range{Begin: s.of(r.Begin), End: s.of(r.End)} }

func (s *scrap) spoil() {
	for _, b := range s.all {
		for i := range b {
			b[i] = 'X'
		}
	}
}

func slicesIn(b *bundle) {
	b.put("a", "b", "c")
	b.once(func(tx kv.Tx) error {
		s := &scrap{}
		tx.Set(s.of(b.key("a")), s.of([]byte("new")))
		tx.Clear(s.of(b.key("b")))
		tx.ClearRange(s.span(b.span("c", "d")))
		tx.Atomic(kv.Add, s.of(b.key("n")), s.of([]byte("sum")))
		tx.SetVersionstampedKey(s.of(b.key("s"+blank)), len(b.prefix)+1, s.of([]byte("v")))
		tx.SetVersionstampedValue(s.of(b.key("v")), s.of([]byte(blank+"tail")), 0)
		tx.AddReadConflictKey(s.of(b.key("x")))
		tx.AddReadConflictRange(s.span(b.span("y", "z")))
		tx.AddWriteConflictKey(s.of(b.key("x")))
		tx.AddWriteConflictRange(s.span(b.span("y", "z")))
		s.spoil()
		return nil
	})
	require.Equal(b, "a=new n=sum", b.scan("", "s"))
	require.Equal(b, "tail", b.get("v")[kv.StampSize:])
	require.Contains(b, b.scan("s", "t"), "=v")
}

func slicesInRead(b *bundle) {
	b.put("a", "b")
	w := b.watchScrap("a")
	b.expect(func(p *probe) {
		s := &scrap{}
		p.Set(s.of(b.key("c")), s.of([]byte("own")))
		one := p.Get(s.of(b.key("a")))
		all := p.GetRange(s.span(b.span("", "")), kv.RangeOptions{})
		s.spoil()
		value, err := one.Wait(b.ctx)
		p.note(err, "%s", show(value))
		page, err := all.Wait(b.ctx)
		p.note(err, "%s", b.showPage(page))
	}, "a", "a=a b=b c=own")
	b.update(func(tx kv.Tx) { tx.Set(b.key("a"), []byte("new")) })
	b.fires(w)
}

// slicesInConflicts commits two transactions in turn, whose only meeting point
// is a conflict range in a slice that was used again.
func slicesInConflicts(b *bundle) {
	for name, add := range map[string]struct{ read, write func(tx kv.Tx, s *scrap) }{
		"keys": {
			func(tx kv.Tx, s *scrap) { tx.AddReadConflictKey(s.of(b.key("a"))) },
			func(tx kv.Tx, s *scrap) { tx.AddWriteConflictKey(s.of(b.key("a"))) },
		},
		"ranges": {
			func(tx kv.Tx, s *scrap) { tx.AddReadConflictRange(s.span(b.span("a", "b"))) },
			func(tx kv.Tx, s *scrap) { tx.AddWriteConflictRange(s.span(b.span("a", "b"))) },
		},
		"reads": {
			func(tx kv.Tx, s *scrap) { tx.Get(s.of(b.key("a"))) },
			func(tx kv.Tx, s *scrap) { tx.ClearRange(s.span(b.span("a", "b"))) },
		},
		"range reads": {
			func(tx kv.Tx, s *scrap) { tx.GetRange(s.span(b.span("a", "b")), kv.RangeOptions{}) },
			func(tx kv.Tx, s *scrap) { tx.Set(s.of(b.key("a")), nil) },
		},
	} {
		reader, writer, s := b.beginRead(), b.begin(), &scrap{}
		add.read(reader, s)
		add.write(writer, s)
		reader.Set(b.key("out"), nil)
		s.spoil()
		b.commit(writer)
		_, err := reader.Commit(b.ctx)
		require.ErrorIs(b, err, kv.ErrConflict, name)
	}
}

// watchScrap watches the named key, passed in a slice that is used again.
func (b *bundle) watchScrap(name string) kv.Watch {
	var w kv.Watch
	_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) error {
		s := &scrap{}
		w = a.Watch(s.of(b.key(name)))
		s.spoil()
		return nil
	})
	require.NoError(b, err)
	b.Cleanup(w.Cancel)
	return w
}

func slicesOut(b *bundle) {
	b.put("a", "b")
	b.expect(func(p *probe) {
		p.set("c", "own")
		for range 2 {
			value, err := p.Get(b.key("a")).Wait(b.ctx)
			p.note(err, "%s", show(value))
			own, err := p.Get(b.key("c")).Wait(b.ctx)
			p.note(err, "%s", show(own))
			page, err := p.GetRange(b.span("", ""), kv.RangeOptions{}).Wait(b.ctx)
			p.note(err, "%s", b.showPage(page))
			s := &scrap{all: [][]byte{value, own}}
			for _, item := range page.Items {
				s.all = append(s.all, item.Key, item.Value)
			}
			s.spoil()
		}
	}, "a", "own", "a=a b=b c=own", "a", "own", "a=a b=b c=own")
	require.Equal(b, "a=a b=b", b.scan("", ""))
}
