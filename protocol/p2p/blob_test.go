package p2p

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// random has a length that no buffer has a multiple of.
var random = func() (b [65521]byte) {
	_, _ = rand.NewChaCha8([32]byte{}).Read(b[:])
	return b
}()

// pattern is content of any size that takes no memory.
type pattern struct {
	size, at int64
	seen     func(at int64) error // before each read; may be nil
}

func (p *pattern) Read(b []byte) (n int, err error) {
	if p.seen != nil {
		if err := p.seen(p.at); err != nil {
			return 0, err
		}
	}
	if p.at == p.size {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), p.size-p.at)]
	for n < len(b) {
		some := copy(b[n:], random[p.at%int64(len(random)):])
		n += some
		p.at += int64(some)
	}
	return n, nil
}

func (p *pattern) Seek(offset int64, _ int) (int64, error) {
	p.at = offset
	return offset, nil
}

func (p *pattern) Close() error { return nil }

func (p *pattern) id(t *testing.T) string {
	t.Helper()
	hash := sha256.New()
	_, err := io.Copy(hash, &pattern{size: p.size})
	require.NoError(t, err)
	return BlobID([sha256.Size]byte(hash.Sum(nil)))
}

// serving is a source of one blob.
func serving(id string, content func() (*pattern, error)) BlobSource {
	return func(_ context.Context, _ PeerID, wanted string) (io.ReadSeekCloser, int64, error) {
		if wanted != id {
			return nil, 0, fs.ErrNotExist
		}
		p, err := content()
		if err != nil {
			return nil, 0, err
		}
		return p, p.size, nil
	}
}

// TestBlobGoesOnAfterACut fetches from a peer that dials and can't be dialled, whose
// connection ends midway. Its memory is measured, so it is not parallel.
func TestBlobGoesOnAfterACut(t *testing.T) {
	const size = 64 << 20
	id := (&pattern{size: size}).id(t)
	quick := func(o *Options) { o.RedialMin = 1e6 }
	head, _ := start(t, quick)
	worker, _ := start(t, func(o *Options) {
		quick(o)
		o.Listen, o.BootNodes = []string{}, head.Addrs()
	})
	cut := false
	worker.ServeBlobs(serving(id, func() (*pattern, error) {
		return &pattern{size: size, seen: func(at int64) error {
			if at >= size/2 && !cut {
				cut = true
				return worker.Disconnect(head.ID())
			}
			return nil
		}}, nil
	}))
	require.NoError(t, head.WaitTopicPeers(soon(t), TopicGeneral, 1))

	var most uint64
	var reports []int64
	hash := sha256.New()
	before := memory()
	err := head.FetchBlob(soon(t), worker.ID(), id, hash, FetchOptions{Progress: func(done, total int64) {
		require.Equal(t, int64(size), total)
		reports = append(reports, done)
		if len(reports)%16 == 0 {
			most = max(most, memory().HeapInuse)
		}
	}})
	after := memory()
	require.NoError(t, err)
	require.Equal(t, id, BlobID([sha256.Size]byte(hash.Sum(nil))))
	require.IsIncreasing(t, reports)
	require.Equal(t, int64(size), reports[len(reports)-1])
	require.Equal(t, int64(1), head.Stats().BlobsFetched)
	require.NotZero(t, head.Stats().BlobCuts)
	require.Equal(t, int64(size), head.Stats().BytesFetched, "no byte is fetched twice")
	t.Logf("heap %.1f MB before, %.1f MB at most; %.1f MB allocated in all", mb(before.HeapInuse), mb(most),
		mb(after.TotalAlloc-before.TotalAlloc))
	require.Less(t, mb(most)-mb(before.HeapInuse), 8.0)
	require.Less(t, mb(after.TotalAlloc-before.TotalAlloc), mb(size), "pooled buffers are used again")
}

func memory() (m runtime.MemStats) {
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

func mb(n uint64) float64 { return float64(n) / (1 << 20) }

func TestBlobs(t *testing.T) {
	t.Parallel()
	server, _ := start(t, nil)
	client, _ := start(t, nil)
	connect(t, client, server)
	for _, size := range []int64{0, 1, blobPiece - 1, blobPiece, blobPiece + 1, 3 << 20} {
		id := (&pattern{size: size}).id(t)
		server.ServeBlobs(serving(id, func() (*pattern, error) { return &pattern{size: size}, nil }))
		var got bytes.Buffer
		require.NoError(t, client.FetchBlob(soon(t), server.ID(), id, &got, FetchOptions{Limit: max(1, size)}))
		require.Equal(t, size, int64(got.Len()))
		// It goes on where an earlier fetch ended, even at the end.
		for _, have := range []int64{size / 2, size} {
			var rest bytes.Buffer
			require.NoError(t, client.FetchBlob(soon(t), server.ID(), id, &rest,
				FetchOptions{Have: &pattern{size: have}}))
			require.True(t, bytes.Equal(got.Bytes()[have:], rest.Bytes()))
		}
	}
}

func TestBlobsThatCanNotBeFetched(t *testing.T) {
	t.Parallel()
	const size = 1000
	id := (&pattern{size: size}).id(t)
	other := (&pattern{size: size + 1}).id(t)
	server, _ := start(t, nil)
	client, _ := start(t, func(o *Options) { o.RedialMin, o.Limits.ProtocolTimeout = 1e6, 1e6 })
	connect(t, client, server)
	fetch := func(id string, w io.Writer, o FetchOptions) error {
		return client.FetchBlob(soon(t), server.ID(), id, w, o)
	}
	require.ErrorIs(t, fetch(id, io.Discard, FetchOptions{}), ErrUnsupported)
	server.ServeBlobs(serving(id, func() (*pattern, error) { return &pattern{size: size}, nil }))
	require.ErrorIs(t, fetch("../etc", io.Discard, FetchOptions{}), ErrBlobID)
	require.Eventually(t, func() bool {
		return errors.Is(fetch(other, io.Discard, FetchOptions{}), ErrBlobUnknown)
	}, testTime, time.Millisecond, "the protocol was announced late")
	require.ErrorIs(t, fetch(id, io.Discard, FetchOptions{Limit: size - 1}), ErrTooLarge)
	require.ErrorIs(t, fetch(id, io.Discard, FetchOptions{Have: bytes.NewReader(make([]byte, 10))}), ErrBlobContent)
	require.ErrorIs(t, fetch(id, io.Discard, FetchOptions{Have: &pattern{size: size + 1}}), ErrBlobContent)
	full := errors.New("full")
	require.ErrorIs(t, fetch(id, failing{full}, FetchOptions{}), full)

	// Bytes of another blob under this name, then a source that fails.
	server.ServeBlobs(func(context.Context, PeerID, string) (io.ReadSeekCloser, int64, error) {
		return &pattern{size: size}, size, nil
	})
	require.ErrorIs(t, fetch(other, io.Discard, FetchOptions{}), ErrBlobContent)
	server.ServeBlobs(serving(id, func() (*pattern, error) {
		return &pattern{size: size, seen: func(int64) error { return full }}, nil
	}))
	require.Error(t, fetch(id, io.Discard, FetchOptions{Patience: 1}))
	require.Empty(t, client.Stats().BlobsFetched)

	ctx, cancel := context.WithCancel(t.Context())
	server.ServeBlobs(serving(id, func() (*pattern, error) {
		cancel()
		return nil, full
	}))
	require.ErrorIs(t, client.FetchBlob(ctx, server.ID(), id, io.Discard, FetchOptions{}), context.Canceled)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestBlobIDs(t *testing.T) {
	t.Parallel()
	// What IPFS calls the empty file, and one of four letters.
	require.Equal(t, "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku", BlobID(sha256.Sum256(nil)))
	hash := sha256.Sum256([]byte("blob"))
	got, err := ParseBlobID(BlobID(hash))
	require.NoError(t, err)
	require.Equal(t, hash, got)
	for _, text := range []string{
		"", "x", "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvykuu",
		"BAFKREIHDWDCEFGH4DQKJV67UZCMW7OJEE6XEDZDETOJUZJEVTENXQUVYKU", // another spelling of the same
		"QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o",              // version 0
		"bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi", // another codec
		fmt.Sprint(bytes.Repeat([]byte("b"), 200)),
	} {
		_, err := ParseBlobID(text)
		require.ErrorIs(t, err, ErrBlobID, text)
	}
}
