package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

func (a *app) limitsCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "limits", Short: "See and set the limits of the cluster",
		Long: "Limits bound a whole cluster: how many futures are pending and run, how many bytes the store holds, and how " +
			"many futures are submitted in a second. A submit that exceeds one is refused, and says when to come back, or " +
			"waits (futura submit --wait-for-room). Workers claim no more than may run.",
	}, a.onCluster(&cobra.Command{
		Use: "show", Short: "Print the limits, and how much of them is used", Example: "  futura limits show --json",
	}, a.showLimits), a.limitsSetCommand())
}

func (a *app) limitsSetCommand() *cobra.Command {
	var to quota.Limits
	cmd := &cobra.Command{
		Use: "set", Short: "Change limits", Args: exactly(0),
		Long: "set changes the limits that are named, and leaves the others; 0 is no limit. Processes obey them within " +
			"2 s. What exceeds a new limit already stays, and runs to its end.",
		Example: "  futura limits set --pending 100000 --per-second 500\n  futura limits set --running 0",
	}
	flags := cmd.Flags()
	flags.Int64Var(&to.Pending, "pending", 0, "the most futures that are blocked, ready or delayed")
	flags.Int64Var(&to.Running, "running", 0, "the most futures that workers hold")
	flags.Int64Var(&to.Bytes, "bytes", 0, "the most bytes that the store holds")
	flags.Float64Var(&to.PerSecond, "per-second", 0, "the most futures that are submitted in a second")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		said := func(flag string) bool { return isSet(flags, flag) }
		if !slices.ContainsFunc([]string{"pending", "running", "bytes", "per-second"}, said) {
			return usageError{errors.New("say what to limit: --pending, --running, --bytes or --per-second")}
		}
		return a.open(cmd.Context(), func(c *futures.Client) error {
			_, err := c.SetLimits(cmd.Context(), func(l *futures.Limits) {
				eachFlag(flags, true, map[string]func(){
					"pending": func() { l.Pending = to.Pending }, "running": func() { l.Running = to.Running },
					"bytes": func() { l.Bytes = to.Bytes }, "per-second": func() { l.PerSecond = to.PerSecond },
				})
			})
			if err != nil {
				return err
			}
			return a.showLimits(cmd.Context(), c, nil)
		})
	}
	return cmd
}

func (a *app) showLimits(ctx context.Context, c *futures.Client, _ []string) error {
	limits, used, err := c.Limits(ctx)
	if err != nil {
		return err
	}
	most := func(n float64) string {
		if n == 0 {
			return "no limit"
		}
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	bytes := "not known"
	if used.HasBytes {
		bytes = fmt.Sprint(used.Bytes)
	}
	return a.show(httpapi.LimitsOf(limits, used), [][]string{
		{"LIMIT", "USED", "AT MOST"},
		{"pending", fmt.Sprint(used.Pending), most(float64(limits.Pending))},
		{"running", fmt.Sprint(used.Running), most(float64(limits.Running))},
		{"bytes", bytes, most(float64(limits.Bytes))},
		{"per second", "", most(limits.PerSecond)},
	})
}
