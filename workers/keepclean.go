package workers

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
)

// JanitorOptions of RunJanitor. With the zero value it logs nothing and calls no hooks.
type JanitorOptions struct {
	// Logger is told what goes wrong, and of futures that failed because too many
	// workers died with them or no worker could run them; see Options. Defaults to none.
	Logger *slog.Logger
	// OnFailed is called for each of these futures, unless a worker of this process, or
	// another janitor, was there first. It holds up the janitor until it returns.
	// Defaults to none.
	OnFailed func(Failure)
}

// RunJanitor does what a janitor of a worker does, and executes nothing, until ctx ends:
// it declares workers dead and takes back what they hold, makes delayed futures ready,
// fires schedules, removes what has expired, and ends what is overdue. So a cluster
// needs no worker with a janitor. It is no member of the cluster, and takes part in
// the choice of the one janitor that acts: any number of them may run, beside any
// number of workers; one that does not act reads twice in each heartbeat interval.
//
// It returns nil when ctx ends, after it has given up the role so that another one takes
// it at once, and the store's error if that will not come back within this process. Other
// errors are logged, and what failed is tried again. An unknown commit is harmless.
func RunJanitor(ctx context.Context, cluster *fdbmodel.Cluster, o JanitorOptions) error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	id, err := cluster.DrawWorkerID()
	if err != nil {
		return fmt.Errorf("janitor: %w", err)
	}
	failures := newFailureLog(o.Logger, cluster.Now)
	defer failures.pass(true)
	defer cluster.OnLost(func(rows []layout.Row) { reportLost(rows, failures, o.Logger, o.OnFailed) })()
	j := janitorOf(janitorHost{
		cluster: cluster, logger: o.Logger, freeze: &freeze{}, gone: func() bool { return false }, reaped: func(int) {},
	}, id)
	keepRole := j.keepRole.run
	j.keepRole.run = func(ctx context.Context, now time.Time) (time.Time, error) {
		failures.pass(false)
		return keepRole(ctx, now)
	}
	if err := j.loop(ctx); err != nil {
		return fmt.Errorf("janitor: %w", err)
	}
	giveUp, cancel := withTimeout(context.WithoutCancel(ctx), cluster.Clock(), leaveTimeout)
	defer cancel()
	if err := maintenance.Of(cluster).Release(giveUp, id); err != nil {
		o.Logger.Warn("the janitor's role could not be given up", "error", err)
	}
	return nil
}
