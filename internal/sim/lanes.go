package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// The kinds of lanes. Each lane of strict has one future at a time, in order.
const (
	laneStrict = "strict"
	lanePair   = "pair"
	laneTurns  = "turns"
	laneRated  = "rated"
	laneAside  = "aside"
)

// fastest is the shortest time between two admissions to a lane of rated.
const fastest = 5 * time.Second

// laneKind is a kind with the settings that it may have, the first ones at the begin and
// at the end.
type laneKind struct {
	name     string
	keys     int
	settings []layout.LaneKind
}

// laneKinds returns the kinds of lanes of the workload.
func (w *world) laneKinds() []laneKind {
	kinds := []laneKind{
		{laneStrict, 2, []layout.LaneKind{{Width: 1}}},
		{lanePair, 2, []layout.LaneKind{{Width: 2}, {Width: 1}, {Width: 3}}},
		{laneTurns, 4, []layout.LaneKind{{Width: 2, Total: 2}, {Width: 1, Total: 3}, {Width: 2, Total: 1}}},
		{laneRated, 1, []layout.LaneKind{{Width: 50, Rate: 2, Every: 2 * fastest}, {Width: 50, Rate: 1, Every: 2 * fastest}}},
		{laneAside, 1, []layout.LaneKind{{Width: 1, Aside: true}}},
	}
	if w.bundling {
		kinds = append(kinds, bundleKinds()...)
	}
	return kinds
}

// plainKinds is how many kinds of lanes have no bundles, the first ones.
const plainKinds = 5

func (w *world) drawLaneKind() laneKind {
	return w.laneKinds()[w.random.IntN(plainKinds)]
}

func (w *world) drawLaneOf(k laneKind) layout.Lane {
	return layout.Lane{Kind: k.name, Key: string(rune('a' + w.random.IntN(k.keys)))}
}

// drawLane puts some futures in lanes. One that awaits others has none: they may be in
// the same.
func (c *clientProcess) drawLane(s *fdbmodel.Submission) {
	w := c.world
	if c.drawBundled(s) || s.Spec.Function == "go:"+fnParent || s.Spec.MustBeNear || w.random.IntN(5) < 3 {
		return
	}
	s.Spec.Lane = w.drawLaneOf(w.drawLaneKind())
}

// setLanes sets the kinds of lanes, and has all go on.
func (w *world) setLanes(ctx context.Context) error {
	for _, k := range w.laneKinds() {
		if err := w.insist(ctx, func() error { return w.client.setLaneKind(ctx, k.name, k.settings[0]) }); err != nil {
			return err
		}
		if err := w.insist(ctx, func() error { return w.client.pauseKind(ctx, k.name, false) }); err != nil {
			return err
		}
		for key := range k.keys {
			lane := layout.Lane{Kind: k.name, Key: string(rune('a' + key))}
			if err := w.insist(ctx, func() error { return w.client.pauseLane(ctx, lane, false) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// meddleWithLanes changes the settings of a kind, or pauses a lane or a kind, or has it
// go on, now and then.
func (c *clientProcess) meddleWithLanes(ctx context.Context) error {
	w := c.world
	if w.healing || w.random.IntN(10) > 0 {
		return nil
	}
	kinds := w.laneKinds()
	k := kinds[w.random.IntN(len(kinds))]
	w.report.LaneChanges++
	switch w.random.IntN(4) {
	case 0:
		return c.pauseKind(ctx, k.name, w.random.IntN(4) == 0)
	case 1:
		return c.pauseLane(ctx, w.drawLaneOf(k), w.random.IntN(3) == 0)
	}
	return c.setLaneKind(ctx, k.name, k.settings[w.random.IntN(len(k.settings))])
}

func (c *clientProcess) setLaneKind(ctx context.Context, kind string, k layout.LaneKind) error {
	l := c.world.lanes
	l.tried[kind] = append(l.tried[kind], k)
	before := slices.Clone(l.doubtful[kind])
	l.doubtful[kind] = append(l.doubtful[kind], k)
	err := lanes.Of(c.cluster).SetKind(ctx, kind, k)
	switch {
	case err == nil:
		l.doubtful[kind] = before
	case errors.Is(err, fdbmodel.ErrInUse):
		err = nil // it is to begin or to end to have bundles
	}
	return err
}

func (c *clientProcess) pauseKind(ctx context.Context, kind string, paused bool) error {
	return c.world.lanes.change(kind, paused, func() error { return lanes.Of(c.cluster).PauseKind(ctx, kind, paused) })
}

func (c *clientProcess) pauseLane(ctx context.Context, lane layout.Lane, paused bool) error {
	return c.world.lanes.change(lane.String(), paused, func() error {
		return lanes.Of(c.cluster).Pause(ctx, lane, paused)
	})
}

// laneLog is what is known of lanes outside of the store.
type laneLog struct {
	now int // counts what happens
	// asked is when a future was first submitted, and acknowledged when that was known
	// to have been done.
	asked, acknowledged map[layout.ID]int
	// tried are the settings that a kind may have had since the last look, doubtful
	// those of which it is not known whether they were set.
	tried, doubtful map[string][]layout.LaneKind
	// open is how many futures a lane had admitted at the last look, and a kind.
	open map[string]int
	// paused says whether a lane or a kind is paused, if that is sure: no change of it is
	// under way, nor is there one whose result is unknown.
	paused, sure, unknown map[string]bool
	// running are the runs of futures of a lane.
	running map[layout.Lane][]runKey
	// admitted are the futures of lanes with a rate that were seen to be admitted, and
	// looks when.
	admitted map[layout.ID]bool
	looks    map[layout.Lane][]look
	ended    time.Time // when all futures had
}

// look is how many more futures a lane had admitted at a time.
type look struct {
	at time.Time
	n  int
}

func newLaneLog() *laneLog {
	return &laneLog{
		asked: map[layout.ID]int{}, acknowledged: map[layout.ID]int{}, tried: map[string][]layout.LaneKind{},
		doubtful: map[string][]layout.LaneKind{}, open: map[string]int{}, paused: map[string]bool{},
		sure: map[string]bool{}, unknown: map[string]bool{}, running: map[layout.Lane][]runKey{},
		admitted: map[layout.ID]bool{}, looks: map[layout.Lane][]look{},
	}
}

// ask notes that a future is submitted.
func (l *laneLog) ask(id layout.ID) { l.note(l.asked, id) }

// acknowledge notes that it is known to exist.
func (l *laneLog) acknowledge(id layout.ID) { l.note(l.acknowledged, id) }

func (l *laneLog) note(what map[layout.ID]int, id layout.ID) {
	if what[id] == 0 {
		l.now++
		what[id] = l.now
	}
}

// change pauses a lane or a kind, or has it go on.
func (l *laneLog) change(name string, paused bool, do func() error) error {
	l.sure[name] = false
	err := do()
	l.unknown[name] = l.unknown[name] || err != nil
	l.paused[name], l.sure[name] = paused, !l.unknown[name]
	return err
}

// forgetDoubts is told once no change whose result is unknown can commit any more.
func (l *laneLog) forgetDoubts() {
	clear(l.unknown)
	clear(l.doubtful)
}
