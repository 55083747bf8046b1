package rest_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// largeStore has results that are too large for a page, and counts how many of
// them are read at a time.
type largeStore struct {
	batch.Store
	out string

	mu         sync.Mutex
	held, most int
}

func (s *largeStore) Items(ctx context.Context, id string, from, limit int, states ...batch.Status) (
	[]batch.Item, error,
) {
	items, err := s.Store.Items(ctx, id, from, limit, states...)
	for i := range items {
		items[i].Result, items[i].LeftOut = nil, int64(len(s.out))
	}
	return items, err
}

func (s *largeStore) Result(context.Context, string, int) (*batch.Result, error) {
	return &batch.Result{Stdout: s.out}, nil
}

// TestLargeResultsAreReadOneByOne reads six results of 62 MiB, at once and in all
// shapes, while others are served.
func TestLargeResultsAreReadOneByOne(t *testing.T) {
	const size = 62 << 20
	n := 6
	if testing.Short() {
		n = 2
	}
	head := newFakeHead()
	store := &largeStore{Store: head.store, out: strings.Repeat("0123456789abcdef", size/16)}
	server := httptest.NewServer(rest.Handler(largeHead{head, store}, rest.Options{
		Stack: stack.Options{Limits: stack.Limits{MemoryWait: time.Minute}},
	}))
	t.Cleanup(server.Close)
	f := &fixture{T: t, head: head, url: server.URL}
	id := f.submit(make([]string, n)...)
	f.run(id, n)
	// What isn't collected yet counts too, so little of it may lie about.
	percent := debug.SetGCPercent(10)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	lines := func() int64 {
		r, err := http.NewRequestWithContext(t.Context(), "GET", f.url+batchesPath+"/"+id+"/results", nil)
		require.NoError(t, err)
		r.Header.Set("Accept", "application/x-ndjson")
		r.Header.Set("Accept-Encoding", "identity")
		response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		require.NoError(t, err)
		defer response.Body.Close()
		read, err := io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		return read
	}
	var readers sync.WaitGroup
	sizes := make([]int64, 2)
	for i := range sizes {
		readers.Go(func() { sizes[i] = lines() })
	}
	done := make(chan struct{})
	go func() { readers.Wait(); close(done) }()
	for running := true; running; {
		require.Equal(t, http.StatusOK, f.send("GET", batchesPath+"/"+id, "").Status)
		runtime.ReadMemStats(&now)
		require.Less(t, int64(now.HeapAlloc)-int64(before.HeapAlloc), int64(3*size), "results are not copied whole")
		select {
		case <-done:
			running = false
		default:
		}
	}
	for _, read := range sizes {
		require.Greater(t, read, int64(n)*size)
	}
}

// largeHead has another store.
type largeHead struct {
	*fakeHead
	store batch.Store
}

func (h largeHead) Store() batch.Store { return h.store }

// TestReadersThatStallAreRefusedTheirShare lets readers hold large results that
// they do not take.
func TestReadersThatStallAreRefusedTheirShare(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	head := newFakeHead()
	store := &largeStore{Store: head.store, out: strings.Repeat("x", size)}
	handler := rest.Handler(largeHead{head, store}, rest.Options{Stack: stack.Options{Limits: stack.Limits{
		Memory: 64 << 20, ClientMemory: 12 << 20, MemoryWait: 10 * time.Millisecond,
	}}})
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	f := &fixture{T: t, head: head, url: server.URL}
	arguments := make([]string, 64)
	id := f.submit(arguments...)
	f.run(id, len(arguments))
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET %s/%s/results HTTP/1.1\r\nHost: a\r\nAccept: application/x-ndjson\r\n\r\n",
		batchesPath, id)
	require.NoError(t, err)
	// It has its share before others ask.
	status := make([]byte, len("HTTP/1.1 200"))
	_, err = io.ReadFull(conn, status)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 200", string(status))
	require.Eventually(t, func() bool {
		return f.send("GET", batchesPath+"/"+id+"/results", "").Status == http.StatusTooManyRequests
	}, time.Minute, time.Millisecond)
	require.Equal(t, http.StatusOK, f.send("GET", batchesPath+"/"+id, "").Status)
}

// TestListsReadAFewBatchesAtATime lists more batches than may be in memory with
// their templates.
func TestListsReadAFewBatchesAtATime(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	store := &listingStore{Store: f.head.store}
	server := httptest.NewServer(rest.Handler(largeHead{f.head, store}, rest.Options{}))
	t.Cleanup(server.Close)
	for range 90 {
		f.submit("a")
	}
	f.url = server.URL
	var page struct {
		Batches []struct{ ID string }
		Next    string
	}
	seen := map[string]bool{}
	for next := "start"; next != ""; next = page.Next {
		page.Next, page.Batches = "", nil
		f.send("GET", batchesPath+"?limit=45&after="+strings.TrimPrefix(next, "start"), "").Into(200, &page)
		for _, b := range page.Batches {
			require.False(t, seen[b.ID])
			seen[b.ID] = true
		}
	}
	require.Len(t, seen, 90)
	require.LessOrEqual(t, store.most, 20)
}

// listingStore notes the most batches that are read at a time.
type listingStore struct {
	batch.Store
	most int
}

func (s *listingStore) List(ctx context.Context, active bool, after string, limit int) ([]batch.Batch, error) {
	s.most = max(s.most, limit)
	return s.Store.List(ctx, active, after, limit)
}

// TestPackedNonsenseCostsItsSize sends gzip that unpacks to more than may be
// held.
func TestPackedNonsenseCostsItsSize(t *testing.T) {
	t.Parallel()
	few := stack.Limits{Memory: 16 << 20, MemoryWait: 10 * time.Millisecond}
	f := newFixture(t, rest.Options{Stack: stack.Options{Limits: few}})
	var lists strings.Builder
	lists.WriteString(`{"template":{"function_id":"f"},"arguments":[[`)
	for range 200 {
		lists.WriteString(strings.Repeat(`"",`, 40_000) + `""],[`)
	}
	lists.WriteString(`]]}`)
	packed := zipped(t, []byte(lists.String()))
	require.Less(t, len(packed), 1<<20)
	answer := f.send("POST", submitPath, packed, "Content-Encoding", "gzip")
	answer.Problem(429, "busy", "try again")
	require.NotEmpty(t, answer.Header.Get("Retry-After"))
	require.Equal(t, http.StatusOK, f.send("GET", batchesPath, "").Status)
}

// TestSparseArchivesAreRefused sends a small archive of a file that says it is
// large.
func TestSparseArchivesAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{Client: newClient(t)})
	var b bytes.Buffer
	writeSparse(t, &b, "a.wasm", 60<<20)
	b.Write(make([]byte, 1024))
	f.send("POST", installPath, zipped(t, b.Bytes())).Problem(422, "bad_archive", "sparse")
}

// TestArchivesAreCountedByWhatTheyUnpackTo sends a small archive of large files.
func TestArchivesAreCountedByWhatTheyUnpackTo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{Client: newClient(t)})
	const piece, pieces = 4 << 20, 15
	zeros := zipped(t, make([]byte, piece))
	var packed strings.Builder // of many members
	for i := range 5 {
		var header bytes.Buffer
		w := tar.NewWriter(&header)
		name := fmt.Sprintf("%d.text", i)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Size: piece * pieces, Mode: 0o644}))
		packed.WriteString(zipped(t, header.Bytes()) + strings.Repeat(zeros, pieces))
	}
	f.send("POST", installPath, packed.String()).Problem(422, "bad_archive", "unpacks to more than")
}

// writeSparse adds a file in the sparse format of GNU's PAX headers, version 1.0:
// a magic number, then a hole.
func writeSparse(t *testing.T, to *bytes.Buffer, name string, size int) {
	t.Helper()
	content := fmt.Sprintf("1\n0\n%d\n", len(echoModule))
	content += strings.Repeat("\x00", 512-len(content)) + string(echoModule)
	records := ""
	for _, r := range []string{
		"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=" + name, fmt.Sprintf("GNU.sparse.realsize=%d", size),
	} {
		n := len(r) + 4
		records += fmt.Sprintf("%02d %s\n", n, r)
	}
	var raw bytes.Buffer
	w := tar.NewWriter(&raw)
	require.NoError(t, w.WriteHeader(&tar.Header{
		Name: "PaxHeaders/" + name, Typeflag: tar.TypeReg, Size: int64(len(records)), Format: tar.FormatUSTAR,
	}))
	_, err := io.WriteString(w, records)
	require.NoError(t, err)
	require.NoError(t, w.WriteHeader(&tar.Header{
		Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o644, Format: tar.FormatUSTAR,
	}))
	_, err = io.WriteString(w, content)
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	block := raw.Bytes()
	block[156] = tar.TypeXHeader
	copy(block[148:156], "        ")
	sum := 0
	for _, c := range block[:512] {
		sum += int(c)
	}
	copy(block[148:156], fmt.Sprintf("%06o\x00 ", sum))
	to.Write(block)
}
