package kv_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel/kv"
)

func span(begin, end string) kv.Range { return kv.Range{Begin: []byte(begin), End: []byte(end)} }

func TestRange(t *testing.T) {
	t.Parallel()
	require.True(t, kv.Range{}.Empty())
	require.True(t, span("b", "b").Empty())
	require.True(t, span("b", "a").Empty())
	require.False(t, span("a", "a\x00").Empty())

	r := span("b", "d")
	for key, inside := range map[string]bool{"": false, "a\xff": false, "b": true, "c\xff": true, "d": false} {
		require.Equal(t, inside, r.Contains([]byte(key)), "%q", key)
	}
}

func TestAfterPrefix(t *testing.T) {
	t.Parallel()
	for prefix, after := range map[string]string{
		"a": "b", "a\xff": "b", "a\xff\xff": "b", "\x00": "\x01", "\xfe": "\xff", "a\x00": "a\x01", "a\xfe\xff": "a\xff",
	} {
		require.Equal(t, after, string(kv.AfterPrefix([]byte(prefix))), "%q", prefix)
	}
	for _, prefix := range []string{"", "\xff", "\xff\xff"} {
		require.Panics(t, func() { kv.AfterPrefix([]byte(prefix)) })
	}
}

func TestRangesOfKeysAndPrefixes(t *testing.T) {
	t.Parallel()
	alphabet := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xfe, 0xff}), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		key, other := alphabet.Draw(t, "key"), alphabet.Draw(t, "other")
		before := bytes.Clone(key)

		single := kv.Single(key)
		require.Equal(t, bytes.Equal(key, other), single.Contains(other))
		require.Negative(t, bytes.Compare(key, kv.After(key)))
		require.False(t, bytes.Compare(key, other) < 0 && bytes.Compare(other, kv.After(key)) < 0)

		if len(bytes.TrimRight(key, "\xff")) > 0 {
			require.Equal(t, bytes.HasPrefix(other, key), kv.Prefix(key).Contains(other))
		}
		kv.After(key)[0] = 'x'
		require.Equal(t, before, key, "what is returned does not share bytes")
	})
}
