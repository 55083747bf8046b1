package system

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

const wordsStoreVariable = "FUTURA_SYSTEM_WORDS_STORE"

// workerMemory is what a worker process may take of the machine's memory, in bytes.
// All Go files of the installation are larger.
const workerMemory = 80 << 20

// objectMemory is what the objects of a worker process may take in memory. All
// objects of a run together are larger; the rest goes to disk.
const objectMemory = 2 << 20

// The word count: each part of the files is read, counted, and merged with others.
// All results are objects of workers. Counts are lines with a word and a number, in
// the order of the words, so that merging them takes little memory.
var (
	readPart   = futures.Define[[]string, []byte]("read", futures.AsObject(), futures.Retries(20))
	countPart  = futures.Define[[]byte, []byte]("count", futures.AsObject(), futures.Retries(20))
	mergeParts = futures.Define[[][]byte, []byte]("merge", futures.AsObject(), futures.Retries(20))
)

func readFiles(_ context.Context, files []string) ([]byte, error) {
	var all []byte
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(append(all, content...), '\n')
	}
	return all, nil
}

func countWords(_ context.Context, text []byte) ([]byte, error) {
	counts := map[string]int{}
	for word := range bytes.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		counts[string(word)]++
	}
	var lines []byte
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		lines = fmt.Appendf(lines, "%s %d\n", word, counts[word])
	}
	return lines, nil
}

// counted is the next line of a part.
type counted struct {
	rest []byte
	word string
	n    int
}

// next reads the next line, and reports whether there was one.
func (c *counted) next() (bool, error) {
	line, rest, found := bytes.Cut(c.rest, []byte("\n"))
	if !found {
		return false, nil
	}
	c.rest = rest
	_, err := fmt.Sscanf(string(line), "%s %d", &c.word, &c.n)
	return err == nil, err
}

func mergeCounts(_ context.Context, parts [][]byte) ([]byte, error) {
	var heads []*counted
	advance := func(c *counted) error {
		found, err := c.next()
		if found {
			heads = append(heads, c)
		}
		return err
	}
	for _, part := range parts {
		if err := advance(&counted{rest: part}); err != nil {
			return nil, err
		}
	}
	var lines []byte
	for len(heads) > 0 {
		word := slices.MinFunc(heads, func(a, b *counted) int { return strings.Compare(a.word, b.word) }).word
		n, before := 0, heads
		heads = nil
		for _, c := range before {
			if c.word != word {
				heads = append(heads, c)
				continue
			}
			n += c.n
			if err := advance(c); err != nil {
				return nil, err
			}
		}
		lines = fmt.Appendf(lines, "%s %d\n", word, n)
	}
	return lines, nil
}

// wordsMain is a worker process, until it is killed.
func wordsMain(ctx context.Context, store string) error {
	client, err := openPlant(ctx, store)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "words")
	if err != nil {
		return err
	}
	w, err := workers.New(client, workers.Options{
		Slots: 1, Objects: workers.ObjectOptions{Memory: objectMemory, Disk: 1 << 30, Dir: dir},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	for _, register := range []func() error{
		func() error { return w.Register(readPart.Bind(readFiles)) },
		func() error { return w.Register(countPart.Bind(countWords)) },
		func() error { return w.Register(mergeParts.Bind(mergeCounts)) },
	} {
		if err := register(); err != nil {
			return err
		}
	}
	return work(ctx, w)
}

// serveStore serves the store of a plant to other processes.
func serveStore(t *testing.T, p *plant) (store string, stop func()) {
	dir, err := os.MkdirTemp("", "words")
	require.NoError(t, err)
	path := filepath.Join(dir, "store")
	l, err := remote.ListenUnix(path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(p.ctx)
	served := make(chan error, 1)
	go func() { served <- remote.Serve(ctx, l, p.db, remote.ServerOptions{}) }()
	return "remote:unix:" + path, func() {
		cancel()
		require.NoError(t, <-served)
		require.NoError(t, os.RemoveAll(dir))
	}
}

// startWords starts a worker process, and returns how to kill it, which returns the
// most memory that the process ever took, in bytes.
func startWords(t *testing.T, store string) (kill func() (peak int64)) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), wordsStoreVariable+"="+store, fmt.Sprint("GOMEMLIMIT=", workerMemory/2))
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "the process says why if its standard error is shown")
	require.Equal(t, "ready\n", line)
	kill = sync.OnceValue(func() int64 {
		peak := peakMemory(c.Process.Pid)
		_ = c.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = c.Wait()
		return peak
	})
	t.Cleanup(func() { kill() })
	return kill
}

// sources returns Go files of the installation, in parts.
func sources(t *testing.T, dir string) (parts [][]string, bytes int64) {
	const part = 256 << 10
	var size int64
	root := filepath.Join(runtime.GOROOT(), "src", dir)
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if len(parts) == 0 || size > part {
			parts, size = append(parts, nil), 0
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], name)
		size, bytes = size+info.Size(), bytes+info.Size()
		return nil
	})
	require.NoError(t, err)
	return parts, bytes
}

// TestWordCountWithKilledWorkers counts words on four worker processes, of which
// two are killed at random moments and others take their place: what was lost with
// them is made again, and the count is that of this process.
func TestWordCountWithKilledWorkers(t *testing.T) {
	t.Parallel()
	dir, rounds := "net", 1
	if os.Getenv("FUTURA_LONG") == "1" {
		dir, rounds = "", 20
	}
	parts, size := sources(t, dir)
	require.NotEmpty(t, parts)
	require.Greater(t, size, int64(objectMemory))
	all, err := readFiles(t.Context(), slices.Concat(parts...))
	require.NoError(t, err)
	want, err := countWords(t.Context(), all)
	require.NoError(t, err)
	t.Logf("%d bytes in %d parts, %d words", size, len(parts), bytes.Count(want, []byte("\n")))
	var peak int64
	for round := range rounds {
		peak = max(peak, countOnWorkers(t, parts, want, rand.New(rand.NewPCG(uint64(round), 3))))
	}
	t.Logf("a worker took at most %d of %d MiB", peak>>20, workerMemory>>20)
	switch {
	case size < workerMemory:
		t.Log("SKIP: the files are smaller than a worker's memory: the long run has more")
	case peak == 0:
		t.Log("SKIP: this system does not tell what a process takes")
	case raced:
		t.Log("SKIP: the race detector takes memory: a run without it compares what a worker takes")
	default:
		require.LessOrEqual(t, peak, int64(workerMemory))
	}
}

// countOnWorkers returns the most memory that a worker process took, in bytes.
func countOnWorkers(t *testing.T, parts [][]string, want []byte, random *rand.Rand) (peak int64) {
	db, err := kvopen.Open(t.Context(), "memory:", kvopen.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	p := plantWith(t, db, "plant", 2*time.Second)
	// It is closed before the store.
	defer func() { require.NoError(t, p.client.Close(p.ctx)) }()
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Minute)
	defer cancel()
	store, stop := serveStore(t, p)
	defer stop()
	kills := make([]func() int64, 4)
	for i := range kills {
		kills[i] = startWords(t, store)
	}
	read, err := readPart.Map(ctx, p.client, parts)
	require.NoError(t, err)
	counted, err := futures.ThenEach(ctx, p.client, read, countPart)
	require.NoError(t, err)
	root, err := futures.Reduce(ctx, p.client, counted, mergeParts, 4)
	require.NoError(t, err)
	for n := range 2 {
		// After some of the work, a random worker dies.
		_, err := counted[random.IntN(len(counted))].Await(ctx)
		require.NoError(t, err)
		peak = max(peak, kills[n]())
		kills[n] = startWords(t, store)
	}
	got, err := root.Await(ctx)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
	p.check()
	for _, kill := range kills {
		peak = max(peak, kill())
	}
	rebuilt := 0
	for _, f := range read {
		row, err := p.client.Cluster().Get(ctx, f.ID())
		require.NoError(t, err)
		require.NotEqual(t, layout.Failed, row.State())
		rebuilt += row.Attempts.Rebuilt
	}
	t.Logf("%d of %d parts were read again", rebuilt, len(read))
	return peak
}
