package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

// selection is many futures by what they have in common.
type selection struct {
	state  string
	states []layout.State
	filter inspect.Filter
}

// add lets a command select futures that are over, or those that are not.
func (s *selection) add(cmd *cobra.Command, over bool) {
	s.states = slices.DeleteFunc(layout.States(), func(s layout.State) bool { return s.Terminal() != over })
	cmd.Flags().StringVar(&s.state, "state", "", "select all that are "+layout.AnyOf(s.states))
	cmd.Flags().StringVar(&s.filter.Queue, "queue", "", "select all of this queue")
	cmd.Flags().StringVar(&s.filter.Function, "function", "", "select all of this function")
	cmd.Flags().StringVar(&s.filter.Tag, "tag", "", "select all with this tag")
}

// instead reports whether futures are selected instead of named by id.
func (s *selection) instead(ids []string) (bool, error) {
	some := s.state != "" || s.filter != (inspect.Filter{})
	if some == (len(ids) > 0) {
		return some, usageError{errors.New("name futures by id, or select them with --state, --queue, --function or --tag")}
	}
	if s.state == "" {
		return some, nil
	}
	state, err := layout.ParseState(s.state)
	if err == nil && !slices.Contains(s.states, state) {
		err = usageError{fmt.Errorf("--state %s: use %s", state, layout.AnyOf(s.states))}
	}
	s.states = []layout.State{state}
	return some, err
}

// each calls change for the selected futures that it wants, a page at a time. What
// was changed before an error stays so.
func (s *selection) each(ctx context.Context, c *futures.Client, wants func(*layout.Row) bool,
	change func([]futures.ID) error,
) (err error) {
	filter := s.filter
	if err := filter.ResolveFunction(ctx, c.Cluster()); err != nil {
		return err
	}
	filter.Newest = filter.Tag != "" // which leads to them
	var cursor []byte
	for more := true; more; more = len(cursor) > 0 {
		var rows []layout.Row
		if rows, cursor, err = inspect.List(ctx, c.Cluster(), filter, cursor, inspect.MaxList); err != nil {
			return err
		}
		var ids []futures.ID
		for i := range rows {
			if slices.Contains(s.states, rows[i].State()) && wants(&rows[i]) {
				ids = append(ids, rows[i].ID)
			}
		}
		if len(ids) == 0 {
			continue
		}
		if err := change(ids); err != nil {
			return err
		}
	}
	return nil
}

// bulk is what became of selected futures.
type bulk struct {
	Cancelled *int `json:"cancelled,omitempty"`
	Requested *int `json:"requested,omitempty"`
	Deleted   *int `json:"deleted,omitempty"`
	Retried   *int `json:"retried,omitempty"`
	OfBatches int  `json:"of_batches"`
}

// free reports whether a future is not an item of a batch, and counts those that are.
func (b *bulk) free(row *layout.Row) bool {
	if row.Spec.Held() {
		b.OfBatches++
	}
	return !row.Spec.Held()
}

// printBulk shows what became of the futures: the counts that are not nil.
func (a *app) printBulk(b *bulk, batchCommand string) error {
	if a.json {
		return a.printJSON(b)
	}
	if b.OfBatches > 0 {
		fmt.Fprintf(a.err, "left alone, as items of batches: %d (use futura batch %s)\n", b.OfBatches, batchCommand)
	}
	for _, count := range []struct {
		n    *int
		what string
	}{{b.Cancelled, "cancelled"}, {b.Requested, "asked to stop"}, {b.Deleted, "deleted"}, {b.Retried, "retried"}} {
		if count.n == nil {
			continue
		}
		if _, err := fmt.Fprintln(a.out, *count.n, count.what); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) cancelAll(ctx context.Context, c *futures.Client, s *selection, reason string) error {
	b := &bulk{Cancelled: new(int), Requested: new(int)}
	err := s.each(ctx, c, b.free, func(ids []futures.ID) error {
		outcomes, err := c.Cluster().CancelMany(ctx, ids, reason)
		for _, outcome := range outcomes {
			switch outcome {
			case fdbmodel.Applied:
				*b.Cancelled++
			case fdbmodel.Requested:
				*b.Requested++
			}
		}
		return err
	})
	return errors.Join(a.printBulk(b, "cancel"), err)
}

func (a *app) deleteAll(ctx context.Context, c *futures.Client, s *selection) error {
	b := &bulk{Deleted: new(int)}
	err := s.each(ctx, c, b.free, func(ids []futures.ID) error {
		n, err := c.Cluster().DiscardMany(ctx, ids)
		*b.Deleted += n
		return err
	})
	return errors.Join(a.printBulk(b, "delete"), err)
}

// retryFailed retries all that failed by themselves.
func (a *app) retryFailed(ctx context.Context, c *futures.Client, filter inspect.Filter) error {
	s := &selection{states: []layout.State{layout.Failed}, filter: filter}
	b, cancelled := &bulk{Retried: new(int)}, 0
	wants := func(row *layout.Row) bool {
		if !b.free(row) {
			return false
		}
		if ending := row.Ending(); ending.Cancelled() {
			cancelled++
			return false
		}
		return true
	}
	err := s.each(ctx, c, wants, func(ids []futures.ID) error {
		outcomes, err := c.Cluster().RetryMany(ctx, ids)
		for _, outcome := range outcomes {
			if outcome == fdbmodel.Applied {
				*b.Retried++
			}
		}
		return err
	})
	if cancelled > 0 {
		fmt.Fprintf(a.err, "left alone, as cancelled: %d (retry them by id)\n", cancelled)
	}
	return errors.Join(a.printBulk(b, "retry"), err)
}
