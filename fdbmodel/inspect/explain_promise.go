package inspect

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/promises"
)

// explainPromise says who may complete a promise that waits.
func explainPromise(ctx context.Context, c *fdbmodel.Cluster, e *Explanation) error {
	e.Reason = ReasonUnresolved
	drawn, err := promises.Of(c).Drawn(ctx, e.ID)
	if err != nil {
		return err
	}
	e.Text = "It is a promise, which no worker runs: it waits to be resolved. Who may change futures completes it by " +
		"its id (futura promise resolve, futura promise reject)"
	if drawn.IsZero() {
		e.Text += "; no token opens it."
		return nil
	}
	e.Text += ", and who has its token, drawn at " + timeOf(drawn.UnixMilli()) + ", without any other right. If that is " +
		"lost, draw another one (futura promise token)."
	return nil
}
