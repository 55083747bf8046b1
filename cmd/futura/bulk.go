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
	filterFlags
	states []layout.State
}

// add lets a command select futures that are over, or those that are not.
func (s *selection) add(cmd *cobra.Command, over bool) {
	s.states = slices.DeleteFunc(layout.States(), func(s layout.State) bool { return s.Terminal() != over })
	s.filterFlags.add(cmd.Flags(), "select all", s.states)
}

// instead reports whether futures are selected instead of named by id.
func (s *selection) instead(ids []string) (bool, error) {
	some := s.some()
	if some && len(ids) > 0 {
		return some, usageError{errors.New("name futures by id, or select them: ids and filters, such as --state or " +
			"--where, exclude each other")}
	}
	if some == (len(ids) > 0) {
		return some, usageError{errors.New("name futures by id, or select them, such as with --state, --queue or --function")}
	}
	return some, s.parse(s.states)
}

// each calls change for the selected futures that it wants, a page at a time, and returns how
// many items of batches it left alone. What was changed before an error stays so.
func (s *selection) each(ctx context.Context, c *futures.Client, wants func(*layout.Row) bool,
	change func([]futures.ID) error,
) (ofBatches int, err error) {
	if err := s.filter.ResolveFunction(ctx, c.Cluster()); err != nil {
		return 0, err
	}
	inState := func(row *layout.Row) bool { return slices.Contains(s.states, row.State()) && wants(row) }
	var cursor []byte
	for more := true; more && err == nil; more = len(cursor) > 0 {
		var items int
		items, cursor, err = inspect.Sweep(ctx, c.Cluster(), s.filter, cursor, inState, change)
		ofBatches += items
	}
	return ofBatches, err
}

// bulk is what became of selected futures.
type bulk struct {
	Cancelled *int `json:"cancelled,omitempty"`
	Requested *int `json:"requested,omitempty"`
	Deleted   *int `json:"deleted,omitempty"`
	Retried   *int `json:"retried,omitempty"`
	OfBatches int  `json:"of_batches"`
}

func anyOf(*layout.Row) bool { return true }

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
	var err error
	b.OfBatches, err = s.each(ctx, c, anyOf, func(ids []futures.ID) error {
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
	var err error
	b.OfBatches, err = s.each(ctx, c, anyOf, func(ids []futures.ID) error {
		n, err := c.Cluster().DiscardMany(ctx, ids)
		*b.Deleted += n
		return err
	})
	return errors.Join(a.printBulk(b, "delete"), err)
}

// retryFailed retries all that failed by themselves.
func (a *app) retryFailed(ctx context.Context, c *futures.Client, s *selection) error {
	b, cancelled, promised := &bulk{Retried: new(int)}, 0, 0
	wants := func(row *layout.Row) bool {
		ending := row.Ending()
		switch {
		case ending.Cancelled():
			if !row.Spec.Held() {
				cancelled++
			}
			return false
		case row.Spec.Function == futures.FunctionPromise:
			promised++
			return false
		}
		return true
	}
	var err error
	b.OfBatches, err = s.each(ctx, c, wants, func(ids []futures.ID) error {
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
	if promised > 0 {
		fmt.Fprintf(a.err, "left alone, as promises: %d (have them wait again by id)\n", promised)
	}
	return errors.Join(a.printBulk(b, "retry"), err)
}
