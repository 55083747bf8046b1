package modeltest

import (
	"context"
	"errors"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
)

// limitCluster sets limits and asks for room, which a reading that is new gives exactly.
func (m *Machine) limitCluster(ctx context.Context) (change, error) {
	set := quota.Limits{Pending: int64(m.random.IntN(12)), Running: int64(m.random.IntN(6))}
	limits, err := quota.Of(m.C).Set(ctx, func(l *quota.Limits) { *l = set })
	if err != nil {
		return none, err
	}
	n := 1 + m.random.IntN(4)
	refused := quota.Of(m.C).Admit(ctx, n)
	if refused != nil && !errors.Is(refused, quota.ErrLimit) {
		return none, refused
	}
	may, _, err := quota.Of(m.C).MayClaim(ctx, n)
	m.logf("limits %+v: %d more may be pending: %v; %d may run, %v", limits, n, refused, may, err)
	if err != nil || len(m.loose) > 0 {
		return none, err
	}
	pending, running := int64(0), int64(0)
	for _, row := range m.Rows {
		switch state := row.State(); {
		case state == layout.Claimed:
			running++
		case !state.Terminal():
			pending++
		}
	}
	if fits := set.Pending == 0 || pending+int64(n) <= set.Pending; fits != (refused == nil) {
		m.fail("%d futures are pending, %d more are to be, and %d may be: %v", pending, n, set.Pending, refused)
	}
	left := set.Running - running
	limited := set.Running > 0
	if !limited && may != n || limited && (left <= 0) != (may == 0) || limited && int64(may) > max(0, left) {
		m.fail("%d futures run, %d may, and %d of %d more are said to be allowed", running, set.Running, may, n)
	}
	return none, nil
}
