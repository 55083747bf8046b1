package tuple_test

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

func TestPackedOrderIsTupleOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := drawTuple(t, 2)
		b := drawTuple(t, 2)
		if rapid.Bool().Draw(t, "shared prefix") {
			b = append(append(tuple.Tuple{}, a[:rapid.IntRange(0, len(a)).Draw(t, "prefix")]...), b...)
		}
		keyA, err := tuple.Pack(a...)
		require.NoError(t, err)
		keyB, err := tuple.Pack(b...)
		require.NoError(t, err)
		require.Equal(t, compareTuples(a, b), bytes.Compare(keyA, keyB), "%v %v", a, b)
	})
}

func TestUnpackReturnsWhatWasPacked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := drawTuple(t, 3)
		key, err := tuple.Pack(want...)
		require.NoError(t, err)
		got, err := tuple.Unpack(key)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, want.String(), tuple.String(key))

		r := tuple.NewReader(key)
		for _, e := range want {
			require.True(t, r.More())
			require.Equal(t, e, r.Any())
		}
		require.NoError(t, r.Done())
	})
}

func TestUnpackAcceptsOnlyWhatPackMakes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key, err := tuple.Pack(drawTuple(t, 3)...)
		require.NoError(t, err)
		key = key[:rapid.IntRange(0, len(key)).Draw(t, "cut")]
		if len(key) > 0 && rapid.Bool().Draw(t, "change") {
			key[rapid.IntRange(0, len(key)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		checkUnpack(t, key)
	})
}

func FuzzUnpack(f *testing.F) {
	for _, c := range goldenCases() {
		key, err := tuple.Pack(c.tuple...)
		require.NoError(f, err)
		f.Add(key)
	}
	f.Add([]byte("\x01a\x00\xff"))
	f.Add(bytes.Repeat([]byte{5}, 100))
	f.Fuzz(func(t *testing.T, key []byte) { checkUnpack(t, key) })
}

// checkUnpack checks that key is refused with a DecodeError, or is what Pack
// makes of its tuple, and that a Reader agrees.
func checkUnpack(t require.TestingT, key []byte) {
	require.NotEmpty(t, tuple.String(key))
	r := tuple.NewReader(key)
	for r.More() {
		r.Any()
	}
	unpacked, err := tuple.Unpack(key)
	require.Equal(t, err, r.Done())
	if err != nil {
		var decode *tuple.DecodeError
		require.ErrorAs(t, err, &decode)
		return
	}
	if packed, err := tuple.Pack(unpacked...); err == nil {
		require.True(t, bytes.Equal(key, packed), "%x became %x", key, packed)
	} else {
		require.ErrorIs(t, err, tuple.ErrIncompleteStamp)
	}
}

// drawTuple draws elements as Unpack returns them. Byte strings are made of the
// bytes that the encoding treats apart, and numbers lie near each other.
func drawTuple(t *rapid.T, depth int) tuple.Tuple {
	drawn := tuple.Tuple{}
	for range rapid.IntRange(0, 4).Draw(t, "length") {
		drawn = append(drawn, drawElement(t, depth))
	}
	return drawn
}

func drawElement(t *rapid.T, depth int) any {
	raw := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xfe, 0xff}), 0, 4)
	switch rapid.IntRange(0, 10).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return append([]byte{}, raw.Draw(t, "bytes")...)
	case 2:
		return string(raw.Draw(t, "string"))
	case 3, 4:
		return drawInteger(t)
	case 5:
		return rapid.Float32().Draw(t, "float32")
	case 6:
		return rapid.Float64().Draw(t, "float64")
	case 7:
		return rapid.Bool().Draw(t, "bool")
	case 8:
		return tuple.UUID{0: rapid.Byte().Draw(t, "uuid"), 15: rapid.Byte().Draw(t, "uuid")}
	case 9:
		return tuple.NewStamp([10]byte{9: rapid.Byte().Draw(t, "version")}, rapid.Uint16().Draw(t, "user"))
	}
	if depth == 0 {
		return int64(0)
	}
	return drawTuple(t, depth-1)
}

// drawInteger draws numbers near the ends of each length.
func drawInteger(t *rapid.T) any {
	value := new(big.Int).Lsh(big.NewInt(1), uint(rapid.IntRange(0, 80).Draw(t, "bits")))
	value.Add(value, big.NewInt(int64(rapid.IntRange(-2, 2).Draw(t, "distance"))))
	if rapid.Bool().Draw(t, "negative") {
		value.Neg(value)
	}
	switch {
	case value.IsInt64():
		return value.Int64()
	case value.IsUint64():
		return value.Uint64()
	}
	return value
}

func compareTuples(a, b tuple.Tuple) int {
	for i := range min(len(a), len(b)) {
		if c := compareElements(a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareElements(a, b any) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	switch a := a.(type) {
	case []byte:
		return bytes.Compare(a, b.([]byte))
	case string:
		return cmp.Compare(a, b.(string))
	case tuple.Tuple:
		return compareTuples(a, b.(tuple.Tuple))
	case float32:
		return compareFloats(float64(a), float64(b.(float32)))
	case float64:
		return compareFloats(a, b.(float64))
	case tuple.UUID:
		other := b.(tuple.UUID)
		return bytes.Compare(a[:], other[:])
	case tuple.Stamp:
		other := b.(tuple.Stamp)
		return bytes.Compare(a[:], other[:])
	case int64, uint64, *big.Int:
		return toBig(a).Cmp(toBig(b))
	}
	return 0
}

// rank is the order of the types among each other.
func rank(e any) int {
	switch e := e.(type) {
	case nil:
		return 0
	case []byte:
		return 1
	case string:
		return 2
	case tuple.Tuple:
		return 3
	case float32:
		return 5
	case float64:
		return 6
	case bool:
		if e {
			return 8
		}
		return 7
	case tuple.UUID:
		return 9
	case tuple.Stamp:
		return 10
	}
	return 4
}

// compareFloats puts -0 before 0.
func compareFloats(a, b float64) int {
	if a == 0 && b == 0 {
		return cmp.Compare(math.Copysign(1, a), math.Copysign(1, b))
	}
	return cmp.Compare(a, b)
}

func toBig(e any) *big.Int {
	switch e := e.(type) {
	case int64:
		return big.NewInt(e)
	case uint64:
		return new(big.Int).SetUint64(e)
	}
	return e.(*big.Int)
}
