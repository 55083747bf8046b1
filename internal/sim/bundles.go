package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/pauses"
	"github.com/futura-run/futura/workers"
)

// fnMember is the function of futures that run in bundles.
const fnMember = "member"

// The kinds of lanes with bundles. The lanes of shared take turns.
const (
	laneBundled = "bundled"
	laneShared  = "shared"
)

// bundleKinds returns the kinds of lanes with bundles. The one has none at times.
func bundleKinds() []laneKind {
	const fn = "go:" + fnMember
	return []laneKind{
		{laneBundled, 2, []layout.LaneKind{
			{Width: 1, Bundle: fn, Most: 3, Linger: 300 * time.Millisecond}, {Width: 2, Bundle: fn, Most: 2},
			{Width: 2, Bundle: fn, Most: 6, Bytes: 20}, {Width: 1, Bundle: fn, Most: 3, Bytes: 30, Linger: time.Second},
			{Width: 2},
		}},
		{laneShared, 3, []layout.LaneKind{
			{Width: 2, Total: 2, Bundle: fn, Most: 3}, {Width: 1, Total: 1, Bundle: fn, Most: 2},
			{Width: 2, Total: 3, Bundle: fn, Most: 3},
		}},
	}
}

// drawBundling draws whether a run has futures in bundles.
func (w *world) drawBundling() bool {
	return rand.New(rand.NewPCG(w.options.Seed, 0xb0d1e)).IntN(2) == 0
}

// bundleLog is what is known of bundles outside of the store.
type bundleLog struct {
	// gathered is how often a member was taken.
	gathered map[layout.ID]int
	// burst is the lane of all futures of a batch, and like the first of them, which the
	// others are like.
	burst layout.Lane
	like  *layout.Spec
	// pausedAt is since when the function of members is paused, if that is sure: no change
	// of it is under way, nor is there one whose result is unknown.
	pausedAt      time.Time
	sure, unknown bool
}

// isMember reports whether a request runs in bundles.
func (r *request) isMember() bool { return r.submission.Spec.Function == "go:"+fnMember }

// behaviour says how the runs of a member end.
func (r *request) behaviour() int { return int(r.submission.ID[10] % 16) }

// How members end; all others are realized.
const (
	memberBroken = iota
	memberFlaky
	memberFlakyToo
	memberLater
	memberSnoozes
	memberPermanent
	memberPoison
)

// drawMember makes a future a member of bundles.
func (c *clientProcess) drawMember(s *fdbmodel.Submission, lane layout.Lane) {
	w := c.world
	s.Spec.Lane, s.Spec.Function, s.Inputs, s.Spec.Pace = lane, "go:"+fnMember, nil, nil
	s.Spec.Near, s.Spec.MustBeNear = layout.ID{}, false
	now := layout.Millis(w.clock.Now())
	switch w.random.IntN(12) {
	case 0:
		s.Spec.Deadline = now + int64(500+w.random.IntN(8000))
	case 1:
		s.Spec.ExpiresAt = now + int64(500+w.random.IntN(8000))
	}
}

// drawBundled puts some futures in lanes with bundles, and all of some batches in one.
func (c *clientProcess) drawBundled(s *fdbmodel.Submission) bool {
	w := c.world
	if !w.bundling || s.Spec.Function == "go:"+fnParent || s.Spec.MustBeNear {
		return false
	}
	lane := w.bundles.burst
	if lane.IsZero() {
		if w.random.IntN(6) > 0 {
			return false
		}
		kinds := bundleKinds()
		lane = w.drawLaneOf(kinds[w.random.IntN(len(kinds))])
	}
	c.drawMember(s, lane)
	if b := w.bundles; !b.burst.IsZero() && w.random.IntN(10) > 0 {
		if b.like == nil {
			b.like = &s.Spec
		}
		s.Spec.Requirements, s.Spec.Timeout, s.NotBefore = b.like.Requirements, b.like.Timeout, time.Time{}
	}
	return true
}

// beginBurst has all futures of some batches be in one lane with bundles.
func (w *world) beginBurst() (n int) {
	if !w.bundling || w.random.IntN(4) > 0 {
		return 0
	}
	kinds := bundleKinds()
	w.bundles.burst = w.drawLaneOf(kinds[w.random.IntN(len(kinds))])
	w.bundles.like = nil
	return 4 + w.random.IntN(9)
}

// pauseMembers pauses the function of members now and then, or has it go on.
func (c *clientProcess) pauseMembers(ctx context.Context) error {
	w := c.world
	if !w.bundling || w.healing || w.random.IntN(60) > 0 {
		return nil
	}
	what, name := pauses.Function, "go:"+fnMember
	if w.random.IntN(3) == 0 {
		return w.bundles.change(w, true, func() error {
			_, err := pauses.Of(c.cluster).Pause(ctx, what, name, "simulated")
			return err
		})
	}
	return w.resumeMembers(ctx)
}

func (w *world) resumeMembers(ctx context.Context) error {
	return w.bundles.change(w, false, func() error {
		_, err := pauses.Of(w.client.cluster).Resume(ctx, pauses.Function, "go:"+fnMember)
		return err
	})
}

func (l *bundleLog) change(w *world, paused bool, do func() error) error {
	was := l.pausedAt
	l.sure = false
	err := do()
	l.unknown = l.unknown || err != nil
	l.sure = !l.unknown
	switch {
	case !paused:
		l.pausedAt = time.Time{}
	case was.IsZero():
		l.pausedAt = w.clock.Now()
	}
	return err
}

// resume has all members go on, once there are no faults.
func (w *world) resume(ctx context.Context) error {
	if !w.bundling {
		return nil
	}
	w.bundles.unknown = false
	return w.insist(ctx, func() error { return w.resumeMembers(ctx) })
}

// linger is how bundles wait for more members: the cluster goes on meanwhile, below them
// on the stack.
func (w *world) linger(p *workerProcess) func(context.Context, time.Time) error {
	return func(ctx context.Context, until time.Time) error {
		w.report.Lingered++
		for ctx.Err() == nil && w.clock.Now().Before(until) {
			if p.process.dead || !slices.Contains(w.workers, p) || !w.clock.Now().Before(w.until) {
				return errInterrupted
			}
			if err := w.round(context.WithoutCancel(ctx)); err != nil {
				w.broken = append(w.broken, err)
				return err
			}
		}
		return context.Cause(ctx)
	}
}

// member is a member as it runs.
type member struct {
	*request
	info workers.Info
	run  int
}

// runBundle is the function of the bundles of a worker.
func (w *world) runBundle(p *workerProcess) workers.BundleFunction {
	return func(ctx context.Context, key string, of []workers.Member) ([]workers.MemberEnd, error) {
		bundle, _ := workers.InfoFrom(ctx)
		members := w.beginMembers(p, &bundle, of)
		defer w.enterBundle(ctx, &bundle, key, members)()
		if !w.healing && (w.random.IntN(20) == 0 || slices.ContainsFunc(members, isPoison)) {
			p.process.die()
		}
		if w.random.IntN(4) == 0 {
			w.takeTime(ctx)
		}
		ends, err := make([]workers.MemberEnd, len(members)), error(nil)
		switch w.random.IntN(60) {
		case 0:
			err = errors.New("the call fails")
		case 1:
			ends = ends[1:]
		}
		for i := range ends {
			ends[i] = w.endMember(members[i])
		}
		if err == nil && w.random.IntN(15) == 0 {
			p.process.stop(ctx)
		}
		for i, m := range members {
			ended := err == nil && len(ends) == len(members) && ends[i].Err == nil
			if ended && ctx.Err() == nil && m.submission.Spec.Deadline == 0 {
				w.log.noFailure(m.name, m.run)
			}
		}
		return ends, err
	}
}

func isPoison(m member) bool { return m.behaviour() == memberPoison }

// takeTime is what slow functions do that don't heed their contexts.
func (w *world) takeTime(ctx context.Context) {
	for left := time.Duration(w.random.Int64N(int64(slowest))); left > 0; left -= timeout / 10 {
		w.clock.Advance(min(left, timeout/10))
	}
	if ctx.Err() != nil {
		w.report.TimedOut++
	}
}

// beginMembers numbers the runs of members.
func (w *world) beginMembers(p *workerProcess, bundle *workers.Info, of []workers.Member) (members []member) {
	for _, m := range of {
		r := w.client.byID[m.ID]
		if r == nil {
			w.broken = append(w.broken, fmt.Errorf("bundle %s has the member %s, which was never submitted", bundle.ID, m.ID))
			continue
		}
		if !bytes.Equal(m.Args, r.name) {
			w.broken = append(w.broken, fmt.Errorf("future %s gets the arguments %.100q", m.ID, m.Args))
		}
		info := workers.Info{ID: m.ID, Token: p.process.gathered[m.ID], Worker: bundle.Worker}
		if m.ID == bundle.ID { // of a lane that had no bundles when it was submitted
			info.Token = bundle.Token
		}
		w.log.ran(r.name)
		w.report.Runs++
		run := w.objects.began(&info)
		w.log.failing[string(r.name)] = append(w.log.failing[string(r.name)], run)
		members = append(members, member{r, info, run})
	}
	return members
}

// endMember says how a member ends that its worker runs.
func (w *world) endMember(m member) workers.MemberEnd {
	runs := w.log.runs(m.name)
	switch m.behaviour() {
	case memberBroken:
		return workers.MemberEnd{Err: errors.New("broken")}
	case memberFlaky, memberFlakyToo:
		if runs%2 == 1 {
			return workers.MemberEnd{Err: errors.New("every other run fails")}
		}
	case memberLater:
		if runs%3 == 1 {
			return workers.MemberEnd{Err: workers.RetryAfter(300*time.Millisecond, errors.New("later"))}
		}
	case memberSnoozes:
		if runs%3 == 1 {
			return workers.MemberEnd{Err: workers.Snooze(300 * time.Millisecond)}
		}
	case memberPermanent:
		return workers.MemberEnd{Err: workers.Permanent(errors.New("for good"))}
	}
	return workers.MemberEnd{Value: w.output(&m.info, m.run, outcomeOf(m.name))}
}
