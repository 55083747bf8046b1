package inspect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
)

const (
	// countedAhead is how many futures ahead in line are counted at most.
	countedAhead = 1000
	// namedAhead is how many of them are named.
	namedAhead = 3
)

// explainInLine says where in line a future is, and what its lane waits for.
func explainInLine(ctx context.Context, c *fdbmodel.Cluster, e *Explanation) error {
	where, waits, err := lanes.Of(c).WhereInLine(ctx, e.ID, countedAhead)
	if err != nil {
		return err
	}
	e.Reason = ReasonInLine
	if !waits {
		e.Text = "It waits until any worker that fits takes it: its lane has just admitted it."
		return nil
	}
	of, isCall := actors.OfLane(where.Lane)
	if isCall {
		e.Text, err = textTurn(ctx, c, of, &where)
	} else {
		e.Text = textInLine(&where)
	}
	if err != nil {
		return err
	}
	// Of a call it was said what has the turn.
	r := &where.Record
	isFull := r.Open >= where.Settings.Width && !r.Paused && !where.Settings.Paused
	if !isCall || !isFull {
		e.Text += laneWaits(&where, c.Clock().Now())
	}
	if !isCall && isFull {
		holder, err := textHolder(ctx, c, &where)
		if err != nil {
			return err
		}
		e.Text += holder
	}
	var ahead []string
	for _, id := range where.Ahead[:min(len(where.Ahead), namedAhead)] {
		ahead = append(ahead, id.String())
	}
	if where.Before > len(ahead) {
		ahead = append(ahead, "and others")
	}
	if len(ahead) > 0 {
		e.Text += fmt.Sprintf(" Ahead: %s.", strings.Join(ahead, ", "))
	}
	return nil
}

// textHolder names one that a full lane has admitted, and says what it does.
func textHolder(ctx context.Context, c *fdbmodel.Cluster, where *lanes.InLine) (string, error) {
	row, found, err := Admitted(ctx, c, where.Lane, layout.Delayed, layout.Ready, layout.Claimed)
	switch {
	case err != nil:
		return "", err
	case !found:
		return fmt.Sprintf(" futura list --lane %s shows them.", where.Lane), nil
	case row.State() == layout.Claimed:
		return fmt.Sprintf(" One of them, %s (%s), runs on worker %s.", row.ID, row.Spec.Function, row.Claim.Worker), nil
	}
	return fmt.Sprintf(" One of them, %s (%s), waits itself: futura explain %[1]s.", row.ID, row.Spec.Function), nil
}

// textInLine says where in line a future is.
func textInLine(where *lanes.InLine) string {
	if where.Before >= countedAhead {
		return fmt.Sprintf("It is in line of lane %s, of width %d, which has admitted %d, behind %d others or more.",
			where.Lane, where.Settings.Width, where.Record.Open, countedAhead)
	}
	return fmt.Sprintf("It is %s in line of lane %s, of width %d, which has admitted %d.", inWords(where.Before+1),
		where.Lane, where.Settings.Width, where.Record.Open)
}

// laneWaits says why the lane admits no future at present.
func laneWaits(where *lanes.InLine, now time.Time) string {
	k, r := &where.Settings, &where.Record
	switch {
	case k.Paused && r.Paused:
		return fmt.Sprintf(" The kind and the lane are paused: futura lane resume %s, and futura lane resume %s %q, end "+
			"that.", where.Lane.Kind, where.Lane.Kind, where.Lane.Key)
	case k.Paused:
		return fmt.Sprintf(" The kind is paused: futura lane resume %s ends that.", where.Lane.Kind)
	case r.Paused:
		return fmt.Sprintf(" The lane is paused: futura lane resume %s %q ends that.", where.Lane.Kind, where.Lane.Key)
	case r.Open >= k.Width:
		return " The next one is admitted when one of those ends."
	case r.Turn:
		return fmt.Sprintf(" The lane waits for its turn: the lanes of its kind have admitted %d together.", k.Total)
	case k.Rate > 0 && r.Due != 0:
		due := time.UnixMilli(r.Due)
		return fmt.Sprintf(" Its rate of %d in %v lets it admit the next one at %s (%v from now).", k.Rate, k.Every,
			due.UTC().Format(time.RFC3339Nano), max(0, due.Sub(now)))
	default:
		return " It is about to admit the next one."
	}
}

// inWords is a place in line.
func inWords(n int) string {
	words := [...]string{"first", "second", "third", "fourth", "fifth"}
	if n <= len(words) {
		return words[n-1]
	}
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
