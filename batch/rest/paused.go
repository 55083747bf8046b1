package rest

import (
	"context"
	"errors"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/pauses"
)

// paused is what is paused in the cluster whose workers run the items.
type paused struct {
	cluster *fdbmodel.Cluster
	list    []pauses.Pause
}

// readPaused returns what is paused, nothing without a cluster.
func (s *server) readPaused(ctx context.Context) (p paused, err error) {
	if s.options.Client != nil {
		p.cluster = s.options.Client.Cluster()
		p.list, err = pauses.Of(p.cluster).List(ctx)
	}
	return p, err
}

// explain is that of paused for one batch.
func (s *server) explain(ctx context.Context, b *batch.Batch) error {
	p, err := s.readPaused(ctx)
	if err != nil {
		return err
	}
	return p.explain(ctx, b)
}

// explain adds to the reason of a batch that is not over that its queue or its function is paused.
func (p *paused) explain(ctx context.Context, b *batch.Batch) error {
	if len(p.list) == 0 || b.Status.Over() {
		return nil
	}
	function, err := futurestore.Function(ctx, p.cluster, &b.Template)
	if err != nil && !errors.Is(err, batch.ErrBadBatch) { // that of a function that was removed
		return err
	}
	one, is := pauses.Find(p.list, futurestore.Queue(&b.Template), function)
	if !is {
		return nil
	}
	reason := "the " + one.Text()
	if b.Reason != "" {
		reason += "; " + b.Reason
	}
	b.Reason = reason
	return nil
}
