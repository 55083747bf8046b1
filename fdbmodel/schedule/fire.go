package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/timetable"
)

// Limits of a look at schedules.
const (
	// maxDueSchedules is how many schedules one look fires, and maxFirings how many
	// futures it submits for one of them.
	maxDueSchedules = 64
	maxFirings      = 20
	// maxMissed is up to how many missed times are counted.
	maxMissed = 10_000
	// maxRunError is how much of an error a run has on record, in bytes.
	maxRunError = 500
)

// Walk is how far a janitor has come with the schedules that are due. Its zero
// value begins with the first.
type Walk struct{ after []byte }

// Fire submits the futures of schedules that are due, of at most a batch, and
// returns how many, and when to call it again: at once if more may be due, else when
// the next schedule is; the zero time if there is none. It costs one read when none is
// due.
//
// Each time of a schedule fires once, whoever looks, however many do, and whatever
// becomes of a commit: the transaction that submits the future moves the schedule on,
// and the id of the future follows from the schedule and the time. A process whose
// clock is wrong fires early or late by as much, never twice. A schedule whose future
// can't be submitted as described has the error on record, and goes on with its next
// time, and so has a time whose future finds no place in its lane; after other errors
// of one schedule the rest fire, and the error is returned. What an unknown commit has
// submitted is not counted, and waits for a worker's poll.
func (l *Schedules) Fire(ctx context.Context, walk *Walk) (fired int, next time.Time, err error) {
	now := l.cluster.Now()
	var due []dueSchedule
	err = l.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		due, next, err = l.due(ctx, tx.Snapshot(), walk.after, now)
		return err
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	if walk.after = nil; len(due) == maxDueSchedules {
		walk.after, next = due[len(due)-1].key, now
	}
	var errs []error
	for _, s := range due {
		n, again, err := l.fire(ctx, s.name, now)
		fired, next = fired+n, clock.Earlier(next, again)
		if err != nil {
			errs = append(errs, fmt.Errorf("schedule %q: %w", s.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return fired, next, errors.Join(errs...)
}

// dueSchedule is an entry of the schedules by time.
type dueSchedule struct {
	name string
	key  []byte
}

// due returns the schedules that are due, and when the next one after them is.
func (l *Schedules) due(ctx context.Context, tx kv.Reader, after []byte, now time.Time,
) (due []dueSchedule, next time.Time, err error) {
	prefix := Keys(l.keys).ByTime()
	r := kv.Prefix(prefix)
	if after != nil {
		r.Begin = kv.After(after)
	}
	for limit := 1; len(due) < maxDueSchedules; limit = maxDueSchedules {
		page, err := tx.GetRange(r, kv.RangeOptions{Limit: limit}).Wait(ctx)
		if err != nil || len(page.Items) == 0 {
			return due, time.Time{}, err
		}
		for _, item := range page.Items {
			r.Begin = kv.After(item.Key)
			rest := tuple.NewReader(item.Key[len(prefix):])
			at, name := rest.Int(), rest.Text()
			switch {
			case rest.Done() != nil: // a check reports it
			case at > layout.Millis(now):
				return due, time.UnixMilli(at), nil
			case len(due) < maxDueSchedules:
				due = append(due, dueSchedule{name, item.Key})
			}
		}
	}
	return due, time.Time{}, nil
}

// fire fires one schedule that is due, and returns how many futures it
// submitted, and when to look at it again: the zero time if that is never, or once its
// former future is over.
func (l *Schedules) fire(ctx context.Context, name string, now time.Time,
) (fired int, again time.Time, err error) {
	var answers []fdbmodel.Submitted
	var refused refusal
	for {
		result, err := l.transact(ctx, func(tx kv.Attempt) error {
			fired, again, answers = 0, time.Time{}, nil
			before, err := l.read(ctx, tx, name)
			if errors.Is(err, fdbmodel.ErrNotFound) {
				return nil // it was removed
			}
			if due := before.State.Due(); err != nil || due == 0 || due > layout.Millis(now) {
				return err
			}
			after, times, err := l.planOf(ctx, tx, &before, now)
			if err != nil {
				return err
			}
			if answers, err = l.submitTimes(ctx, tx, &after, times, now, &refused); err != nil {
				return err
			}
			if err := l.moveOn(tx, &before, &after); err != nil {
				return err
			}
			fired = len(answers)
			switch due := after.State.Due(); {
			case due > layout.Millis(now):
				again = time.UnixMilli(due)
			case len(times) == maxFirings:
				again = now
			}
			return nil
		})
		if err != nil && isRefusal(err) && !refused.all {
			refused.add(err)
			continue
		}
		if err == nil {
			l.cluster.Wake(ctx, result.Version, answers)
		}
		return fired, again, err
	}
}

// refusal says why times pass without their futures, and which: all, or those whose futures find no place in
// their lane.
type refusal struct {
	err error
	all bool
	ids []layout.ID
}

func (r *refusal) add(err error) {
	r.err = err
	var full *fdbmodel.LaneFullError
	if errors.As(err, &full) && len(full.IDs) > 0 {
		r.ids = append(r.ids, full.IDs...)
	} else {
		r.all = true
	}
}

// of reports whether a future is refused.
func (r *refusal) of(id layout.ID) bool { return r.all || slices.Contains(r.ids, id) }

// isRefusal reports whether futures of a schedule can't be submitted now, so that their times pass
// without them.
func isRefusal(err error) bool {
	return fdbmodel.IsMistake(err) || errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, fdbmodel.ErrLaneFull)
}

// moveOn writes a schedule that fired, if it changed. Its state was read, so that of
// two that fire it at once one conflicts.
func (l *Schedules) moveOn(tx kv.Tx, before, after *Schedule) error {
	if after.State.Next != 0 && after.State.Next < before.State.Next {
		return fmt.Errorf("next time %d: %w: it was %d, and only grows", after.State.Next, layout.ErrBadRecord,
			before.State.Next)
	}
	if !reflect.DeepEqual(before, after) {
		l.write(tx, before, after)
	}
	return nil
}

// planOf decides which times of a schedule that is due fire now, and returns the
// schedule as it is then, without those runs.
func (l *Schedules) planOf(ctx context.Context, tx kv.Tx, before *Schedule, now time.Time,
) (after Schedule, times []int64, err error) {
	after = *before
	table, err := tableOf(&before.Record)
	if err != nil {
		return after, nil, err
	}
	takeDue(&after, table, now)
	open := false
	if before.Overlap != OverlapAllow {
		if open, err = l.isRunning(ctx, tx, &before.State); err != nil {
			return after, nil, err
		}
	}
	return after, takeLine(&after, open), nil
}

// isRunning reports whether one of the last futures of a schedule is not over, also of those that
// were asked for. A future that can't be read counts as over.
func (l *Schedules) isRunning(ctx context.Context, tx kv.Tx, state *State) (bool, error) {
	var ids []layout.ID
	for i := range state.Runs {
		if id := state.Runs[i].ID; !id.IsZero() {
			ids = append(ids, id)
		}
	}
	keys := layout.Keyspace(l.keys)
	for _, p := range read.Rows(tx.Snapshot(), keys, ids, keys.Spec) {
		row, found, err := p.Wait(ctx)
		switch {
		case layout.IsUnreadable(err):
		case err != nil:
			return false, err
		case found && row.Spec != nil && !row.State().Terminal():
			return true, nil
		}
	}
	return false, nil
}

// takeDue puts the times that are due in line, and sets the next time. Those that
// no janitor looked at within the grace are missed: what happens with them is the
// schedule's choice.
func takeDue(s *Schedule, table *timetable.Timetable, now time.Time) {
	state := &s.State
	if state.Next == 0 || state.Next > layout.Millis(now) {
		return
	}
	first := time.UnixMilli(state.Next)
	edge := now.Add(-s.Grace)
	late := edge.Add(-time.Millisecond)
	if first.After(edge) {
		edge = first
	}
	timely := table.Newest(edge, now, MaxLine)
	missed := table.Newest(first, late, maxMissed)
	wanted := 0
	switch s.Missed {
	case MissedCatchUp:
		wanted = s.CatchUp
	case MissedOnce:
		if len(timely) == 0 {
			wanted = 1
		}
	}
	made := missed[max(0, len(missed)-wanted):]
	state.Missed += int64(len(missed) - len(made))
	all := slices.Concat(made, timely)
	cut := min(max(0, len(state.Line)+len(all)-MaxLine), len(all)) // the oldest give way
	state.Skipped += int64(cut)
	state.Line = slices.Clone(state.Line)
	for _, at := range all[cut:] {
		state.Line = append(state.Line, layout.Millis(at))
	}
	state.Next = millisOrNone(table.Next(now))
}

// takeLine takes the times out of the line that fire now, given whether the former
// future is not over.
func takeLine(s *Schedule, open bool) (times []int64) {
	state := &s.State
	switch s.Overlap {
	case OverlapQueue:
		if n := min(1, len(state.Line)); !open {
			times, state.Line = state.Line[:n], state.Line[n:]
		}
	case OverlapSkip:
		n := min(1, len(state.Line))
		if open {
			n = 0
		}
		times = state.Line[:n]
		state.Skipped += int64(len(state.Line) - n)
		state.Line = nil
	default:
		n := min(maxFirings, len(state.Line))
		times, state.Line = state.Line[:n], state.Line[n:]
	}
	return times
}

// submitTimes submits the futures of some times, and puts their runs on record. Those
// that earlier attempts at it have refused it leaves out.
func (l *Schedules) submitTimes(ctx context.Context, tx kv.Tx, s *Schedule, times []int64, now time.Time,
	refused *refusal,
) (answers []fdbmodel.Submitted, err error) {
	var subs []fdbmodel.Submission
	for _, at := range times {
		run := Run{At: at, FiredAt: layout.Millis(now)}
		if one := scheduled(&s.Record, at, layout.Millis(now)); refused.of(one.ID) {
			run.Error = layout.Shorten(refused.err.Error(), maxRunError)
			s.State.Refused++
		} else {
			run.ID, subs = one.ID, append(subs, one)
		}
		s.State.Record(run)
	}
	s.State.Fired += int64(len(subs))
	if len(subs) > 0 {
		answers, err = l.cluster.SubmitTx(ctx, tx, subs)
	}
	return answers, err
}

// What tells a module the time of a schedule that its future stands for.
const (
	envSchedule    = "FUTURA_SCHEDULE"
	envScheduledAt = "FUTURA_SCHEDULED_AT"
)

// scheduled is the future of a time of a schedule.
func scheduled(s *Record, at, now int64) fdbmodel.Submission {
	spec := s.Spec
	if s.Expires > 0 {
		spec.ExpiresAt = now + s.Expires.Milliseconds()
	}
	if s.Deadline > 0 {
		spec.Deadline = now + s.Deadline.Milliseconds()
	}
	spec.Schedule, spec.ScheduledAt = s.Name, at
	if _, _, isModule := layout.SplitWasm(spec.Function); isModule {
		env := map[string]string{envSchedule: s.Name, envScheduledAt: time.UnixMilli(at).UTC().Format(time.RFC3339)}
		maps.Copy(env, spec.Env)
		spec.Env = env
	}
	return fdbmodel.Submission{ID: ScheduledID(s.ID, at), Spec: spec, Args: s.Args}
}

// Trigger submits the future of a schedule at once, whether it is paused,
// whatever its former future is doing, and changes none of its times. It returns the
// future's id, ErrBadName, fdbmodel.ErrNotFound, and the errors of Submit. An unknown commit is
// resolved by the id: it is submitted once.
func (l *Schedules) Trigger(ctx context.Context, name string) (layout.ID, error) {
	drawn, err := l.cluster.DrawIDs(1)
	if err != nil {
		return layout.ID{}, err
	}
	var answers []fdbmodel.Submitted
	now := layout.Millis(l.cluster.Now())
	if err := checkName(name); err != nil {
		return layout.ID{}, err
	}
	result, err := l.transact(ctx, func(tx kv.Attempt) error {
		before, err := l.read(ctx, tx, name)
		if err != nil {
			return err
		}
		s := scheduled(&before.Record, now, now)
		s.ID = drawn[0]
		if answers, err = l.cluster.SubmitTx(ctx, tx, []fdbmodel.Submission{s}); err != nil || answers[0].Existed {
			return err
		}
		after := before
		after.State.Fired++
		after.State.Record(Run{At: now, FiredAt: now, ID: drawn[0], Trigger: true})
		l.write(tx, &before, &after)
		return nil
	})
	if err != nil {
		return layout.ID{}, err
	}
	l.cluster.Wake(ctx, result.Version, answers)
	return drawn[0], nil
}
