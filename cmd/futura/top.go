package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/console"
	"github.com/futura-run/futura/internal/top"
)

// minTopEvery is how often top reads at most.
const minTopEvery = 100 * time.Millisecond

// topFlags are what top takes.
type topFlags struct {
	every time.Duration
	once  bool
}

func (a *app) topCommand() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use: "top", Short: "Watch a cluster in a terminal", Args: exactly(0),
		Long: "top shows what a cluster does, and what is wrong with it: futures by state and queue, workers, functions of " +
			"the last hour, the newest futures and those that failed. In a terminal it has views and keys, which ? lists, " +
			"until q or Ctrl-C. Elsewhere, and with TERM=dumb, --once or --json, it prints the overview again and again; " +
			"--json prints a document per line. An error of the store is shown, and top goes on.\n\nIt opens the store as a " +
			"worker does: where no other process serves an embedded store, top does while it runs. Colours obey NO_COLOR.",
		Example: "  futura top\n  futura top --every 10s --store fdb:fdb.cluster\n  futura top --once\n" +
			"  futura top --json | jq '.wrong'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.every < minTopEvery {
				return usageError{fmt.Errorf("--every %v: use %v or more", f.every, minTopEvery)}
			}
			return a.top(cmd.Context(), &f)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.every, "every", 2*time.Second, "how long after a reading the next one begins, at least 100ms")
	flags.BoolVar(&f.once, "once", false, "print the overview once, and end")
	return cmd
}

func (a *app) top(ctx context.Context, f *topFlags) error {
	in, out := console.Interactive(a.in, a.out)
	if f.once || a.json || out == nil {
		a.outlivesServer = !f.once
		return a.open(ctx, func(c *futures.Client) error { return a.printTop(ctx, top.NewReader(c), f) })
	}
	a.outlivesServer = true
	a.err = io.Discard // standard error is the same terminal
	return a.open(ctx, func(c *futures.Client) error { return top.Run(ctx, in, out, top.NewReader(c), f.every) })
}

// printTop prints a cluster until ctx ends, or once.
func (a *app) printTop(ctx context.Context, r *top.Reader, f *topFlags) error {
	for {
		start := time.Now()
		s, err := r.Read(ctx, top.Query{})
		wait := max(f.every, 4*time.Since(start))
		switch {
		case err == nil && a.json:
			err = json.NewEncoder(a.out).Encode(s)
		case err == nil:
			_, err = io.WriteString(a.out, top.Text(s, a.width()))
		case ctx.Err() != nil && !f.once:
			return nil
		case !f.once:
			fmt.Fprintln(a.err, "futura:", console.Printable(said(err)))
			wait, err = f.every, nil
		}
		if err != nil || f.once {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}
