package system

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

const ownerDirVariable = "FUTURA_SYSTEM_OWNER_DIR"

// Lines of a process that shares a store.
const (
	lineSubmitted = "submitted" // ID
	lineEnded     = "ended"     // ID RESULT
)

// ownerMain is a process that shares a store, and submits, runs and awaits futures until its
// standard input ends.
func ownerMain(ctx context.Context, dir string) error {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	lasting := context.WithoutCancel(ctx) // a process that is told to end while it opens the store opens it, and ends
	db, err := kvopen.Open(lasting, "embedded:"+dir, kvopen.Options{Share: true, InUseWait: time.Minute})
	if err != nil {
		return err
	}
	defer db.Close()
	client, err := futures.New(lasting, db, futures.Options{Cluster: "plant"})
	if err != nil {
		return err
	}
	defer client.Close(lasting)
	db.(*sharing.Database).OnLost(admin.Reaper(client.Cluster(), slog.New(slog.DiscardHandler)))
	w, err := workers.New(client, workers.Options{Slots: 4, DrainTimeout: time.Second})
	if err == nil {
		err = w.Register("shout", shout)
	}
	if err != nil {
		return err
	}
	working, rest := context.WithCancel(lasting)
	defer rest()
	worked := make(chan error, 1)
	go func() { worked <- w.Run(working) }()
	for ctx.Err() == nil {
		if err := shoutOnce(lasting, client); err != nil {
			return err
		}
	}
	rest()
	return <-worked
}

// shoutOnce submits some futures and awaits them.
func shoutOnce(ctx context.Context, client *futures.Client) error {
	tasks := make([]futures.Task, 1+rand.IntN(8))
	for i := range tasks {
		tasks[i] = futures.Task{Function: "go:shout", Args: fmt.Appendf(nil, "text%d", rand.Uint64())}
	}
	submitted, err := client.SubmitMany(ctx, tasks)
	if err != nil {
		return err
	}
	for _, f := range submitted {
		fmt.Println(lineSubmitted, f.ID(), "-")
	}
	for f, outcome := range client.AwaitEach(ctx, submitted) {
		if outcome.Err != nil {
			return outcome.Err
		}
		fmt.Println(lineEnded, f.ID(), string(outcome.Result.Value))
	}
	return nil
}

// told is what processes that share a store have printed.
type told struct {
	mu        sync.Mutex
	submitted []futures.ID
	ended     map[futures.ID]string
}

func (o *told) follow(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return // an incomplete line of a killed process does not count
		}
		words := strings.Fields(line)
		id, err := layout.ParseID(words[1])
		if err != nil {
			continue
		}
		o.mu.Lock()
		if words[0] == lineSubmitted {
			o.submitted = append(o.submitted, id)
		} else {
			o.ended[id] = words[2]
		}
		o.mu.Unlock()
	}
}

func (o *told) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.ended)
}

// sharer is a process that shares a store.
type sharer struct {
	*exec.Cmd
	in   io.Closer
	read chan struct{} // closed when its last line was read
}

func startSharer(t *testing.T, dir string, all *told) *sharer {
	s := &sharer{Cmd: exec.Command(os.Args[0]), read: make(chan struct{})}
	s.Env = append(os.Environ(), ownerDirVariable+"="+dir)
	s.Stderr = os.Stderr
	in, err := s.StdinPipe()
	require.NoError(t, err)
	s.in = in
	out, err := s.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.Start())
	go func() {
		defer close(s.read)
		all.follow(out)
	}()
	t.Cleanup(s.kill)
	return s
}

func (s *sharer) kill() {
	_ = s.Process.Kill()
	<-s.read
	_ = s.Wait()
}

// TestKilledOwnersOfASharedStore has three processes share a store, and kills or stops the one that
// owns it again and again: all that was acknowledged comes to its end once, and all others go on.
func TestKilledOwnersOfASharedStore(t *testing.T) {
	t.Parallel()
	blows := 6
	if os.Getenv("FUTURA_LONG") == "1" {
		blows = 50
	}
	base, err := os.MkdirTemp("", "fs")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	dir, all := filepath.Join(base, "store"), &told{ended: map[futures.ID]string{}}
	running := map[int]*sharer{}
	add := func() {
		s := startSharer(t, dir, all)
		running[s.Process.Pid] = s
	}
	for range 3 {
		add()
	}
	progress := func() {
		t.Helper()
		target := all.count() + 20
		require.Eventually(t, func() bool { return all.count() >= target }, 2*time.Minute, 5*time.Millisecond)
	}
	progress()
	var longest time.Duration
	for n := range blows {
		owner := ownerOf(t, dir, running)
		if n%3 == 2 {
			require.NoError(t, owner.Process.Signal(syscall.SIGSTOP))
		}
		began := time.Now()
		owner.kill()
		delete(running, owner.Process.Pid)
		before := all.count()
		require.Eventually(t, func() bool { return all.count() > before }, 2*time.Minute, time.Millisecond)
		longest = max(longest, time.Since(began))
		add()
		progress()
	}
	t.Logf("%d owners were killed; the next result was there after %v at most", blows, longest)
	for _, s := range running {
		require.NoError(t, s.in.Close())
		<-s.read
		require.NoError(t, s.Wait())
	}
	checkShared(t, dir, all)
}

// ownerOf waits until one of the processes owns the store.
func ownerOf(t *testing.T, dir string, running map[int]*sharer) (owner *sharer) {
	require.Eventually(t, func() bool {
		record, err := sharing.ReadRecord(dir)
		owner = running[record.PID]
		return err == nil && owner != nil
	}, 2*time.Minute, time.Millisecond)
	return owner
}

func checkShared(t *testing.T, dir string, all *told) {
	p := newPlant(t, "embedded:"+dir)
	p.start(workers.Options{Slots: 4}, map[string]workers.Function{"shout": shout})
	p.awaitNoneOpen()
	p.check()
	require.NotEmpty(t, all.submitted)
	for _, id := range all.submitted {
		row, err := p.client.Cluster().Get(p.ctx, id)
		require.NoError(t, err, "an acknowledged future is gone")
		if row.State() == layout.Failed {
			require.Equal(t, layout.KindLost, row.Exception.Kind)
			continue
		}
		require.Equal(t, layout.Realized, row.State())
		if result, known := all.ended[id]; known {
			require.Equal(t, string(row.Result.Value), result)
		}
	}
}
