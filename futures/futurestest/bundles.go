package futurestest

import (
	"context"

	"github.com/futura-run/futura/workers"
)

// RegisterBundle registers a function that runs futures of a lane together, as
// workers.Worker.RegisterBundle does: what grouping.Handler.Bind returns. The kind of the
// lanes must exist, by grouping.Handler.Setup with Client or by SetLaneKind. A call has all
// that is in line when it begins, up to the bounds of the kind, and does not wait for more.
// Middleware does not see it. It must come before the first Await, Advance and Run. An
// invalid or registered name fails the test.
func (c *Cluster) RegisterBundle(name string, fn workers.BundleFunction) {
	c.t.Helper()
	err := c.worker.RegisterBundle(name, func(ctx context.Context, key string, members []workers.Member,
	) ([]workers.MemberEnd, error) {
		level := new(frame)
		info, _ := workers.InfoFrom(ctx)
		c.calls.Store(info.Token, level) // for the contexts of its members
		defer c.calls.Delete(info.Token)
		return fn(context.WithValue(ctx, frameKey{}, level), key, members)
	})
	if err != nil {
		c.t.Fatalf("futurestest: %v", err)
	}
}
