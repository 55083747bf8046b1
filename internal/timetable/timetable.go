// Package timetable computes when something recurs: at the times of a crontab line
// in a time zone, or at a fixed interval, with dates left out.
package timetable

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // every process that looks at a schedule must know its zone
)

// Limits of a timetable.
const (
	// MinEvery is the shortest interval.
	MinEvery = time.Second
	// MaxExcept is the maximum number of dates left out.
	MaxExcept = 1000
	// maxCron is the maximum length of a crontab line, in bytes.
	maxCron = 256
	// MaxYear is the last year of a time.
	MaxYear = 9999
	// maxZone is the maximum length of the name of a zone, in bytes.
	maxZone = 64
)

// ErrInvalid is returned for rules that are no timetable.
var ErrInvalid = errors.New("bad timetable")

// Rules describe a timetable. Either Cron or Every is set.
type Rules struct {
	// Cron is a crontab line of five fields (minute, hour, day of the month, month,
	// day of the week), of six with the second first, or one of @yearly, @monthly,
	// @weekly, @daily and @hourly.
	Cron string
	// Zone is the IANA name of the time zone, such as Europe/Zurich. Defaults to UTC.
	Zone string
	// Every is the interval, at least MinEvery. It is counted from From.
	Every time.Duration
	// From is the first moment, and Until the last one, at which it may recur. Zero
	// times are no bounds.
	From, Until time.Time
	// Except are dates in the zone on which it does not recur: 2026-12-25, or 12-25
	// for each year.
	Except []string
}

// Timetable says when something recurs.
type Timetable struct {
	rules  Rules
	zone   *time.Location
	cron   *cron // nil for an interval
	except map[string]bool
}

// New returns the timetable of some rules. It returns ErrInvalid.
func New(r Rules) (*Timetable, error) {
	t := &Timetable{rules: r, zone: time.UTC, except: map[string]bool{}}
	var err error
	switch {
	case (r.Cron == "") == (r.Every == 0):
		return nil, fmt.Errorf("%w: give either a crontab line or an interval", ErrInvalid)
	case r.Every != 0 && r.Every < MinEvery:
		return nil, fmt.Errorf("%w: interval %v: use at least %v", ErrInvalid, r.Every, MinEvery)
	case r.Every%time.Millisecond != 0:
		return nil, fmt.Errorf("%w: interval %v: use whole milliseconds", ErrInvalid, r.Every)
	case r.Every != 0 && r.From.IsZero():
		return nil, fmt.Errorf("%w: an interval needs a time from which it is counted", ErrInvalid)
	case !r.Until.IsZero() && r.Until.Before(r.From):
		return nil, fmt.Errorf("%w: it ends at %s, before it begins at %s", ErrInvalid, r.Until.Format(time.RFC3339),
			r.From.Format(time.RFC3339))
	case !isWithin(r.From) || !isWithin(r.Until):
		return nil, fmt.Errorf("%w: it begins in the year %d, or ends in %d: use the years 1 to %d", ErrInvalid,
			r.From.Year(), r.Until.Year(), MaxYear)
	}
	if t.zone, err = zoneOf(r.Zone); err != nil {
		return nil, err
	}
	if r.Cron != "" {
		if t.cron, err = parseCron(r.Cron); err != nil {
			return nil, err
		}
	}
	if len(r.Except) > MaxExcept {
		return nil, fmt.Errorf("%w: %d dates left out: at most %d", ErrInvalid, len(r.Except), MaxExcept)
	}
	for _, date := range r.Except {
		if !isDate(date) {
			return nil, fmt.Errorf("%w: date %.20q: use YYYY-MM-DD, or MM-DD for each year", ErrInvalid, date)
		}
		t.except[date] = true
	}
	return t, nil
}

// isWithin reports whether a time is in a year that all processes can write.
func isWithin(at time.Time) bool { return at.UTC().Year() >= 1 && at.UTC().Year() <= MaxYear }

// zoneOf loads a zone. The zone of the machine is refused: processes on other
// machines would have another one.
func zoneOf(name string) (*time.Location, error) {
	if name == "Local" || len(name) > maxZone || strings.ContainsAny(name, "\\\x00") {
		return nil, fmt.Errorf("%w: time zone %.70q: use an IANA name such as Europe/Zurich, or UTC", ErrInvalid, name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%w: time zone %.70q is not known: use an IANA name such as Europe/Zurich, or UTC", ErrInvalid,
			name)
	}
	return zone, nil
}

func isDate(s string) bool {
	if len(s) == len(yearly) {
		s = "2024-" + s // a year with a 29 February
	}
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// yearly is the form of a date of each year.
const yearly = "01-02"

// Zone returns the time zone.
func (t *Timetable) Zone() *time.Location { return t.zone }

// horizon is how far Next looks: leap days are up to eight years apart.
const horizon = 9 * 366 * 24 * time.Hour

// Next returns the first time after a moment at which it recurs, the zero time if
// it doesn't. Times are whole milliseconds.
//
// A time of day that does not exist, because the clock of the zone jumps over it,
// stands for the moment of the jump; several stand for it once. A time of day that
// exists twice, because the clock is set back, stands for the first one. Where the
// hour is *, the times are those of every hour that passes: none is missing, and
// each of the two hours has its own.
func (t *Timetable) Next(after time.Time) time.Time {
	after = after.Truncate(time.Millisecond)
	if first := t.rules.From.Add(-time.Millisecond); !t.rules.From.IsZero() && after.Before(first) {
		after = first
	}
	for end := after.Add(horizon); !after.IsZero() && after.Before(end); {
		next := t.step(after, end)
		if next.IsZero() || next.UTC().Year() > MaxYear || !t.rules.Until.IsZero() && next.After(t.rules.Until) {
			return time.Time{}
		}
		if !t.isExcepted(next) {
			return next
		}
		after = t.endOfDay(next).Add(-time.Millisecond)
	}
	return time.Time{}
}

// step is Next without bounds and exceptions.
func (t *Timetable) step(after, end time.Time) time.Time {
	if t.cron != nil {
		return t.cron.next(after.In(t.zone), end)
	}
	// A time.Duration would overflow after 292 years.
	from, every := t.rules.From.UnixMilli(), t.rules.Every.Milliseconds()
	passed := after.UnixMilli() - from
	if passed < 0 {
		return t.rules.From.In(t.zone)
	}
	return time.UnixMilli(from + (passed/every+1)*every).In(t.zone)
}

func (t *Timetable) isExcepted(at time.Time) bool {
	if len(t.except) == 0 {
		return false
	}
	local := at.In(t.zone)
	return t.except[local.Format(time.DateOnly)] || t.except[local.Format(yearly)]
}

// endOfDay returns when the local day of a moment ends.
func (t *Timetable) endOfDay(at time.Time) time.Time {
	year, month, day := at.In(t.zone).Date()
	end := time.Date(year, month, day+1, 0, 0, 0, 0, t.zone)
	if end.After(at) {
		return end
	}
	return at.Add(time.Hour) // a day with two midnights
}

// maxSpan keeps a span from overflowing.
const maxSpan = math.MaxInt64 / 4

// Newest returns the last n times at which it recurs from a moment up to another,
// both included, in their order. Its cost depends on n, not on how many there are.
func (t *Timetable) Newest(from, to time.Time, n int) []time.Time {
	if n <= 0 || to.Before(from) {
		return nil
	}
	for span := time.Minute; ; span *= 4 {
		start := to.Add(-span)
		if !start.After(from) || span > maxSpan {
			start = from
		}
		var times []time.Time
		for at := t.Next(start.Add(-time.Millisecond)); !at.IsZero() && !at.After(to); at = t.Next(at) {
			times = append(times, at)
		}
		if len(times) >= n || start.Equal(from) {
			return slices.Clone(times[max(0, len(times)-n):])
		}
	}
}
