// Package top shows a cluster in a terminal, live: what it does and what is wrong with it. Names
// and errors come from others: no control character of them reaches the terminal.
package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/wording"
)

const (
	// readTime bounds a reading.
	readTime = 5 * time.Second

	maxFutures = 100 // of a list
)

// errSlow ends a reading.
var errSlow = fmt.Errorf("the store did not answer within %v", readTime)

// Snapshot is what a cluster does, and what is wrong with it.
type Snapshot struct {
	httpapi.Overview
	Workers []httpapi.Worker `json:"workers"` // the dead first

	futures []httpapi.Future
}

// Query is what is read beside what all views show: the newest futures, of all states if State
// is 0.
type Query struct {
	List  bool
	State layout.State
}

// Reader reads a cluster, one reading at a time.
type Reader struct {
	client   *futures.Client
	overview *httpapi.OverviewReader
}

// NewReader returns a reader.
func NewReader(c *futures.Client) *Reader { return &Reader{c, httpapi.NewOverviewReader(c)} }

// Read reads an overview, and what q asks for. It fails after 5 s without an answer.
func (r *Reader) Read(ctx context.Context, q Query) (*Snapshot, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, errSlow)
	defer cancel()
	s := &Snapshot{}
	all, within := errgroup.WithContext(ctx)
	all.Go(func() error {
		o, err := r.overview.Read(within)
		if err == nil {
			s.Overview, s.Workers = *o, o.Workers
		}
		return err
	})
	if q.List {
		all.Go(func() (err error) {
			s.futures, err = r.list(within, q.State, maxFutures)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, slowCause(ctx, err)
	}
	return s, nil
}

// list returns the newest futures that are no items of batches.
func (r *Reader) list(ctx context.Context, state layout.State, limit int) ([]httpapi.Future, error) {
	filter := inspect.Filter{State: state, Newest: true, LeftOut: new(int)}
	rows, _, err := inspect.List(ctx, r.client.Cluster(), filter, nil, limit)
	views := make([]httpapi.Future, len(rows))
	for i := range rows {
		views[i] = httpapi.ListView(&rows[i])
	}
	return views, err
}

// Future returns what there is to say of a future, line by line: why it is where it is, and its
// last error.
func (r *Reader) Future(ctx context.Context, id futures.ID) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, errSlow)
	defer cancel()
	e, err := r.client.Explain(ctx, id)
	if err != nil {
		return nil, slowCause(ctx, err)
	}
	v, err := r.client.Get(ctx, id)
	if err != nil {
		return nil, slowCause(ctx, err)
	}
	lines := []string{
		fmt.Sprintf("%s (%s): %s", e.State, e.Reason, e.Text), "", "function   " + v.Function, "queue      " + v.Queue,
		"submitted  " + v.SubmittedAt.UTC().Format(time.RFC3339),
		fmt.Sprintf("attempt    %d of %d", v.Attempt, v.MaxAttempts),
		"worker     " + cmp.Or(string(v.Worker), "none"),
	}
	if f := v.Failure; f != nil {
		lines = append(lines, "", fmt.Sprintf("last error, of attempt %d at %s: %s%s", f.Attempt,
			f.At.UTC().Format(time.RFC3339), f.Kind, wording.Because(f.Message)))
	}
	return lines, nil
}

// slowCause is errSlow for what the time limit of a reading ended, otherwise the error.
func slowCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errSlow) {
		return cause
	}
	return err
}
