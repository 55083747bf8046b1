package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

const schedulesPath = "/api/v1/schedules"

// NewSchedule describes a schedule.
type NewSchedule struct {
	_ struct{} `additionalProperties:"false"` // reject misspelt fields

	Name string `json:"name,omitempty" maxLength:"64" doc:"Required unless the path has it"`
	NewTimes
	Future NewFuture `json:"future" doc:"What each time submits: without id, key, delay_ms, not_before, inputs and near"`
}

// NewTimes say when a schedule fires.
type NewTimes struct {
	Cron    string    `json:"cron,omitempty" maxLength:"256" doc:"Crontab line: minute hour day month weekday"`
	Zone    string    `json:"zone,omitempty" doc:"Its time zone, such as Europe/Zurich; UTC by default"`
	EveryMS int64     `json:"every_ms,omitempty" minimum:"0" doc:"Interval, instead of cron"`
	From    time.Time `json:"from,omitempty" doc:"Not before; the beginning of the intervals"`
	Until   time.Time `json:"until,omitempty" doc:"Not after"`
	Except  []string  `json:"except,omitempty" maxItems:"1000" doc:"Dates left out: YYYY-MM-DD, or MM-DD for each year"`
	Missed  string    `json:"missed,omitempty" enum:"once,skip,catch-up" default:"once" doc:"Times that were missed"`
	CatchUp int       `json:"catch_up,omitempty" minimum:"0" maximum:"1000" doc:"The most times to catch up with"`
	GraceMS int64     `json:"grace_ms,omitempty" minimum:"0" doc:"Longer than this is missed; a minute by default"`
	EndMS   int64     `json:"deadline_ms,omitempty" minimum:"0" doc:"How long after the submit a future must be over"`
	Overlap string    `json:"overlap,omitempty" enum:"allow,skip,queue" default:"allow" doc:"While the former one is open"`
}

// Schedule is the view of a schedule.
type Schedule struct {
	Name     string        `json:"name"`
	Function string        `json:"function"`
	Queue    string        `json:"queue"`
	Cron     string        `json:"cron,omitempty"`
	Zone     string        `json:"zone,omitempty"`
	EveryMS  int64         `json:"every_ms,omitempty"`
	From     *time.Time    `json:"from,omitempty"`
	Until    *time.Time    `json:"until,omitempty"`
	Except   []string      `json:"except,omitempty"`
	Missed   string        `json:"missed"`
	CatchUp  int           `json:"catch_up,omitempty"`
	GraceMS  int64         `json:"grace_ms"`
	Overlap  string        `json:"overlap"`
	EndMS    int64         `json:"deadline_ms,omitempty"`
	Created  time.Time     `json:"created_at"`
	Updated  *time.Time    `json:"updated_at,omitempty"`
	Next     []time.Time   `json:"next" doc:"The next times, in its zone"`
	Waiting  []time.Time   `json:"waiting" doc:"Times that wait for the former future to end"`
	PausedAt *time.Time    `json:"paused_at,omitempty"`
	Reason   string        `json:"paused_because,omitempty"`
	Fired    int64         `json:"fired" doc:"Futures submitted"`
	Left     int64         `json:"missed_times" doc:"Left out as no janitor looked in time; up to 10,000 of an outage"`
	Skipped  int64         `json:"skipped_times" doc:"Left out because the former future was not over"`
	Refused  int64         `json:"refused_times" doc:"Left out because the future could not be submitted"`
	Runs     []ScheduleRun `json:"runs" doc:"The last ones, at most 10, the last one first"`
}

// ScheduleRun is a time of a schedule that fired.
type ScheduleRun struct {
	At        time.Time   `json:"at" doc:"The time that it stands for"`
	FiredAt   time.Time   `json:"fired_at"`
	ID        *futures.ID `json:"id,omitempty" format:"uuid" doc:"Its future"`
	Error     string      `json:"error,omitempty" doc:"Why it has none"`
	Triggered bool        `json:"triggered,omitempty"`
}

// ScheduleOf returns the view of a schedule.
func ScheduleOf(s *futures.ScheduleView) Schedule {
	v := Schedule{
		Name: s.Name, Function: s.Function, Queue: s.Queue, Cron: s.Cron, Zone: s.Zone, EveryMS: s.Every.Milliseconds(),
		From: TimeIfAny(s.From), Until: TimeIfAny(s.Until), Except: s.Except, Missed: s.Missed, CatchUp: s.CatchUp,
		GraceMS: s.Grace.Milliseconds(), Overlap: s.Overlap, EndMS: s.Deadline.Milliseconds(), Created: s.CreatedAt.UTC(),
		Updated: TimeIfAny(s.UpdatedAt),
		Next:    append([]time.Time{}, s.Next...), Waiting: []time.Time{},
		PausedAt: TimeIfAny(s.PausedAt), Reason: s.Reason, Fired: s.Fired, Left: s.MissedTimes, Skipped: s.SkippedTimes,
		Refused: s.RefusedTimes, Runs: []ScheduleRun{},
	}
	for _, at := range s.Waiting {
		v.Waiting = append(v.Waiting, at.UTC())
	}
	for _, r := range s.Runs {
		run := ScheduleRun{At: r.At.UTC(), FiredAt: r.FiredAt.UTC(), Error: r.Error, Triggered: r.Triggered}
		if !r.ID.IsZero() {
			run.ID = &r.ID
		}
		v.Runs = append(v.Runs, run)
	}
	return v
}

// TimeIfAny is a time as answers have it, nil for none.
func TimeIfAny(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (s *server) registerSchedules() {
	path := schedulesPath + "/{name}"
	add := operation(http.MethodPost, schedulesPath, "add-schedule", "Make a schedule",
		"The same one again changes nothing; another one with its name is refused.")
	add.DefaultStatus = http.StatusCreated
	stack.Register(s.Stack, stack.Admin, add, s.addSchedule)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodPut, path, "put-schedule", "Make or change a schedule",
		"A change of its times sets the next one anew."), s.putSchedule)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, schedulesPath, "list-schedules", "List the schedules",
		"In the order of their names."), s.listSchedules)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, path, "get-schedule", "Get a schedule",
		"With its next times and its last ones."), s.getSchedule)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodDelete, path, "remove-schedule", "Remove a schedule",
		"Its futures stay."), s.removeSchedule)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodPost, path+":pause", "pause-schedule", "Pause a schedule",
		"It does not fire until it is resumed."), s.pauseSchedule)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodPost, path+":resume", "resume-schedule",
		"Resume a schedule", "Times that passed while it was paused are left out."), s.resumeSchedule)
	trigger := operation(http.MethodPost, path+":trigger", "trigger-schedule", "Trigger a schedule",
		"Submits its future at once, whatever its times and its former future.")
	trigger.DefaultStatus = http.StatusCreated
	stack.Register(s.Stack, stack.Submit, trigger, s.triggerSchedule)
}

func (n *NewSchedule) schedule() (futures.Schedule, error) {
	t := &n.NewTimes
	s := futures.Schedule{
		Name: n.Name, Cron: t.Cron, Zone: t.Zone, From: t.From, Until: t.Until, Except: t.Except, Missed: t.Missed,
		CatchUp: t.CatchUp, Overlap: t.Overlap,
	}
	if s.Missed != futures.MissedCatchUp && s.CatchUp != 0 {
		return s, stack.BadRequest("catch_up=%d needs missed=catch-up", s.CatchUp)
	}
	if t.EveryMS > maxMillis || t.GraceMS > maxMillis || t.EndMS > maxMillis {
		return s, stack.BadRequest("every_ms=%d, grace_ms=%d, deadline_ms=%d: use at most %d", t.EveryMS, t.GraceMS, t.EndMS,
			maxMillis)
	}
	s.Deadline = time.Duration(t.EndMS) * time.Millisecond
	s.Every, s.Grace = time.Duration(t.EveryMS)*time.Millisecond, time.Duration(t.GraceMS)*time.Millisecond
	var err error
	s.Task, err = n.Future.task()
	return s, err
}

func (s *server) addSchedule(ctx context.Context, in *body[NewSchedule]) (*body[Schedule], error) {
	schedule, err := in.Body.schedule()
	if err != nil {
		return nil, err
	}
	return viewed(ScheduleOf)(s.client.AddSchedule(ctx, schedule))
}

type putScheduleInput struct {
	Name string `path:"name"`
	Body NewSchedule
}

func (s *server) putSchedule(ctx context.Context, in *putScheduleInput) (*body[Schedule], error) {
	schedule, err := in.Body.schedule()
	if err != nil {
		return nil, err
	}
	if schedule.Name != "" && schedule.Name != in.Name {
		return nil, stack.BadRequest("the path names schedule %q, the body %q", in.Name, schedule.Name)
	}
	schedule.Name = in.Name
	return viewed(ScheduleOf)(s.client.PutSchedule(ctx, schedule))
}

type listSchedulesInput struct {
	After string `query:"after" maxLength:"64" doc:"The name of the last schedule of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type schedulesOutputBody struct {
	Schedules []Schedule `json:"schedules"`
}

func (s *server) listSchedules(ctx context.Context, in *listSchedulesInput) (*body[schedulesOutputBody], error) {
	if err := stack.Reserve(ctx, int64(in.Limit)*scheduleBytes); err != nil {
		return nil, err
	}
	list, err := s.client.Schedules(ctx, in.After, in.Limit)
	return answerWith(schedulesOutputBody{viewsOf(list, ScheduleOf)}, err)
}

// scheduleBytes is what a schedule, its last runs and its view hold in memory, but for rare ones.
const scheduleBytes = 16 << 10

type getScheduleInput struct {
	Name  string `path:"name"`
	Times int    `query:"times" minimum:"0" maximum:"1000" default:"10" doc:"How many of its next times"`
}

func (s *server) getSchedule(ctx context.Context, in *getScheduleInput) (*body[Schedule], error) {
	return viewed(ScheduleOf)(s.client.Schedule(ctx, in.Name, in.Times))
}

type scheduleNameInput struct {
	Name string `path:"name"`
}

func (s *server) removeSchedule(ctx context.Context, in *scheduleNameInput) (*struct{}, error) {
	return nil, s.client.RemoveSchedule(ctx, in.Name)
}

type pauseScheduleInput struct {
	Name string `path:"name"`
	Body *struct {
		_      struct{} `additionalProperties:"false"`
		Reason string   `json:"reason,omitempty" maxLength:"256"`
	} `required:"false"`
}

func (s *server) pauseSchedule(ctx context.Context, in *pauseScheduleInput) (*body[Schedule], error) {
	return viewed(ScheduleOf)(s.client.PauseSchedule(ctx, in.Name, given(in.Body).Reason))
}

func (s *server) resumeSchedule(ctx context.Context, in *scheduleNameInput) (*body[Schedule], error) {
	return viewed(ScheduleOf)(s.client.ResumeSchedule(ctx, in.Name))
}

type triggerScheduleInput struct {
	Name string `path:"name"`
	Key  string `header:"Idempotency-Key" maxLength:"1024" doc:"Refused: each trigger submits a future"`
}

func (s *server) triggerSchedule(ctx context.Context, in *triggerScheduleInput) (*answer, error) {
	if in.Key != "" {
		return nil, stack.BadRequest("a trigger can't be repeated by an Idempotency-Key: leave it out, and look at the " +
			"runs of the schedule first")
	}
	f, err := s.client.TriggerSchedule(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	out, err := s.answer(ctx, f.ID(), 0)
	if err != nil {
		return nil, stack.Prefix(err, "future %s was submitted, and then", f.ID())
	}
	out.Status, out.Location = http.StatusCreated, futuresPath+"/"+f.ID().String()
	return out, nil
}
