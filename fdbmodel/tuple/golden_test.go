package tuple_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"math"
	"math/big"
	"math/rand"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

const goldenFile = "testdata/tuples.txt"

type goldenCase struct {
	name  string
	tuple tuple.Tuple
}

// goldenCases are tuples whose keys FoundationDB's own bindings made. The
// cases whose names begin with "bindings" are those of the bindings' tests.
func goldenCases() []goldenCase {
	var cases []goldenCase
	for _, group := range [][]goldenCase{scalarCases(), integerCases(), structureCases(), bindingsCases()} {
		cases = append(cases, group...)
	}
	return cases
}

func scalarCases() []goldenCase {
	id := tuple.UUID{0x01, 0x90, 0xf5, 0xa2, 0x4d, 0x5e, 0x7c, 0x11, 0x80, 0x00, 0x01, 0x23, 0x45, 0x67, 0x89, 0x00}
	return []goldenCase{
		{"empty", tuple.Tuple{}},
		{"nil", tuple.Tuple{nil}},
		{"bytes/empty", tuple.Tuple{[]byte{}}},
		{"bytes/zero", tuple.Tuple{[]byte{0}}},
		{"bytes/zero-ff", tuple.Tuple{[]byte{0, 0xff}}},
		{"bytes/ff-zero", tuple.Tuple{[]byte{0xff, 0}}},
		{"bytes/zeros", tuple.Tuple{[]byte{0, 0, 0, 1, 0}}},
		{"string/empty", tuple.Tuple{""}},
		{"string/zero", tuple.Tuple{"a\x00b\x00"}},
		{"string/utf8", tuple.Tuple{"FÔO\x00bar"}},
		{"string/invalid", tuple.Tuple{"\xc3\x28"}},
		{"float32/zero", tuple.Tuple{float32(0)}},
		{"float32/negative", tuple.Tuple{float32(-42)}},
		{"float32/infinity", tuple.Tuple{float32(math.Inf(1)), float32(math.Inf(-1))}},
		{"float64/zeros", tuple.Tuple{0.0, math.Copysign(0, -1)}},
		{"float64/negative", tuple.Tuple{-42.5}},
		{"float64/extremes", tuple.Tuple{math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(-1)}},
		{"float64/nan", tuple.Tuple{math.NaN()}},
		{"bool", tuple.Tuple{false, true}},
		{"uuid", tuple.Tuple{id}},
		{"stamp", tuple.Tuple{tuple.NewStamp([10]byte{0, 0, 0, 0xaa, 0, 0xbb, 0, 0xcc, 0, 0xdd}, 620)}},
		{"stamp/user", tuple.Tuple{tuple.NewStamp([10]byte{}, math.MaxUint16)}},
	}
}

func integerCases() []goldenCase {
	cases := []goldenCase{
		{"int/zero", tuple.Tuple{0}},
		{"int/ends", tuple.Tuple{int64(math.MinInt64), int64(math.MaxInt64), uint64(math.MaxUint64)}},
	}
	for bits := 8; bits <= 56; bits += 8 {
		edge := int64(1) << bits
		cases = append(cases, goldenCase{"int/" + big.NewInt(edge).Text(16), tuple.Tuple{
			edge - 1, edge, edge + 1, -edge + 1, -edge, -edge - 1}})
	}
	for _, bits := range []uint{63, 64, 65, 72, 128, 2032, 2039} {
		edge := new(big.Int).Lsh(big.NewInt(1), bits)
		one := big.NewInt(1)
		less, more := new(big.Int).Sub(edge, one), new(big.Int).Add(edge, one)
		cases = append(cases, goldenCase{"big/" + big.NewInt(int64(bits)).String(), tuple.Tuple{
			less, edge, more, new(big.Int).Neg(less), new(big.Int).Neg(edge), new(big.Int).Neg(more)}})
	}
	end := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 2040), big.NewInt(1))
	return append(cases, goldenCase{"big/ends", tuple.Tuple{end, new(big.Int).Neg(end)}})
}

func structureCases() []goldenCase {
	deep := tuple.Tuple{}
	for range 31 {
		deep = tuple.Tuple{deep, nil}
	}
	return []goldenCase{
		{"key", tuple.Tuple{"futura", "default", 3, "futures", tuple.UUID{15: 3}, "state", "claim"}},
		{"nested/empty", tuple.Tuple{tuple.Tuple{}}},
		{"nested/nil", tuple.Tuple{tuple.Tuple{nil, "a", nil}, nil}},
		{"nested/zeros", tuple.Tuple{tuple.Tuple{"\x00", []byte{0, 0xff}, 0, nil}, 1}},
		{"nested/deep", deep},
		{"nested/stamp", tuple.Tuple{"a", tuple.Tuple{tuple.NewStamp([10]byte{9: 1}, 2)}}},
	}
}

func bindingsCases() []goldenCase {
	random := rand.New(rand.NewSource(1))
	id := tuple.UUID{0x11, 0x00, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x11, 0x00, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	many := func(n int, element func() any) (t tuple.Tuple) {
		for range n {
			t = append(t, element())
		}
		return t
	}
	always := func(e any) func() any { return func() any { return e } }
	text, textNil := always("namespace"), always("nam\x00es\xffpace")
	data, dataNil := always([]byte("namespace")), always([]byte{0xff, 0, 0xff})
	integer := func() any { return random.Int63() }
	float := func() any { return float32(random.NormFloat64()) }
	double := func() any { return random.NormFloat64() }
	return []goldenCase{
		{"bindings/Simple", tuple.Tuple{id, "foobarbaz", 1234, nil}},
		{"bindings/Namespaces", tuple.Tuple{id, "github", "com", "apple", "foundationdb", "tree"}},
		{"bindings/ManyStrings", many(8, text)},
		{"bindings/ManyStringsNil", many(8, textNil)},
		{"bindings/ManyBytes", many(20, data)},
		{"bindings/ManyBytesNil", many(20, dataNil)},
		{"bindings/LargeBytes", tuple.Tuple{id, bytes.Repeat([]byte("abcd"), 20)}},
		{"bindings/LargeBytesNil", tuple.Tuple{id, bytes.Repeat([]byte{0xff, 0, 0xff}, 20)}},
		{"bindings/Integers", many(20, integer)},
		{"bindings/Floats", many(20, float)},
		{"bindings/Doubles", many(20, double)},
		{"bindings/UUIDs", tuple.Tuple{id, true, id, false, id, true, id, false, id, true}},
		{"bindings/NilCases", tuple.Tuple{"\x00", "\x00\xff", "\x00\x00\x00", "\xff\x00", ""}},
		{"bindings/Nested", tuple.Tuple{id, many(4, integer), nil, many(4, data), nil, many(4, double), nil}},
	}
}

func TestPackEqualsGolden(t *testing.T) {
	t.Parallel()
	golden := readGolden(t)
	cases := goldenCases()
	require.Len(t, golden, len(cases))
	for _, c := range cases {
		packed, err := tuple.Pack(c.tuple...)
		require.NoError(t, err, c.name)
		require.Equal(t, golden[c.name], hex.EncodeToString(packed), c.name)
	}
}

func TestUnpackGolden(t *testing.T) {
	t.Parallel()
	for name, text := range readGolden(t) {
		key, err := hex.DecodeString(text)
		require.NoError(t, err, name)
		unpacked, err := tuple.Unpack(key)
		require.NoError(t, err, name)
		packed, err := tuple.Pack(unpacked...)
		require.NoError(t, err, name)
		require.Equal(t, key, packed, name)
	}
}

// readGolden reads lines of a name and a key in hexadecimal, "-" where empty.
func readGolden(t *testing.T) map[string]string {
	file, err := os.Open(goldenFile)
	require.NoError(t, err)
	defer file.Close()
	golden := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		name, key, found := strings.Cut(lines.Text(), " ")
		require.True(t, found, lines.Text())
		golden[name] = strings.TrimPrefix(key, "-")
	}
	require.NoError(t, lines.Err())
	return golden
}
