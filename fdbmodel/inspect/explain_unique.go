package inspect

import (
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// textUnique says what a unique future keeps others from, and nothing if it keeps none.
func textUnique(c *fdbmodel.Cluster, row *layout.Row) string {
	u := row.Spec.Unique
	if u == nil {
		return ""
	}
	what, over := "work like it", row.State().Terminal()
	if u.Key != "" {
		what = fmt.Sprintf("work with the unique key %.80q", u.Key)
	}
	free := time.UnixMilli(row.Spec.FreeAt())
	period := row.Spec.FreeAt() > layout.Millis(c.Now())
	switch until := free.UTC().Format(time.RFC3339); {
	case u.Until == layout.UntilEver:
		return fmt.Sprintf(" No other %s is accepted, unless the key was released or another future replaced it.", what)
	case period && (over || u.Until == layout.UntilClaim && row.HasBegun()):
		return fmt.Sprintf(" No other %s is accepted until %s.", what, until)
	case over:
		return ""
	case period && u.Until == layout.UntilClaim:
		return fmt.Sprintf(" No other %s is accepted until a worker claims it, and not before %s.", what, until)
	case period:
		return fmt.Sprintf(" No other %s is accepted until it is over, and not before %s.", what, until)
	case u.Until == layout.UntilClaim && row.HasBegun():
		return fmt.Sprintf(" Other %s is accepted, since a worker has claimed it.", what)
	case u.Until == layout.UntilClaim:
		return fmt.Sprintf(" No other %s is accepted until a worker claims it.", what)
	default:
		return fmt.Sprintf(" No other %s is accepted until it is over.", what)
	}
}
