package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

const (
	killDirVariable = "FUTURA_EMBEDDED_KILL_DIR"
	killCommitters  = 16
)

// TestKilledProcess kills processes that commit, and looks for each commit
// that they reported as acknowledged.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	rounds := 20
	if os.Getenv("FUTURA_LONG") == "1" {
		rounds = 200
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	acked := map[string]bool{}
	for range rounds {
		killOne(t, dir, 1+random.IntN(600), acked)
		s := open(t, dir, killOptions())
		rows := contents(t, s)
		for name := range acked {
			if _, found := rows["a/"+name]; !found {
				t.Fatalf("commit %s was acknowledged and is lost", name)
			}
		}
		for row := range rows {
			_, a := rows["a/"+row[2:]]
			_, b := rows["b/"+row[2:]]
			if row[:2] != "n/" && (!a || !b) {
				t.Fatalf("commit %s is there by half", row[2:])
			}
		}
		require.NoError(t, s.Close())
	}
	require.NotEmpty(t, acked)
}

// killOptions make checkpoints and new segments come often.
func killOptions() Options { return Options{SegmentSize: 64 << 10, CheckpointBytes: 256 << 10} }

// killOne starts a process on dir and kills it once it has acknowledged a
// number of commits. It adds those that it acknowledged.
func killOne(t *testing.T, dir string, after int, acked map[string]bool) {
	child := exec.Command(os.Args[0], "-test.run=^TestKilledProcessChild$", "-test.v=false")
	child.Env = append(os.Environ(), killDirVariable+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewReader(out)
	for n := 0; ; n++ {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		acked[line[:len(line)-1]] = true
		if n == after {
			require.NoError(t, child.Process.Kill())
		}
	}
	require.ErrorContains(t, child.Wait(), "killed")
}

// TestKilledProcessChild is the process that is killed.
func TestKilledProcessChild(t *testing.T) {
	dir := os.Getenv(killDirVariable)
	if dir == "" {
		t.Skip("it is run by TestKilledProcess")
	}
	s := open(t, dir, killOptions())
	var out sync.Mutex
	var wait sync.WaitGroup
	for c := range killCommitters {
		wait.Go(func() {
			for i := 0; ; i++ {
				name := strconv.Itoa(os.Getpid()) + "/" + strconv.Itoa(c) + "/" + strconv.Itoa(i)
				tx := s.Begin(kv.Options{})
				tx.Set([]byte("a/"+name), make([]byte, i%200))
				tx.Set(fmt.Appendf(nil, "n/%d", c), make([]byte, 500))
				tx.Set([]byte("b/"+name), nil)
				if _, err := tx.Commit(context.Background()); err != nil {
					panic(err)
				}
				out.Lock()
				fmt.Println(name)
				out.Unlock()
			}
		})
	}
	wait.Wait()
}
