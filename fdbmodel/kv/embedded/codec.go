package embedded

import "encoding/binary"

// Mutations in a batch's record: a kind, then one or two byte strings, each
// with its length before it. They are absolute: applying them twice, in order,
// gives the same rows as applying them once.
const (
	recordSet byte = iota + 1
	recordClear
	recordClearRange
)

func appendSet(to, key, value []byte) []byte {
	return appendBytes(appendBytes(append(to, recordSet), key), value)
}

func appendClear(to, key []byte) []byte { return appendBytes(append(to, recordClear), key) }

func appendClearRange(to, begin, end []byte) []byte {
	return appendBytes(appendBytes(append(to, recordClearRange), begin), end)
}

func appendBytes(to, b []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(b))), b...)
}
