//go:build linux

package b7s

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Files in the archive of a function: the one that these tests name, and the one
// that the project's heads name.
const (
	method     = "echo.wasm"
	mainMethod = "main.wasm"
)

// emptyModule is the shortest module, which the stand-in for b7s's runtime does
// not read.
func emptyModule() []byte { return []byte("\x00asm\x01\x00\x00\x00") }

// function is one that b7s's workers can install.
type function struct {
	manifest string // its URL
	id       string // b7s's
}

// serveFunction serves the manifest and archive of a function until the test
// ends.
func serveFunction(t *testing.T, module []byte) function {
	t.Helper()
	archive := packed(t, module)
	mux := http.NewServeMux()
	mux.HandleFunc("/manifest.json", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"runtime":{"url":"/fn.tar.gz","checksum":"%x"}}`, sha256.Sum256(archive))
	})
	mux.HandleFunc("/fn.tar.gz", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "fn.tar.gz", time.Time{}, bytes.NewReader(archive))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	manifest := server.URL + "/manifest.json"
	return function{manifest: manifest, id: fmt.Sprintf("%x", sha256.Sum256([]byte(manifest)))}
}

// packed is an archive with a module under both names.
func packed(t *testing.T, module []byte) []byte {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	for _, name := range []string{method, mainMethod} {
		require.NoError(t, files.WriteHeader(&tar.Header{
			Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(module)),
		}))
		_, err := files.Write(module)
		require.NoError(t, err)
	}
	require.NoError(t, files.Close())
	require.NoError(t, zipped.Close())
	return archive.Bytes()
}

// itemID is b7s's id of an item.
func (f function) itemID(args []string) string {
	sum := md5.Sum([]byte(f.id + "/" + method + " " + strings.Join(args, " ")))
	return hex.EncodeToString(sum[:])
}
