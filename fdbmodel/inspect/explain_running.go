package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/circles"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/steps"
)

func explainClaimed(ctx context.Context, c *fdbmodel.Cluster, e *Explanation, row *layout.Row,
	members []fdbmodel.Member,
) error {
	e.Worker = findMember(members, row.Claim.Worker)
	if e.Worker == nil || !e.Worker.Alive {
		e.Reason = ReasonWorkerDead
		e.Text = fmt.Sprintf("Worker %s holds it and is dead; the janitor is taking it back.", row.Claim.Worker)
		return nil
	}
	e.Reason = ReasonClaimed
	e.Text = fmt.Sprintf("Worker %s holds it for attempt %d.", row.Claim.Worker, row.Attempts.Failed+1)
	if row.Cancel != nil {
		e.Text += " It was asked to stop."
	}
	if e.Worker.Heartbeat.Draining {
		e.Text += " The worker is stopping, and gives back what has not ended within its drain time."
	}
	if n := row.Attempts.Suspicion(); n > 0 {
		e.Text += fmt.Sprintf(" Workers that died with it: %d. Deaths that it may have caused: %d; %d fail it.", n,
			row.Attempts.Crashes, fdbmodel.MaxCrashes)
	}
	if age := e.Worker.Silence(c.Clock().Now()); age > c.Config().DeadAfter {
		e.Text += fmt.Sprintf(" Its last heartbeat is %v old, if the clocks agree. If it is dead, another worker takes "+
			"the future back: make sure that one runs.", age.Round(time.Second))
	}
	return explainAwaited(ctx, c, e, members)
}

// explainAwaited says what the function of a running future awaits, if the heartbeat of its worker does.
func explainAwaited(ctx context.Context, c *fdbmodel.Cluster, e *Explanation, members []fdbmodel.Member) error {
	beat := &e.Worker.Heartbeat
	for i := range beat.Awaits {
		a := &beat.Awaits[i]
		if a.ID != e.ID {
			continue
		}
		what, err := textAwaited(ctx, c, a)
		if err != nil {
			return err
		}
		e.Reason = ReasonAwaiting
		e.Text += fmt.Sprintf(" At the worker's last heartbeat, %s, its function was waiting for %s, since %s.",
			timeOf(beat.At), what, timeOf(a.Since))
		circle, err := circles.New(c, members).Through(ctx, e.ID)
		if circle != nil {
			e.Reason = ReasonCircle
			e.Text += fmt.Sprintf(" That never ends, unless a wait of the circle does: %v. The youngest wait is refused soon.",
				circle)
		}
		return err
	}
	return nil
}

func textAwaited(ctx context.Context, c *fdbmodel.Cluster, a *layout.Await) (string, error) {
	if a.For.IsZero() {
		return fmt.Sprintf("%d futures", a.Count), nil
	}
	of, err := c.Get(ctx, a.For)
	text := "future " + a.For.String()
	switch {
	case errors.Is(err, fdbmodel.ErrNotFound):
		text += " (not of this cluster, or removed)"
	case err != nil:
		return "", err
	default:
		text += fmt.Sprintf(" (%s, %v now)", of.Spec.Function, of.State())
	}
	if others := a.Count - 1; others == 1 {
		text += " and another one"
	} else if others > 1 {
		text += fmt.Sprintf(" and %d others", others)
	}
	return text, nil
}

// namedSteps is how many of the unused steps of a future are named.
const namedSteps = 3

// textSteps says what a future has recorded of its run.
func textSteps(ctx context.Context, c *fdbmodel.Cluster, row *layout.Row) (string, error) {
	if !row.Steps {
		return "", nil
	}
	s, err := steps.Of(c).Summary(ctx, row.ID)
	if err != nil || s.Count == 0 {
		return "", err
	}
	text := fmt.Sprintf(" It has recorded %d steps, the last one (%s, in attempt %d) at %s", s.Count, s.Last.Name,
		s.Last.Attempt, timeOf(s.Last.At))
	if s.Count == 1 {
		text = fmt.Sprintf(" It has recorded 1 step (%s, in attempt %d) at %s", s.Last.Name, s.Last.Attempt,
			timeOf(s.Last.At))
	}
	if wake := s.Last.Wake; wake != 0 {
		text += ", a sleep until " + timeOf(wake)
	}
	switch {
	case s.AllUnused:
		text += "; its last attempt asked for none of them"
	case len(s.Unused) > namedSteps:
		text += fmt.Sprintf("; its last attempt did not ask for %d of them: %s and others", len(s.Unused),
			strings.Join(s.Unused[:namedSteps], ", "))
	case len(s.Unused) > 0:
		text += "; its last attempt did not ask for " + strings.Join(s.Unused, ", ")
	}
	return text + ".", nil
}
