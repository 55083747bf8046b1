package timetable

import (
	"fmt"
	"strings"
	"time"

	parser "github.com/robfig/cron/v3"
)

// cron is a parsed crontab line. The library parses it into sets of bits; stepping
// from one time to the next is done here, because the library's own leaves out times
// that the clock of a zone jumps over, and repeats those that exist twice.
type cron struct {
	second, minute, hour, dom, month, dow uint64
	anyDom, anyDow                        bool
	hourly                                bool // the hour is *
}

// star marks a field that was given as *.
const star = 1 << 63

var descriptors = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

const cronHelp = "use five fields (minute hour day-of-month month day-of-week), six with the second first, or " +
	"@yearly, @monthly, @weekly, @daily or @hourly"

func parseCron(line string) (*cron, error) {
	if len(line) > maxCron {
		return nil, fmt.Errorf("%w: crontab line of %d bytes: at most %d", ErrInvalid, len(line), maxCron)
	}
	text := strings.TrimSpace(line)
	if full, ok := descriptors[text]; ok {
		text = full
	}
	fields := strings.Fields(text)
	if len(fields) != 5 && len(fields) != 6 || strings.ContainsAny(text, "=@?") {
		return nil, fmt.Errorf("%w: crontab line %q: %s", ErrInvalid, line, cronHelp)
	}
	if len(fields) == 5 {
		fields = append([]string{"0"}, fields...)
	}
	// The seventh day of the week is Sunday to most crontabs, not to the library.
	fields[5] = sundays(fields[5])
	parsed, err := parser.NewParser(parser.Second | parser.Minute | parser.Hour | parser.Dom | parser.Month |
		parser.Dow).Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, fmt.Errorf("%w: crontab line %q: %v; %s", ErrInvalid, line, err, cronHelp)
	}
	s := parsed.(*parser.SpecSchedule)
	c := &cron{
		second: s.Second, minute: s.Minute, hour: s.Hour, dom: s.Dom, month: s.Month, dow: s.Dow,
		anyDom: s.Dom&star != 0, anyDow: s.Dow&star != 0, hourly: fields[2] == "*",
	}
	if c.nextWall(civil{year: 2000, month: 1, day: 1}, 2000+horizonYears).year == 0 {
		return nil, fmt.Errorf("%w: crontab line %q: there is no such day", ErrInvalid, line)
	}
	return c, nil
}

// sundays writes the day of the week 7 as 0.
func sundays(field string) string {
	parts := strings.Split(field, ",")
	for i, part := range parts {
		switch {
		case part == "7":
			parts[i] = "0"
		case strings.HasSuffix(part, "-7"):
			parts[i] = strings.TrimSuffix(part, "7") + "6,0"
		}
	}
	return strings.Join(parts, ",")
}

// next returns the first time after a moment, by the clock of its location, the
// zero time if there is none before end.
//
// It goes from one stretch of constant offset to the next: within one, the clock
// shows each time once.
func (c *cron) next(after, end time.Time) time.Time {
	for at := after; at.Before(end); {
		start, stop := at.ZoneBounds()
		shift := shiftOf(at)
		from, entered := wallOf(at.Add(shift)), at.After(after)
		if !entered {
			from = wallOf(at.Add(shift).Truncate(time.Second).Add(time.Second))
		}
		if !start.IsZero() && !c.hourly {
			left, began := wallOf(start.Add(shiftOf(start.Add(-1)))), wallOf(start.Add(shift))
			if entered && left.before(began) && c.nextWall(left, began.year+1).before(began) {
				return start // stands for what the clock jumped over
			}
			if from.before(left) {
				from = left // the clock was set back: what lies before has been
			}
		}
		wall := c.nextWall(from, from.year+horizonYears)
		if wall.year == 0 {
			return time.Time{}
		}
		found := wall.instant().Add(-shift).In(after.Location())
		if stop.IsZero() || found.Before(stop) {
			return found
		}
		at = stop
	}
	return time.Time{}
}

// shiftOf returns by how much the clock of its location is ahead of UTC at a moment.
func shiftOf(at time.Time) time.Duration {
	_, seconds := at.Zone()
	return time.Duration(seconds) * time.Second
}

// nextWall returns the first matching time from one on, inclusive, before a year.
func (c *cron) nextWall(w civil, before int) civil {
	for w.year < before {
		switch {
		case !has(c.month, w.month):
			w = civil{w.year, w.month + 1, 1, 0, 0, 0}
		case !c.hasDay(w):
			w = civil{w.year, w.month, w.day + 1, 0, 0, 0}
		case !has(c.hour, w.hour):
			w = civil{w.year, w.month, w.day, w.hour + 1, 0, 0}
		case !has(c.minute, w.minute):
			w = civil{w.year, w.month, w.day, w.hour, w.minute + 1, 0}
		case !has(c.second, w.second):
			w.second++
		default:
			return w
		}
		w = w.carried()
	}
	return civil{}
}

func has(set uint64, bit int) bool { return set&(1<<uint(bit)) != 0 }

// hasDay follows the usual crontab: where both days are restricted, either will do.
func (c *cron) hasDay(w civil) bool {
	dom := has(c.dom, w.day)
	dow := has(c.dow, int(w.instant().Weekday()))
	if c.anyDom || c.anyDow {
		return dom && dow
	}
	return dom || dow
}

// carried makes a time of one whose parts are one too high.
func (w civil) carried() civil {
	if w.second > 59 {
		w.second, w.minute = 0, w.minute+1
	}
	if w.minute > 59 {
		w.minute, w.hour = 0, w.hour+1
	}
	if w.hour > 23 {
		w.hour, w.day = 0, w.day+1
	}
	if w.day > 28 && w.day > daysIn(w.year, w.month) {
		w.day, w.month = 1, w.month+1
	}
	if w.month > 12 {
		w.month, w.year = 1, w.year+1
	}
	return w
}

func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

const horizonYears = 9

// civil is a date and time as a clock on the wall shows it.
type civil struct {
	year                             int
	month, day, hour, minute, second int
}

// wallOf returns what a clock shows at a moment that was shifted by its offset.
func wallOf(t time.Time) civil {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	return civil{year, int(month), day, hour, minute, second}
}

func (w civil) instant() time.Time {
	return time.Date(w.year, time.Month(w.month), w.day, w.hour, w.minute, w.second, 0, time.UTC)
}

func (w civil) before(other civil) bool { return w.year != 0 && w.instant().Before(other.instant()) }
