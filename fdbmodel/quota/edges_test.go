package quota_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/quota"
)

func TestLimitsHoldAtOnceWhereTheyAreSet(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	require.NoError(t, quota.Of(s.C).Admit(s.Ctx, 5))
	_, err := quota.Of(s.C).Set(s.Ctx, func(l *quota.Limits) { l.Pending = 5 })
	require.NoError(t, err)
	var limit *quota.LimitError
	require.ErrorAs(t, quota.Of(s.C).Admit(s.Ctx, 6), &limit)
	require.Zero(t, limit.RetryAfter, "it never fits")
	s.Submit()
	s.Clock.Advance(time.Second)
	require.ErrorAs(t, quota.Of(s.C).Admit(s.Ctx, 5), &limit)
	require.Positive(t, limit.RetryAfter, "all that may be is possible")
	s.Clock.Advance(-time.Hour)
	s.Submit()
	require.ErrorAs(t, quota.Of(s.C).Admit(s.Ctx, 4), &limit, "a clock that was set back makes no reading new")
}

// TestAnEndOfAClaimIsHeardOfWithinLimits by who waits for it to claim others.
func TestAnEndOfAClaimIsHeardOfWithinLimits(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	_, err := quota.Of(s.C).Set(s.Ctx, func(l *quota.Limits) { l.Running = 1 })
	require.NoError(t, err)
	s.Submit()
	may, _, err := quota.Of(s.C).MayClaim(s.Ctx, 5)
	require.NoError(t, err)
	require.Equal(t, 1, may)
	f := s.Claim(s.Worker)
	may, again, err := quota.Of(s.C).MayClaim(s.Ctx, 5)
	require.NoError(t, err)
	require.Zero(t, may)
	require.True(t, again.After(s.Clock.Now()))
	s.Finish(s.Worker, realize(&f[0]))
	select {
	case <-quota.Of(s.C).ClaimEnded():
	default:
		require.Fail(t, "nobody hears of it")
	}
	may, _, err = quota.Of(s.C).MayClaim(s.Ctx, 5)
	require.NoError(t, err)
	require.Equal(t, 1, may)
}

func realize(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
	return fdbmodel.Completion{Future: f, Result: &layout.Result{}}
}
