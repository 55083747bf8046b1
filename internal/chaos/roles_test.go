//go:build fdb

package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/fdbkv"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/fdbtest"
	"github.com/futura-run/futura/workers"
)

// Environment variables of a process of the test binary, and its roles.
const (
	roleVariable    = "FUTURA_CHAOS_ROLE"
	nameVariable    = "FUTURA_CHAOS_NAME"
	fileVariable    = "FUTURA_CHAOS_FILE"
	clusterVariable = "FUTURA_CHAOS_CLUSTER"

	roleWorker = "worker"
	roleClient = "client"
)

// The functions of the workers.
const (
	fnShort = "short" // some milliseconds
	fnHeld  = "held"  // until the test lets go
)

// shared is the server of the tests that need none of their own.
var shared *fdbtest.Server

// TestMain is the main of a worker or a client that a test starts.
func TestMain(m *testing.M) {
	roles := map[string]func(context.Context, *fdbkv.Database) error{roleWorker: beWorker, roleClient: beClient}
	if be := roles[os.Getenv(roleVariable)]; be != nil {
		if err := play(be); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	fdbtest.Main(m, func(s *fdbtest.Server) { shared = s }, func() error { return goleak.Find(fdbtest.IgnoreClient()) })
}

func play(be func(context.Context, *fdbkv.Database) error) error {
	if err := fdbtest.Buggify(); err != nil {
		return err
	}
	ctx := context.Background()
	db, err := fdbkv.Open(ctx, os.Getenv(fileVariable), fdbkv.Options{ConnectTimeout: patience})
	if err != nil {
		return err
	}
	return errors.Join(be(ctx, db), db.Close())
}

// beWorker runs futures until its standard input ends. A byte there lets go those
// that are held.
func beWorker(ctx context.Context, db *fdbkv.Database) error {
	ctx, stop := context.WithCancel(ctx)
	letGo := make(chan struct{})
	go func() {
		defer stop()
		if n, _ := os.Stdin.Read(make([]byte, 1)); n > 0 {
			close(letGo)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	cluster, err := fdbmodel.Open(ctx, db, os.Getenv(clusterVariable), fdbmodel.Options{})
	if err != nil {
		return err
	}
	w, err := workers.FromCluster(cluster, workers.Options{
		Name: os.Getenv(nameVariable), Slots: 300, DrainTimeout: time.Second,
	})
	if err != nil {
		return err
	}
	short := func(ctx context.Context, args []byte) ([]byte, error) {
		const longest = 20 * time.Millisecond
		timer := time.NewTimer(longest/2 + rand.N(longest/2))
		defer timer.Stop()
		return until(ctx, timer.C, args)
	}
	held := func(ctx context.Context, args []byte) ([]byte, error) { return until(ctx, letGo, args) }
	if err := errors.Join(w.Register(fnShort, short), w.Register(fnHeld, held)); err != nil {
		return err
	}
	return w.Run(ctx)
}

// until waits for the end of a function. Its result says which run it was: no two are
// equal.
func until[T any](ctx context.Context, end <-chan T, args []byte) ([]byte, error) {
	select {
	case <-end:
		return fmt.Appendf(nil, "%s-%d-%x", args, os.Getpid(), rand.Uint64()), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Lines that a client prints.
const (
	lineSubmitted = "submitted" // ID ARGS, once a submit has said so
	lineEnded     = "ended"     // ID RESULT, or ID - for a failure
)

// beClient submits and awaits, and says so, until its standard input ends and
// all that it submitted has ended.
func beClient(ctx context.Context, db *fdbkv.Database) error {
	client, err := futures.New(ctx, db, futures.Options{Cluster: os.Getenv(clusterVariable)})
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	const lanes, batch = 4, 20
	out := &lineWriter{w: bufio.NewWriter(os.Stdout)}
	errs := make([]error, lanes)
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			for n := 0; errs[lane] == nil; n++ {
				select {
				case <-ended:
					return
				default:
					errs[lane] = round(ctx, client, out, fmt.Sprintf("%s-%d-%d", os.Getenv(nameVariable), lane, n), batch)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, client.Close(ctx))...)
}

// round submits a batch and awaits it.
func round(ctx context.Context, client *futures.Client, out *lineWriter, name string, batch int) error {
	tasks := make([]futures.Task, batch)
	for i := range tasks {
		tasks[i] = futures.Task{Function: "go:" + fnShort, Args: fmt.Appendf(nil, "%s-%d", name, i)}
	}
	all, err := client.SubmitMany(ctx, tasks)
	if err != nil {
		return err
	}
	for i, f := range all {
		if err := out.print(lineSubmitted, f.ID(), string(tasks[i].Args)); err != nil {
			return err
		}
	}
	for f, outcome := range client.AwaitEach(ctx, all) {
		result := "-"
		if outcome.Err == nil {
			result = string(outcome.Result.Value)
		} else if !errors.Is(outcome.Err, futures.ErrFailed) {
			return outcome.Err
		}
		if err := out.print(lineEnded, f.ID(), result); err != nil {
			return err
		}
	}
	return nil
}

// lineWriter prints whole lines from many goroutines.
type lineWriter struct {
	mu sync.Mutex
	w  *bufio.Writer
}

func (l *lineWriter) print(kind string, id futures.ID, text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := fmt.Fprintf(l.w, "%s %s %s\n", kind, id, text); err != nil {
		return err
	}
	return l.w.Flush()
}
