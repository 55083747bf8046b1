package futurestore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/batchtest"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// suiteFunction is what the suite's batches run.
var suiteFunction = batch.Template{
	FunctionID: "bafybeie3nlygbnuxhvqv3gvwa2hmd4tcfzk5jtvscwl6qs3ljn5tknlt4q", Method: "echo.wasm",
}

// data is a cluster that handles of a store share.
type data struct {
	db      *cutOff
	cluster *fdbmodel.Cluster

	mu      sync.Mutex
	workers map[string]*named
}

// named is a worker with a name of the suite's choice.
type named struct {
	mu  sync.Mutex
	reg *fdbmodel.Registration
}

// store registers workers when they are first given something.
type store struct {
	*futurestore.Store
	data *data
}

func newData(t *testing.T) *data {
	db := &cutOff{Database: storetest.New(t)}
	t.Cleanup(db.underWay.Wait)
	cluster, err := fdbmodel.Open(context.Background(), db, "batches", fdbmodel.Options{})
	require.NoError(t, err)
	_, err = modules.Of(cluster).Put(t.Context(), []byte("echo"),
		batch.FunctionAlias(suiteFunction.FunctionID, suiteFunction.Method))
	require.NoError(t, err)
	return &data{db: db, cluster: cluster, workers: map[string]*named{}}
}

func (d *data) worker(ctx context.Context, name string) (*named, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.workers[name]; w != nil {
		return w, nil
	}
	reg, err := d.cluster.Register(ctx, layout.WorkerInfo{
		ID: layout.WorkerID(name), Functions: []string{layout.AnyModule}, Labels: map[string]string{layout.AnyLabel: ""},
		Capacity: layout.Resources{Slots: 128, RAM: 1 << 40},
	})
	if err == nil {
		d.workers[name] = &named{reg: reg}
	}
	return d.workers[name], err
}

// Assign implements batch.Store.
func (s *store) Assign(ctx context.Context, c *batch.Chunk, items []int) ([]int, error) {
	if _, err := s.data.worker(ctx, c.Worker); err != nil {
		return nil, err
	}
	return s.Store.Assign(ctx, c, items)
}

// execute runs what a chunk's worker was given.
func execute(t *testing.T, s batch.Store, c batch.Chunk, ended []batch.Completion) {
	d, ctx := s.(*store).data, context.Background()
	w, err := d.worker(ctx, c.Worker)
	require.NoError(t, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	want := map[layout.ID]*batch.Completion{}
	for i := range ended {
		want[layout.BatchItemID(c.Batch, ended[i].Index)] = &ended[i]
	}
	var done []fdbmodel.Completion
	for len(want) > 0 {
		answer, err := w.reg.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 128, RAM: 1 << 40}, Max: 128})
		require.NoError(t, err)
		require.NotEmpty(t, answer.Futures, "%d items did not come", len(want))
		for i := range answer.Futures {
			f := &answer.Futures[i]
			if end := want[f.ID]; end != nil {
				done = append(done, completion(t, d, f, end))
			} else {
				done = append(done, fdbmodel.Completion{Future: f, Relinquish: true})
			}
			delete(want, f.ID)
		}
	}
	_, err = w.reg.Finish(ctx, done)
	require.NoError(t, err)
}

// completion ends a future as a worker does that ran a module.
func completion(t *testing.T, d *data, f *fdbmodel.ClaimedFuture, end *batch.Completion) fdbmodel.Completion {
	r := end.Result
	if end.Failed {
		wait := time.Duration(0)
		if end.DueAt.After(end.At) {
			wait = end.DueAt.Sub(end.At)
		}
		return fdbmodel.Completion{Future: f, Permanent: end.Permanent, RetryIn: &wait, Exception: &layout.Exception{
			Kind: layout.KindExit, Message: end.Reason, Stdout: []byte(r.Stdout), Stderr: []byte(r.Stderr),
			ExitCode: r.ExitCode, Usage: usage(&r.Usage),
		}}
	}
	result := &layout.Result{
		Value: []byte(r.Stdout), Stderr: []byte(r.Stderr), ExitCode: r.ExitCode, RunTime: r.Usage.WallClock,
		Usage: usage(&r.Usage),
	}
	if len(result.Value) > fdbmodel.MaxResultInline {
		ref, err := results.Of(d.cluster).Store(context.Background(), f.ID, f.Token, result.Value)
		require.NoError(t, err)
		result.Value, result.ValueRef = nil, &ref
	}
	return fdbmodel.Completion{Future: f, Result: result}
}

func usage(u *batch.Usage) *layout.Usage {
	return &layout.Usage{CPUUser: u.CPUUser, CPUSys: u.CPUSys, Memory: 1024 * u.MemoryMaxKB}
}

// TestDeleteWaitsForItemsThatRun deletes a cancelled batch whose item a worker
// still has.
func TestDeleteWaitsForItemsThatRun(t *testing.T) {
	t.Parallel()
	d := newData(t)
	s := &store{futurestore.New(d.cluster, futurestore.Options{}), d}
	b := &batch.Batch{ID: "11111111-2222-4333-8444-555555555555", Template: suiteFunction, MaxAttempts: 1}
	require.NoError(t, s.Create(t.Context(), b, [][]string{{"a"}, {"b"}}))
	c := batch.Chunk{ID: "chunk", Batch: b.ID, Worker: "w"}
	_, err := s.Assign(t.Context(), &c, []int{0})
	require.NoError(t, err)
	w, err := d.worker(t.Context(), "w")
	require.NoError(t, err)
	answer, err := w.reg.Claim(t.Context(), fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
	require.NoError(t, err)
	require.Len(t, answer.Futures, 1)
	require.NoError(t, s.Cancel(t.Context(), b.ID, "enough", time.Now()))
	err = s.Delete(t.Context(), b.ID)
	require.ErrorIs(t, err, batch.ErrState)
	require.ErrorContains(t, err, "still run")
	progress, err := s.Progress(t.Context(), b.ID)
	require.NoError(t, err)
	require.Equal(t, 1, progress[batch.PermanentlyFailed], "all of it is here until all of it can go")
	_, err = w.reg.Finish(t.Context(), []fdbmodel.Completion{{
		Future: &answer.Futures[0], Exception: &layout.Exception{Kind: layout.KindCancelled}, Permanent: true,
	}})
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), b.ID))
}

// TestSuite runs the suite of all stores, and checks the whole cluster after
// each part.
func TestSuite(t *testing.T) {
	t.Parallel()
	batchtest.Run(t, batchtest.Harness{
		Open: func(t *testing.T) batch.Store {
			d := newData(t)
			t.Cleanup(func() {
				report, err := audit.Check(context.Background(), d.cluster, audit.Options{})
				require.NoError(t, err)
				require.Empty(t, report.Problems)
			})
			return &store{futurestore.New(d.cluster, futurestore.Options{}), d}
		},
		Reopen: func(t *testing.T, s batch.Store) batch.Store {
			d := s.(*store).data
			cluster, err := fdbmodel.Open(context.Background(), d.db, "batches", fdbmodel.Options{})
			require.NoError(t, err)
			return &store{futurestore.New(cluster, futurestore.Options{}), d}
		},
		Execute: execute,
		Settle:  func(s batch.Store) { s.(*store).data.db.underWay.Wait() },
		Small:   storetest.OnServer,
	})
}
