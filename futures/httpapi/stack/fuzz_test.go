package stack

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzSplitAction(f *testing.F) {
	f.Add("/api/v1/futures/1:cancel")
	f.Add("/api/v1/futures/:")
	f.Add("/api/v1/futures/a/b:c")
	f.Fuzz(func(t *testing.T, path string) {
		split := splitAction(path)
		if split != path {
			require.Len(t, split, len(path)+1)
			require.Equal(t, split, splitAction(split), "it is split once")
		}
	})
}

// FuzzAcceptsGzip parses arbitrary Accept-Encoding headers.
func FuzzAcceptsGzip(f *testing.F) {
	f.Add("gzip;q=0, br")
	f.Add("deflate, GZIP ; q=0.5")
	f.Fuzz(func(t *testing.T, header string) {
		if acceptsGzip(header) {
			require.Contains(t, strings.ToLower(header), "gzip")
		}
	})
}

// FuzzUnmarshal decodes JSON as encoding/json does, except for a function's own
// input.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"futures":[{"function":"go:f","input":{"a":[1]}}],"a":[null,true,1.5,"x"]}`))
	f.Add([]byte(`[{}] x`))
	f.Add([]byte(`{"a":`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want any
		err := Unmarshal(data, &got)
		if err == nil {
			require.NoError(t, json.Unmarshal(data, &want))
			if !strings.Contains(string(data), "input") && !strings.Contains(string(data), "\\") {
				require.Equal(t, want, got)
			}
		} else if json.Unmarshal(data, &want) == nil {
			require.Contains(t, err.Error(), "nested")
		}
	})
}
