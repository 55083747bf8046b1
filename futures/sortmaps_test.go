package futures

import (
	"math/big"
	"reflect"
	"testing"
	"testing/quick"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

type sortedID string

type sortedBase struct {
	Base map[sortedID]int
	Hide map[int]string `msgpack:"-"`
}

type sortedPlain struct{ Z, A int }

type sortedAll struct {
	sortedBase
	Zeta    sortedPlain
	Alpha   map[int][]map[sortedID]sortedPlain
	Labels  map[string]string
	Any     map[string]any
	Deep    *sortedAll `msgpack:"deep,omitempty"`
	At      map[sortedID]time.Time
	Number  *big.Int
	Nil     map[int]int
	Array   [2]map[bool]float64
	Inline  struct{ In map[int]int } `msgpack:",inline"`
	Strange map[sortedPlain]int
	Bytes   []byte
}

func sortedValue(depth int) *sortedAll {
	v := sortedAll{
		Zeta: sortedPlain{1, 2}, Alpha: map[int][]map[sortedID]sortedPlain{}, Labels: map[string]string{},
		Any: map[string]any{}, At: map[sortedID]time.Time{}, Number: big.NewInt(7), Strange: map[sortedPlain]int{},
		Bytes: []byte("bytes"),
	}
	v.Base, v.Inline.In = map[sortedID]int{}, map[int]int{}
	for i := range 20 {
		id := sortedID(rune('a' + i))
		v.Base[id], v.Labels[string(id)], v.Any[string(id)] = i, "label", map[string]any{"x": "1", "y": true}
		v.Alpha[i] = []map[sortedID]sortedPlain{{"a": {1, 2}, "b": {3, 4}}, nil}
		v.At[id], v.Inline.In[-i], v.Strange[sortedPlain{i, 1}] = time.Unix(int64(i), 0).UTC(), i, i
	}
	v.Array[1] = map[bool]float64{true: 1, false: 0.5}
	if depth > 0 {
		v.Deep = sortedValue(depth - 1)
	}
	return &v
}

func TestEqualValuesHaveTheSameBytes(t *testing.T) {
	t.Parallel()
	first, err := encodeMsgpack(sortedValue(2))
	require.NoError(t, err)
	for range 20 {
		again, err := encodeMsgpack(sortedValue(2))
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
	var back, expected sortedAll
	require.NoError(t, decode(CodecMsgpack, first, &back))
	plain, err := msgpack.Marshal(sortedValue(2))
	require.NoError(t, err)
	require.Len(t, first, len(plain))
	require.NoError(t, msgpack.Unmarshal(plain, &expected))
	require.Equal(t, expected, back)
}

// Bytes of values without maps are what they always were, and so is the order of a struct's fields.
func TestFieldsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	type array struct {
		_msgpack struct{} `msgpack:",as_array"`
		Z        int
		A        map[int]int
	}
	for _, v := range []any{
		&sortedPlain{1, 2}, new(int), new(map[int]int), &map[sortedID]sortedPlain{"x": {2, 1}}, new(any), new(*sortedAll),
		&sortedAll{Alpha: map[int][]map[sortedID]sortedPlain{1: {{"a": {1, 2}}}}}, &array{Z: 1, A: map[int]int{1: 2}},
		&[]any{1, "x", map[int]int{3: 4}}, &map[string]msgpack.RawMessage{"raw": {0x93, 1, 2, 3}},
	} {
		plain, err := msgpack.Marshal(v)
		require.NoError(t, err)
		encoded, err := encodeMsgpack(v)
		require.NoError(t, err)
		require.Equal(t, plain, encoded, "%v", reflect.TypeOf(v))
	}
}

// TestAnyValueStaysWhatItIs encodes values by chance: the order alone is another one.
func TestAnyValueStaysWhatItIs(t *testing.T) {
	t.Parallel()
	type value struct {
		Deep  map[int8]map[string][]map[uint16]*sortedPlain
		Many  []map[sortedID][2]map[bool]string
		Keys  map[sortedPlain]map[int]int
		Texts map[string]string
		Bytes map[int][]byte
	}
	require.NoError(t, quick.Check(func(v value) bool {
		plain, err := msgpack.Marshal(&v)
		require.NoError(t, err)
		one, err := encodeMsgpack(&v)
		require.NoError(t, err)
		other, err := encodeMsgpack(&v)
		require.NoError(t, err)
		var was, is value
		require.NoError(t, decode(CodecMsgpack, plain, &was))
		require.NoError(t, decode(CodecMsgpack, one, &is))
		return reflect.DeepEqual(one, other) && len(one) == len(plain) && reflect.DeepEqual(was, is)
	}, nil))
}

// Each of these types refers to all of them.
type (
	nodeA struct {
		A *nodeA
		B *nodeB
		C *nodeC
		D *nodeD
		E *nodeE
		F *nodeF
		G *nodeG
		H *nodeH
		I *nodeI
		J *nodeJ
		K *nodeK
		L *nodeL
		M *nodeM
		N *nodeN
	}
	nodeB nodeA
	nodeC nodeA
	nodeD nodeA
	nodeE nodeA
	nodeF nodeA
	nodeG nodeA
	nodeH nodeA
	nodeI nodeA
	nodeJ nodeA
	nodeK nodeA
	nodeL nodeA
	nodeM nodeA
	nodeN nodeA
)

// TestTypesThatReferToEachOther are looked at once each, and not by each way through them.
func TestTypesThatReferToEachOther(t *testing.T) {
	t.Parallel()
	require.False(t, mayHaveMaps(reflect.TypeFor[*nodeA]()))
	require.True(t, mayHaveMaps(reflect.TypeFor[struct {
		A nodeA
		B []map[string]nodeA
	}]()))
}
