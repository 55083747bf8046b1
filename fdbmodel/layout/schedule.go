package layout

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tinylib/msgp/msgp"
)

// What happens with the times of a schedule that nobody looked at for longer than
// its grace.
const (
	MissedOnce    = "once"     // the last of them fires, unless a later one is in time
	MissedSkip    = "skip"     // none fires
	MissedCatchUp = "catch-up" // the last ones fire, up to CatchUp
)

// What happens at a time of a schedule while its former future is not over.
const (
	OverlapAllow = "allow" // both run
	OverlapSkip  = "skip"  // the time is skipped
	OverlapQueue = "queue" // the time stands in line until the former one is over
)

// Limits of schedules.
const (
	// MaxScheduleLine is the maximum number of times of a schedule that stand in
	// line. Times beyond it are skipped.
	MaxScheduleLine = 1000
	// MaxScheduleRuns is how many of its last runs a schedule has on record.
	MaxScheduleRuns = 10
	// MaxScheduleGrace is the longest grace.
	MaxScheduleGrace = 24 * time.Hour
	// DefaultScheduleGrace and DefaultCatchUp are those of schedules without.
	DefaultScheduleGrace = time.Minute
	DefaultCatchUp       = 100
)

// ScheduleRecord is the definition of a schedule: when it fires, and the future that
// each firing submits.
type ScheduleRecord struct {
	Name string `msgpack:"-" json:"name"`
	// ID is drawn when the schedule is made. The ids of its futures follow from it.
	ID     ID            `msgpack:"i" json:"id"`
	Cron   string        `msgpack:"c,omitempty" json:"cron,omitempty"`
	Zone   string        `msgpack:"z,omitempty" json:"zone,omitempty"`
	Every  time.Duration `msgpack:"e,omitempty" json:"every_ns,omitempty"`
	From   int64         `msgpack:"f,omitempty" json:"from_ms,omitempty"`
	Until  int64         `msgpack:"u,omitempty" json:"until_ms,omitempty"`
	Except []string      `msgpack:"x,omitempty" json:"except,omitempty"`

	Missed  string        `msgpack:"m" json:"missed"`
	CatchUp int           `msgpack:"n,omitempty" json:"catch_up,omitempty"`
	Grace   time.Duration `msgpack:"g" json:"grace_ns"`
	Overlap string        `msgpack:"o" json:"overlap"`

	// Expires is how long its futures may wait, if not 0.
	Expires time.Duration `msgpack:"h,omitempty" json:"expires_ns,omitempty"`
	// Deadline is how long after it fires its future must be over, if not 0.
	Deadline time.Duration `msgpack:"d,omitempty" json:"deadline_ns,omitempty"`
	// Spec and Args are those of its futures.
	Spec Spec   `msgpack:"s" json:"spec"`
	Args []byte `msgpack:"a,omitempty" json:"-"`

	CreatedAt int64 `msgpack:"t" json:"created_at_ms"`
	UpdatedAt int64 `msgpack:"v,omitempty" json:"updated_at_ms,omitempty"`
}

// ScheduleState is what changes of a schedule.
type ScheduleState struct {
	// Next is the next time at which it fires, 0 if there is none. As long as the
	// timetable stays the same, it only grows.
	Next int64 `msgpack:"n,omitempty" json:"next_ms,omitempty"`
	// Line are times that were due and have not fired yet, the oldest first.
	Line []int64 `msgpack:"l,omitempty" json:"line_ms,omitempty"`
	// PausedAt is when it was paused, if it is, and Reason why.
	PausedAt int64  `msgpack:"p,omitempty" json:"paused_at_ms,omitempty"`
	Reason   string `msgpack:"r,omitempty" json:"reason,omitempty"`
	// Fired is how many futures it has submitted, Missed how many times it left out
	// because nobody looked in time, Skipped because the former future was not over,
	// and Refused because the future could not be submitted.
	Fired   int64 `msgpack:"f,omitempty" json:"fired"`
	Missed  int64 `msgpack:"m,omitempty" json:"missed"`
	Skipped int64 `msgpack:"s,omitempty" json:"skipped"`
	Refused int64 `msgpack:"e,omitempty" json:"refused"`
	// Runs are its last firings, the oldest first.
	Runs []ScheduleRun `msgpack:"u,omitempty" json:"runs,omitempty"`
}

// ScheduleRun is one firing of a schedule.
type ScheduleRun struct {
	At      int64  `msgpack:"a" json:"at_ms"`                       // the time that it stands for
	FiredAt int64  `msgpack:"f,omitempty" json:"fired_at_ms"`       // by the clock of the process that looked
	ID      ID     `msgpack:"i,omitempty" json:"id,omitzero"`       // the future, if there is one
	Error   string `msgpack:"e,omitempty" json:"error,omitempty"`   // why there is none
	Trigger bool   `msgpack:"t,omitempty" json:"trigger,omitempty"` // it was asked for, not scheduled
}

// Due returns when a janitor is to look at the schedule: 0 for never.
func (s *ScheduleState) Due() int64 {
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
func (s *ScheduleState) Record(run ScheduleRun) {
	runs := append(append(make([]ScheduleRun, 0, len(s.Runs)+1), s.Runs...), run)
	s.Runs = runs[max(0, len(runs)-MaxScheduleRuns):]
}

// Last returns the last firing that submitted a future, nil if none is on record.
func (s *ScheduleState) Last() *ScheduleRun {
	for i := len(s.Runs) - 1; i >= 0; i-- {
		if !s.Runs[i].ID.IsZero() {
			return &s.Runs[i]
		}
	}
	return nil
}

// ScheduledID returns the id of the future that a schedule submits for a time: each
// time has one.
func ScheduledID(schedule ID, at int64) ID {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(append([]byte("schedule "), schedule[:]...), uint64(at)))
	id := ID(sum[:16])
	id[6], id[8] = 0x80|id[6]&0x0f, 0x80|id[8]&0x3f
	return id
}

// CheckScheduleName returns ErrBadName unless name may name a schedule.
func CheckScheduleName(name string) error {
	if !queueName.MatchString(name) {
		return fmt.Errorf("%w: schedule %.80q: use 1 to %d of A-Z, a-z, 0-9 and . _ -", ErrBadName, name, maxQueueName)
	}
	return nil
}

func (s *ScheduleRecord) appendFields(f fields) fields {
	f = f.bytes("i", s.ID[:]).text("c", s.Cron).text("z", s.Zone).int("e", int64(s.Every)).int("f", s.From)
	f = f.int("u", s.Until).texts("x", s.Except).text("m", s.Missed).int("n", int64(s.CatchUp))
	f = f.int("g", int64(s.Grace)).int("h", int64(s.Expires)).text("o", s.Overlap).record("s", &s.Spec).bytes("a", s.Args)
	return f.int("t", s.CreatedAt).int("v", s.UpdatedAt).int("d", int64(s.Deadline))
}

func (s *ScheduleRecord) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "i":
		return readID(b, &s.ID)
	case "c":
		return readText(b, &s.Cron)
	case "z":
		return readText(b, &s.Zone)
	case "e":
		return readInt(b, &s.Every)
	case "f":
		return readInt(b, &s.From)
	case "u":
		return readInt(b, &s.Until)
	case "x":
		return readTexts(b, &s.Except)
	case "m":
		return readText(b, &s.Missed)
	case "n":
		return readInt(b, &s.CatchUp)
	case "g":
		return readInt(b, &s.Grace)
	case "h":
		return readInt(b, &s.Expires)
	case "d":
		return readInt(b, &s.Deadline)
	case "o":
		return readText(b, &s.Overlap)
	case "s":
		return readRecord(b, &s.Spec)
	case "a":
		return readBytes(b, &s.Args)
	case "t":
		return readInt(b, &s.CreatedAt)
	case "v":
		return readInt(b, &s.UpdatedAt)
	}
	return msgp.Skip(b)
}

func (s *ScheduleState) appendFields(f fields) fields {
	f = f.int("n", s.Next)
	if len(s.Line) > 0 {
		f = f.name("l")
		f.b = msgp.AppendArrayHeader(f.b, uint32(len(s.Line)))
		for _, at := range s.Line {
			f.b = msgp.AppendInt64(f.b, at)
		}
	}
	f = f.int("p", s.PausedAt).text("r", s.Reason).int("f", s.Fired).int("m", s.Missed).int("s", s.Skipped)
	f = f.int("e", s.Refused)
	if len(s.Runs) > 0 {
		f = f.name("u")
		f.b = msgp.AppendArrayHeader(f.b, uint32(len(s.Runs)))
		for i := range s.Runs {
			f.b = appendRecord(f.b, &s.Runs[i])
		}
	}
	return f
}

func (s *ScheduleState) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "n":
		return readInt(b, &s.Next)
	case "l":
		return readEach(b, MaxScheduleLine, &s.Line, func(b []byte, at *int64) ([]byte, error) { return readInt(b, at) })
	case "p":
		return readInt(b, &s.PausedAt)
	case "r":
		return readText(b, &s.Reason)
	case "f":
		return readInt(b, &s.Fired)
	case "m":
		return readInt(b, &s.Missed)
	case "s":
		return readInt(b, &s.Skipped)
	case "e":
		return readInt(b, &s.Refused)
	case "u":
		return readEach(b, MaxScheduleRuns, &s.Runs, func(b []byte, r *ScheduleRun) ([]byte, error) {
			return readRecord(b, r)
		})
	}
	return msgp.Skip(b)
}

// readEach reads a list of at most most elements.
func readEach[T any](b []byte, most int, into *[]T, read func([]byte, *T) ([]byte, error)) ([]byte, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err == nil && n > uint32(most) {
		err = fmt.Errorf("a list of %d elements: at most %d", n, most)
	}
	if err != nil {
		return b, err
	}
	list := make([]T, n)
	for i := range list {
		if b, err = read(b, &list[i]); err != nil {
			return b, err
		}
	}
	*into = list
	return b, nil
}

func (r *ScheduleRun) appendFields(f fields) fields {
	f = f.int("a", r.At).int("f", r.FiredAt)
	if !r.ID.IsZero() {
		f = f.bytes("i", r.ID[:])
	}
	return f.text("e", r.Error).bool("t", r.Trigger)
}

func (r *ScheduleRun) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "a":
		return readInt(b, &r.At)
	case "f":
		return readInt(b, &r.FiredAt)
	case "i":
		return readID(b, &r.ID)
	case "e":
		return readText(b, &r.Error)
	case "t":
		return readBool(b, &r.Trigger)
	}
	return msgp.Skip(b)
}
