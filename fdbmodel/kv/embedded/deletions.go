package embedded

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// deletions are rows that a table may have, and that were deleted since the last
// checkpoint, in the order of versions. They lie in one piece of memory, each as its
// version, the length of its key, whether the tables alone know what was there, and the key.
type deletions struct {
	bytes []byte
	// size is that of bytes.
	size atomic.Int64
}

const deletionHead = 8 + 2 + 1

func (d *deletions) add(key []byte, v kv.Version, open bool) {
	d.bytes = binary.LittleEndian.AppendUint64(d.bytes, uint64(v))
	d.bytes = binary.LittleEndian.AppendUint16(d.bytes, uint16(len(key)))
	if open {
		d.bytes = append(d.bytes, 1)
	} else {
		d.bytes = append(d.bytes, 0)
	}
	d.bytes = append(d.bytes, key...)
	d.size.Store(int64(len(d.bytes)))
}

// through returns the deletions up to a version as they lie in memory, which stay as they
// are.
func (d *deletions) through(v kv.Version) []byte {
	at := 0
	for at < len(d.bytes) && deletionVersion(d.bytes[at:]) <= v {
		at += deletionHead + deletionKeySize(d.bytes[at:])
	}
	return d.bytes[:at:at]
}

// forget drops the first size bytes, which a table has.
func (d *deletions) forget(size int) {
	d.bytes = bytes.Clone(d.bytes[size:])
	d.size.Store(int64(len(d.bytes)))
}

func deletionVersion(b []byte) kv.Version { return kv.Version(binary.LittleEndian.Uint64(b)) }
func deletionKeySize(b []byte) int        { return int(binary.LittleEndian.Uint16(b[8:])) }

// inOrder returns deletions as entries in the order of keys, of each key the last. It is open
// if one of them is.
func inOrder(b []byte) []entry {
	var all []entry
	for len(b) > 0 {
		end := deletionHead + deletionKeySize(b)
		all = append(all, entry{key: b[deletionHead:end:end], version: deletionVersion(b), deleted: true, open: b[10] != 0})
		b = b[end:]
	}
	slices.SortFunc(all, func(a, b entry) int {
		if order := bytes.Compare(a.key, b.key); order != 0 {
			return order
		}
		return int(b.version - a.version)
	})
	n := 0
	for _, e := range all {
		if n > 0 && bytes.Equal(all[n-1].key, e.key) {
			all[n-1].open = all[n-1].open || e.open
			continue
		}
		all[n] = e
		n++
	}
	return all[:n]
}
