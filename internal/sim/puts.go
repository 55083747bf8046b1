package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/taskcontext"
)

// putWithin is how soon after a worker has a value its future must be made, in most
// puts; hurriedPut is that in a few.
const (
	putWithin  = time.Minute
	hurriedPut = time.Second
)

// putGrace is how long a worker holds what came of no put, and a little more.
const putGrace = 5*time.Minute + time.Second

// isPut reports whether the request is of a value that is put, not computed.
func (r *request) isPut() bool { return r.submission.Spec.IsPut() }

// drawPut draws a value that is to be put, held by a worker or stored with the cluster.
func (c *clientProcess) drawPut(held bool) (*request, error) {
	w := c.world
	r := &request{name: fmt.Appendf(nil, "put-%d", len(c.requests))}
	if w.random.IntN(8) == 0 {
		r.name = append(r.name, bytes.Repeat([]byte{'.'}, 2000+w.random.IntN(30_000))...)
	}
	s := &r.submission
	s.Spec = layout.Spec{Function: layout.FunctionPut, Codec: layout.CodecRaw, AsObject: held}
	if w.random.IntN(3) == 0 {
		s.Spec.Codec = layout.CodecJSON
	}
	if err := c.identify(s); err != nil {
		return nil, err
	}
	c.requests = append(c.requests, r)
	c.byID[s.ID] = r
	w.report.Submitted++
	return r, nil
}

// put puts a value, and puts it again if no result of an earlier time is known. Where
// no worker takes it, it is put later, or never.
func (c *clientProcess) put(ctx context.Context, r *request) error {
	if !r.submission.Spec.AsObject {
		return c.commitPut(ctx, r, results.Value{Bytes: r.encoded(r.content(0))})
	}
	w := c.world
	members, err := c.cluster.Workers(ctx)
	if err != nil {
		return err
	}
	for at := range members {
		m := &members[(at+int(r.submission.ID[0]))%len(members)]
		if !m.Alive || m.Leaving {
			continue
		}
		holder, err := w.reach(c.process, m.ID)
		if err != nil {
			continue
		}
		value := r.encoded(r.content(0))
		object, worker, err := holder.seam.Keep(ctx, r.submission.ID, value)
		if err == nil {
			return c.commitPut(ctx, r, results.Value{Object: object, Size: int64(len(value)), Holder: layout.WorkerID(worker)})
		}
	}
	if w.healing {
		_, err := c.cluster.Get(ctx, r.submission.ID)
		r.abandoned = errors.Is(err, fdbmodel.ErrNotFound)
	}
	return nil
}

func (c *clientProcess) commitPut(ctx context.Context, r *request, v results.Value) error {
	return c.world.commitPut(ctx, c.cluster, r, v)
}

// commitPut makes the future of a value, whose holder may be gone by then.
func (w *world) commitPut(ctx context.Context, cluster *fdbmodel.Cluster, r *request, v results.Value) error {
	v.ID, v.Codec = r.submission.ID, r.submission.Spec.Codec
	if v.Object != "" {
		within := putWithin
		if w.random.IntN(10) == 0 {
			within = hurriedPut
		}
		v.Before = cluster.Now().Add(within)
	}
	_, err := results.Of(cluster).Put(ctx, v)
	switch {
	case errors.Is(err, results.ErrHolderGone):
		return nil // it is put again
	case errors.Is(err, fdbmodel.ErrIDInUse) && strings.Contains(err.Error(), "put before and lost"):
	case err != nil:
		return err
	}
	if !r.acknowledged {
		w.report.Put++
	}
	r.acknowledged = true
	return nil
}

// putFrom has a function put a value, mostly with its own worker.
func (w *world) putFrom(ctx context.Context, p *workerProcess) {
	keeper, keeps := ctx.Value(taskcontext.KeeperKey{}).(taskcontext.Keeper)
	if w.healing || !keeps || w.random.IntN(25) > 0 {
		return
	}
	r, err := w.client.drawPut(true)
	if err != nil {
		w.broken = append(w.broken, err)
		return
	}
	ctx = context.WithoutCancel(ctx)
	value := r.encoded(r.content(0))
	v := results.Value{}
	v.Object, v.Size, v.Holder, err = keeper.Keep(ctx, r.submission.ID, bytes.NewReader(value), int64(len(value)))
	if err != nil {
		return // it has no room, or stops; the client puts it
	}
	if err := w.commitPut(ctx, p.process.cluster, r, v); err != nil && !tolerable(err) {
		w.broken = append(w.broken, err)
	}
}

// awaitsPut reports whether an input of a request is a value that no worker has taken
// yet.
func (c *clientProcess) awaitsPut(r *request) bool {
	return slices.ContainsFunc(r.submission.Inputs, func(id layout.ID) bool {
		input := c.byID[id]
		return input.isPut() && !input.acknowledged || !input.acknowledged && c.awaitsPut(input)
	})
}

// retryPut requires that a value that was lost can't be run again.
func (c *clientProcess) retryPut(ctx context.Context, r *request) error {
	err := c.cluster.Retry(ctx, r.submission.ID)
	switch {
	case err == nil:
		return fmt.Errorf("future %s was put, and is retried", r.submission.ID)
	case errors.Is(err, fdbmodel.ErrTransition), errors.Is(err, fdbmodel.ErrNotFound):
		return nil
	}
	return err
}

// checkPut requires that a value that was put is there as it was put, or lost for good.
func (r *request) checkPut(row *layout.Row) error {
	a := row.Attempts
	switch {
	case !row.Spec.IsPut(), row.State() != layout.Realized && row.State() != layout.Failed:
		return fmt.Errorf("future %s was put and is %v, with the function %s", row.ID, row.State(), row.Spec.Function)
	case a.Failed+a.Crashes+a.Rejected+a.Rebuilt > 0:
		return fmt.Errorf("future %s was put and counts attempts: %+v", row.ID, a)
	case row.State() == layout.Failed && !r.submission.Spec.AsObject:
		return fmt.Errorf("future %s was stored with the cluster and is lost: %s", row.ID, row.Exception.Message)
	case row.State() == layout.Failed && (row.Exception.Kind != layout.KindLost ||
		!strings.Contains(row.Exception.Message, "it was put, not computed")):
		return fmt.Errorf("future %s was put and failed: %+v", row.ID, row.Exception)
	}
	return nil
}

// checkNoRun requires that what runs was not put.
func (w *world) checkNoRun(id layout.ID) {
	if r := w.client.byID[id]; r != nil && r.isPut() {
		w.broken = append(w.broken, fmt.Errorf("future %s was put, and runs", id))
	}
}
