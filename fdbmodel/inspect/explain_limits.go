package inspect

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
)

// explainLimit says that a ready future waits because as many run as the cluster allows.
func explainLimit(ctx context.Context, c *fdbmodel.Cluster, e *Explanation, counts layout.Counts) error {
	limits, used, err := quota.Of(c).Get(ctx)
	if err != nil || limits.Running == 0 || counts.Total(layout.Claimed) < limits.Running {
		return err
	}
	e.Reason = ReasonLimit
	e.Text += fmt.Sprintf(" As many futures run as the cluster allows (%d of %d): it waits until one of them ends. The "+
		"limit can be raised (futura limits set --running).", used.Running, limits.Running)
	return nil
}
