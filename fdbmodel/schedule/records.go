package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// What happens with the times of a schedule that no janitor looked at for longer than
// its grace.
const (
	MissedOnce    = "once"     // the last of them fires, unless a later one is in time
	MissedSkip    = "skip"     // none fires
	MissedCatchUp = "catch-up" // the last ones fire, up to CatchUp
)

// What happens at a time of a schedule while a former future is not over, of the last ones and of those that
// were asked for.
const (
	OverlapAllow = "allow" // both run
	OverlapSkip  = "skip"  // the time is skipped
	OverlapQueue = "queue" // the time stands in line until the former one is over
)

// Limits of schedules.
const (
	// MaxLine is the maximum number of times of a schedule that stand in
	// line. Times beyond it are skipped.
	MaxLine = 1000
	// maxRuns is how many of its last runs a schedule has on record.
	maxRuns = 10
	// maxGrace is the longest grace.
	maxGrace = 24 * time.Hour
	// DefaultGrace and defaultCatchUp are those of schedules without.
	DefaultGrace   = time.Minute
	defaultCatchUp = 100
)

// Record is the definition of a schedule: when it fires, and the future that
// each firing submits.
type Record struct {
	Name string `msgpack:"-" json:"name"`
	// ID is drawn when the schedule is made. The ids of its futures follow from it.
	ID     layout.ID     `msgpack:"i" json:"id"`
	Cron   string        `msgpack:"c,omitempty" json:"cron,omitempty"`
	Zone   string        `msgpack:"z,omitempty" json:"zone,omitempty"`
	Every  time.Duration `msgpack:"e,omitempty" json:"every_ns,omitempty"`
	From   int64         `msgpack:"f,omitempty" json:"from_ms,omitempty"`
	Until  int64         `msgpack:"u,omitempty" json:"until_ms,omitempty"`
	Except []string      `msgpack:"x,omitempty" json:"except,omitempty"`

	Missed  string        `msgpack:"m" json:"missed"`
	CatchUp int           `msgpack:"n,omitempty" json:"catch_up,omitempty"`
	Grace   time.Duration `msgpack:"g" json:"grace_ns"`
	// Expires is how long its futures may wait, if not 0.
	Expires time.Duration `msgpack:"h,omitempty" json:"expires_ns,omitempty"`
	Overlap string        `msgpack:"o" json:"overlap"`

	// Spec and Args are those of its futures.
	Spec layout.Spec `msgpack:"s" json:"spec"`
	Args []byte      `msgpack:"a,omitempty" json:"-"`

	CreatedAt int64 `msgpack:"t" json:"created_at_ms"`
	UpdatedAt int64 `msgpack:"v,omitempty" json:"updated_at_ms,omitempty"`
	// Deadline is how long after it fires its future must be over, if not 0.
	Deadline time.Duration `msgpack:"d,omitempty" json:"deadline_ns,omitempty"`
}

// State is what changes of a schedule.
type State struct {
	// Next is the next time at which it fires, 0 if there is none. As long as the
	// timetable stays the same, it only grows.
	Next int64 `msgpack:"n,omitempty" json:"next_ms,omitempty"`
	// Line are times that were due and have not fired yet, the oldest first.
	Line []int64 `msgpack:"l,omitempty" json:"line_ms,omitempty"`
	// PausedAt is when it was paused, if it is, and Reason why.
	PausedAt int64  `msgpack:"p,omitempty" json:"paused_at_ms,omitempty"`
	Reason   string `msgpack:"r,omitempty" json:"reason,omitempty"`
	// Fired is how many futures it has submitted, Missed how many times it left out
	// because no janitor looked in time, Skipped because the former future was not over,
	// and Refused because the future could not be submitted.
	Fired   int64 `msgpack:"f,omitempty" json:"fired"`
	Missed  int64 `msgpack:"m,omitempty" json:"missed"`
	Skipped int64 `msgpack:"s,omitempty" json:"skipped"`
	Refused int64 `msgpack:"e,omitempty" json:"refused"`
	// Runs are its last firings, the oldest first.
	Runs []Run `msgpack:"u,omitempty" json:"runs,omitempty"`
}

// Run is one firing of a schedule.
type Run struct {
	At      int64     `msgpack:"a" json:"at_ms"`                       // the time that it stands for
	FiredAt int64     `msgpack:"f,omitempty" json:"fired_at_ms"`       // by the clock of the process that looked
	ID      layout.ID `msgpack:"i,omitempty" json:"id,omitzero"`       // the future, if there is one
	Error   string    `msgpack:"e,omitempty" json:"error,omitempty"`   // why there is none
	Trigger bool      `msgpack:"t,omitempty" json:"trigger,omitempty"` // it was asked for, not scheduled
}

// Due returns when a janitor is to look at the schedule: 0 for never.
func (s *State) Due() int64 {
	switch {
	case s.PausedAt != 0:
		return 0
	case len(s.Line) > 0:
		return s.Line[0]
	default:
		return s.Next
	}
}

// Record adds a firing to the last ones.
func (s *State) Record(run Run) {
	runs := append(append(make([]Run, 0, len(s.Runs)+1), s.Runs...), run)
	s.Runs = runs[max(0, len(runs)-maxRuns):]
}

// Last returns the last firing that submitted a future, nil if none is on record.
func (s *State) Last() *Run {
	for i := len(s.Runs) - 1; i >= 0; i-- {
		if !s.Runs[i].ID.IsZero() {
			return &s.Runs[i]
		}
	}
	return nil
}

// ScheduledID returns the id of the future that a schedule submits for a time: each
// time has one.
func ScheduledID(schedule layout.ID, at int64) layout.ID {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(append([]byte("schedule "), schedule[:]...), uint64(at)))
	id := layout.ID(sum[:16])
	id[6], id[8] = 0x80|id[6]&0x0f, 0x80|id[8]&0x3f
	return id
}

// checkName returns ErrBadName unless name may name a schedule.
func checkName(name string) error { return layout.CheckName("schedule", name) }
