package reference_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/reference"
)

var (
	one = layout.ID{1, 6: 0x70, 8: 0x80}
	two = layout.ID{2, 6: 0x70, 8: 0x80}
)

func results(values map[layout.ID]reference.Value) func(layout.ID) (reference.Value, error) {
	return func(id layout.ID) (reference.Value, error) {
		v, found := values[id]
		if !found {
			return v, errors.New("none")
		}
		return v, nil
	}
}

func resolve(codec string, args []byte, limit int, result func(layout.ID) (reference.Value, error)) ([]byte, error) {
	r, err := reference.Find(codec, args)
	if err != nil {
		return nil, err
	}
	return r.Resolve(limit, result)
}

func TestReferencesInJSON(t *testing.T) {
	t.Parallel()
	args := []byte(`{ "a": [1, ` + string(reference.JSON(two)) + `, {"b": { "$future" : "` + one.String() + `" } }],` +
		` "c": "$future", "$future": {"d": ` + string(reference.JSON(two)) + `}, "e": {} }`)
	// A member named $future beside others is plain data only if its object does
	// not begin with it.
	ids, err := reference.Of(layout.CodecJSON, args)
	require.NoError(t, err)
	require.Equal(t, []layout.ID{two, one}, ids)
	packed, err := msgpack.Marshal(map[string]any{"x": []int{1, 2}})
	require.NoError(t, err)
	got, err := resolve(layout.CodecJSON, args, 1000, results(map[layout.ID]reference.Value{
		one: {Codec: layout.CodecMsgpack, Bytes: packed}, two: {Codec: layout.CodecRaw, Bytes: []byte("te\"xt")},
	}))
	require.NoError(t, err)
	require.JSONEq(t, `{"a":[1,"te\"xt",{"b":{"x":[1,2]}}],"c":"$future","$future":{"d":"te\"xt"},"e":{}}`, string(got))
	whole, err := resolve(layout.CodecJSON, reference.JSON(one), 10, results(map[layout.ID]reference.Value{
		one: {Codec: layout.CodecJSON, Bytes: []byte("[1]")},
	}))
	require.NoError(t, err)
	require.Equal(t, "[1]", string(whole))
}

func TestReferencesInMsgpack(t *testing.T) {
	t.Parallel()
	args := msgp.AppendMapHeader(nil, 2)
	args = reference.Append(msgp.AppendString(args, "a"), one)
	args = msgp.AppendArrayHeader(msgp.AppendString(args, "b"), 3)
	args = reference.Append(msgp.AppendBytes(args, reference.Append(nil, two)), one)
	args = reference.Append(args, two)
	ids, err := reference.Of(layout.CodecMsgpack, args)
	require.NoError(t, err)
	require.Equal(t, []layout.ID{one, two}, ids, "and not what looks like one in a text")
	got, err := resolve(layout.CodecMsgpack, args, 1000, results(map[layout.ID]reference.Value{
		one: {Codec: layout.CodecJSON, Bytes: []byte(`{"n":7,"f":1.5,"l":[null,true,"s"]}`)},
		two: {Codec: layout.CodecRaw, Bytes: []byte{0xff}},
	}))
	require.NoError(t, err)
	var value map[string]any
	require.NoError(t, msgpack.Unmarshal(got, &value))
	want := map[string]any{"n": int64(7), "f": 1.5, "l": []any{nil, true, "s"}}
	first, err := json.Marshal(value["a"])
	require.NoError(t, err)
	same, err := json.Marshal(want)
	require.NoError(t, err)
	require.JSONEq(t, string(same), string(first))
	require.Equal(t, []byte{0xff}, value["b"].([]any)[2])
}

func TestInvalidReferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		codec, args string
		want        error
	}{
		{layout.CodecJSON, `{"$future": 7}`, reference.ErrBadReference},
		{layout.CodecJSON, `{"$future": "x"}`, reference.ErrBadReference},
		{layout.CodecJSON, `{"$future": "` + one.String() + `", "more": 1}`, reference.ErrBadReference},
		{layout.CodecJSON, `["$future"`, reference.ErrUndecodable},
		{layout.CodecMsgpack, "\x92\xd8\x46", reference.ErrUndecodable},
		{layout.CodecMsgpack, "\xdd\xff\xff\xff\xff" + string(reference.Append(nil, one)), reference.ErrUndecodable},
	} {
		_, err := reference.Of(c.codec, []byte(c.args))
		require.ErrorIs(t, err, c.want, "%q", c.args)
	}
	for codec, values := range map[string][]reference.Value{
		layout.CodecJSON: {{Codec: layout.CodecRaw, Bytes: []byte{0xff}}, {Codec: layout.CodecJSON, Bytes: []byte("{")},
			{Codec: layout.CodecMsgpack, Bytes: []byte{1, 2}}, {Codec: layout.CodecMsgpack, Bytes: []byte{0xc1}}},
		layout.CodecMsgpack: {{Codec: layout.CodecMsgpack, Bytes: nil}, {Codec: layout.CodecJSON, Bytes: []byte("1 2")},
			{Codec: layout.CodecMsgpack, Bytes: []byte{1, 2}}},
	} {
		args := reference.JSON(one)
		if codec == layout.CodecMsgpack {
			args = reference.Append(nil, one)
		}
		for _, v := range values {
			_, err := resolve(codec, args, 100, results(map[layout.ID]reference.Value{one: v}))
			require.ErrorIs(t, err, reference.ErrUndecodable, "%v", v)
		}
		_, err := resolve(codec, args, 100, results(map[layout.ID]reference.Value{
			one: {Codec: codec, Bytes: append([]byte{0xd9, 200}, make([]byte, 200)...)}}))
		require.Error(t, err)
	}
	large, err := json.Marshal(string(make([]byte, 100)))
	require.NoError(t, err)
	_, err = resolve(layout.CodecJSON, reference.JSON(one), 100,
		results(map[layout.ID]reference.Value{one: {Codec: layout.CodecJSON, Bytes: large}}))
	require.ErrorIs(t, err, reference.ErrTooLarge)
}

func FuzzReferences(f *testing.F) {
	f.Add(true, []byte(`{"a":{"$future":"`+one.String()+`"}}`))
	f.Add(false, reference.Append([]byte{0x92, 1}, one))
	f.Fuzz(func(t *testing.T, isJSON bool, args []byte) {
		codec, value := layout.CodecMsgpack, reference.Value{Codec: layout.CodecMsgpack, Bytes: []byte{7}}
		if isJSON {
			codec, value = layout.CodecJSON, reference.Value{Codec: layout.CodecJSON, Bytes: []byte("7")}
		}
		ids, err := reference.Of(codec, args)
		got, failed := resolve(codec, args, 1<<20, func(layout.ID) (reference.Value, error) { return value, nil })
		require.Equal(t, err == nil, failed == nil)
		if err != nil {
			return
		}
		if isJSON {
			require.Equal(t, json.Valid(args), json.Valid(got))
		}
		if len(ids) == 0 {
			require.Equal(t, args, got)
		}
	})
}
