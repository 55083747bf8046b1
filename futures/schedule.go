package futures

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/schedule"
)

// ErrExists is returned by AddSchedule if another schedule has its name.
var ErrExists = fdbmodel.ErrExists

// Schedule submits a future again and again: at the times of a crontab line, or at an
// interval. Workers look at the schedules, so it fires while at least one runs. Each of
// its times fires once, however many processes look, and whatever happens to them. A
// clock that is wrong has it fire early or late by as much.
type Schedule struct {
	// Name has 1 to 64 characters of A-Z, a-z, 0-9 and . _ -. It is required.
	Name string
	// Task is the future that each time submits. It can have no ID, Key, Unique, Delay,
	// NotBefore, Deadline, After, Near, Worker, RequireFit or WaitForRoom, and at most 16 KiB of Args. It may be in
	// a lane. Overlap says what becomes of a time whose former future is open. An alias is
	// resolved each time. workers.InfoFrom tells a function the time that its future
	// stands for; a module has it in its environment, as FUTURA_SCHEDULED_AT.
	Task Task
	// Cron is a crontab line: minute, hour, day of the month, month, day of the week;
	// with six fields the second comes first. @yearly, @monthly, @weekly, @daily and
	// @hourly work too. Zone is the IANA name of its time zone; it defaults to UTC.
	//
	// A time of day that the clock of the zone jumps over fires once, at the jump; one
	// that exists twice fires the first time. Where the hour is *, it fires in every
	// hour that passes.
	Cron, Zone string
	// Every is the interval, instead of Cron: at least a second, counted from From,
	// which defaults to when the schedule is made.
	Every time.Duration
	// From and Until are the first and the last moment at which it may fire. Default
	// to no bounds.
	From, Until time.Time
	// Except are dates in Zone on which it does not fire: 2026-12-25, or 12-25 for
	// each year; at most 1,000.
	Except []string
	// Missed says what happens with times that no janitor looked at for longer than Grace,
	// which is at most 24 h and defaults to 1 min: MissedOnce, the default, fires the
	// last of them, unless a later one is in time; MissedSkip fires none; MissedCatchUp
	// fires the last ones, up to CatchUp, which is at most 1,000 and defaults to 100.
	Missed  string
	CatchUp int
	Grace   time.Duration
	// Overlap says what happens at a time while the former future is not over:
	// OverlapAllow, the default, submits the next one; OverlapSkip leaves the time out;
	// OverlapQueue submits the next one once the former is over.
	Overlap string
	// Deadline is how long after it was submitted a future must be over, also if it waits,
	// at least a millisecond. Defaults to no bound. Task.Expires bounds the wait alone.
	Deadline time.Duration
}

// What happens with the times of a schedule that were missed, and with those that
// overlap.
const (
	MissedOnce    = schedule.MissedOnce
	MissedSkip    = schedule.MissedSkip
	MissedCatchUp = schedule.MissedCatchUp
	OverlapAllow  = schedule.OverlapAllow
	OverlapSkip   = schedule.OverlapSkip
	OverlapQueue  = schedule.OverlapQueue
)

// ScheduleView is a schedule as the store has it.
type ScheduleView struct {
	Name            string
	Function, Queue string
	Cron, Zone      string
	Every           time.Duration
	From, Until     time.Time
	Except          []string
	Missed          string
	CatchUp         int
	Grace           time.Duration
	Overlap         string
	Deadline        time.Duration
	// CreatedAt is when it was made, and UpdatedAt when its definition changed.
	CreatedAt, UpdatedAt time.Time
	// Next are the next times at which it fires, or would if it were not paused.
	// Waiting are times that wait for the former future to end.
	Next, Waiting []time.Time
	// PausedAt is when it was paused, if it is, and Reason why.
	PausedAt time.Time
	Reason   string
	// Fired is how many futures it has submitted. MissedTimes, SkippedTimes and
	// RefusedTimes are how many times had none: because no janitor looked, because the
	// former future was not over, and because it could not be submitted.
	Fired, MissedTimes, SkippedTimes, RefusedTimes int64
	// Runs are the last times that fired, at most 10, the last one first.
	Runs []ScheduleRun
}

// ScheduleRun is a time of a schedule that fired.
type ScheduleRun struct {
	// At is the time, and FiredAt when a janitor looked, by its clock.
	At, FiredAt time.Time
	// ID is its future. If there is none, Error says why.
	ID    ID
	Error string
	// Triggered is set if it was asked for.
	Triggered bool
}

func (s *Schedule) record(c *Client) (schedule.Record, error) {
	t := s.Task
	r := schedule.Record{
		Name: s.Name, Cron: s.Cron, Zone: s.Zone, Every: s.Every, Except: s.Except, Missed: s.Missed, CatchUp: s.CatchUp,
		Grace: s.Grace, Overlap: s.Overlap, Deadline: s.Deadline,
	}
	if !t.ID.IsZero() || t.Key != "" || t.Delay != 0 || !t.NotBefore.IsZero() || len(t.After) > 0 || !t.Near.IsZero() ||
		t.Worker != "" || t.Unique != nil || !t.Deadline.IsZero() {
		return r, fmt.Errorf("%w: schedule %q: its task can have no id, key, delay, time, inputs or worker, and not be "+
			"unique; set the deadline of the schedule, which is that of each future", layout.ErrBadSpec, s.Name)
	}
	if t.RequireFit || t.WaitForRoom {
		return r, fmt.Errorf("%w: schedule %q: nobody waits for its submits: leave out RequireFit and WaitForRoom",
			layout.ErrBadSpec, s.Name)
	}
	t.NoNotify = true
	sub, err := c.submission(context.Background(), &t) // nothing of a function that makes it
	r.Expires, sub.Spec.ExpiresAt = t.Expires, 0
	if err == nil && len(sub.Inputs) > 0 {
		err = fmt.Errorf("%w: schedule %q: its arguments refer to a future", layout.ErrBadSpec, s.Name)
	}
	r.Spec, r.Args = sub.Spec, sub.Args
	if !s.From.IsZero() {
		r.From = layout.Millis(s.From)
	}
	if !s.Until.IsZero() {
		r.Until = layout.Millis(s.Until)
	}
	return r, err
}

// PutSchedule makes a schedule, or changes the one with its name; every process of a
// program may call it with the same one. A change of its times sets the next one anew.
// It returns ErrBadName, ErrBadSpec, ErrTooLarge, and ErrNotFound for an unknown module
// or alias. An unknown commit is resolved.
func (c *Client) PutSchedule(ctx context.Context, s Schedule) (ScheduleView, error) {
	return c.putSchedule(ctx, &s, false)
}

// AddSchedule is PutSchedule that changes no schedule: it returns ErrExists if the name
// has one with another definition.
func (c *Client) AddSchedule(ctx context.Context, s Schedule) (ScheduleView, error) {
	return c.putSchedule(ctx, &s, true)
}

func (c *Client) putSchedule(ctx context.Context, s *Schedule, fresh bool) (ScheduleView, error) {
	if err := c.usable(); err != nil {
		return ScheduleView{}, err
	}
	record, err := s.record(c)
	if err == nil {
		err = c.ensureCalls(ctx, s.Task)
	}
	if err != nil {
		return ScheduleView{}, err
	}
	put, _, err := schedule.Of(c.cluster).Put(ctx, record, fresh)
	if err != nil {
		return ScheduleView{}, err
	}
	return scheduleView(&put, 1)
}

// MaxScheduleTimes is the maximum number of next times that Schedule returns.
const MaxScheduleTimes = 1000

// Schedule returns a schedule with its next times, up to a number. It returns
// ErrBadName and ErrNotFound.
func (c *Client) Schedule(ctx context.Context, name string, times int) (ScheduleView, error) {
	s, err := schedule.Of(c.cluster).Get(ctx, name)
	if err != nil {
		return ScheduleView{}, err
	}
	return scheduleView(&s, min(max(times, 0), MaxScheduleTimes))
}

// Schedules returns up to limit schedules in the order of their names, each with its
// next time, beginning after one name, or with the first for an empty one. A limit of 0,
// or above 1,000, is 1,000.
func (c *Client) Schedules(ctx context.Context, after string, limit int) ([]ScheduleView, error) {
	if limit <= 0 || limit > maxSchedules {
		limit = maxSchedules
	}
	list, err := schedule.Of(c.cluster).List(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	views := make([]ScheduleView, len(list))
	for i := range list {
		if views[i], err = scheduleView(&list[i], 1); err != nil {
			return nil, err
		}
	}
	return views, nil
}

const maxSchedules = 1000

// PauseSchedule keeps a schedule from firing until ResumeSchedule is called, which
// leaves out the times that passed. A reason has at most 256 bytes. It returns
// ErrBadName, ErrBadSpec and ErrNotFound.
func (c *Client) PauseSchedule(ctx context.Context, name, reason string) (ScheduleView, error) {
	s, err := schedule.Of(c.cluster).Pause(ctx, name, reason)
	if err != nil {
		return ScheduleView{}, err
	}
	return scheduleView(&s, 1)
}

// ResumeSchedule has a schedule fire again. It returns ErrBadName and ErrNotFound.
func (c *Client) ResumeSchedule(ctx context.Context, name string) (ScheduleView, error) {
	s, err := schedule.Of(c.cluster).Resume(ctx, name)
	if err != nil {
		return ScheduleView{}, err
	}
	return scheduleView(&s, 1)
}

// TriggerSchedule submits the future of a schedule at once, even if it is paused or its
// former future is not over. Its times stay the same. It returns ErrBadName,
// ErrNotFound, and the errors of Submit. An unknown commit is resolved.
func (c *Client) TriggerSchedule(ctx context.Context, name string) (*Future, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	id, err := schedule.Of(c.cluster).Trigger(ctx, name)
	if err != nil {
		return nil, err
	}
	return c.Future(id), nil
}

// RemoveSchedule removes a schedule. Its futures stay. It returns ErrBadName and
// ErrNotFound.
func (c *Client) RemoveSchedule(ctx context.Context, name string) error {
	return schedule.Of(c.cluster).Remove(ctx, name)
}

func scheduleView(s *schedule.Schedule, times int) (ScheduleView, error) {
	next, err := s.Upcoming(times)
	if err != nil {
		return ScheduleView{}, err
	}
	state := &s.State
	v := ScheduleView{
		Name: s.Name, Function: s.Spec.Function, Queue: s.Spec.Queue, Cron: s.Cron, Zone: s.Zone, Every: s.Every,
		From: timeOf(s.From), Until: timeOf(s.Until), Except: s.Except, Missed: s.Missed, CatchUp: s.CatchUp,
		Grace: s.Grace, Overlap: s.Overlap, Deadline: s.Deadline, CreatedAt: timeOf(s.CreatedAt),
		UpdatedAt: timeOf(s.UpdatedAt), Next: next, PausedAt: timeOf(state.PausedAt), Reason: state.Reason,
		Fired: state.Fired, MissedTimes: state.Missed, SkippedTimes: state.Skipped, RefusedTimes: state.Refused,
	}
	for _, at := range state.Line {
		v.Waiting = append(v.Waiting, timeOf(at))
	}
	for i := len(state.Runs) - 1; i >= 0; i-- {
		r := &state.Runs[i]
		v.Runs = append(v.Runs, ScheduleRun{timeOf(r.At), timeOf(r.FiredAt), r.ID, r.Error, r.Trigger})
	}
	return v, nil
}
