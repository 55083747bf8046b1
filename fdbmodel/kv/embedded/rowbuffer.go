package embedded

import (
	"errors"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// rowBuffer holds rows that were copied out of the index under its lock.
type rowBuffer struct {
	// bytes are keys and values, one behind the other, sizes their lengths.
	bytes []byte
	sizes []rowSize
	// size is how many bytes the rows have, with those that were not copied.
	size int
	// spilled are where values lie that were not copied.
	spilled []fileValue
	// reuses says that spilled values are valid only until the next one is read, in
	// scratch.
	reuses  bool
	scratch []byte
}

type rowSize struct {
	key, value int32
	version    kv.Version
	// spilled says that the value is not in bytes, open and gone that the row's revision is
	// open and that there is no row.
	spilled, open, gone bool
}

// maxPiece is the size of the memory that rows share, for those that hold on
// to one of them.
const maxPiece = 64 << 10

// add copies a row, while the caller holds the lock.
func (b *rowBuffer) add(x *index, e revision) error {
	size := rowSize{key: int32(e.keySize()), version: e.born(), open: e.open()}
	b.size += e.keySize() + e.size()
	if e.spilled() {
		s, err := x.locate(e)
		if err != nil {
			return err
		}
		b.spilled, size.spilled = append(b.spilled, s), true
	} else {
		size.value = int32(e.size())
	}
	// A value that is not spilled lies behind its key.
	begin := revisionHeader
	b.bytes = append(b.bytes, e[begin:begin+int(size.key+size.value)]...)
	b.sizes = append(b.sizes, size)
	return nil
}

// addBelow adds a row of which only the tables know whether it is there.
func (b *rowBuffer) addBelow(x *index, key []byte, v kv.Version) {
	if s := x.below(key, v); s.exists() {
		b.size += len(key)
		b.bytes, b.spilled = append(b.bytes, key...), append(b.spilled, s)
		b.sizes = append(b.sizes, rowSize{key: int32(len(key)), spilled: true})
	}
}

// addGone adds the key of a row that is not there.
func (b *rowBuffer) addGone(key []byte) {
	b.size += len(key)
	b.bytes = append(b.bytes, key...)
	b.sizes = append(b.sizes, rowSize{key: int32(len(key)), gone: true})
}

// addEntry adds a row of a table.
func (b *rowBuffer) addEntry(e entry) {
	b.size += len(e.key) + len(e.value)
	b.bytes = append(append(b.bytes, e.key...), e.value...)
	b.sizes = append(b.sizes, rowSize{key: int32(len(e.key)), value: int32(len(e.value)), version: e.version})
}

// drain hands the rows to visit, and forgets them. A value that was spilled is
// owned by visit, unless the buffer reuses it; the rest is valid until rows are added
// again.
func (b *rowBuffer) drain(visit func(e entry, owned bool) error) error {
	at, spilled := 0, b.spilled
	var err error
	for _, size := range b.sizes {
		end := at + int(size.key)
		e := entry{key: b.bytes[at:end:end], value: b.bytes[end : end+int(size.value)],
			version: size.version, open: size.open}
		at = end + len(e.value)
		if size.spilled {
			var failed error
			// Reading a value releases its file.
			if e.value, failed = spilled[0].read(e.key, b.scratch); failed != nil {
				err = errors.Join(err, failed)
			}
			spilled = spilled[1:]
			if e.value == nil {
				continue
			}
			if b.reuses {
				b.scratch = e.value[:0]
			}
		}
		if err == nil {
			err = visit(e, size.spilled)
		}
	}
	b.forget()
	return err
}

// discard forgets the rows.
func (b *rowBuffer) discard() {
	for _, s := range b.spilled {
		s.release()
	}
	b.forget()
}

func (b *rowBuffer) forget() {
	clear(b.spilled)
	b.bytes, b.sizes, b.spilled, b.size = b.bytes[:0], b.sizes[:0], b.spilled[:0], 0
}

// appendTo drains the rows into items, in memory of their own.
func (b *rowBuffer) appendTo(items []kv.KeyValue) ([]kv.KeyValue, error) {
	items = slices.Grow(items, len(b.sizes))
	rest := len(b.bytes)
	var memory []byte
	own := func(s []byte) []byte {
		n := copy(memory, s)
		mine := memory[:n:n]
		memory, rest = memory[n:], rest-n
		return mine
	}
	err := b.drain(func(e entry, owned bool) error {
		size := len(e.key)
		if !owned {
			size += len(e.value)
		}
		if len(memory) < size {
			memory = make([]byte, max(size, min(rest, maxPiece)))
		}
		item := kv.KeyValue{Key: own(e.key), Value: e.value}
		if !owned {
			item.Value = own(e.value)
		}
		items = append(items, item)
		return nil
	})
	return items, err
}
