package workers

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// TestWhatIsOfferedCountsAsUsed has slots offer what is free of them once.
func TestWhatIsOfferedCountsAsUsed(t *testing.T) {
	t.Parallel()
	s, m := newSlots(clock.Real{}, layout.Resources{Slots: 3}, time.Minute, 1), &membership{}
	all := func(string) bool { return true }
	require.Equal(t, 1, s.offer(all, 1).Max)
	require.Equal(t, 2, s.offer(all, 5).Max, "two of three slots are left")
	require.Zero(t, s.offer(all, 5).Max)
	require.Zero(t, s.request(all).Max)
	s.accept(m, nil, 2)
	require.Equal(t, 2, s.request(all).Max, "nothing came of one offer")
	s.admit(m, nil, false)
	s.accept(m, []fdbmodel.ClaimedFuture{{Spec: &layout.Spec{}}}, 1)
	require.Equal(t, 2, s.offer(all, 5).Max, "a future came of the other one")
	s.accept(m, nil, 2)
	s.close()
	require.Zero(t, s.offer(all, 5).Max)
}

// TestOffersGrowWithWhatCame has slots offer few where nothing is in line, as others could claim them.
func TestOffersGrowWithWhatCame(t *testing.T) {
	t.Parallel()
	s, m := newSlots(clock.Real{}, layout.Resources{Slots: 1000}, time.Minute, 1), &membership{}
	all := func(string) bool { return true }
	came, most := make([]fdbmodel.ClaimedFuture, 128), 0
	for i := range came {
		came[i].Spec = &layout.Spec{}
	}
	for n := 0; most < 64; n++ {
		require.Less(t, n, 10)
		offered := s.offer(all, 64).Max
		require.Greater(t, offered, most)
		most = offered
		s.accept(m, came[:offered], offered)
	}
	for range 10 {
		s.accept(m, nil, s.offer(all, 64).Max)
	}
	require.Less(t, s.offer(all, 64).Max, 8)
}

// TestClaimsLeaveRoomForSuccessors has claims leave what comes with what ends its room, half of what may wait at
// most, and all slots used.
func TestClaimsLeaveRoomForSuccessors(t *testing.T) {
	t.Parallel()
	clk := clock.NewVirtual(epoch)
	s := newSlots(clk, layout.Resources{Slots: 2}, time.Second, 10)
	all := func(string) bool { return true }
	s.pace = aheadTime / 50 // 100 may wait beside two that run
	require.Equal(t, 102, s.request(all).Max)
	s.succeeded = 30
	require.Equal(t, 72, s.request(all).Max)
	s.succeeded = 80
	require.Equal(t, 52, s.request(all).Max)
	require.Zero(t, s.offer(all, 0).Max)
	require.Equal(t, 62, s.request(all).Max, "nothing of a lane has ended")
	s.pace = time.Minute
	require.Equal(t, 2, s.request(all).Max, "nothing may wait for slots")

	s.pace, s.succeeded = 1, 2*succeedMax
	require.Equal(t, succeedMax+2, s.offer(all, 2*succeedMax).Max, "more may come with what ends than is claimed ahead")
}

// TestACancelMeetsAnOffer has a future cancelled that comes with the end of the one before.
func TestACancelMeetsAnOffer(t *testing.T) {
	t.Parallel()
	s, m := newSlots(clock.Real{}, layout.Resources{Slots: 3}, time.Minute, 1), &membership{}
	all := func(string) bool { return true }
	id := layout.ID{1}
	require.Equal(t, 1, s.offer(all, 1).Max)
	require.Nil(t, s.cancel(id))
	unwanted := s.accept(m, []fdbmodel.ClaimedFuture{{ID: id, Spec: &layout.Spec{}}}, 1)
	require.Len(t, unwanted, 1)
	require.Empty(t, s.early)
}

// TestAWorkerGoesOnWithALane has one run a lane's futures in their order, most of them without a claim.
func TestAWorkerGoesOnWithALane(t *testing.T) {
	t.Parallel()
	b := realBed(t)
	require.NoError(t, lanes.Of(b.cluster).SetKind(b.ctx, "k", layout.LaneKind{}))
	const n = 40
	subs := make([]fdbmodel.Submission, n)
	for i := range subs {
		subs[i] = b.describe("go:f", func(s *fdbmodel.Submission) {
			s.Spec.Lane, s.Args = layout.Lane{Kind: "k", Key: "x"}, []byte(fmt.Sprint(i))
		})
	}
	ids := b.submit(subs...)
	w, err := FromCluster(b.cluster, Options{Slots: 4})
	require.NoError(t, err)
	var running, ran atomic.Int64
	wrong := make(chan string, n)
	require.NoError(t, w.Register("f", func(_ context.Context, args []byte) ([]byte, error) {
		defer running.Add(-1)
		if at := ran.Add(1) - 1; running.Add(1) > 1 || string(args) != fmt.Sprint(at) {
			wrong <- fmt.Sprintf("%s ran as number %d", args, at)
		}
		return nil, nil
	}))
	ctx, cancel := context.WithCancel(b.ctx)
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	b.await("the end of all", func() bool {
		row := b.row(ids[n-1])
		return row.State() == layout.Realized
	})
	require.LessOrEqual(t, w.Stats().Claims, int64(n/2))
	require.Empty(t, wrong)
	cancel()
	require.NoError(t, <-over)
}
