package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

func (a *app) pauseCommand() *cobra.Command {
	var reason string
	cmd := a.onCluster(&cobra.Command{
		Use: "pause queue NAME | function NAME", Short: "Keep workers from taking futures of a queue or a function",
		Long: "pause keeps all workers from taking futures of a queue, or of a function, until it is resumed. Futures can " +
			"be submitted, and what workers have taken runs. Workers obey after their next heartbeat, 5 s by default. A " +
			"module is paused with all of its methods; an alias stands for the module that it has now." +
			"\n\nWithout arguments it lists what is paused.",
		Example: "  futura pause queue mail --reason 'the provider is down'\n  futura pause function go:report\n" +
			"  futura pause function wasm:convert\n  futura pause",
		Args: onPausable(0),
	}, func(ctx context.Context, c *futures.Client, args []string) error {
		switch {
		case len(args) == 0 && reason != "":
			return usageError{errors.New("--reason needs what to pause: use futura pause queue NAME, or function NAME")}
		case len(args) == 0:
			return a.listPauses(ctx, c)
		}
		p, err := c.Pause(ctx, args[0], args[1], reason)
		if err != nil {
			return err
		}
		return a.say(httpapi.PauseOf(&p), "paused", p.What, p.Name)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, which explain shows; at most 256 bytes")
	return cmd
}

func (a *app) listPauses(ctx context.Context, c *futures.Client) error {
	list, err := c.Pauses(ctx)
	if err != nil {
		return err
	}
	return showAll(a, "pauses", list, httpapi.PauseOf, []string{"PAUSED", "NAME", "SINCE", "REASON"},
		func(p *futures.Pause) []string {
			return []string{p.What, p.Name, p.At.UTC().Format(time.RFC3339), p.Reason}
		})
}

// onPausable takes what can be paused and its name, or a number of arguments.
func onPausable(or int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == or || len(args) == 2 && (args[0] == futures.PauseQueue || args[0] == futures.PauseFunction) {
			return nil
		}
		return usageError{fmt.Errorf("use futura %s queue NAME, or futura %s function NAME", cmd.Name(), cmd.Name())}
	}
}

func (a *app) resumeCommand() *cobra.Command {
	return a.onCluster(&cobra.Command{
		Use: "resume queue NAME | function NAME", Short: "Have workers take futures of a paused queue or function again",
		Example: "  futura resume queue mail\n  futura resume function go:report", Args: onPausable(2),
	}, func(ctx context.Context, c *futures.Client, args []string) error {
		paused, err := c.Resume(ctx, args[0], args[1])
		if err != nil {
			return err
		}
		outcome, said := "resumed", "resumed"
		if !paused {
			outcome, said = "not paused", "not paused:"
		}
		return a.say(map[string]string{"what": args[0], "name": args[1], "outcome": outcome}, said, args[0], args[1])
	})
}
