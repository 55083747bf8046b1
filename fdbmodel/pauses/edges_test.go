package pauses_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/pauses"
)

func TestPausesOfPartsAndNeighbours(t *testing.T) {
	t.Parallel()
	list := []pauses.Pause{{What: pause.Function, Name: "go:a"}, {What: pause.Queue, Name: "q"}}
	for _, c := range []struct {
		queue, function string
		paused          bool
	}{{"x", "go:a", true}, {"x", "go:a/b", true}, {"x", "go:ab", false}, {"q", "go:b", true}, {"qq", "go:b", false}} {
		_, paused := pauses.Find(list, c.queue, c.function)
		require.Equal(t, c.paused, paused, "%+v", c)
	}
	s := modeltest.NewStage(t)
	first, err := pauses.Of(s.C).Pause(s.Ctx, pause.Function, "go:other", "why")
	require.NoError(t, err)
	s.Clock.Advance(time.Minute)
	again, err := pauses.Of(s.C).Pause(s.Ctx, pause.Function, "go:other", "why not")
	require.NoError(t, err)
	require.Equal(t, first.At, again.At)
	require.Equal(t, "why not", again.Reason)
	s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Function = "go:unknown" })
	own := s.Submit()
	f := s.Claim(s.Worker)
	require.Len(t, f, 1, "a pause has a worker run no other functions")
	require.Equal(t, own, f[0].ID)
}
