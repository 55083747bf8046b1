package inspect_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/reference"
)

func TestMsgpackAsJSON(t *testing.T) {
	t.Parallel()
	type person struct {
		Name string
		Age  int `msgpack:"age"`
		Tags []string
		Data []byte
	}
	id, err := layout.ParseID("01995b4e-6f3a-7c1e-9d2b-0123456789ab")
	require.NoError(t, err)
	for want, value := range map[string]any{
		`"a <b>"`: "a <b>", `7`: 7, `-1`: -1, `0.5`: 0.5, `true`: true, `null`: nil, `[1,"x"]`: []any{1, "x"},
		`{"Data":{"bytes":2,"hex":"0001"},"Name":"Ada","Tags":["x"],"age":36}`: person{
			"Ada", 36, []string{"x"}, []byte{0, 1}},
		`{"bytes":4,"text":"text"}`: []byte("text"),
		`"NaN"`:                     math.NaN(),
		`{"a":{"$future":"01995b4e-6f3a-7c1e-9d2b-0123456789ab"}}`: map[string]any{
			"a": msgpack.RawMessage(reference.Append(nil, id))},
		`"2026-01-02T03:04:05.000000006Z"`: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		`"2026-01-02T03:04:05Z"`:           time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		`{"at":"2026-01-02T03:04:05.000000006Z","none":"0001-01-01T00:00:00Z"}`: map[string]any{
			"at": time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), "none": time.Time{}},
		`{"data":{"bytes":1,"text":"x"},"extension":-1}`: msgpack.RawMessage("\xd4\xffx"),
		`{"data":{"bytes":1,"text":"x"},"extension":9}`:  msgpack.RawMessage("\xd4\x09x"),
	} {
		b, err := msgpack.Marshal(value)
		require.NoError(t, err)
		got, err := inspect.MsgpackAsJSON(b)
		require.NoError(t, err, want)
		require.Equal(t, want, string(got))
	}
	got, err := inspect.MsgpackAsJSON([]byte(strings.Repeat("\x91", 32) + "\x01"))
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("[", 32)+"1"+strings.Repeat("]", 32), string(got))
	for name, bad := range map[string]string{
		"nothing": "", "two values": "\x01\x02", "no msgpack": "\xc1", "cut off": "\xa5abc",
		"claims more":     "\xdd\xff\xff\xff\xff",
		"numbers as keys": "\x81\x01\x02", "deeper than is shown": strings.Repeat("\x91", 40) + "\x01",
		"too deep": strings.Repeat("\x91", 200_000) + "\x01",
	} {
		_, err := inspect.MsgpackAsJSON([]byte(bad))
		require.ErrorIs(t, err, layout.ErrBadRecord, name)
	}
}
