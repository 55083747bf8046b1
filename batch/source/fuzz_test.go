package source

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzManifest(f *testing.F) {
	f.Add(`{"runtime":{"url":"/fn.tar.gz","checksum":"` + strings.Repeat("ab", 32) + `"}}`)
	f.Add(`{"deployment":{"uri":"http://a/b","checksum":""}}`)
	at := &url.URL{Scheme: "http", Host: "a", Path: "/m/manifest.json"}
	f.Fuzz(func(t *testing.T, content string) {
		where, sum, err := parseManifest(at, []byte(content))
		if err == nil {
			require.Len(t, sum, 32)
			require.NotNil(t, where)
		} else {
			require.ErrorIs(t, err, ErrSource)
		}
	})
}

func FuzzArchive(f *testing.F) {
	f.Add([]byte("\x1f\x8b"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		err := Unpack(t.Context(), nil, content, func(m Module) error {
			require.False(t, strings.HasPrefix(m.Method, "/") || strings.HasPrefix(m.Method, ".."))
			return nil
		})
		if err != nil {
			require.ErrorIs(t, err, ErrArchive)
		}
	})
}
