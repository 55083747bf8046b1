package kvtest

import (
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

func atomicCases() []testCase {
	return []testCase{
		{name: "Atomic/Results", run: atomicResults},
		{name: "Atomic/ResultsOnOwnWrites", run: atomicOwnResults},
		{name: "Atomic/Sequences", run: atomicSequences},
	}
}

// absent stands for a key that does not exist.
const absent = "<absent>"

// atomicResult is one operation on one value.
type atomicResult struct {
	op               kv.AtomicOp
	old, param, want string
}

func atomicTable() []atomicResult {
	return []atomicResult{
		{kv.Add, absent, "\x05", "\x05"},
		{kv.Add, "", "\x05\x00", "\x05\x00"},
		{kv.Add, "\x01", "\x05", "\x06"},
		{kv.Add, "\xff", "\x01", "\x00"},
		{kv.Add, "\xff\x00", "\x01\x00", "\x00\x01"},
		{kv.Add, "\xff", "\x01\x00", "\x00\x01"},
		{kv.Add, "\x01\x02\x03", "\x01", "\x02"},
		{kv.Add, "\x01\x02", "", ""},
		{kv.Add, absent, "", ""},
		{kv.Add, "\x01", "\xff\xff", "\x00\x00"},

		{kv.Max, absent, "\x05", "\x05"},
		{kv.Max, "", "\x05", "\x05"},
		{kv.Max, "\x06", "\x05", "\x06"},
		{kv.Max, "\x04", "\x05", "\x05"},
		{kv.Max, "\x00\x01", "\xff\x00", "\x00\x01"},
		{kv.Max, "\x06", "\x05\x00", "\x06\x00"},
		{kv.Max, "\xff", "\x00\x01", "\x00\x01"},
		{kv.Max, "\x04\x01", "\x05", "\x05"},
		{kv.Max, "\x06\x01", "\x05", "\x06"},
		{kv.Max, "\x06", "", ""},

		{kv.Min, absent, "\x05", "\x05"},
		{kv.Min, "", "\x05\x01", "\x00\x00"},
		{kv.Min, "\x06", "\x05", "\x05"},
		{kv.Min, "\x04", "\x05", "\x04"},
		{kv.Min, "\x00\x01", "\xff\x00", "\xff\x00"},
		{kv.Min, "\xff", "\x00\x01", "\xff\x00"},
		{kv.Min, "\x04\x01", "\x05", "\x04"},
		{kv.Min, "\x06\x00", "\x05", "\x05"},
		{kv.Min, "\x06", "", ""},

		{kv.ByteMax, absent, "b", "b"},
		{kv.ByteMax, "", "b", "b"},
		{kv.ByteMax, "a", "b", "b"},
		{kv.ByteMax, "c", "b", "c"},
		{kv.ByteMax, "bb", "b", "bb"},
		{kv.ByteMax, "b", "", "b"},
		{kv.ByteMax, absent, "", ""},

		{kv.ByteMin, absent, "b", "b"},
		{kv.ByteMin, "", "b", ""},
		{kv.ByteMin, "a", "b", "a"},
		{kv.ByteMin, "c", "b", "b"},
		{kv.ByteMin, "bb", "b", "b"},
		{kv.ByteMin, "b", "", ""},

		{kv.CompareAndClear, absent, "b", absent},
		{kv.CompareAndClear, absent, "", absent},
		{kv.CompareAndClear, "b", "b", absent},
		{kv.CompareAndClear, "", "", absent},
		{kv.CompareAndClear, "", "b", ""},
		{kv.CompareAndClear, "b", "bb", "b"},
		{kv.CompareAndClear, "b", "", "b"},
	}
}

// atomicName names the key of the i-th result.
func atomicName(i int) string { return fmt.Sprintf("%03d", i) }

// write writes value, or clears the key if it is absent.
func (b *bundle) write(tx kv.Tx, name, value string) {
	if value == absent {
		tx.Clear(b.key(name))
		return
	}
	tx.Set(b.key(name), []byte(value))
}

func (b *bundle) requireAtomic(r atomicResult, name, got string) {
	b.Helper()
	require.Equal(b, r.want, got, "%s: op %d of %q on %q", name, r.op, r.param, r.old)
}

func atomicResults(b *bundle) {
	table := atomicTable()
	b.update(func(tx kv.Tx) {
		for i, r := range table {
			b.write(tx, atomicName(i), r.old)
		}
	})
	apply := func(tx kv.Tx) {
		for i, r := range table {
			tx.Atomic(r.op, b.key(atomicName(i)), []byte(r.param))
		}
	}
	pending := b.observe(func(p *probe) {
		apply(p)
		for i := range table {
			value, err := p.Get(b.key(atomicName(i))).Wait(b.ctx)
			p.note(err, "%s", show(value))
		}
	})
	for i, r := range table {
		b.requireAtomic(r, "before the commit", pending[i])
	}
	b.once(func(tx kv.Tx) error {
		apply(tx)
		return nil
	})
	for i, r := range table {
		b.requireAtomic(r, "after the commit", b.get(atomicName(i)))
	}
}

func atomicOwnResults(b *bundle) {
	table := atomicTable()
	apply := func(tx kv.Tx) {
		for i, r := range table {
			b.write(tx, atomicName(i), r.old)
			tx.Atomic(r.op, b.key(atomicName(i)), []byte(r.param))
		}
	}
	pending := b.observe(func(p *probe) {
		apply(p)
		for i := range table {
			value, err := p.Get(b.key(atomicName(i))).Wait(b.ctx)
			p.note(err, "%s", show(value))
		}
	})
	b.update(apply)
	for i, r := range table {
		b.requireAtomic(r, "before the commit", pending[i])
		b.requireAtomic(r, "after the commit", b.get(atomicName(i)))
	}
}

func atomicSequences(b *bundle) {
	b.update(func(tx kv.Tx) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			tx.Set(b.key(name), []byte("\x01\x01"))
		}
	})
	apply := func(tx kv.Tx) {
		tx.Atomic(kv.Add, b.key("a"), []byte("\xff"))
		tx.Atomic(kv.Add, b.key("a"), []byte("\x01\x01\x01"))
		tx.Atomic(kv.Add, b.key("b"), []byte("\x01\x00"))
		tx.Atomic(kv.Max, b.key("b"), []byte("\x00\x02"))
		tx.Atomic(kv.Min, b.key("b"), []byte("\x07"))
		tx.Atomic(kv.CompareAndClear, b.key("c"), []byte("\x01\x01"))
		tx.Atomic(kv.ByteMin, b.key("c"), []byte("z"))
		tx.Clear(b.key("d"))
		tx.Atomic(kv.Add, b.key("d"), []byte("\x03"))
		tx.Atomic(kv.Add, b.key("d"), []byte("\x03"))
		tx.Atomic(kv.Add, b.key("e"), []byte("\x03"))
		tx.Atomic(kv.CompareAndClear, b.key("e"), []byte("\x04"))
	}
	want := fmt.Sprintf("a=%s b=%s c=%s d=%s", "\x01\x01\x01", "\x00", "z", "\x06")
	b.expect(func(p *probe) {
		apply(p)
		p.scan("", "f", kv.RangeOptions{})
	}, want)
	b.once(func(tx kv.Tx) error {
		apply(tx)
		return nil
	})
	require.Equal(b, want, b.scan("", "f"))
}
