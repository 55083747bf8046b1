package modeltest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/schedule"
)

// schedule changes one of two schedules, or has those that are due fire.
func (m *Machine) schedule(ctx context.Context) (change, error) {
	name := fmt.Sprint("every", m.random.IntN(2))
	var err error
	var did string
	trigger := false
	switch m.random.IntN(12) {
	case 0, 1, 2:
		did, err = "put", m.putSchedule(ctx, name)
	case 3:
		did = "pause"
		_, err = schedule.Of(m.C).Pause(ctx, name, "why")
	case 4:
		did = "resume"
		_, err = schedule.Of(m.C).Resume(ctx, name)
	case 5:
		did, err = "remove", schedule.Of(m.C).Remove(ctx, name)
	case 6:
		did, trigger = "trigger", true
		_, err = schedule.Of(m.C).Trigger(ctx, name)
	default:
		did = "fire"
		return m.fireSchedules(ctx)
	}
	m.logf("schedule %s: %s: %v", name, did, err)
	if errors.Is(err, fdbmodel.ErrNotFound) {
		err = nil
	}
	return func(before, after *layout.Row) bool {
		return trigger && before == nil && after.Spec.Schedule == name && after.State() == layout.Ready
	}, err
}

func (m *Machine) putSchedule(ctx context.Context, name string) error {
	_, _, err := schedule.Of(m.C).Put(ctx, schedule.Record{
		Name: name, Every: time.Duration(1+m.random.IntN(3)) * time.Second, Grace: 2 * time.Second,
		Missed:  []string{schedule.MissedOnce, schedule.MissedSkip, schedule.MissedCatchUp}[m.random.IntN(3)],
		Overlap: []string{schedule.OverlapAllow, schedule.OverlapSkip, schedule.OverlapQueue}[m.random.IntN(3)],
		Spec:    layout.Spec{Function: "go:f"},
	}, false)
	return err
}

// fireSchedules has the time of a schedule come, and requires that no time of it fires
// that has fired before.
func (m *Machine) fireSchedules(ctx context.Context) (change, error) {
	m.Clock.Advance(time.Duration(m.random.IntN(2000)) * time.Millisecond)
	now := layout.Millis(m.Clock.Now())
	before, err := schedule.Of(m.C).List(context.Background(), "", 10)
	if err != nil {
		return none, nil // the store fails now and then
	}
	due := map[string]schedule.State{}
	for _, s := range before {
		due[s.Name] = s.State
	}
	n, _, err := schedule.Of(m.C).Fire(ctx, new(schedule.Walk))
	m.logf("fire schedules: %d %v", n, err)
	loose := len(m.loose) > 0
	return func(before, after *layout.Row) bool {
		if before != nil || after.Spec.Schedule == "" || after.State() != layout.Ready {
			return false
		}
		state, known := due[after.Spec.Schedule]
		at := after.Spec.ScheduledAt
		waited := state.Next != 0 && at >= state.Next
		for _, line := range state.Line {
			waited = waited || at == line
		}
		return loose || known && state.PausedAt == 0 && waited && at <= now
	}, err
}
