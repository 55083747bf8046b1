package grouping_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
)

// long reports whether the run may take its time.
func long() bool { return os.Getenv("FUTURA_LONG") == "1" }

// fleet are processes that submit tasks and run calls on a store that they share.
type fleet struct {
	*testing.T
	load
	client *futures.Client

	mu     sync.Mutex
	steps  []crash // that are to come
	dying  int     // processes that one is to kill
	killed int
	inputs []io.Closer
	wait   sync.WaitGroup
	// submitted counts the processes that have nothing left to submit.
	submitted atomic.Int64
	failed    chan error
}

// newFleet opens a cluster on a store that processes can open, and starts them. Each has
// one crash after the other, until none is left.
func newFleet(t *testing.T, l load, steps []crash) *fleet {
	db, store := storetest.Shared(t)
	l.Store, l.Dir, l.Processes = store, t.TempDir(), 4
	l.Cluster = fmt.Sprintf("fleet-%x", rand.Uint64())
	f := &fleet{T: t, load: l, steps: steps, inputs: make([]io.Closer, l.Processes), failed: make(chan error, 100)}
	var err error
	f.client, err = futures.New(t.Context(), db, futures.Options{Cluster: l.Cluster,
		Config: layout.Config{Heartbeat: 200 * time.Millisecond, DeadAfter: time.Second}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.client.Close(context.Background())) })
	require.NoError(t, l.handler().Setup(t.Context(), f.client))
	for p := range l.Processes {
		require.NoError(t, f.start(p))
	}
	return f
}

// start starts a process, and another one when a crash has killed it.
func (f *fleet) start(process int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := orders{load: f.load, Process: process}
	if len(f.steps) > 0 {
		o.Crash, f.steps = f.steps[0], f.steps[1:]
		f.dying++
	}
	text, err := json.Marshal(&o)
	if err != nil {
		return err
	}
	c := exec.Command(os.Args[0])
	c.Env, c.Stderr = append(os.Environ(), fleetVariable+"="+string(text)), os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if f.inputs[process], err = c.StdinPipe(); err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	f.wait.Go(func() {
		lines := bufio.NewScanner(out)
		said := lines.Scan()
		if said {
			f.submitted.Add(1)
			said = !lines.Scan()
		}
		err := c.Wait()
		switch {
		case err == nil:
		case o.Crash.At == 0:
			f.failed <- fmt.Errorf("process %d: %w", process, err)
		default:
			if said {
				f.submitted.Add(-1)
			}
			f.mu.Lock()
			f.killed++
			f.dying--
			f.mu.Unlock()
			if err := f.start(process); err != nil {
				f.failed <- err
			}
		}
	})
	return nil
}

// awaitAll waits until all tasks are submitted and over, and ends the processes.
func (f *fleet) awaitAll() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for open := int64(-1); open != 0; {
		if f.submitted.Load() == int64(f.Processes) && f.crashesLeft() {
			f.stir()
		}
		select {
		case err := <-f.failed:
			require.NoError(f, err)
		case <-tick.C:
		}
		if f.submitted.Load() < int64(f.Processes) || f.crashesLeft() {
			continue
		}
		counts, err := f.client.Counts(f.Context())
		require.NoError(f, err)
		open = 0
		for k, n := range counts {
			if !k.State.Terminal() {
				open += n
			}
		}
	}
	f.mu.Lock()
	for _, in := range f.inputs {
		require.NoError(f, in.Close())
	}
	f.mu.Unlock()
	f.wait.Wait()
}

// check asserts that each task ended exactly once, in calls of its target. It returns how
// many calls there were, how many there had to be, and how many tasks were lost with the
// workers that died with them.
func (f *fleet) check() (calls, ideal, lost int) {
	runs := make([]int, f.Tasks)
	made := f.readCalls(f.T)
	for _, mark := range made {
		require.Empty(f, mark.Wrong)
		for _, n := range mark.Tasks {
			require.Equal(f, mark.Target, fmt.Sprint("t", n%f.Targets))
			runs[n]++
		}
	}
	ends := f.ends()
	for n := range f.Tasks {
		id := layout.KeyedID(f.Cluster, keyOf(n))
		require.Equal(f, 1, ends[id], "ends of task %d", n)
		require.Positive(f, runs[n])
	}
	var group sync.WaitGroup
	var gone atomic.Int64
	const readers = 32
	for g := range readers {
		group.Go(func() {
			for n := g; n < f.Tasks; n += readers {
				end := f.client.Future(layout.KeyedID(f.Cluster, keyOf(n)))
				out, err := futures.Define[order, int]("order").Of(end).Await(f.Context())
				var failure *futures.FailedError
				switch {
				case errors.As(err, &failure) && failure.Kind == layout.KindLost:
					gone.Add(1)
				case err != nil || out != 2*n:
					f.Errorf("task %d: %d, %v", n, out, err)
				}
			}
		})
	}
	group.Wait()
	report, err := audit.Check(context.Background(), f.client.Cluster(), audit.Options{})
	require.NoError(f, err)
	require.Empty(f, report.Problems)
	for target := range f.Targets {
		tasks := (f.Tasks - target + f.Targets - 1) / f.Targets
		ideal += (tasks + f.Most - 1) / f.Most
	}
	return len(made), ideal, int(gone.Load())
}

// ends counts how often each future ended, by the list of ends that the model keeps.
func (f *fleet) ends() map[layout.ID]int {
	ends := map[layout.ID]int{}
	c := f.client.Cluster()
	for shard := range c.Config().Shards {
		r := kv.Prefix(c.Keys().DoneOf(shard))
		for more := true; more; {
			require.NoError(f, c.View(f.Context(), func(tx kv.Attempt) error {
				page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: 1000}).Wait(f.Context())
				if err != nil {
					return err
				}
				for _, item := range page.Items {
					var entry layout.DoneEntry
					if err := layout.Decode(item.Key, item.Value, &entry); err != nil {
						return err
					}
					for _, id := range layout.UnpackIDs(entry.IDs) {
						ends[id]++
					}
					r.Begin = kv.After(item.Key)
				}
				more = page.More
				return nil
			}))
		}
	}
	return ends
}

// everyStep returns crashes at the first commits of each step from a submit to the ends of
// tasks, before they have committed and after.
func everyStep(commits int) (steps []crash) {
	path := []string{"futura-submit", "futura-claim", "futura-gather", "futura-finish"}
	if long() {
		path = append(path, "futura-register", "futura-beat")
	}
	for _, step := range path {
		for at := range commits {
			if step == "futura-register" && at > 0 {
				break // a process registers once
			}
			steps = append(steps, crash{step, int64(at + 1), false}, crash{step, int64(at + 1), true})
		}
	}
	return steps
}

// stir submits one more task, so that processes have steps to crash at.
func (f *fleet) stir() {
	task, err := futures.Define[order, int]("order").InLane("order", func(o order) string { return o.Target }).
		Task(order{fmt.Sprint("t", f.Tasks%f.Targets), f.Tasks}, futures.Key(keyOf(f.Tasks)), futures.Unawaited())
	require.NoError(f, err)
	_, err = f.client.Submit(f.Context(), task)
	require.NoError(f, err)
	f.mu.Lock()
	f.Tasks++ // processes that start read it
	f.mu.Unlock()
}

func (f *fleet) crashesLeft() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.steps) > 0 || f.dying > 0
}

// TestTasksOfFourProcesses runs tasks of 1, 100 and 10,000 targets from 64 submitters in
// four processes, which crash at each step: each task ends once, no call has two targets
// or too many tasks.
func TestTasksOfFourProcesses(t *testing.T) {
	tasks, commits, targets := 1000, 1, []int{100}
	if long() {
		tasks, commits, targets = 100_000, 7, []int{1, 100, 10_000}
	}
	for _, targets := range targets {
		t.Run(fmt.Sprint(targets), func(t *testing.T) {
			l := load{Tasks: tasks, Targets: targets, Most: 100, Submitters: 64, Slots: 16, Call: time.Millisecond}
			start, steps := time.Now(), everyStep(commits)
			f := newFleet(t, l, steps)
			f.awaitAll()
			took := time.Since(start)
			calls, ideal, lost := f.check()
			t.Logf("%d tasks, %d targets: %d calls, %d at least, in %v; %d crashes, %d tasks lost", f.Tasks, targets, calls,
				ideal, took, f.killed, lost)
			require.Equal(t, len(steps), f.killed)
			require.LessOrEqual(t, lost, tasks/100)
		})
	}
}

// TestCallsAreFewUnderLoad has the tasks of four processes come faster than calls are made:
// calls are at most a tenth more than they had to be. That is one for each Most tasks of a target.
//
// Where submits are slow, it is more: a call that has lingered begins without the tasks that did
// not come in time. How slow they are depends on the machine; so the submitters write down when
// tasks came, and callsFor counts the calls for those times. Nothing but a call takes time there:
// workers that are slower find more tasks for each of theirs, and make fewer. Where submits are
// fast, that is one for each Most tasks, too. A call for each task is always more than allowed,
// for several tasks of a target come with each submit, and those share a call in any case.
func TestCallsAreFewUnderLoad(t *testing.T) {
	tasks, targets := 6000, []int{5}
	if long() {
		tasks, targets = 100_000, []int{1, 100, 10_000}
	}
	for _, targets := range targets {
		t.Run(fmt.Sprint(targets), func(t *testing.T) {
			l := load{Tasks: tasks, Targets: targets, Most: 100, Submitters: 64, Slots: 16, Call: 25 * time.Millisecond,
				Linger: time.Second}
			switch {
			case storetest.OnServer && targets == 100:
				// Submits there are slower than such calls: the workers would wait for tasks.
				l.Call, l.Linger = 500*time.Millisecond, 10*time.Second
			case storetest.OnServer && targets > 100:
				l.Linger = 0 // its calls are never full, and would all wait as long
			}
			start := time.Now()
			f := newFleet(t, l, nil)
			f.awaitAll()
			took := time.Since(start)
			calls, ideal, _ := f.check()
			due := max(ideal, f.callsFor(f.readArrivals(t)))
			t.Logf("%d tasks, %d targets: %d calls, %d at least, %d as tasks came, in %v", tasks, targets, calls, ideal, due,
				took)
			require.LessOrEqual(t, calls, due+due/10)
		})
	}
}
