package head_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/batch/memstore"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
	"github.com/futura-run/futura/internal/bubble"
)

// errOutage is what a store or a cluster says that does not answer.
var errOutage = errors.New("it does not answer")

// outage is a dispatcher and a store, the first calls of which fail: of Run, of
// Release, of List, of Chunks, of Items and of Cancel.
type outage struct {
	batch.Recorder
	lost                                         bool // Run loses its worker once it answers
	runs, releases, list, chunks, items, cancels atomic.Int32
	watches                                      atomic.Int32 // calls of Watch that fail
	settles                                      atomic.Int32 // calls of Settle
	gets                                         atomic.Int32 // calls of Get that fail
	ran                                          atomic.Int32
	// cancelled is closed by the first Cancel that succeeds, if set. Run has the batch cancelled then, and waits for it.
	cancelled chan struct{}
}

func fails(left *atomic.Int32) error {
	if left.Add(-1) >= 0 {
		return errOutage
	}
	return nil
}

func (o *outage) List(ctx context.Context, active bool, after string, limit int) ([]batch.Batch, error) {
	if err := fails(&o.list); err != nil {
		return nil, err
	}
	return o.Recorder.List(ctx, active, after, limit)
}

func (o *outage) Chunks(ctx context.Context, id string) ([]batch.Chunk, error) {
	if err := fails(&o.chunks); err != nil {
		return nil, err
	}
	return o.Recorder.Chunks(ctx, id)
}

func (o *outage) Items(ctx context.Context, id string, from, limit int, states ...batch.Status) ([]batch.Item, error) {
	if err := fails(&o.items); err != nil {
		return nil, err
	}
	return o.Recorder.Items(ctx, id, from, limit, states...)
}

func (o *outage) Release(ctx context.Context, id, chunk string) (int, error) {
	if err := fails(&o.releases); err != nil {
		return 0, err
	}
	return o.Recorder.Release(ctx, id, chunk)
}

func (o *outage) Watch(ctx context.Context, id string) (<-chan struct{}, func(), bool, error) {
	if err := fails(&o.watches); err != nil {
		return nil, nil, false, err
	}
	return o.Recorder.Watch(ctx, id)
}

func (o *outage) Get(ctx context.Context, id string) (batch.Batch, error) {
	if err := fails(&o.gets); err != nil {
		return batch.Batch{}, err
	}
	return o.Recorder.Get(ctx, id)
}

func (o *outage) Settle(ctx context.Context, id string, now time.Time) (batch.Batch, error) {
	o.settles.Add(1)
	return o.Recorder.Settle(ctx, id, now)
}

// reach is the outage's dispatcher.
type reach struct{ *outage }

func (o reach) Check(context.Context, *batch.Template) error { return nil }

func (o reach) RollCall(context.Context, *batch.Template) ([]head.Candidate, error) {
	return []head.Candidate{{Worker: "w"}}, nil
}

func (o reach) Run(ctx context.Context, order head.Order, deliver func(context.Context, []batch.Completion) error,
) error {
	o.ran.Add(1)
	if err := fails(&o.runs); err != nil {
		return err
	}
	if o.lost {
		o.lost = false
		return head.ErrWorkerLost
	}
	if o.cancelled != nil {
		if err := o.Recorder.Cancel(ctx, order.Batch.ID, "no more", time.Now()); err != nil {
			return err
		}
		select {
		case <-o.cancelled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var ended []batch.Completion
	for i := range order.Items {
		ended = append(ended, batch.Completion{Index: order.Items[i].Index})
	}
	return deliver(ctx, ended)
}

func (o reach) Cancel(context.Context, head.Order, string) error {
	if err := fails(&o.cancels); err != nil {
		return err
	}
	if o.cancelled != nil {
		close(o.cancelled)
	}
	return nil
}

// during runs a head over a batch that is in the store, for a while.
func (o *outage) during(t *testing.T, d time.Duration) batch.Batch {
	store := memstore.New()
	o.Recorder = store
	b := &batch.Batch{ID: "b", MaxAttempts: 1, CreatedAt: time.Now(), Template: batch.Template{FunctionID: "f"}}
	require.NoError(t, store.Create(t.Context(), b, [][]string{{"a"}, {"b"}}))
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	require.NoError(t, head.New(head.Options{Store: o, Dispatcher: reach{o}}).Run(ctx))
	got, err := store.Get(t.Context(), "b")
	require.NoError(t, err)
	require.NoError(t, store.Close(t.Context()))
	return got
}

// TestAChunkIsAskedForAgainAfterAPause has a cluster that does not answer for
// ever, and for some time.
func TestAChunkIsAskedForAgainAfterAPause(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := &outage{}
		o.runs.Store(1 << 30)
		require.Equal(t, batch.InProgress, o.during(t, 10*time.Second+time.Millisecond).Status)
		require.InDelta(t, 10, o.ran.Load(), 1, "once a second")
		o = &outage{}
		o.runs.Store(5)
		require.Equal(t, batch.Done, o.during(t, 2*time.Minute).Status)
	})
}

func TestALostChunkIsGivenBackByAStoreThatWasAway(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := &outage{lost: true}
		o.releases.Store(3)
		require.Equal(t, batch.Done, o.during(t, 2*time.Minute).Status)
	})
}

// TestAWorkerThatDoesNotHearOfACancelIsAskedAgain has a cluster that does not take the first cancels of a chunk.
func TestAWorkerThatDoesNotHearOfACancelIsAskedAgain(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := memstore.New()
		o := &outage{Recorder: store, cancelled: make(chan struct{})}
		o.cancels.Store(2)
		create(t, store, "b", 1, 2)
		runHead(t, time.Minute, o, reach{o})
		requireClosed(t, o.cancelled)
		require.NoError(t, store.Close(t.Context()))
	})
}

func requireClosed(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	default:
		require.Fail(t, "nobody was asked to stop")
	}
}

// TestBatchesAreResumedOnceTheStoreAnswers has a store that is away when a head
// begins to resume.
func TestBatchesAreResumedOnceTheStoreAnswers(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := &outage{}
		o.list.Store(2)
		require.Equal(t, batch.Done, o.during(t, 4*time.Minute).Status)
	})
}

// meeting is a dispatcher whose runs end once there are two of them.
type meeting struct {
	reach
	two sync.WaitGroup
}

func (m *meeting) Run(ctx context.Context, order head.Order, deliver func(context.Context, []batch.Completion) error,
) error {
	m.two.Done()
	m.two.Wait()
	return m.reach.Run(ctx, order, deliver)
}

// create makes a batch in a store.
func create(t *testing.T, store batch.Store, id string, nodes, items int) {
	b := &batch.Batch{ID: id, MaxAttempts: 3, CreatedAt: time.Now(), Template: batch.Template{FunctionID: "f"}}
	b.Template.Config.Nodes = nodes
	require.NoError(t, store.Create(t.Context(), b, numbered("a", items)))
}

// runHead runs a head with the defaults for a while.
func runHead(t *testing.T, d time.Duration, store batch.Store, to head.Dispatcher) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	require.NoError(t, head.New(head.Options{Store: store, Dispatcher: to}).Run(ctx))
}

func requireStatus(t *testing.T, store batch.Store, id string, want batch.Status) {
	t.Helper()
	got, err := store.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, want, got.Status)
}

// TestBatchesAreResumedAtOnce resumes two batches, none of which ends before the
// other has begun.
func TestBatchesAreResumedAtOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := memstore.New()
		m := &meeting{reach: reach{&outage{Recorder: store}}}
		m.two.Add(2)
		create(t, store, "one", 1, 2)
		create(t, store, "two", 1, 2)
		runHead(t, 2*time.Minute, store, m)
		requireStatus(t, store, "one", batch.Done)
		requireStatus(t, store, "two", batch.Done)
		require.NoError(t, store.Close(t.Context()))
	})
}

// TestBatchesOfOthersAreFoundEachHour has a batch come whose head died at once,
// after this head has looked for such batches.
func TestBatchesOfOthersAreFoundEachHour(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := memstore.New()
		time.AfterFunc(2*time.Minute, func() { create(t, store, "b", 1, 2) })
		time.AfterFunc(time.Hour-time.Second, func() { requireStatus(t, store, "b", batch.Created) })
		runHead(t, time.Hour+2*time.Minute, store, reach{&outage{Recorder: store}})
		requireStatus(t, store, "b", batch.Done)
		require.NoError(t, store.Close(t.Context()))
	})
}

// TestABatchThatRanTakesTheWorkersThereAre resumes a batch of four workers, three
// of which have gone since it began. A new one waits for all of them.
func TestABatchThatRanTakesTheWorkersThereAre(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := memstore.New()
		create(t, store, "ran", 4, 5)
		create(t, store, "new", 4, 5)
		c := batch.Chunk{ID: "c", Batch: "ran", Worker: "gone", CreatedAt: time.Now()}
		_, err := store.Assign(t.Context(), &c, []int{0, 1, 2})
		require.NoError(t, err)
		_, err = store.Complete(t.Context(), "ran", "c", []batch.Completion{{Index: 0}, {Index: 1}, {Index: 2, Failed: true}})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute+30*time.Second)
		defer cancel()
		o := head.Options{Store: store, Dispatcher: reach{&outage{Recorder: store}}, WorkerWait: 2 * time.Minute}
		require.NoError(t, head.New(o).Run(ctx))
		requireStatus(t, store, "ran", batch.Done)
		requireStatus(t, store, "new", batch.Created)
		require.NoError(t, store.Close(t.Context()))
	})
}

// TestTheOperatorsLimitOfAttemptsHolds whatever a request asks for.
func TestTheOperatorsLimitOfAttemptsHolds(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	for limit, wants := range map[uint64]map[uint64]int{0: {0: 10, 9: 9, 11: 10}, 3: {0: 3, 2: 2, 9: 3}} {
		h := head.New(head.Options{Store: store, Dispatcher: reach{&outage{}}, MaxAttempts: limit})
		for asked, want := range wants {
			made, _, err := h.Submit(t.Context(), batch.Request{
				Template: batch.Template{FunctionID: "f"}, Arguments: numbered("a", 1), MaxAttempts: asked,
			})
			require.NoError(t, err)
			require.Equal(t, want, made.MaxAttempts)
		}
	}
	require.NoError(t, store.Close(t.Context()))
}

// TestAWatchThatFailsIsTriedAgain has a store not watch a batch at first. Once it does, another process cancels the
// batch: the head does not wait until it looks again.
func TestAWatchThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := memstore.New()
		o := &outage{Recorder: store}
		o.watches.Store(1)
		b := &batch.Batch{ID: "b", MaxAttempts: 1, CreatedAt: time.Now(), Template: batch.Template{FunctionID: "f"}}
		b.Template.Config.Nodes = 2 // there is one
		require.NoError(t, store.Create(t.Context(), b, [][]string{{"a"}, {"b"}}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		h := head.New(head.Options{Store: o, Dispatcher: reach{o}, Look: time.Minute, WorkerWait: time.Hour,
			BootDelay: time.Hour})
		ended := make(chan error, 1)
		go func() { ended <- h.Run(ctx) }()
		<-time.After(90 * time.Second)
		settled := o.settles.Load()
		require.NoError(t, store.Cancel(t.Context(), "b", "no more", time.Now()))
		<-time.After(time.Second)
		require.Greater(t, o.settles.Load(), settled)
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, store.Close(context.Background()))
	})
}

// TestABatchThatIsMadeIsReturned has the store fail once a batch is made: a caller who gets an error submits it again.
func TestABatchThatIsMadeIsReturned(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	o := &outage{Recorder: store}
	o.gets.Store(1)
	h := head.New(head.Options{Store: o, Dispatcher: reach{o}})
	got, existed, err := h.Submit(t.Context(), batch.Request{Template: template(1), Arguments: numbered("go", 3)})
	require.NoError(t, err)
	require.False(t, existed)
	made, err := store.Get(t.Context(), got.ID)
	require.NoError(t, err)
	require.Equal(t, made, got)
}

// TestAWatchThatFailsForLongIsSaidOnce has a store not watch a batch at many looks.
func TestAWatchThatFailsForLongIsSaidOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := memstore.New()
		o := &outage{Recorder: store}
		o.watches.Store(10)
		b := &batch.Batch{ID: "b", MaxAttempts: 1, CreatedAt: time.Now(), Template: batch.Template{FunctionID: "f"}}
		b.Template.Config.Nodes = 2 // there is one
		require.NoError(t, store.Create(t.Context(), b, [][]string{{"a"}, {"b"}}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var log stacktest.Buffer
		h := head.New(head.Options{Store: o, Dispatcher: reach{o}, Look: time.Second, WorkerWait: time.Hour,
			BootDelay: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		ended := make(chan error, 1)
		go func() { ended <- h.Run(ctx) }()
		<-time.After(time.Minute)
		require.Negative(t, o.watches.Load())
		require.Equal(t, 1, strings.Count(log.String(), "changes of a batch are not reported"), log.String())
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, store.Close(context.Background()))
	})
}
