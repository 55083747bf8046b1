package tuple_test

import (
	"bytes"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

var testID = [16]byte{0x01, 0x90, 0xf5, 0xa2, 0x4d, 0x5e, 0x7c, 0x11, 0x80, 0x00, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab}

const testIDText = "0190f5a2-4d5e-7c11-8000-0123456789ab"

// namedID stands for the UUID types of other packages.
type namedID [16]byte

type namedInt uint8

func TestAppendEqualsPack(t *testing.T) {
	t.Parallel()
	version := [10]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	var key []byte
	key = tuple.AppendNil(key)
	key = tuple.AppendBytes(key, []byte("a\x00b"))
	key = tuple.AppendString(key, "c\x00d")
	key = tuple.AppendInt(key, -1000)
	key = tuple.AppendUint(key, math.MaxUint64)
	key = tuple.AppendFloat32(key, -1.5)
	key = tuple.AppendFloat64(key, 2.5)
	key = tuple.AppendBool(key, true)
	key = tuple.AppendUUID(key, testID)
	key = tuple.AppendStamp(key, version, 7)
	key = tuple.AppendNestedBegin(key)
	key = tuple.AppendNestedNil(key)
	key = tuple.AppendInt(key, 0)
	key = tuple.AppendNestedEnd(key)

	packed, err := tuple.Pack(nil, []byte("a\x00b"), "c\x00d", -1000, uint64(math.MaxUint64), float32(-1.5), 2.5, true,
		namedID(testID), tuple.NewStamp(version, 7), tuple.Tuple{nil, namedInt(0)})
	require.NoError(t, err)
	require.Equal(t, key, packed)
}

func TestAppendAllocatesNothing(t *testing.T) {
	dst := make([]byte, 0, 256)
	data := []byte("a\x00b")
	allocations := testing.AllocsPerRun(100, func() {
		key := tuple.AppendString(dst[:0], "futures")
		key = tuple.AppendBytes(key, data)
		key = tuple.AppendInt(key, -70_000)
		key = tuple.AppendUUID(key, testID)
		key = tuple.AppendStamp(key, [10]byte{}, 1)
		r := tuple.NewReader(key)
		r.Expect("futures")
	})
	require.Zero(t, allocations)
}

func TestReader(t *testing.T) {
	t.Parallel()
	stamp := tuple.NewStamp([10]byte{9: 4}, 5)
	large := new(big.Int).Lsh(big.NewInt(1), 100)
	key, err := tuple.Pack("futures", "a\x00b", -3, uint64(math.MaxUint64), math.MinInt64, nil, 1, []byte{0}, 1.5,
		float32(2), true, false, testID, stamp, tuple.Tuple{nil, tuple.Tuple{}}, large)
	require.NoError(t, err)

	r := tuple.NewReader(key)
	r.Expect("futures")
	require.Equal(t, "a\x00b", r.Text())
	require.EqualValues(t, -3, r.Int())
	require.EqualValues(t, uint64(math.MaxUint64), r.Uint())
	require.EqualValues(t, math.MinInt64, r.Int())
	require.True(t, r.IsNil())
	require.False(t, r.IsNil())
	require.EqualValues(t, 1, r.Uint())
	require.Equal(t, []byte{0}, r.Bytes())
	require.Equal(t, 1.5, r.Float64())
	require.Equal(t, float32(2), r.Float32())
	require.True(t, r.Bool())
	require.False(t, r.Bool())
	require.Equal(t, tuple.UUID(testID), r.UUID())
	require.Equal(t, stamp, r.Stamp())
	require.Equal(t, tuple.Tuple{nil, tuple.Tuple{}}, r.Any())
	require.True(t, r.More())
	require.NotEmpty(t, r.Rest())
	require.Equal(t, large, r.Any())
	require.NoError(t, r.Done())
}

func TestReaderRefuses(t *testing.T) {
	t.Parallel()
	key, err := tuple.Pack("text", 1)
	require.NoError(t, err)
	reads := map[string]func(*tuple.Reader){
		"Expect":  func(r *tuple.Reader) { r.Expect("other") },
		"Bytes":   func(r *tuple.Reader) { r.Bytes() },
		"Int":     func(r *tuple.Reader) { r.Int() },
		"Uint":    func(r *tuple.Reader) { r.Uint() },
		"Float32": func(r *tuple.Reader) { r.Float32() },
		"Float64": func(r *tuple.Reader) { r.Float64() },
		"Bool":    func(r *tuple.Reader) { r.Bool() },
		"UUID":    func(r *tuple.Reader) { r.UUID() },
		"Stamp":   func(r *tuple.Reader) { r.Stamp() },
	}
	for name, read := range reads {
		r := tuple.NewReader(key)
		read(&r)
		require.ErrorIs(t, r.Err(), tuple.ErrUnexpected, name)
		require.Empty(t, r.Text(), "the error must stick: %s", name)
		require.ErrorIs(t, r.Done(), tuple.ErrUnexpected, name)
	}

	r := tuple.NewReader(key)
	r.Expect("text")
	require.ErrorIs(t, r.Done(), tuple.ErrTrailing)

	for _, outside := range []any{uint64(math.MaxInt64) + 1, new(big.Int).Sub(big.NewInt(math.MinInt64), big.NewInt(1))} {
		key, err := tuple.Pack(outside)
		require.NoError(t, err)
		r := tuple.NewReader(key)
		r.Int()
		require.ErrorIs(t, r.Done(), tuple.ErrUnexpected, "%v", outside)
	}
	r = tuple.NewReader(tuple.AppendInt(nil, -1))
	r.Uint()
	require.ErrorIs(t, r.Done(), tuple.ErrUnexpected)
	r = tuple.NewReader(nil)
	r.Text()
	require.ErrorIs(t, r.Done(), tuple.ErrTruncated)
}

func TestPackRefuses(t *testing.T) {
	t.Parallel()
	tooLarge := new(big.Int).Lsh(big.NewInt(1), 255*8)
	tooDeep := tuple.Tuple{}
	for range tuple.MaxDepth {
		tooDeep = tuple.Tuple{tooDeep}
	}
	stamp := tuple.IncompleteStamp(0)
	var noInteger *big.Int
	for _, c := range []struct {
		element any
		want    error
	}{
		{struct{}{}, tuple.ErrUnsupported},
		{[15]byte{}, tuple.ErrUnsupported},
		{noInteger, tuple.ErrUnsupported},
		{tooLarge, tuple.ErrIntegerTooLarge},
		{tooDeep, tuple.ErrTooDeep},
		{stamp, tuple.ErrIncompleteStamp},
		{tuple.Tuple{stamp}, tuple.ErrIncompleteStamp},
	} {
		_, err := tuple.Pack(c.element)
		require.ErrorIs(t, err, c.want, "%v", c.element)
	}
	_, err := tuple.Pack(tooDeep[0])
	require.NoError(t, err)
}

func TestIncompleteStamp(t *testing.T) {
	t.Parallel()
	key, offset, err := tuple.PackIncomplete("log", tuple.Tuple{tuple.IncompleteStamp(7)}, "x")
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]byte{0xff}, 10), key[offset:offset+10])

	want := tuple.AppendNestedBegin(tuple.AppendString(nil, "log"))
	want, wantOffset := tuple.AppendIncompleteStamp(want, 7)
	want = tuple.AppendString(tuple.AppendNestedEnd(want), "x")
	require.Equal(t, want, key)
	require.Equal(t, wantOffset, offset)

	copy(key[offset:], []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	unpacked, err := tuple.Unpack(key)
	require.NoError(t, err)
	require.Equal(t, tuple.Tuple{tuple.NewStamp([10]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 7)}, unpacked[1])

	_, _, err = tuple.PackIncomplete("none")
	require.ErrorIs(t, err, tuple.ErrStampCount)
	_, _, err = tuple.PackIncomplete(tuple.IncompleteStamp(0), tuple.IncompleteStamp(1))
	require.ErrorIs(t, err, tuple.ErrStampCount)
}

func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		key    string
		want   error
		offset int
	}{
		{"code", "\x14\x40", tuple.ErrUnknownCode, 1},
		{"ff", "\xff", tuple.ErrUnknownCode, 0},
		{"bytes without end", "\x01ab", tuple.ErrTruncated, 0},
		{"bytes end escaped", "\x01ab\x00\xff", tuple.ErrTruncated, 0},
		{"string without end", "\x02", tuple.ErrTruncated, 0},
		{"integer", "\x14\x16\x01", tuple.ErrTruncated, 1},
		{"integer with leading zero", "\x16\x00\x01", tuple.ErrNotCanonical, 0},
		{"negative integer with leading ff", "\x12\xff\xfe", tuple.ErrNotCanonical, 0},
		{"large integer that is small", "\x1d\x08abcdefgh", tuple.ErrNotCanonical, 0},
		{"large integer with leading zero", "\x1d\x09\x00abcdefgh", tuple.ErrNotCanonical, 0},
		{"large integer without length", "\x1d", tuple.ErrTruncated, 0},
		{"large negative integer", "\x0b\x00", tuple.ErrTruncated, 0},
		{"float32", "\x20abc", tuple.ErrTruncated, 0},
		{"float64", "\x21abcdefg", tuple.ErrTruncated, 0},
		{"uuid", "\x30abcdefgh", tuple.ErrTruncated, 0},
		{"stamp", "\x33abcdefgh", tuple.ErrTruncated, 0},
		{"nested without end", "\x05\x14", tuple.ErrTruncated, 2},
		{"nested with bad element", "\x05\x14\x40\x00", tuple.ErrUnknownCode, 2},
		{"too deep", strings.Repeat("\x05", 100), tuple.ErrTooDeep, tuple.MaxDepth},
	} {
		_, err := tuple.Unpack([]byte(c.key))
		require.ErrorIs(t, err, c.want, c.name)
		var decode *tuple.DecodeError
		require.ErrorAs(t, err, &decode, c.name)
		require.Equal(t, c.offset, decode.Offset, c.name)
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	stamp := tuple.NewStamp([10]byte{7: 0xaa, 9: 1}, 5)
	for want, elements := range map[string]tuple.Tuple{
		`()`: {},
		`("futura", "default", 3, "futures", ` + testIDText + `)`: {"futura", "default", 3, "futures", testID},
		`(nil, (nil, -1), b"\x00a\"", 1.5, true)`:                 {nil, tuple.Tuple{nil, -1}, []byte("\x00a\""), 1.5, true},
		`(stamp(00000000000000aa-0001, 5))`:                       {stamp},
		`(18446744073709551616)`:                                  {new(big.Int).Lsh(big.NewInt(1), 64)},
	} {
		key, err := tuple.Pack(elements...)
		require.NoError(t, err)
		require.Equal(t, want, tuple.String(key))
		require.Equal(t, want, elements.String())
	}
	require.Equal(t, `(stamp(incomplete, 2))`, tuple.Tuple{tuple.IncompleteStamp(2)}.String())
	require.Equal(t, `(0)+"\xff"`, tuple.String([]byte("\x14\xff")))
	require.Equal(t, `("a")+"\x05\x02b\x00"`, tuple.String([]byte("\x02a\x00\x05\x02b\x00")))
	require.Equal(t, `"abc"`, tuple.String([]byte("abc")))
}

func TestChildren(t *testing.T) {
	t.Parallel()
	pack := func(elements ...any) []byte {
		key, err := tuple.Pack(elements...)
		require.NoError(t, err)
		return key
	}
	begin, end := tuple.Children(pack("a"))
	contains := func(key []byte) bool { return bytes.Compare(begin, key) <= 0 && bytes.Compare(key, end) < 0 }
	require.True(t, contains(pack("a", nil)))
	require.True(t, contains(pack("a", tuple.NewStamp([10]byte{0xff}, 0xffff))))
	require.False(t, contains(pack("a")))
	require.False(t, contains(pack("a\x00b")))
	require.False(t, contains(pack("b")))
}
