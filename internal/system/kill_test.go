package system

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

const killDirVariable = "FUTURA_SYSTEM_KILL_DIR"

// shout is what the futures of the killed process run. It takes a while, so that
// the process holds claims whenever it is killed.
func shout(ctx context.Context, args []byte) ([]byte, error) {
	timer := time.NewTimer(5 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return bytes.ToUpper(args), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// killedMain is a process that submits and runs futures until it is killed, and
// prints the id of each once it is acknowledged.
func killedMain(ctx context.Context, dir string) error {
	client, err := openPlant(ctx, "embedded:"+dir)
	if err != nil {
		return err
	}
	for range 2 {
		w, err := workers.New(client, workers.Options{Slots: 4})
		if err == nil {
			err = w.Register("shout", shout)
		}
		if err != nil {
			return err
		}
		go func() { _ = w.Run(ctx) }()
	}
	for {
		tasks := make([]futures.Task, 1+rand.IntN(5))
		for i := range tasks {
			tasks[i] = futures.Task{Function: "go:shout", Args: fmt.Appendf(nil, "text %d", rand.Uint64())}
			if rand.IntN(20) == 0 {
				tasks[i].Args = append(tasks[i].Args, bytes.Repeat([]byte("x"), rand.IntN(200_000))...)
			}
		}
		submitted, err := client.SubmitMany(ctx, tasks)
		if err != nil {
			return err
		}
		for _, f := range submitted {
			fmt.Println(f.ID())
		}
	}
}

// killOne starts such a process and kills it once it has acknowledged a number
// of futures. It returns all that it acknowledged.
func killOne(t *testing.T, dir string, after int) (acked []futures.ID) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), killDirVariable+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		id, err := layout.ParseID(line[:len(line)-1])
		require.NoError(t, err)
		if acked = append(acked, id); len(acked) == after {
			require.NoError(t, child.Process.Kill())
		}
	}
	require.Error(t, child.Wait())
	require.GreaterOrEqual(t, len(acked), after)
	return acked
}

// TestKilledProcessLosesNothing kills processes that submit and run futures, and
// opens their store again each time: all that was acknowledged is there and comes
// to its end, and nothing is broken.
func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	rounds := 5
	if os.Getenv("FUTURA_LONG") == "1" {
		rounds = 100
	}
	var dir string
	held := int64(0)
	for n := range rounds {
		if n%10 == 0 {
			dir = t.TempDir()
		}
		acked := killOne(t, dir, 1+rand.IntN(400))
		t.Run("", func(t *testing.T) {
			p := newPlant(t, "embedded:"+dir)
			counts, err := p.client.Cluster().Counts(p.ctx)
			require.NoError(t, err)
			held += counts.Total(layout.Claimed)
			p.check()
			p.start(workers.Options{Slots: 20}, map[string]workers.Function{"shout": shout})
			handles := make([]*futures.Future, len(acked))
			for i, id := range acked {
				handles[i] = p.client.Future(id)
			}
			results, err := p.client.AwaitAll(p.ctx, handles)
			require.NoError(t, err)
			for i, r := range results {
				row, err := p.client.Cluster().Get(p.ctx, acked[i])
				require.NoError(t, err)
				args, err := p.client.Cluster().Args(p.ctx, acked[i], row.Spec)
				require.NoError(t, err)
				require.Equal(t, bytes.ToUpper(args), r.Value)
				require.LessOrEqual(t, row.Attempts.Suspicion(), 1)
				require.Zero(t, row.Attempts.Crashes)
				require.Zero(t, row.Attempts.Failed)
			}
			p.awaitNoneOpen()
			members, err := p.client.Cluster().Workers(p.ctx)
			require.NoError(t, err)
			require.Len(t, members, 1, "the killed ones are forgotten")
			for _, note := range p.check().Notes {
				// A large value whose writer was killed before it said whose it is, or mail for a process that was killed
				// before it had written its session.
				require.Contains(t, []audit.Invariant{audit.InvariantChunks, audit.InvariantMail}, note.Invariant, "%+v", note)
			}
		})
	}
	require.Positive(t, held, "no process was killed while it held a claim")
}
