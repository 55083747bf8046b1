package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/wording"
)

func (a *app) stepsCommand() *cobra.Command {
	return a.onFutures(&cobra.Command{
		Use: "steps ID", Short: "Show what a future has recorded of its run",
		Long: "steps shows the steps that the function of a future has recorded, in their order: no later attempt runs " +
			"them again. A step that the last attempt no longer asked for is unused.",
		Example: "  futura steps 01995b4e-6f3a-7c1e-9d2b-0123456789ab\n" +
			"  futura steps 01995b4e-6f3a-7c1e-9d2b-0123456789ab --json",
	}, func(ctx context.Context, c *futures.Client, ids []futures.ID) error {
		all, err := c.Steps(ctx, ids[0])
		if err != nil {
			return err
		}
		if of, err := c.Get(ctx, ids[0]); err == nil && of.Fork != nil {
			fmt.Fprintf(a.err, "forked from %s, %s\n", of.Fork.Source, of.Fork.From)
		}
		heading := []string{"step", "attempt", "recorded", "took", "size", "note"}
		return showAll(a, "steps", all, func(s *futures.StepView) futures.StepView { return *s }, heading, stepRow)
	})
}

func stepRow(s *futures.StepView) []string {
	note := s.Origin
	switch {
	case s.Unused:
		note = "unused"
	case !s.Wake.IsZero():
		note = "until " + timeText(s.Wake.UnixMilli())
	}
	return []string{s.Name, strconv.Itoa(s.Attempt), timeText(s.At.UnixMilli()),
		s.At.Sub(s.StartedAt).Round(time.Millisecond).String(), wording.Count(s.Size, "byte"), note}
}
