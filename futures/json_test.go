package futures_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
)

// jsonTexts are JSON with what can go wrong in it.
var jsonTexts = []string{
	` {"a":[1,-0.5e+10,"x\u00e9\n\"",true,false,null,{}],"b":{"":[[]]}} `, `"\ud800"`, `0`, `-`, `1.`, `01`, `1e`, `[1,]`,
	`{"a":1,}`, `{"a"}`, `{1:2}`, `[}`, ``, ` `, `1 2`, `tru`, `"a`, "\"\x01\"", `"\x"`, `[]]`, `{"a":1}x`, `1e5 `, `-0`,
	`0e1`,
}

func agreesOnJSON(t *testing.T, text []byte, at int) {
	t.Helper()
	err := futures.CheckJSON(text[:at], text[at:])
	require.Equalf(t, json.Valid(text), err == nil, "%q: %v", text, err)
	if err != nil {
		require.ErrorIs(t, err, futures.ErrBadSpec)
	}
}

// TestJSONIsChecked changes bytes of JSON, and compares with encoding/json.
func TestJSONIsChecked(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, text := range jsonTexts {
		for at := range len(text) + 1 {
			agreesOnJSON(t, []byte(text), at)
			agreesOnJSON(t, []byte(text[:at]), at/2)
		}
	}
	const bytesOfJSON = "{}[]\",:-+.eE0123 \\utrfalsn\n\x00\x80"
	for range 20_000 {
		text := []byte(jsonTexts[random.IntN(len(jsonTexts))])
		for range random.IntN(3) {
			if len(text) > 0 {
				text[random.IntN(len(text))] = bytesOfJSON[random.IntN(len(bytesOfJSON))]
			}
		}
		agreesOnJSON(t, text, random.IntN(len(text)+1))
	}
	for _, depth := range []int{10_000, 10_001} {
		agreesOnJSON(t, []byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)), depth)
	}
}

func FuzzJSON(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text), uint(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, at uint) { agreesOnJSON(t, text, int(at%uint(len(text)+1))) })
}

// TestPutOfBadJSON is refused, wherever the value would be stored, and leaves nothing.
func TestPutOfBadJSON(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	o.start(64 << 20)
	large := append(append([]byte(`["`), bytes.Repeat([]byte{'x'}, 3<<20)...), '"')
	for name, options := range map[string]futures.PutOptions{
		"stored": {Stored: true}, "as object": {AsObject: true}, "where it goes": {},
	} {
		options.Codec = futures.CodecJSON
		for _, bad := range [][]byte{large, []byte(`{"a":`), {}} {
			_, err := o.client.Put(o.ctx, bytes.NewReader(bad), options)
			require.ErrorIs(t, err, futures.ErrBadSpec, name)
			require.ErrorContains(t, err, "codec json", name)
		}
	}
	counts, err := o.client.Counts(o.ctx)
	require.NoError(t, err)
	require.Empty(t, counts)
	f, err := o.client.Put(o.ctx, bytes.NewReader(append(large, ']')), futures.PutOptions{Codec: futures.CodecJSON})
	require.NoError(t, err)
	require.True(t, o.isObject(f))
	o.requireSound()
}
