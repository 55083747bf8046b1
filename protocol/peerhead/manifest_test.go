package peerhead_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestManifests installs a module as a node of b7s does, and tries paths that were not
// given out.
func TestManifests(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, modeltest.OpenMemory(t), "manifests", fdbmodel.Options{})
	require.NoError(t, err)
	code := append([]byte("\x00asm\x01\x00\x00\x00"), make([]byte, 100_000)...)
	module, err := modules.Of(cluster).Put(ctx, code, "")
	require.NoError(t, err)
	m := peerhead.NewManifests(cluster, []byte(strings.Repeat("k", 32)))
	server := httptest.NewServer(m)
	defer server.Close()
	get := func(path string) (int, []byte) {
		answer, err := http.Get(server.URL + path)
		require.NoError(t, err)
		defer func() { require.NoError(t, answer.Body.Close()) }()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, body
	}
	status, body := get(m.Path(module.CID))
	require.Equal(t, http.StatusOK, status)
	var manifest struct {
		Runtime struct{ URL, Checksum string }
	}
	require.NoError(t, json.Unmarshal(body, &manifest))
	for range 2 { // the archive is the same each time
		status, archive := get(manifest.Runtime.URL)
		require.Equal(t, http.StatusOK, status)
		sum := sha256.Sum256(archive)
		require.Equal(t, manifest.Runtime.Checksum, hex.EncodeToString(sum[:]))
		z, err := gzip.NewReader(bytes.NewReader(archive))
		require.NoError(t, err)
		files := tar.NewReader(z)
		header, err := files.Next()
		require.NoError(t, err)
		require.Equal(t, "main.wasm", header.Name)
		got, err := io.ReadAll(files)
		require.NoError(t, err)
		require.Equal(t, code, got)
	}
	other := peerhead.NewManifests(cluster, []byte(strings.Repeat("o", 32)))
	unknown, err := modules.CID([]byte("\x00asm unknown"))
	require.NoError(t, err)
	for _, path := range []string{
		"/", "/x", other.Path(module.CID), m.Path(unknown), strings.Replace(m.Path(module.CID), "manifest.json", "x", 1),
		strings.Replace(m.Path(module.CID), module.CID, unknown, 1),
	} {
		status, _ := get(path)
		require.Equal(t, http.StatusNotFound, status, path)
	}
}

// TestARequestThatEndsTakesNoOtherWithIt has the request that reads an archive end while another one waits for it.
func TestARequestThatEndsTakesNoOtherWithIt(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx := context.Background()
		store := faultkv.Wrap(modeltest.OpenMemory(t), faultkv.Options{})
		cluster, err := fdbmodel.Open(ctx, store, "manifests", fdbmodel.Options{})
		require.NoError(t, err)
		module, err := modules.Of(cluster).Put(ctx, []byte("\x00asm\x01\x00\x00\x00"), "")
		require.NoError(t, err)
		var asked atomic.Int32
		store.SetOptions(faultkv.Options{Latency: time.Hour, Sleep: func(ctx context.Context, _ time.Duration) error {
			if asked.Add(1) > 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}})
		m := peerhead.NewManifests(cluster, []byte(strings.Repeat("k", 32)))
		get := func(ctx context.Context) <-chan int {
			status := make(chan int, 1)
			go func() {
				w := httptest.NewRecorder()
				m.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, m.Path(module.CID), nil))
				status <- w.Code
			}()
			synctest.Wait()
			return status
		}
		ending, end := context.WithCancel(ctx)
		first, second := get(ending), get(ctx)
		waiting, leave := context.WithCancel(ctx)
		third := get(waiting)
		leave()
		<-third // while the first one still reads
		end()
		require.Equal(t, http.StatusServiceUnavailable, <-first)
		require.Equal(t, http.StatusOK, <-second)
	})
}
