package grouping_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/futura-run/futura/batch/grouping"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// fleetVariable makes a process of the test binary one of a fleet; it has the orders.
const fleetVariable = "FUTURA_GROUPING_FLEET"

func TestMain(m *testing.M) {
	if orders := os.Getenv(fleetVariable); orders != "" {
		os.Exit(fleetMain(orders))
	}
	storetest.Main(m)
}

// load is what a fleet is to do.
type load struct {
	Store, Cluster, Dir   string
	Tasks, Targets, Most  int
	Processes, Submitters int // in all processes together
	Slots                 int // of each process
	Call                  time.Duration
	Linger                time.Duration
}

func (l *load) handler() grouping.Handler[order, int] {
	return grouping.Define[order, int]("order", func(o order) string { return o.Target },
		grouping.Settings{Most: l.Most, Linger: l.Linger})
}

// crash is the end of a process at a commit of one step, after that is made or before.
// One without a step never comes.
type crash struct {
	Step      string // the tag of its transactions
	At        int64  // counted from 1
	Committed bool
}

// orders are those of one process.
type orders struct {
	load
	Process int
	Crash   crash
}

func keyOf(task int) string { return fmt.Sprint("task-", task) }

// doomed is a store that kills the process at a commit.
type doomed struct {
	kv.Database
	crash   crash
	commits atomic.Int64
}

// Traits implements kv.TraitsOf.
func (d *doomed) Traits() kv.Traits { return kv.TraitsOf(d.Database) }

// Begin implements kv.Database.
func (d *doomed) Begin(o kv.Options) kv.Tx {
	if o.Tag != d.crash.Step {
		return d.Database.Begin(o)
	}
	return doomedTx{d.Database.Begin(o), d}
}

type doomedTx struct {
	kv.Tx
	d *doomed
}

// Commit implements kv.Tx.
func (t doomedTx) Commit(ctx context.Context) (kv.Committed, error) {
	if t.d.commits.Add(1) == t.d.crash.At {
		if t.d.crash.Committed {
			_, _ = t.Tx.Commit(ctx)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return t.Tx.Commit(ctx)
}

// callMark is a line of the log of a process: the tasks of a call.
type callMark struct {
	Target string
	Tasks  []int
	Wrong  string `json:",omitempty"`
}

// fleetMain submits its share of the tasks and runs calls, until its input ends.
func fleetMain(text string) int {
	var o orders
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (o *orders) run(ctx context.Context) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	db, err := kvopen.Open(ctx, o.Store, kvopen.Options{})
	if err != nil {
		return err
	}
	client, err := futures.New(ctx, &doomed{Database: db, crash: o.Crash},
		futures.Options{Cluster: o.Cluster, Existing: true})
	if err != nil {
		return err
	}
	log, err := o.append("calls-", o.Process)
	if err != nil {
		return err
	}
	w, err := workers.New(client, workers.Options{Slots: o.Slots, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := w.RegisterBundle(o.handler().Bind(o.call(log))); err != nil {
		return err
	}
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	if err := o.submitAll(ctx, client); err != nil && ctx.Err() == nil {
		return err
	}
	fmt.Println("submitted")
	return errors.Join(<-ran, client.Close(context.Background()), log.Close(), db.Close())
}

// call writes down what it is called for, and takes its time.
func (o *orders) call(log io.Writer) grouping.Call[order, int] {
	return func(ctx context.Context, target string, tasks []grouping.Task[order]) ([]grouping.Outcome[int], error) {
		mark := callMark{Target: target}
		outcomes := make([]grouping.Outcome[int], len(tasks))
		for i, task := range tasks {
			if task.In.Target != target {
				mark.Wrong = fmt.Sprintf("a task of %s", task.In.Target)
			}
			mark.Tasks = append(mark.Tasks, task.In.N)
			outcomes[i].Out = 2 * task.In.N
		}
		if len(tasks) > o.Most {
			mark.Wrong = fmt.Sprintf("%d tasks", len(tasks))
		}
		line, err := json.Marshal(mark)
		if err != nil {
			return nil, err
		}
		if _, err := log.Write(append(line, '\n')); err != nil {
			return nil, err
		}
		return outcomes, clock.Sleep(ctx, clock.Real{}, o.Call)
	}
}

// submitAll submits what the submitters of this process have not submitted yet. What a
// killed one did not write down it submits again, with the same keys.
func (o *orders) submitAll(ctx context.Context, client *futures.Client) error {
	var group sync.WaitGroup
	errs := make([]error, o.Submitters)
	for g := o.Process; g < o.Submitters; g += o.Processes {
		group.Go(func() { errs[g] = o.submit(ctx, client, g) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// chunkSize is how many tasks are submitted at a time.
const chunkSize = 100

func (o *orders) submit(ctx context.Context, client *futures.Client, submitter int) error {
	file, err := o.append("submitted-", submitter)
	if err != nil {
		return err
	}
	defer file.Close()
	written, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	def := futures.Define[order, int]("order", futures.Unawaited()).
		InLane("order", func(o order) string { return o.Target })
	for at := int(written) / arrivalSize * chunkSize; ; at += chunkSize {
		var tasks []futures.Task
		for i := at; i < at+chunkSize && i*o.Submitters+submitter < o.Tasks; i++ {
			n := i*o.Submitters + submitter
			task, err := def.Task(order{fmt.Sprint("t", n%o.Targets), n}, futures.Key(keyOf(n)))
			if err != nil {
				return err
			}
			tasks = append(tasks, task)
		}
		if len(tasks) == 0 {
			return nil
		}
		if _, err := client.SubmitMany(ctx, tasks); err != nil {
			return err
		}
		if _, err := file.WriteString(arrival()); err != nil {
			return err
		}
	}
}

// append opens a file that outlives the process.
func (l *load) append(name string, n int) (*os.File, error) {
	return os.OpenFile(filepath.Join(l.Dir, fmt.Sprint(name, n)), os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
}

// readCalls returns what the processes of a fleet were called for.
func (l *load) readCalls(t *testing.T) (calls []callMark) {
	for p := range l.Processes {
		file, err := os.Open(filepath.Join(l.Dir, fmt.Sprint("calls-", p)))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			var mark callMark
			if err := json.NewDecoder(strings.NewReader(lines.Text())).Decode(&mark); err != nil {
				t.Fatalf("process %d: %q: %v", p, lines.Text(), err)
			}
			calls = append(calls, mark)
		}
		if err := errors.Join(lines.Err(), file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return calls
}
