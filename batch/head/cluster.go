package head

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/owners"
	"github.com/futura-run/futura/fdbmodel/results"
)

// Cluster reaches the workers of a futures cluster. An item of a chunk is a
// future that is assigned to the chunk's worker; its id follows from those of the
// chunk and the item, so that a chunk that is asked for again runs once.
type Cluster struct {
	cluster *fdbmodel.Cluster
	called  func(function string, labels map[string]string)
}

// NewCluster returns the dispatcher of a cluster, whose items wait in their
// queues.
func NewCluster(cluster *fdbmodel.Cluster) *Cluster { return &Cluster{cluster: cluster} }

// OnRollCall has f told of each roll call for workers with labels: the function's full name,
// and the labels. It does not wait, and is set before the dispatcher is used.
func (c *Cluster) OnRollCall(f func(function string, labels map[string]string)) { c.called = f }

// Check implements Dispatcher.
func (c *Cluster) Check(ctx context.Context, t *batch.Template) error {
	function, err := futurestore.Function(ctx, c.cluster, t)
	if err != nil {
		return err
	}
	if err := futurestore.CheckQueue(ctx, c.cluster, t); err != nil {
		return err
	}
	policy, spec := c.cluster.Config().Policy, futurestore.Submission(t, function, nil).Spec
	if err := policy.Complete(&spec); err != nil {
		return fmt.Errorf("%w: %w", batch.ErrBadBatch, err)
	}
	return nil
}

// RollCall implements Dispatcher: the registered workers of the queue that know the
// function, have its labels and are large enough, those with the most free slots first.
func (c *Cluster) RollCall(ctx context.Context, t *batch.Template) ([]Candidate, error) {
	function, err := futurestore.Function(ctx, c.cluster, t)
	if err != nil {
		return nil, err
	}
	if c.called != nil && len(t.Config.Labels) > 0 {
		c.called(function, t.Config.Labels)
	}
	members, err := c.cluster.Workers(ctx)
	if err != nil {
		return nil, err
	}
	spec := futurestore.Submission(t, function, nil).Spec
	members = slices.DeleteFunc(members, func(m fdbmodel.Member) bool {
		return !m.Alive || m.Unreadable != "" || m.CanRun(&spec) != nil
	})
	sort.SliceStable(members, func(i, j int) bool {
		return members[i].Heartbeat.Free.Slots > members[j].Heartbeat.Free.Slots
	})
	workers := make([]Candidate, len(members))
	for i := range members {
		workers[i] = Candidate{Worker: string(members[i].ID), Peer: members[i].Labels[layout.LabelPeer],
			Free: members[i].Heartbeat.Free.Slots, Slots: members[i].Capacity.Slots, Beat: members[i].Heartbeat.Count}
	}
	return workers, nil
}

// Bounds of a chunk's run.
const (
	// window is how many items are looked at when something has changed.
	window = 500
	// windowBytes is about how many bytes of results are delivered at a time.
	windowBytes = 16 << 20
	// lookAgain is how often a chunk without news is checked.
	lookAgain = time.Second
)

// Run implements Dispatcher.
func (c *Cluster) Run(ctx context.Context, o Order, deliver func(context.Context, []batch.Completion) error) error {
	r := &clusterRun{Cluster: c, order: &o, deliver: deliver}
	if err := r.submit(ctx); err != nil {
		return err
	}
	for len(r.left) > 0 {
		watch, err := owners.Of(c.cluster).Watch(ctx, o.Chunk.ID)
		if err != nil {
			return err
		}
		err = r.collect(ctx)
		if err == nil && len(r.left) > 0 {
			err = awaitNews(ctx, watch)
		}
		watch.Cancel()
		if err != nil {
			return err
		}
	}
	return r.end(ctx)
}

// awaitNews waits until a watch fires, or until it is time to look anyway: then alone if the watch has failed.
func awaitNews(ctx context.Context, watch kv.Watch) error {
	timer, fired := time.NewTimer(lookAgain), watch.Done()
	defer timer.Stop()
	for {
		select {
		case <-fired:
			if watch.Err() == nil {
				return nil
			}
			fired = nil
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Cancel implements Dispatcher.
func (c *Cluster) Cancel(ctx context.Context, o Order, reason string) error {
	ids := make([]layout.ID, len(o.Items))
	for i := range o.Items {
		ids[i] = layout.BatchItemID(o.Chunk.ID, o.Items[i].Index)
	}
	_, err := c.cluster.CancelMany(ctx, ids, reason)
	return err
}

// clusterRun is a chunk on its way.
type clusterRun struct {
	*Cluster
	order   *Order
	deliver func(context.Context, []batch.Completion) error
	// left are the items that have not been delivered, in their order, and lost
	// the futures that will not be.
	left []int
	lost []layout.ID
}

func (r *clusterRun) id(index int) layout.ID { return layout.BatchItemID(r.order.Chunk.ID, index) }

// submit makes the futures of the items. Existing ones belong to another run of
// the same chunk.
func (r *clusterRun) submit(ctx context.Context) error {
	function, err := futurestore.Function(ctx, r.cluster, r.order.Template)
	if err != nil {
		return err
	}
	subs := make([]fdbmodel.Submission, len(r.order.Items))
	traced := context.WithValue(ctx, layout.TraceKey{}, r.order.Trace)
	for i := range r.order.Items {
		item := &r.order.Items[i]
		r.left = append(r.left, item.Index)
		subs[i] = futurestore.Submission(r.order.Template, function, item.Arguments)
		subs[i].ID, subs[i].Assigned = r.id(item.Index), layout.WorkerID(r.order.Chunk.Worker)
		subs[i].Spec.Owner, subs[i].Spec.Lapses = r.order.Chunk.ID, true
		subs[i].Spec.FollowTrace(traced)
	}
	_, err = r.cluster.Submit(ctx, subs)
	if errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, layout.ErrUnfit) {
		return nil // The worker has gone. What was made before is found to be lost, and the rest not at all.
	}
	return err
}

// end removes the rest of the chunk from the cluster.
func (r *clusterRun) end(ctx context.Context) error {
	if _, err := r.cluster.DiscardMany(ctx, r.lost); err != nil {
		return err
	}
	// Another run of the chunk may still have some of it.
	err := owners.Of(r.cluster).Drop(ctx, futurestore.Queue(r.order.Template), r.order.Chunk.ID)
	if err != nil && !errors.Is(err, fdbmodel.ErrTransition) {
		return err
	}
	if len(r.lost) > 0 {
		return ErrWorkerLost
	}
	return nil
}

// collect delivers what has ended. While the worker is busy it looks at the
// first items that are left only: they are begun in their order.
func (r *clusterRun) collect(ctx context.Context) error {
	open, err := owners.Of(r.cluster).Open(ctx, r.order.Chunk.ID)
	if err != nil {
		return err
	}
	n := len(r.left)
	if len(open) > 0 {
		n = min(n, window)
	}
	var left []int
	for part := range slices.Chunk(r.left[:n], window) {
		kept, err := r.collectPart(ctx, part)
		if err != nil {
			return err
		}
		left = append(left, kept...)
	}
	r.left = append(left, r.left[n:]...)
	return nil
}

// collectPart delivers what has ended of some items, and returns what is still
// with the worker. What is not there was delivered before, or has lapsed: that is
// not done for the store, which gives it to another worker.
func (r *clusterRun) collectPart(ctx context.Context, indexes []int) (left []int, err error) {
	ids := make([]layout.ID, len(indexes))
	for i, index := range indexes {
		ids[i] = r.id(index)
	}
	rows, err := r.cluster.GetMany(ctx, ids)
	if err != nil {
		return nil, err
	}
	var ended []batch.Completion
	var over, lost []layout.ID
	size := 0
	for i := range rows {
		ending := rows[i].Ending()
		switch {
		case isLost(&rows[i], &ending):
			lost = append(lost, ending.ID)
		case ending.Over():
			if err := results.Of(r.cluster).Load(ctx, &ending); err != nil {
				return nil, err
			}
			done := completion(&ending)
			ended, over = append(ended, done), append(over, ending.ID)
			if size += len(done.Result.Stdout) + len(done.Result.Stderr); size >= windowBytes {
				if err := r.pass(ctx, ended, over); err != nil {
					return nil, err
				}
				ended, over, size = nil, nil, 0
			}
		default:
			left = append(left, layout.BatchItemIndex(ending.ID))
		}
	}
	if err := r.pass(ctx, ended, over); err != nil {
		return nil, err
	}
	// Items that go to another worker must not run here as well.
	if _, err := r.cluster.CancelMany(ctx, lost, ErrWorkerLost.Error()); err != nil {
		return nil, err
	}
	r.lost = append(r.lost, lost...)
	return left, nil
}

// pass delivers what has ended, and forgets it.
func (r *clusterRun) pass(ctx context.Context, ended []batch.Completion, over []layout.ID) error {
	if err := r.deliver(ctx, ended); err != nil {
		return err
	}
	_, err := r.cluster.DiscardMany(ctx, over)
	return err
}

// isLost reports whether a future is assigned to no worker because its worker
// was lost, or has ended for that.
func isLost(row *layout.Row, e *layout.Ending) bool {
	switch e.State {
	case layout.Failed:
		return e.Cancelled() && e.Failure.Message == ErrWorkerLost.Error()
	default:
		return layout.PlaceOf(row) != nil && row.Attempts.Assigned == ""
	}
}

func completion(e *layout.Ending) batch.Completion {
	c := batch.Completion{
		Index: layout.BatchItemIndex(e.ID), Result: futurestore.ResultOf(e), At: time.UnixMilli(e.At()).UTC(),
	}
	if f := e.Failure; f != nil {
		c.Failed, c.Reason = true, futurestore.ReasonOf(f)
		c.Permanent = f.Permanent || !f.Kind.Retryable() && f.Kind != layout.KindLost
	}
	return c
}
