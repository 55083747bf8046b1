package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/schedule"
	"github.com/futura-run/futura/workers"
)

// fnTick is the function of the futures that schedules submit.
const fnTick = "tick"

// The schedules: the futures of brief expire while there are faults.
const (
	often = "often"
	brief = "brief"
)

const tagSchedule = "futura-schedule"

// planned are the schedules. All of their times fire.
func planned() []schedule.Record {
	spec := layout.Spec{Function: "go:" + fnTick}
	from := layout.Millis(epoch)
	return []schedule.Record{
		{Name: often, Every: 1900 * time.Millisecond, From: from, Missed: schedule.MissedCatchUp,
			CatchUp: schedule.MaxLine, Spec: spec},
		{Name: brief, Every: 4300 * time.Millisecond, From: from, Missed: schedule.MissedCatchUp,
			CatchUp: schedule.MaxLine, Expires: time.Second, Spec: spec},
	}
}

// tickOf is a time of a schedule.
type tickOf struct {
	schedule string
	at       int64
}

// ticks are what is known of the schedules.
type ticks struct {
	made bool
	ran  map[tickOf]layout.ID
	runs map[layout.ID]int
	// last is the state of each schedule as a transaction read it last, for a bug.
	last map[string][]byte
}

func newTicks() ticks {
	return ticks{ran: map[tickOf]layout.ID{}, runs: map[layout.ID]int{}, last: map[string][]byte{}}
}

// plan makes the schedules, once.
func (c *clientProcess) plan(ctx context.Context) error {
	t := &c.world.ticks
	if t.made || c.world.healing {
		return nil
	}
	for _, s := range planned() {
		if _, _, err := schedule.Of(c.cluster).Put(ctx, s, false); err != nil {
			return err
		}
	}
	t.made = true
	return nil
}

// tick returns the function of a worker's scheduled futures. Some ask to be run again
// first, and some die with their worker.
func (w *world) tick(p *workerProcess) workers.Function {
	return func(ctx context.Context, _ []byte) ([]byte, error) {
		info, _ := workers.InfoFrom(ctx)
		key := tickOf{info.Schedule, layout.Millis(info.ScheduledAt)}
		if other, ran := w.ticks.ran[key]; ran && other != info.ID {
			w.broken = append(w.broken, fmt.Errorf("schedule %s fired twice at %s: futures %s and %s", key.schedule,
				info.ScheduledAt.Sub(epoch), other, info.ID))
		}
		w.ticks.ran[key] = info.ID
		row, err := w.reader.Get(context.WithoutCancel(ctx), info.ID)
		if at, _ := row.Limit(); err == nil && at != 0 && layout.Millis(w.clock.Now()) >= at && holds(&row, info.Token) {
			w.broken = append(w.broken, fmt.Errorf("future %s of schedule %s began at %d and had expired at %d", info.ID,
				key.schedule, layout.Millis(w.clock.Now()), at))
		}
		if info.Attempt != 1 {
			w.broken = append(w.broken, fmt.Errorf("future %s of schedule %s never failed, and is in attempt %d", info.ID,
				key.schedule, info.Attempt))
		}
		w.ticks.runs[info.ID]++
		w.report.Ticks++
		if runs := w.ticks.runs[info.ID]; info.ID[0]%4 == 0 && runs <= 2 {
			return nil, workers.Snooze(300 * time.Millisecond)
		}
		if info.ID[0]%16 == 1 && !w.healing && w.ticks.runs[info.ID] == 1 {
			p.process.die()
		}
		return nil, nil
	}
}

// stopSchedules ends the schedules, once there are no faults.
func (w *world) stopSchedules(ctx context.Context) error {
	for _, s := range planned() {
		_, err := schedule.Of(w.reader).Pause(ctx, s.Name, "the end")
		if err != nil && !errors.Is(err, fdbmodel.ErrNotFound) {
			return err
		}
	}
	return nil
}

// ticksOver requires that what schedules submitted has ended: each of their times, since
// they were made and up to the next one, has run, or its future expired. over is nil then.
func (w *world) ticksOver(ctx context.Context) (over, err error) {
	for _, planned := range planned() {
		s, err := schedule.Of(w.reader).Get(ctx, planned.Name)
		if errors.Is(err, fdbmodel.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		waits := map[int64]bool{}
		for _, at := range s.State.Line {
			waits[at] = true
		}
		if s.State.Missed+s.State.Skipped+s.State.Refused > 0 {
			return nil, fmt.Errorf("schedule %s left out times: %+v", s.Name, s.State)
		}
		for at := s.From; at < s.State.Next; at += s.Every.Milliseconds() {
			if _, ran := w.ticks.ran[tickOf{s.Name, at}]; waits[at] || ran || at < s.CreatedAt {
				continue
			}
			row, err := w.reader.Get(ctx, schedule.ScheduledID(s.ID, at))
			gone := errors.Is(err, fdbmodel.ErrNotFound)
			switch {
			case err != nil && !gone:
				return nil, err
			case s.Expires > 0 && (gone && w.expires || !gone && row.State() == layout.Failed):
				if !gone && row.Exception.Kind != layout.KindExpired {
					return nil, fmt.Errorf("future %s of schedule %s failed as %s", row.ID, s.Name, row.Exception.Kind)
				}
				w.report.TicksExpired++
			default:
				return fmt.Errorf("schedule %s did not run for %v (its future is gone: %t)", s.Name,
					time.UnixMilli(at).Sub(epoch), gone), nil
			}
		}
	}
	return nil, nil
}

// timeBugs are about schedules, and futures that must not wait for ever.
func timeBugs() []plantedBug {
	return []plantedBug{
		{name: "schedule fires twice", text: "a firing whose result is unknown is done again, as if it were another one",
			tags: []string{tagSchedule}, get: showFormerState},
		{name: "schedule stands still", text: "a schedule that fired does not move on", tags: []string{tagSchedule},
			write: drop(setKey, schedule.KeyState)},
		{name: "schedule overlooked", text: "a schedule that fired is due no more", tags: []string{tagSchedule},
			write: drop(setKey, schedule.KeyTime)},
		{name: "limit forgotten", text: "nobody is led to what must not wait for ever", tags: []string{tagSchedule},
			write: drop(setKey, layout.KeyLimit)},
		{name: "snooze counts", text: "who asks to be run again has failed", tags: []string{tagFinish},
			write: alter(layout.StateAttempts, func(a *layout.Attempts) {
				if a.Snoozed > 0 {
					a.Failed++
				}
			})},
	}
}

// showFormerState shows a schedule as it was before it was written last, with an id of
// its own: so its futures have other ids than before.
func showFormerState(t *tx, key, value []byte) []byte {
	w := t.process.world
	if value == nil || w.healing {
		return value
	}
	switch {
	case isKind(key, schedule.KeyState) && t.process.unsure:
		return w.ticks.last[string(key)]
	case isKind(key, schedule.KeyState):
		w.ticks.last[string(key)] = value
	case isKind(key, schedule.KeyDefinition) && t.process.unsure:
		var s schedule.Record
		if layout.Decode(key, value, &s) == nil {
			s.ID[3]++
			return layout.Encode(&s)
		}
	}
	return value
}
