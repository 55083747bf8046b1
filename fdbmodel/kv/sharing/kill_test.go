package sharing_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
)

// counter is a key that every step increments.
var counter = []byte("counter")

// step adds one to the counter and leaves a row, both once whatever its commits come to.
func step(ctx context.Context, db kv.Database, name string) error {
	_, err := kv.Transact(ctx, db, kv.Retry{}, func(tx kv.Attempt) error {
		row := []byte("step/" + name)
		done, err := tx.Get(row).Wait(ctx)
		if err != nil || done != nil {
			return err
		}
		value, err := tx.Get(counter).Wait(ctx)
		if err != nil {
			return err
		}
		count := append(value, make([]byte, 8-len(value))...)
		binary.BigEndian.PutUint64(count, binary.BigEndian.Uint64(count)+1)
		tx.Set(counter, count)
		tx.Set(row, []byte{1})
		return nil
	})
	return err
}

// child shares a store, steps on until its standard input ends, and says each step that was
// acknowledged, and that it owns the store.
func child(dir string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db, err := sharing.Open(ctx, dir, sharing.Options{})
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Println("open")
	owns := false
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("%d/%d", os.Getpid(), i)
		if err := step(ctx, db, name); err == nil {
			fmt.Println("step", name)
		} else if ctx.Err() == nil {
			return err
		}
		if !owns && db.IsOwner() {
			owns = true
			fmt.Println("owner")
		}
	}
	return db.Close()
}

// process is a child, and what it said.
type process struct {
	*exec.Cmd
	in    io.Closer
	owner chan struct{} // closed once it owns the store
	ended chan struct{}

	mu    sync.Mutex
	steps []string
	more  chan struct{} // closed at the next step
}

func start(t *testing.T, dir string) *process {
	p := &process{Cmd: exec.Command(os.Args[0]), owner: make(chan struct{}), ended: make(chan struct{}),
		more: make(chan struct{})}
	p.Env = append(os.Environ(), dirVariable+"="+dir)
	p.Stderr = os.Stderr
	in, err := p.StdinPipe()
	require.NoError(t, err)
	p.in = in
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	go p.read(out)
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
		<-p.ended
	})
	return p
}

func (p *process) read(out io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		what, name, _ := strings.Cut(lines.Text(), " ")
		switch what {
		case "owner":
			close(p.owner)
		case "step":
			p.mu.Lock()
			p.steps = append(p.steps, name)
			close(p.more)
			p.more = make(chan struct{})
			p.mu.Unlock()
		}
	}
}

// awaitStep waits for one more step.
func (p *process) awaitStep(t *testing.T) {
	p.mu.Lock()
	more := p.more
	p.mu.Unlock()
	select {
	case <-more:
	case <-time.After(patience):
		require.Fail(t, "a process makes no step")
	}
}

func (p *process) isOwner() bool {
	select {
	case <-p.owner:
		return true
	default:
		return false
	}
}

// TestOwnersAreKilled has three processes use one store and kills its owner again and again:
// nothing acknowledged is lost, nothing is done twice, and all others go on.
func TestOwnersAreKilled(t *testing.T) {
	t.Parallel()
	kills := 6
	if os.Getenv("FUTURA_LONG") == "1" {
		kills = 20
	}
	dir := place(t)
	all := []*process{start(t, dir), start(t, dir), start(t, dir)}
	alive := slices.Clone(all)
	var longest time.Duration
	for range kills {
		for _, p := range alive {
			p.awaitStep(t)
		}
		i := -1
		require.Eventually(t, func() bool { // a process says that it is the owner after its step
			i = slices.IndexFunc(alive, (*process).isOwner)
			return i >= 0
		}, patience, time.Millisecond, "no process owns the store")
		require.NoError(t, alive[i].Process.Kill())
		began := time.Now()
		alive = slices.Delete(alive, i, i+1)
		for _, p := range alive {
			p.awaitStep(t)
		}
		longest = max(longest, time.Since(began))
		next := start(t, dir)
		all, alive = append(all, next), append(alive, next)
	}
	t.Logf("%d owners killed: the others went on after %v at most", kills, longest)
	for _, p := range alive {
		p.awaitStep(t)
		require.NoError(t, p.in.Close())
	}
	for _, p := range all {
		<-p.ended
	}
	checkSteps(t, dir, all)
}

// checkSteps opens a store that no process has open, and compares.
func checkSteps(t *testing.T, dir string, all []*process) {
	db := open(t, dir, sharing.Options{})
	found, steps := uint64(0), uint64(0)
	_, err := kv.Transact(t.Context(), db, kv.Retry{}, func(tx kv.Attempt) error {
		value, err := tx.Get(counter).Wait(t.Context())
		if err != nil {
			return err
		}
		found, steps = binary.BigEndian.Uint64(value), 0
		page, err := tx.GetRange(kv.Prefix([]byte("step/")), kv.RangeOptions{}).Wait(t.Context())
		if err != nil {
			return err
		}
		rows := map[string]bool{}
		for _, row := range page.Items {
			rows[strings.TrimPrefix(string(row.Key), "step/")] = true
		}
		for _, p := range all {
			for _, name := range p.steps {
				require.True(t, rows[name], "step %s was acknowledged and is lost", name)
			}
		}
		steps = uint64(len(rows))
		return nil
	})
	require.NoError(t, err)
	require.NotZero(t, steps)
	require.Equal(t, steps, found, "a step was done twice, or by half")
}

// TestAppendsThroughKilledOwners looks for anomalies in what two clients see whose store's owner is killed half way,
// and is followed by one of them.
func TestAppendsThroughKilledOwners(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kills := 3
	if os.Getenv("FUTURA_LONG") == "1" {
		kills = 20
	}
	for i := range kills {
		owner := start(t, dir)
		select {
		case <-owner.owner:
		case <-time.After(patience):
			require.Fail(t, "the first process does not own the store")
		}
		followers := [2]*sharing.Database{}
		for n := range followers {
			db, err := sharing.Open(t.Context(), dir, sharing.Options{})
			require.NoError(t, err)
			followers[n] = db
		}
		a, ended := kvtest.NewAppends(fmt.Appendf(nil, "appends/%d/", i)), make(chan error, 1)
		go func() { ended <- a.Run(t.Context(), followers[0], followers[1]) }()
		<-a.Half()
		require.NoError(t, owner.Process.Kill())
		require.NoError(t, <-ended)
		require.Eventually(t, func() bool { // the second half may have ended before the owner
			return followers[0].IsOwner() || followers[1].IsOwner()
		}, patience, time.Millisecond)
		a.Require(t.Context(), t, followers[i%2])
		for _, db := range followers {
			require.NoError(t, db.Close())
		}
	}
}
