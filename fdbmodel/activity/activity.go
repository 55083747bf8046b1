// Package activity keeps and reads what happened in a cluster, by minute and by hour: how attempts
// ended, how long they ran and had waited, and how many futures there were. A worker counts the
// ends of its attempts, and writes them with its heartbeats; the janitor counts futures once a
// minute, and adds the records up.
package activity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Spans that are kept.
const (
	// MinutesFor is how long minutes stay minutes after the end of their hour.
	MinutesFor = 2 * time.Hour
	// HoursFor is how long hours are kept.
	HoursFor = 8 * 24 * time.Hour
)

// Series is what happened from one time to another.
type Series struct {
	From, To time.Time
	Step     time.Duration // time.Minute or time.Hour
	Points   []Point       // one for each step, in order
	// Pairs have the totals of each function and queue, by these names.
	Pairs []meter.Pair
	// Counts are those of the last point that has some, at CountedAt, by queue.
	Counts    []meter.QueueCounts
	CountedAt time.Time
}

// Point is what happened within one step.
type Point struct {
	At time.Time // its beginning
	// Succeeded are futures that got their results, Failed those that workers saw fail for
	// good, and FailedAttempts attempts.
	Succeeded, FailedAttempts, Failed int64
	RunTime                           time.Duration
	// Counts are how many futures there were at the last count within the step, nil if there
	// was none.
	Counts *meter.QueueCounts
}

// Read returns what happened in a cluster from one time to another, whole steps that contain
// both. A step is time.Minute, for up to MinutesFor, or time.Hour, for up to HoursFor. It has
// what workers had told with their last heartbeats; minutes that were added up to hours are
// nothing by minute. It reads one page of up to 500 keys after the other, each from a snapshot
// of its own: of what a janitor adds up meanwhile, some may be missing, and none is there
// twice; records that can't be read are left out. ErrBadSpec is returned for other spans and steps.
func Read(ctx context.Context, c *fdbmodel.Cluster, from, to time.Time, step time.Duration) (*Series, error) {
	most := map[time.Duration]time.Duration{time.Minute: MinutesFor, time.Hour: HoursFor}[step]
	if span := to.Sub(from); span <= 0 || span > most {
		return nil, fmt.Errorf("%w: activity from %v to %v by %v: ask for more than nothing, by minute for up to %v, "+
			"or by hour for up to %v", layout.ErrBadSpec, from.UTC(), to.UTC(), step, MinutesFor, HoursFor)
	}
	from, to = from.UTC().Truncate(step), to.UTC().Add(step-1).Truncate(step)
	s := &Series{From: from, To: to, Step: step}
	for at := from; at.Before(to); at = at.Add(step) {
		s.Points = append(s.Points, Point{At: at})
	}
	sums := make([]meter.Activity, len(s.Points))
	steps := []string{meter.Hours, meter.Minutes} // in the order in which nothing counts twice
	if step == time.Minute {
		steps = steps[1:]
	}
	for _, of := range steps {
		err := each(ctx, c, of, from.Unix(), to.Unix(), func(key meter.ActivityKey, a *meter.Activity) error {
			sums[time.Unix(key.At, 0).Sub(from)/step].Add(a)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	s.addUp(sums)
	return s, nil
}

// addUp fills in what the points have.
func (s *Series) addUp(sums []meter.Activity) {
	var total meter.Activity
	for i := range sums {
		point, a := &s.Points[i], &sums[i]
		for j := range a.Pairs {
			p := &a.Pairs[j]
			point.Succeeded, point.RunTime = point.Succeeded+p.Succeeded, point.RunTime+p.RunTime
			point.FailedAttempts, point.Failed = point.FailedAttempts+p.FailedAttempts, point.Failed+p.Failed
		}
		if a.CountedAt != 0 {
			point.Counts = &meter.QueueCounts{}
			for j := range a.Counts {
				point.Counts.Add(&a.Counts[j])
			}
		}
		total.Add(a)
	}
	if total.CountedAt != 0 {
		s.Counts, s.CountedAt = total.Counts, time.UnixMilli(total.CountedAt)
	}
	s.Pairs = total.Pairs
	slices.SortFunc(s.Pairs, func(a, b meter.Pair) int {
		return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.Queue, b.Queue))
	})
}

// ByQueue returns the totals of each queue, by its name, without functions.
func (s *Series) ByQueue() []meter.Pair {
	var sum meter.Activity
	for _, p := range s.Pairs {
		p.Function = ""
		sum.Add(&meter.Activity{Pairs: []meter.Pair{p}})
	}
	slices.SortFunc(sum.Pairs, func(a, b meter.Pair) int { return cmp.Compare(a.Queue, b.Queue) })
	return sum.Pairs
}

// Quantile returns the time below which a part, from 0 to 1, of a histogram's times are, by the
// bounds of their bucket and its share of them: it may be off by up to a factor of two. It
// returns 0 for an empty one.
func Quantile(histogram []int64, part float64) time.Duration {
	total := int64(0)
	for _, n := range histogram {
		total += n
	}
	rank := part * float64(total)
	for i, n := range histogram {
		if n == 0 || rank > float64(n) && i < len(histogram)-1 {
			rank -= float64(n)
			continue
		}
		low, high := time.Duration(0), time.Millisecond<<i
		if i > 0 {
			low = high / 2
		}
		return low + time.Duration(min(rank/float64(n), 1)*float64(high-low))
	}
	return 0
}

// each calls fn with all records of a step that can be read, from one second to another one, which is not
// included.
func each(ctx context.Context, c *fdbmodel.Cluster, step string, from, to int64,
	fn func(meter.ActivityKey, *meter.Activity) error,
) error {
	return eachKey(ctx, c, step, from, to, func(key meter.ActivityKey, item kv.KeyValue) error {
		var a meter.Activity
		if layout.Decode(item.Key, item.Value, &a) != nil {
			return nil // an audit reports it
		}
		return fn(key, &a)
	})
}

// eachKey is each for records that are not decoded.
func eachKey(ctx context.Context, c *fdbmodel.Cluster, step string, from, to int64,
	fn func(meter.ActivityKey, kv.KeyValue) error,
) error {
	keys := c.Keys()
	within := kv.Range{Begin: meter.Keys(keys).ActivityFrom(step, from), End: meter.Keys(keys).ActivityFrom(step, to)}
	return c.EachKey(ctx, within, func(item kv.KeyValue) error {
		key, err := meter.Keys(keys).ParseActivity(item.Key)
		if err != nil {
			return nil // an audit reports it
		}
		return fn(key, item)
	})
}
