package inspect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/pauses"
)

// TestExplainOfLanes says where in line a future is, and what its lane waits for.
func TestExplainOfLanes(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	set := func(k layout.LaneKind) { require.NoError(t, lanes.Of(s.C).SetKind(s.Ctx, "mail", k)) }
	submit := func(key string) layout.ID {
		return s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Lane = layout.Lane{Kind: "mail", Key: key} })
	}
	why := func(id layout.ID) string {
		e, err := inspect.Explain(s.Ctx, s.C, id)
		require.NoError(t, err)
		require.Equal(t, inspect.ReasonInLine, e.Reason, e.Text)
		return e.Text
	}
	set(layout.LaneKind{Width: 2})
	var ids []layout.ID
	for range 7 {
		ids = append(ids, submit("acme"))
	}
	text := why(ids[4])
	require.Contains(t, text, "It is third in line of lane mail/acme, of width 2, which has admitted 2. The next one is "+
		"admitted when one of those ends. One of them, ")
	require.Regexp(t, fmt.Sprintf(`(%[1]s|%[2]s) \(go:f\), waits itself: futura explain (%[1]s|%[2]s)\. `+
		`Ahead: %[3]s, %[4]s\.$`, ids[0], ids[1], ids[2], ids[3]), text)
	s.Claim(s.Worker)
	require.Regexp(t, fmt.Sprintf(`One of them, (%s|%s) \(go:f\), runs on worker %s\.`, ids[0], ids[1], s.Worker.ID()),
		why(ids[4]))
	require.Contains(t, why(ids[6]), fmt.Sprintf("Ahead: %s, %s, %s, and others.", ids[2], ids[3], ids[4]))
	require.NoError(t, lanes.Of(s.C).Pause(s.Ctx, layout.Lane{Kind: "mail", Key: "acme"}, true))
	require.Contains(t, why(ids[2]), `The lane is paused: futura lane resume mail "acme" ends that.`)
	require.NoError(t, lanes.Of(s.C).PauseKind(s.Ctx, "mail", true))
	require.Contains(t, why(ids[2]), `The kind and the lane are paused: futura lane resume mail, and futura `+
		`lane resume mail "acme", end that.`)
	require.NoError(t, lanes.Of(s.C).Pause(s.Ctx, layout.Lane{Kind: "mail", Key: "acme"}, false))
	require.Contains(t, why(ids[2]), "The kind is paused: futura lane resume mail ends that.")
	_, err := pauses.Of(s.C).Pause(s.Ctx, pause.Function, "go:f", "a bad release")
	require.NoError(t, err)
	require.Regexp(t, `first in line of lane mail/acme.* Its function go:f has been paused since .* \(a bad release\): `+
		`futura resume function go:f ends that.$`, why(ids[2]))
	_, err = pauses.Of(s.C).Resume(s.Ctx, pause.Function, "go:f")
	require.NoError(t, err)

	require.NoError(t, lanes.Of(s.C).SetKind(s.Ctx, "slow", layout.LaneKind{Width: 9, Rate: 1, Every: time.Minute}))
	slow := func() layout.ID {
		return s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Lane = layout.Lane{Kind: "slow", Key: "a"} })
	}
	slow()
	require.Contains(t, why(slow()), "Its rate of 1 in 1m0s lets it admit the next one at ")

	require.NoError(t, lanes.Of(s.C).SetKind(s.Ctx, "turns", layout.LaneKind{Width: 1, Total: 1}))
	turn := func(key string) layout.ID {
		return s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Lane = layout.Lane{Kind: "turns", Key: key} })
	}
	turn("a")
	require.Contains(t, why(turn("b")), "The lane waits for its turn: the lanes of its kind have admitted 1 together.")
}
