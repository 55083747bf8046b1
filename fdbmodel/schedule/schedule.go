package schedule

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/timetable"
)

// Schedule is a schedule as the store has it.
type Schedule struct {
	Record
	State State
}

// Upcoming returns the next n times at which the schedule fires, or would if it were
// not paused, without those in line. There are fewer if it ends.
func (s *Schedule) Upcoming(n int) ([]time.Time, error) {
	table, err := tableOf(&s.Record)
	for _, at := range append([]int64{s.State.Next}, s.State.Line...) {
		if year := time.UnixMilli(at).UTC().Year(); err == nil && (year < 1 || year > timetable.MaxYear) {
			err = fmt.Errorf("schedule %q: %w: it is due in the year %d: put it again", s.Name, layout.ErrBadRecord, year)
		}
	}
	if err != nil || s.State.Next == 0 {
		return nil, err
	}
	times := make([]time.Time, 0, n)
	for at := time.UnixMilli(s.State.Next).In(table.Zone()); len(times) < n && !at.IsZero(); at = table.Next(at) {
		times = append(times, at)
	}
	return times, nil
}

// tableOf returns when a schedule fires. It returns ErrBadSpec.
func tableOf(s *Record) (*timetable.Timetable, error) {
	r := timetable.Rules{Cron: s.Cron, Zone: s.Zone, Every: s.Every, Except: s.Except}
	if s.From != 0 {
		r.From = time.UnixMilli(s.From)
	}
	if s.Until != 0 {
		r.Until = time.UnixMilli(s.Until)
	}
	table, err := timetable.New(r)
	if err != nil {
		return nil, fmt.Errorf("%w: schedule %q: %w", layout.ErrBadSpec, s.Name, err)
	}
	return table, nil
}

// Put makes a schedule, or changes the one with its name, and returns it and
// whether it was made. With fresh it changes nothing: it returns fdbmodel.ErrExists if there is
// another one with this name. The same definition again is the same schedule in either
// case. A change keeps the times that stand in line; a change of its timetable sets
// the next time anew, after the last one that fired.
//
// Zero fields of s have their defaults: one firing for all that were missed, a grace
// of a minute, overlaps allowed, an interval counted from now. Its futures can have no
// inputs, no worker of their own and no owner, and arguments of at most 16 KiB. It
// returns ErrBadName, ErrBadSpec, fdbmodel.ErrTooLarge, and fdbmodel.ErrNotFound for an unknown module
// or alias. An unknown commit is resolved by the schedule's id.
func (l *Schedules) Put(ctx context.Context, s Record, fresh bool) (Schedule, bool, error) {
	now := layout.Millis(l.cluster.Now())
	anchored := s.Every == 0 || s.From != 0
	if !anchored {
		s.From = now
	}
	table, err := l.complete(ctx, &s)
	if err != nil {
		return Schedule{}, false, err
	}
	drawn, err := l.cluster.DrawIDs(1)
	if err != nil {
		return Schedule{}, false, err
	}
	var out Schedule
	created := false
	_, err = l.transact(ctx, func(tx kv.Attempt) error {
		old, err := l.read(ctx, tx, s.Name)
		created = errors.Is(err, fdbmodel.ErrNotFound)
		switch {
		case created:
			out = Schedule{s, State{}}
			out.ID, out.CreatedAt, out.UpdatedAt = drawn[0], now, 0
			out.State.Next = millisOrNone(table.Next(time.UnixMilli(now - 1)))
			l.write(tx, nil, &out)
			return nil
		case err != nil:
			return err
		}
		changed := s
		if !anchored && old.Every == s.Every && old.Cron == "" {
			changed.From = old.From
		}
		changed.ID, changed.CreatedAt, changed.UpdatedAt = old.ID, old.CreatedAt, old.UpdatedAt
		if sameSchedule(&changed, &old.Record) {
			out, created = old, tx.MaybeCommitted && old.ID == drawn[0]
			return nil
		}
		if fresh {
			return fmt.Errorf("schedule %q: %w, with another definition: choose another name, replace it, or remove it",
				s.Name, fdbmodel.ErrExists)
		}
		changed.UpdatedAt = now
		out = Schedule{changed, old.State}
		if !sameTimes(&changed, &old.Record) {
			table, err := tableOf(&changed)
			if err != nil {
				return err
			}
			out.State.Next = millisOrNone(table.Next(time.UnixMilli(max(now-1, lastTime(&old.State)))))
		}
		l.write(tx, &old, &out)
		return nil
	})
	return out, created, err
}

// millisOrNone is 0 for no time.
func millisOrNone(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return layout.Millis(t)
}

// lastTime is the last time that a schedule has fired, or that stands in line.
func lastTime(s *State) (last int64) {
	for _, run := range s.Runs {
		if !run.Trigger {
			last = max(last, run.At)
		}
	}
	if len(s.Line) > 0 {
		last = max(last, s.Line[len(s.Line)-1])
	}
	return last
}

func sameTimes(a, b *Record) bool {
	return a.Cron == b.Cron && a.Zone == b.Zone && a.Every == b.Every && a.From == b.From && a.Until == b.Until &&
		reflect.DeepEqual(a.Except, b.Except)
}

// sameSchedule compares what a record makes of two definitions.
func sameSchedule(a, b *Record) bool {
	var one, other Record
	if layout.Decode(nil, layout.Encode(a), &one) != nil || layout.Decode(nil, layout.Encode(b), &other) != nil {
		return false
	}
	one.Spec.SubmittedAt, other.Spec.SubmittedAt = 0, 0
	return reflect.DeepEqual(one, other)
}

// complete fills in defaults and validates.
func (l *Schedules) complete(ctx context.Context, s *Record) (*timetable.Timetable, error) {
	if err := checkName(s.Name); err != nil {
		return nil, err
	}
	s.Spec.Queue, s.Spec.Codec = cmp.Or(s.Spec.Queue, layout.DefaultQueue), cmp.Or(s.Spec.Codec, layout.CodecRaw)
	s.Missed, s.Overlap = cmp.Or(s.Missed, MissedOnce), cmp.Or(s.Overlap, OverlapAllow)
	s.Grace = cmp.Or(s.Grace, DefaultGrace)
	if s.Missed == MissedCatchUp {
		s.CatchUp = cmp.Or(s.CatchUp, defaultCatchUp)
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: schedule %q: %s", layout.ErrBadSpec, s.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case s.Missed != MissedOnce && s.Missed != MissedSkip && s.Missed != MissedCatchUp:
		return nil, bad("missed times: %.20q: use once, skip or catch-up", s.Missed)
	case s.Overlap != OverlapAllow && s.Overlap != OverlapSkip && s.Overlap != OverlapQueue:
		return nil, bad("overlap: %.20q: use allow, skip or queue", s.Overlap)
	case s.CatchUp < 0 || s.CatchUp > MaxLine:
		return nil, bad("%d missed times: use 1 to %d", s.CatchUp, MaxLine)
	case s.CatchUp > 0 && s.Missed != MissedCatchUp:
		return nil, bad("a number of missed times needs catch-up")
	case s.Grace < 0 || s.Grace > maxGrace:
		return nil, bad("grace of %v: use at most %v", s.Grace, maxGrace)
	case s.Expires < 0 || s.Deadline < 0 || s.Spec.ExpiresAt != 0 || s.Spec.Deadline != 0:
		return nil, bad("its futures may expire, or have a deadline, some time after they are submitted, not at a moment")
	case len(s.Args) > layout.MaxArgsInKey:
		return nil, fmt.Errorf("%w: schedule %q: %d bytes of arguments: at most %d", fdbmodel.ErrTooLarge, s.Name,
			len(s.Args), layout.MaxArgsInKey)
	case s.Spec.HasInputs() || !s.Spec.Near.IsZero() || s.Spec.Held() || s.Spec.Session != "":
		return nil, bad("its futures can have no inputs, no future to be near, no owner and no session")
	}
	table, err := tableOf(s)
	if err != nil {
		return nil, err
	}
	// The alias of a module stays one: each firing resolves it anew.
	now := layout.Millis(l.cluster.Now())
	sample := scheduled(s, now, now)
	return table, l.cluster.CheckSubmission(ctx, &sample)
}

// read returns fdbmodel.ErrNotFound if there is no schedule with a name.
func (l *Schedules) read(ctx context.Context, tx kv.Reader, name string) (Schedule, error) {
	s := Schedule{Record: Record{Name: name}}
	key, stateKey := Keys(l.keys).Definition(name), Keys(l.keys).State(name)
	asked, askedState := tx.Get(key), tx.Get(stateKey)
	value, err := asked.Wait(ctx)
	if err != nil {
		return s, err
	}
	state, err := askedState.Wait(ctx)
	if err != nil {
		return s, err
	}
	if value == nil {
		return s, fmt.Errorf("schedule %.80q: %w", name, fdbmodel.ErrNotFound)
	}
	if err := layout.Decode(key, value, &s.Record); err != nil {
		return s, err
	}
	if state == nil {
		return s, nil
	}
	return s, layout.Decode(stateKey, state, &s.State)
}

// write writes what changed of a schedule. before is nil for a new one.
func (l *Schedules) write(tx kv.Tx, before, after *Schedule) {
	was := int64(0)
	record := layout.Encode(&after.Record)
	if before != nil {
		was = before.State.Due()
	}
	if before == nil || !bytes.Equal(record, layout.Encode(&before.Record)) {
		tx.Set(Keys(l.keys).Definition(after.Name), record)
	}
	tx.Set(Keys(l.keys).State(after.Name), layout.Encode(&after.State))
	if due := after.State.Due(); due != was {
		if was != 0 {
			tx.Clear(Keys(l.keys).At(was, after.Name))
		}
		if due != 0 {
			tx.Set(Keys(l.keys).At(due, after.Name), layout.Mark())
		}
	}
}

// Get returns a schedule. It returns ErrBadName and fdbmodel.ErrNotFound.
func (l *Schedules) Get(ctx context.Context, name string) (s Schedule, err error) {
	if err := checkName(name); err != nil {
		return s, err
	}
	err = l.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		s, err = l.read(ctx, tx.Snapshot(), name)
		return err
	})
	return s, err
}

// List returns up to limit schedules in the order of their names, beginning after
// one name, or with the first for an empty one: fewer at the end alone. Those that can't be
// read are left out.
func (l *Schedules) List(ctx context.Context, after string, limit int) (list []Schedule, err error) {
	err = l.cluster.View(ctx, func(tx kv.Attempt) error {
		list = nil
		prefix := Keys(l.keys).byName()
		r := kv.Prefix(prefix)
		if after != "" {
			r.Begin = kv.AfterPrefix(Keys(l.keys).of(after))
		}
		for last, more := "", true; more && len(list) < limit; {
			page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: 2 * (limit - len(list))}).Wait(ctx)
			if err != nil {
				return err
			}
			if more = page.More; more {
				r.Begin = kv.After(page.Items[len(page.Items)-1].Key)
			}
			for _, item := range page.Items {
				rest := tuple.NewReader(item.Key[len(prefix):])
				name := rest.Text()
				if rest.Err() != nil || name == last || len(list) == limit {
					continue
				}
				last = name
				if list, err = l.appendRead(ctx, tx.Snapshot(), list, name); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return list, err
}

// appendRead adds a schedule, unless it can't be read or shown.
func (l *Schedules) appendRead(ctx context.Context, tx kv.Reader, list []Schedule, name string) ([]Schedule, error) {
	s, err := l.read(ctx, tx, name)
	if layout.IsUnreadable(err) || errors.Is(err, fdbmodel.ErrNotFound) {
		return list, nil // a check names it
	}
	if err != nil {
		return list, err
	}
	if _, err := s.Upcoming(1); err != nil {
		return list, nil // it can't be shown, nor fire; the janitor says so
	}
	return append(list, s), nil
}

// Remove removes a schedule. Its futures stay. It returns ErrBadName and
// fdbmodel.ErrNotFound. An unknown commit is resolved: a schedule that is gone by then was
// removed.
func (l *Schedules) Remove(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	_, err := l.transact(ctx, func(tx kv.Attempt) error {
		s, err := l.read(ctx, tx, name)
		if errors.Is(err, fdbmodel.ErrNotFound) && tx.MaybeCommitted {
			return nil
		}
		if err != nil {
			return err
		}
		tx.ClearRange(kv.Prefix(Keys(l.keys).of(name)))
		if due := s.State.Due(); due != 0 {
			tx.Clear(Keys(l.keys).At(due, name))
		}
		return nil
	})
	return err
}

// Pause keeps a schedule from firing until Resume is called. A reason
// has at most 256 bytes. Pausing again changes nothing but the reason. It returns
// ErrBadName, ErrBadSpec and fdbmodel.ErrNotFound. An unknown commit is retried and harmless.
func (l *Schedules) Pause(ctx context.Context, name, reason string) (Schedule, error) {
	if len(reason) > layout.MaxPauseReason {
		return Schedule{}, fmt.Errorf("%w: reason of %d bytes: at most %d", layout.ErrBadSpec, len(reason),
			layout.MaxPauseReason)
	}
	return l.change(ctx, name, func(s *Schedule) error {
		s.State.PausedAt, s.State.Reason = cmp.Or(s.State.PausedAt, layout.Millis(l.cluster.Now())), reason
		return nil
	})
}

// Resume has a paused schedule fire again, from its next time on: those that
// passed meanwhile are left out. Resuming again changes nothing. It returns ErrBadName
// and fdbmodel.ErrNotFound. An unknown commit is retried and harmless.
func (l *Schedules) Resume(ctx context.Context, name string) (Schedule, error) {
	return l.change(ctx, name, func(s *Schedule) error {
		if s.State.PausedAt == 0 {
			return nil
		}
		s.State.PausedAt, s.State.Reason = 0, ""
		now := layout.Millis(l.cluster.Now())
		if s.State.Next == 0 || s.State.Next >= now {
			return nil
		}
		table, err := tableOf(&s.Record)
		if err == nil {
			s.State.Next = millisOrNone(table.Next(time.UnixMilli(now - 1)))
		}
		return err
	})
}

func (l *Schedules) change(ctx context.Context, name string, change func(*Schedule) error) (Schedule, error) {
	if err := checkName(name); err != nil {
		return Schedule{}, err
	}
	var after Schedule
	_, err := l.transact(ctx, func(tx kv.Attempt) error {
		before, err := l.read(ctx, tx, name)
		if err != nil {
			return err
		}
		after = before
		if err := change(&after); err != nil || reflect.DeepEqual(before, after) {
			return err
		}
		l.write(tx, &before, &after)
		return nil
	})
	return after, err
}
