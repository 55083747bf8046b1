package system

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
// All results but the last are objects of workers.
var (
	readPart   = futures.Define[[]string, []byte]("read", futures.AsObject(), futures.Retries(20))
	countPart  = futures.Define[[]byte, map[string]int]("count", futures.AsObject(), futures.Retries(20))
	mergeParts = futures.Define[[]map[string]int, map[string]int]("merge", futures.AsObject(), futures.Retries(20))
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

func countWords(_ context.Context, text []byte) (map[string]int, error) {
	counts := map[string]int{}
	words := bufio.NewScanner(bytes.NewReader(text))
	words.Buffer(nil, len(text)+1)
	words.Split(bufio.ScanWords)
	for words.Scan() {
		for word := range bytes.FieldsFuncSeq(words.Bytes(), isNoLetter) {
			counts[string(word)]++
		}
	}
	return counts, words.Err()
}

func isNoLetter(r rune) bool { return !unicode.IsLetter(r) }

func mergeCounts(_ context.Context, parts []map[string]int) (map[string]int, error) {
	merged := map[string]int{}
	for _, part := range parts {
		for word, n := range part {
			merged[word] += n
		}
	}
	return merged, nil
}

// wordsMain is a worker process, until it is killed.
func wordsMain(store string) int {
	ctx := context.Background()
	err := func() error {
		db, err := kvopen.Open(ctx, store, kvopen.Options{})
		if err != nil {
			return err
		}
		client, err := futures.New(ctx, db, futures.Options{Cluster: "plant"})
		if err != nil {
			return err
		}
		dir, err := os.MkdirTemp("", "words")
		if err != nil {
			return err
		}
		w, err := workers.New(client, workers.Options{
			Slots: 2, Objects: workers.ObjectOptions{Memory: objectMemory, Disk: 1 << 30, Dir: dir},
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
		go func() {
			<-w.Ready()
			fmt.Println("ready")
		}()
		return w.Run(ctx)
	}()
	fmt.Fprintln(os.Stderr, err)
	return 1
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
		_ = c.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = c.Wait()
		return peakMemory(c.ProcessState)
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
	var locally []map[string]int
	for _, files := range parts {
		text, err := readFiles(t.Context(), files)
		require.NoError(t, err)
		counts, err := countWords(t.Context(), text)
		require.NoError(t, err)
		locally = append(locally, counts)
	}
	want, err := mergeCounts(t.Context(), locally)
	require.NoError(t, err)
	t.Logf("%d bytes in %d parts, %d words", size, len(parts), len(want))
	var peak int64
	for round := range rounds {
		peak = max(peak, countOnWorkers(t, parts, want, rand.New(rand.NewPCG(uint64(round), 3))))
	}
	t.Logf("a worker took at most %d of %d MiB", peak>>20, workerMemory>>20)
	switch {
	case size < workerMemory:
		t.Log("SKIP: the files are smaller than a worker's memory: the long run has more")
	case raced:
		t.Log("SKIP: the race detector takes memory: a run without it compares what a worker takes")
	default:
		require.NotZero(t, peak)
		require.LessOrEqual(t, peak, int64(workerMemory))
	}
}

// countOnWorkers returns the most memory that a worker process took, in bytes.
func countOnWorkers(t *testing.T, parts [][]string, want map[string]int, random *rand.Rand) (peak int64) {
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
	root, err := futures.Reduce(ctx, p.client, counted, mergeParts, 8)
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
	require.Equal(t, want, got)
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
