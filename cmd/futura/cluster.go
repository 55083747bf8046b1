package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

func (a *app) clusterCommand() *cobra.Command {
	return group(&cobra.Command{Use: "cluster", Short: "List, show, create and configure clusters"}, &cobra.Command{
		Use: "list", Short: "List the clusters of a store, with how many futures each has", Args: exactly(0),
		Example: "  futura cluster list\n  futura cluster list --store fdb:fdb.cluster --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listClusters(cmd.Context()) },
	}, a.onCluster(&cobra.Command{
		Use: "show", Short: "Print the cluster's settings and how many futures it has",
		Example: "  futura cluster show --json",
	}, func(ctx context.Context, c *futures.Client, _ []string) error {
		return a.showCluster(ctx, c.Cluster(), c.Cluster().Config())
	}), a.clusterCreateCommand(), a.clusterSetCommand())
}

// clusterFlags are those of what all processes of a cluster agree on.
type clusterFlags struct {
	shards                          int
	heartbeat, deadAfter, retention time.Duration
	infeasibleAfter                 time.Duration
	policy                          layout.Policy
	flags                           *pflag.FlagSet
}

func (s *clusterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&s.heartbeat, "heartbeat", 0, "how often a worker changes its heartbeat, at least 1ms")
	flags.DurationVar(&s.deadAfter, "dead-after", 0,
		"how long a heartbeat may go unchanged before the worker is declared dead, at least two heartbeats")
	flags.DurationVar(&s.retention, "retention", 0, "how long finished futures are kept, at least 1ms")
	flags.DurationVar(&s.infeasibleAfter, infeasibleAfter, 0,
		"how long a future may wait while no worker could ever run it, before it fails as infeasible; 0 for ever")
	p := &s.policy
	flags.DurationVar(&p.DefaultTimeout, "default-timeout", 0,
		"the timeout of futures that are submitted without one; 0 for the worker's, or --max-timeout")
	flags.DurationVar(&p.MaxTimeout, "max-timeout", 0, "the longest timeout that a future may have; 0 for no limit")
	flags.Int64Var(&p.DefaultMemory, "default-memory", 0,
		"the memory limit in bytes of modules whose futures require none; 0 for the worker's")
	flags.Int64Var(&p.MaxMemory, "max-memory", 0, "the most memory in bytes that a future may require; 0 for no limit")
	flags.IntVar(&p.MaxPriority, "max-priority", 0, "the highest priority that a future may have; 0 for no limit")
	flags.Int64Var(&p.MaxOutput, "max-output", 0, "the largest result in bytes; 0 for 64 MiB")
	s.flags = flags
}

// policyFlags are the flags for what futures may ask for; 0 takes a limit away.
var policyFlags = []string{
	"default-timeout", "max-timeout", "default-memory", "max-memory", "max-priority", "max-output",
}

const infeasibleAfter = "infeasible-after"

// none reports whether the flags say nothing.
func (s *clusterFlags) none() bool {
	said := func(flag string) bool { return isSet(s.flags, flag) }
	return s.heartbeat == 0 && s.deadAfter == 0 && s.retention == 0 && !said(infeasibleAfter) &&
		!slices.ContainsFunc(policyFlags, said)
}

// apply changes the config to what the flags say, where they say something.
func (s *clusterFlags) apply(c *layout.Config) {
	c.Heartbeat, c.DeadAfter = cmp.Or(s.heartbeat, c.Heartbeat), cmp.Or(s.deadAfter, c.DeadAfter)
	c.Retention, c.Shards = cmp.Or(s.retention, c.Retention), cmp.Or(s.shards, c.Shards)
	eachFlag(s.flags, true, map[string]func(){
		infeasibleAfter:   func() { c.InfeasibleAfter = s.infeasibleAfter },
		"default-timeout": func() { c.Policy.DefaultTimeout = s.policy.DefaultTimeout },
		"max-timeout":     func() { c.Policy.MaxTimeout = s.policy.MaxTimeout },
		"default-memory":  func() { c.Policy.DefaultMemory = s.policy.DefaultMemory },
		"max-memory":      func() { c.Policy.MaxMemory = s.policy.MaxMemory },
		"max-priority":    func() { c.Policy.MaxPriority = s.policy.MaxPriority },
		"max-output":      func() { c.Policy.MaxOutput = s.policy.MaxOutput },
	})
}

// clusterView is a cluster as it is listed.
type clusterView struct {
	Name    string `json:"name"`
	Shards  int    `json:"shards,omitempty"`
	Futures int64  `json:"futures"`
	// Problem is why it can't be opened.
	Problem string `json:"problem,omitempty"`
}

// read opens the cluster, which is not made.
func (v *clusterView) read(ctx context.Context, db kv.Database) error {
	c, err := fdbmodel.Open(ctx, db, v.Name, fdbmodel.Options{Existing: true})
	if err != nil {
		return err
	}
	v.Shards = c.Config().Shards
	counts, err := c.Counts(ctx)
	for _, n := range counts {
		v.Futures += n
	}
	return err
}

func (a *app) listClusters(ctx context.Context) (err error) {
	if err := storeExists(a.store); err != nil {
		return err
	}
	db, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	names, err := admin.Clusters(ctx, db)
	if err != nil {
		return err
	}
	views := []clusterView{}
	lines := [][]string{{"CLUSTER", "SHARDS", "FUTURES"}}
	for _, name := range names {
		v := clusterView{Name: name}
		if err := v.read(ctx, db); err != nil {
			v.Problem = err.Error()
		}
		views = append(views, v)
		lines = append(lines, []string{v.Name, fmt.Sprint(v.Shards), fmt.Sprint(v.Futures), v.Problem})
	}
	return a.show(map[string]any{"clusters": views}, lines)
}

func (a *app) clusterCreateCommand() *cobra.Command {
	var s clusterFlags
	cmd := &cobra.Command{
		Use: "create", Short: "Create a cluster with its own settings", Args: exactly(0),
		Long: "create makes a cluster, and refuses a name that exists. Without it, the first process creates the cluster " +
			"with the defaults: 16 shards (1 on an embedded store), a heartbeat every 5s, dead after 15s (500ms and 2s " +
			"on an embedded store, unless serve makes it), a retention of 24h.",
		Example: "  futura cluster create --shards 64 --retention 72h --store fdb:fdb.cluster",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.createCluster(cmd.Context(), &s) },
	}
	cmd.Flags().IntVar(&s.shards, "shards", 0, "a power of two up to 256, fixed from then on (default: 16, embedded 1)")
	s.add(cmd)
	return cmd
}

func (a *app) createCluster(ctx context.Context, s *clusterFlags) error {
	there := errors.New("it exists")
	err := a.with(ctx, futures.Options{Cluster: a.cluster, Existing: true}, func(*futures.Client) error { return there })
	if errors.Is(err, there) {
		return usageError{fmt.Errorf("cluster %q already exists: see futura cluster show and set", a.cluster)}
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
		Long: "set changes settings. A process uses the settings that it found when it started: restart all processes " +
			"afterwards. All processes must agree on heartbeat and dead-after, so a change of these is refused while " +
			"workers or clients run.",
		Example: "  futura cluster set --retention 1h\n" +
			"  futura cluster set --heartbeat 5s --dead-after 15s --store fdb:fdb.cluster",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.none() {
				return usageError{errors.New("say what to change: --heartbeat, --dead-after or --retention, to more than 0, or --" +
					infeasibleAfter + ", --" + strings.Join(policyFlags, ", --"))}
			}
			return a.open(cmd.Context(), func(c *futures.Client) error {
				config, err := admin.Configure(cmd.Context(), c.Cluster(), s.apply, joblog.Of(c.Cluster()).SignsOfLife)
				if err != nil {
					return copyMistake(err)
				}
				fmt.Fprintln(a.err, "futura: processes that run go on with the settings they found when they started: restart them")
				return a.showCluster(cmd.Context(), c.Cluster(), config)
			})
		},
	}
	s.add(cmd)
	return cmd
}

// describePolicy returns what is said of the limits that there are.
func describePolicy(p *layout.Policy) (rows pairs) {
	rows.add(p.DefaultTimeout > 0, "default timeout", "%v", p.DefaultTimeout)
	rows.add(p.MaxTimeout > 0, "longest timeout", "%v", p.MaxTimeout)
	rows.add(p.DefaultMemory > 0, "default memory", "%d", p.DefaultMemory)
	rows.add(p.MaxMemory > 0, "most memory", "%d", p.MaxMemory)
	rows.add(p.MaxPriority > 0, "highest priority", "%d", p.MaxPriority)
	rows.add(p.MaxOutput > 0, "largest result", "%d", p.MaxOutput)
	return rows
}

func (a *app) showCluster(ctx context.Context, c *fdbmodel.Cluster, config layout.Config) error {
	counts, err := c.Counts(ctx)
	if err != nil {
		return err
	}
	view := httpapi.ClusterOf(c.Name(), config, counts)
	rows := pairs{
		{"cluster", view.Name}, {"shards", fmt.Sprint(view.Shards)}, {"heartbeat", config.Heartbeat.String()},
		{"dead after", config.DeadAfter.String()}, {"retention", config.Retention.String()},
	}
	rows.add(config.InfeasibleAfter > 0, "infeasible after", "%v", config.InfeasibleAfter)
	rows = append(rows, describePolicy(&config.Policy)...)
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
			if n := queues[queue][state.String()]; n != 0 { // a broken counter may be below 0
				text += fmt.Sprintf(", %d %s", n, state)
			}
		}
		rows = append(rows, []string{"queue " + queue, text[2:]})
	}
	return a.show(&view, rows)
}
