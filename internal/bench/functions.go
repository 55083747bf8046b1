package bench

import (
	"context"
	"time"

	"github.com/futura-run/futura/workers/wasm/wasmbench"
)

// functions compares the executor of WASM functions with a plain runtime. It
// needs no store.
func functions(ctx context.Context, r *run) error {
	r.begin("take turns", 0)
	before := spentSoFar()
	var plain cost
	c, err := wasmbench.Compare(ctx, wasmbench.Options{Plain: func() (end func()) {
		began := spentSoFar()
		return func() { plain = plain.plus(spentSoFar().minus(began)) }
	}})
	if err != nil {
		return err
	}
	r.report.PerFuture = spentSoFar().minus(before).minus(plain).per(float64(c.Calls))
	r.report.Futures, r.report.Workers = c.Calls, 1
	var all time.Duration
	for _, t := range c.Executor {
		all += t
	}
	r.report.FuturesPerSecond = perSecond(c.Calls, all)
	r.report.P50, r.report.P99 = quantiles(c.Executor)
	r.report.Ratio, r.report.RatioToUnstoppable = round(c.ToStoppable, 3), round(c.ToUnstoppable, 3)
	r.options.Log.Info("a call by a plain runtime", "stoppable", c.Stoppable, "unstoppable", c.Unstoppable,
		"executor", c.Isolation)
	return nil
}
