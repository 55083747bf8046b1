package sim

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
)

const (
	// fnSent adds what was sent to the list of the actor that it is sent to.
	fnSent = "sent"

	sentAtOnce Bug = "sent at once"
	sentNever  Bug = "sent never"
)

// sentTo is the actor to which every turn sends the line of its attempt.
func sentTo() actors.Ref { return actors.Ref{Type: "sim", Key: "sent"} }

// send has the line of an attempt sent with its result.
func (w *world) send(ctx context.Context, p *workerProcess, turn taskcontext.Turn, line string) error {
	c := p.process.cluster
	if err := lanes.Of(c).EnsureKind(ctx, sentTo().Lane().Kind, layout.LaneKind{Width: 1}); err != nil {
		return err
	}
	subs, err := c.Prepare(ctx, []fdbmodel.Submission{{
		Spec: layout.Spec{Function: "go:" + fnSent, Lane: sentTo().Lane()}, Args: []byte(line),
	}})
	switch {
	case err != nil:
		return err
	case w.options.Bug == sentAtOnce:
		_, err = c.Submit(ctx, subs)
		return err
	case w.options.Bug == sentNever && w.random.IntN(4) == 0:
		return nil
	}
	return turn.Submit(subs)
}

// runSent is a call of the actor to which turns send.
func (w *world) runSent(ctx context.Context, args []byte) ([]byte, error) {
	return nil, list(ctx, ctx.Value(taskcontext.TurnKey{}).(taskcontext.Turn), sentTo(), string(args))
}

// applied returns the lines that the actor has to which all turns send, and those of turns that count and are not
// among them, by the lists of the other actors.
func (w *world) applied(ctx context.Context, at map[string]map[string]int) (sent, missing []string, err error) {
	if sent, err = w.readList(ctx, sentTo().Key); err != nil {
		return nil, nil, err
	}
	of := map[string]bool{}
	for _, line := range sent {
		of[line] = true
	}
	for _, lines := range at {
		for line := range lines {
			if !of[line] {
				missing = append(missing, line)
			}
		}
	}
	return sent, missing, nil
}

// checkSent requires that what was sent is applied once, and is of attempts that count.
func (w *world) checkSent(ctx context.Context, at map[string]map[string]int) error {
	sent, missing, err := w.applied(ctx, at)
	if err != nil {
		return err
	}
	w.turns.missing = missing
	seen := map[string]bool{}
	for _, line := range sent {
		counts := false
		for _, lines := range at {
			_, is := lines[line]
			counts = counts || is
		}
		if !counts || seen[line] {
			return fmt.Errorf("what attempt %s sent is applied: the attempt counts: %v, a second time: %v", line, counts,
				seen[line])
		}
		seen[line] = true
	}
	return nil
}

// sendsAreOver reports whether all that was sent is applied. It returns an error for what is not, and waits nowhere.
func (w *world) sendsAreOver(ctx context.Context) (bool, error) {
	err := w.checkActors(ctx)
	if err != nil || len(w.turns.missing) == 0 {
		return err == nil, err
	}
	lane, err := lanes.Of(w.reader).View(ctx, sentTo().Lane(), 1)
	if err == nil && lane.Open == 0 && len(lane.Line) == 0 {
		err = fmt.Errorf("what attempts %v sent was lost", w.turns.missing)
	}
	return false, err
}
