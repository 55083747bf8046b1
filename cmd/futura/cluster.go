package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

func (a *app) clusterCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Show, make and set up a cluster"}
	cmd.AddCommand(a.clusterShowCommand(), a.clusterCreateCommand(), a.clusterSetCommand())
	return needsCommand(cmd)
}

// clusterFlags are those of what all processes of a cluster agree on.
type clusterFlags struct {
	shards                          int
	heartbeat, deadAfter, retention time.Duration
}

func (s *clusterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&s.heartbeat, "heartbeat", 0, "how often a worker says that it lives")
	flags.DurationVar(&s.deadAfter, "dead-after", 0, "how long its heartbeat may stand still before it counts as dead")
	flags.DurationVar(&s.retention, "retention", 0, "how long finished futures are kept")
}

// apply changes the config to what the flags say, where they say something.
func (s *clusterFlags) apply(c *layout.Config) {
	for _, set := range []struct {
		to   *time.Duration
		what time.Duration
	}{{&c.Heartbeat, s.heartbeat}, {&c.DeadAfter, s.deadAfter}, {&c.Retention, s.retention}} {
		if set.what != 0 {
			*set.to = set.what
		}
	}
	if s.shards != 0 {
		c.Shards = s.shards
	}
}

func (a *app) clusterShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Print the cluster's settings and how many futures it has", Args: exactly(0),
		Example: "  futura cluster show --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.open(cmd.Context(), func(c *futures.Client) error {
				return a.showCluster(cmd.Context(), c.Cluster(), c.Cluster().Config())
			})
		},
	}
}

func (a *app) clusterCreateCommand() *cobra.Command {
	var s clusterFlags
	cmd := &cobra.Command{
		Use: "create", Short: "Make a cluster with settings of its own", Args: exactly(0),
		Long: "create makes a cluster, and refuses one that is there. Without it the first process makes the cluster,\n" +
			"with the defaults: 16 shards (1 on an embedded store), a heartbeat in 5s, dead after 15s (in dev\n" +
			"500ms and 2s), a retention of 24h.",
		Example: "  futura cluster create --shards 64 --retention 72h --store fdb:fdb.cluster",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.createCluster(cmd.Context(), &s) },
	}
	cmd.Flags().IntVar(&s.shards, "shards", 0, "a power of two up to 256; it stays (default 16; embedded 1)")
	s.add(cmd)
	return cmd
}

func (a *app) createCluster(ctx context.Context, s *clusterFlags) error {
	there := errors.New("it is there")
	err := a.with(ctx, futures.Options{Cluster: a.cluster, Existing: true}, func(*futures.Client) error { return there })
	if errors.Is(err, there) {
		return usageError{fmt.Errorf("cluster %q is there already: see futura cluster show and set", a.cluster)}
	}
	if !errors.Is(err, fdbmodel.ErrNotFound) {
		return err
	}
	var config layout.Config
	s.apply(&config)
	return a.with(ctx, futures.Options{Cluster: a.cluster, Config: config}, func(c *futures.Client) error {
		return a.showCluster(ctx, c.Cluster(), c.Cluster().Config())
	})
}

func (a *app) clusterSetCommand() *cobra.Command {
	var s clusterFlags
	cmd := &cobra.Command{
		Use: "set", Short: "Change the cluster's settings", Args: exactly(0),
		Long: "set changes settings. Processes obey those that they found when they began: start them again. Heartbeat\n" +
			"and dead-after are what all must agree on, so their change is refused while workers or clients are alive.",
		Example: "  futura cluster set --retention 1h\n" +
			"  futura cluster set --heartbeat 5s --dead-after 15s --store fdb:fdb.cluster",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s == (clusterFlags{}) {
				return usageError{errors.New("say what to change: --heartbeat, --dead-after or --retention")}
			}
			return a.open(cmd.Context(), func(c *futures.Client) error {
				config, err := c.Cluster().Configure(cmd.Context(), s.apply)
				if err != nil {
					return copyMistake(err)
				}
				return a.showCluster(cmd.Context(), c.Cluster(), config)
			})
		},
	}
	s.add(cmd)
	return cmd
}

func (a *app) showCluster(ctx context.Context, c *fdbmodel.Cluster, config layout.Config) error {
	counts, err := c.Counts(ctx)
	if err != nil {
		return err
	}
	view := httpapi.ClusterOf(c.Name(), config, counts)
	if a.json {
		return a.printJSON(&view)
	}
	rows := [][]string{
		{"cluster", view.Name}, {"shards", fmt.Sprint(view.Shards)}, {"heartbeat", config.Heartbeat.String()},
		{"dead after", config.DeadAfter.String()}, {"retention", config.Retention.String()},
	}
	queues := map[string]map[string]int64{}
	var order []string
	for _, n := range view.Counts {
		if queues[n.Queue] == nil {
			queues[n.Queue] = map[string]int64{}
			order = append(order, n.Queue)
		}
		queues[n.Queue][n.State] += n.Futures
	}
	for _, queue := range order {
		text := ""
		for _, state := range layout.States() {
			if n := queues[queue][state.String()]; n > 0 {
				text += fmt.Sprintf(", %d %s", n, state)
			}
		}
		rows = append(rows, []string{"queue " + queue, text[2:]})
	}
	return table(a.out, rows)
}
