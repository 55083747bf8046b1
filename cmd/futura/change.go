package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

// changed is what became of a future, in words that do not change, and as text.
type changed struct {
	ID      futures.ID `json:"id"`
	Outcome string     `json:"outcome"`
	State   string     `json:"state,omitempty"`
	text    string
}

// each calls fn for each id on the command line and prints what it says.
func (a *app) each(ctx context.Context, args []string, fn func(*futures.Client, futures.ID) (changed, error)) error {
	var ids []futures.ID
	var failures []error
	for _, text := range args {
		id, err := layout.ParseID(text)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return errors.Join(failures...)
	}
	return a.open(ctx, func(c *futures.Client) error {
		all := make([]changed, 0, len(ids))
		for _, id := range ids {
			one, err := fn(c, id)
			if err != nil {
				failures = append(failures, err)
				continue
			}
			one.ID = id
			all = append(all, one)
			if !a.json {
				fmt.Fprintln(a.out, id, cmp.Or(one.text, one.Outcome))
			}
		}
		if a.json {
			failures = append(failures, a.printJSON(all))
		}
		return errors.Join(failures...)
	})
}

func (a *app) cancelCommand() *cobra.Command {
	var reason string
	var s selection
	cmd := &cobra.Command{
		Use: "cancel ID... | --state | --queue | --tag ...", Short: "Cancel futures, or ask running ones to stop",
		Long: "cancel takes futures by id, or selects all that are not over and match all of --state, --queue and so " +
			"on. A " +
			"selection leaves items of batches alone: for these, use futura batch cancel.",
		Example: "  futura cancel 01995b4e-6f3a-7c1e-9d2b-0123456789ab --reason 'wrong input'\n" +
			"  futura cancel --function wasm:count --state ready",
		RunE: func(cmd *cobra.Command, args []string) error {
			some, err := s.instead(args)
			if err != nil {
				return err
			}
			if some {
				return a.open(cmd.Context(), func(c *futures.Client) error { return a.cancelAll(cmd.Context(), c, &s, reason) })
			}
			return a.each(cmd.Context(), args, func(c *futures.Client, id futures.ID) (changed, error) {
				return cancelOne(cmd.Context(), c, id, reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, stored with the future")
	s.add(cmd, false)
	return cmd
}

func (a *app) retryCommand() *cobra.Command {
	var failed, startOver bool
	s := selection{states: []layout.State{layout.Failed}}
	cmd := &cobra.Command{
		Use: "retry ID... | --failed", Short: "Run failed futures again, with all their attempts",
		Long: "retry runs failed futures again, with all their attempts, and delayed ones at once. With --failed it takes " +
			"all failed futures except cancelled ones and promises, which are retried by id, and items of batches: for these, " +
			"use futura batch retry.\n\n" +
			"A future keeps the steps that it has recorded: it goes on from the one that failed, on today's code. With " +
			"--start-over a failed one forgets them, and all of it runs again.",
		Example: "  futura retry 01995b4e-6f3a-7c1e-9d2b-0123456789ab\n" +
			"  futura retry 01995b4e-6f3a-7c1e-9d2b-0123456789ab --start-over\n" +
			"  futura retry --failed --function wasm:count",
		RunE: func(cmd *cobra.Command, args []string) error {
			if failed == (len(args) > 0) {
				return usageError{errors.New("name futures by id, or use --failed")}
			}
			if failed && startOver {
				return usageError{errors.New("--start-over is for futures by id: --failed keeps their steps")}
			}
			if !failed && s.some() {
				return usageError{errors.New("--function, --queue and the like need --failed")}
			}
			if failed {
				if err := s.parse(s.states); err != nil {
					return err
				}
				s.filter.State = layout.Failed
				return a.open(cmd.Context(), func(c *futures.Client) error { return a.retryFailed(cmd.Context(), c, &s) })
			}
			return a.each(cmd.Context(), args, func(c *futures.Client, id futures.ID) (changed, error) {
				if startOver {
					return retryOne(cmd.Context(), c, id, (*futures.Client).StartOver)
				}
				return retryOne(cmd.Context(), c, id, (*futures.Client).Retry)
			})
		},
	}
	cmd.Flags().BoolVar(&failed, "failed", false, "select all failed futures")
	cmd.Flags().BoolVar(&startOver, "start-over", false, "without the steps that they have recorded")
	s.filterFlags.add(cmd.Flags(), "with --failed: only those", s.states)
	return cmd
}

// retryOne retries a future, and says whether it waits for its inputs again, or has
// failed with one of them.
func retryOne(ctx context.Context, c *futures.Client, id futures.ID,
	retry func(*futures.Client, context.Context, futures.ID) error,
) (changed, error) {
	if err := retry(c, ctx, id); err != nil {
		return changed{}, err
	}
	row, err := c.Cluster().Get(ctx, id)
	if s := row.State(); err == nil && (s == futures.Blocked || s == futures.Failed) {
		return changed{Outcome: s.String()}, nil
	}
	return changed{Outcome: futures.Ready.String()}, nil
}

func (a *app) deleteCommand() *cobra.Command {
	var s selection
	cmd := &cobra.Command{
		Use: "delete ID... | --state | --queue | --tag ...", Short: "Remove futures that are over, with their results",
		Long: "delete takes futures by id, or selects all that are over and match all of --state, --queue and so on. A " +
			"selection leaves items of batches alone: for these, use futura batch delete.",
		Example: "  futura delete 01995b4e-6f3a-7c1e-9d2b-0123456789ab\n  futura delete --state realized --queue urgent",
		RunE: func(cmd *cobra.Command, args []string) error {
			some, err := s.instead(args)
			if err != nil {
				return err
			}
			if some {
				return a.open(cmd.Context(), func(c *futures.Client) error { return a.deleteAll(cmd.Context(), c, &s) })
			}
			return a.each(cmd.Context(), args, func(c *futures.Client, id futures.ID) (changed, error) {
				return changed{Outcome: "deleted"}, c.Discard(cmd.Context(), id)
			})
		},
	}
	s.add(cmd, true)
	return cmd
}
