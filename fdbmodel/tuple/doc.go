// Package tuple is FoundationDB's tuple encoding, byte for byte, in pure Go. A
// tuple becomes a key, and keys sort as their tuples do: element by element,
// and a tuple before every longer one that begins with it.
//
// Keys are built with the Append functions, which allocate nothing when dst
// has room, and read with a [Reader]:
//
//	key = tuple.AppendString(key[:0], "futures")
//	key = tuple.AppendUUID(key, id)
//
//	r := tuple.NewReader(key)
//	name, id := r.Text(), r.UUID()
//	err := r.Done()
//
// [Pack] and [Unpack] do the same for a [Tuple] of any elements, and [String]
// prints a key for people.
//
// # Elements
//
// In the order in which they sort: nil, byte strings, text, nested tuples,
// integers of up to 255 bytes, 32-bit and 64-bit floats, false, true, UUIDs,
// versionstamps.
//
// Decoding is strict: it takes what Append and Pack produce and nothing else,
// so that two different byte strings never mean the same tuple.
package tuple

// Codes that an element begins with.
const (
	codeNil         = 0x00
	codeBytes       = 0x01
	codeString      = 0x02
	codeNested      = 0x05
	codeIntNegBig   = 0x0b
	codeIntZero     = 0x14
	codeIntPosBig   = 0x1d
	codeFloat32     = 0x20
	codeFloat64     = 0x21
	codeFalse       = 0x26
	codeTrue        = 0x27
	codeUUID        = 0x30
	codeStamp       = 0x33
	escape          = 0xff
	maxSmallInteger = 8   // bytes of an integer whose length is in its code
	maxInteger      = 255 // bytes of the largest integer
)

// MaxDepth is how deep tuples may be nested, the outermost not counted:
// ErrTooDeep beyond it.
const MaxDepth = 32
