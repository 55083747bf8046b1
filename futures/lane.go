package futures

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Lane names one lane: futures with the same kind and key obey the settings of the
// kind together. A key is UTF-8 of 1 to 256 bytes.
type Lane = layout.Lane

var (
	// ErrBadConfig is returned for settings that no lane could obey.
	ErrBadConfig = layout.ErrBadConfig
	// ErrInUse is returned when a kind of lanes can't be removed, or have its total
	// width set or lifted, because futures of it are admitted or in line.
	ErrInUse = fdbmodel.ErrInUse
	// ErrTooManyKinds is returned by making a kind of lanes in a cluster that has 1,000.
	ErrTooManyKinds = fdbmodel.ErrTooManyKinds
	// ErrLaneFull is returned by a submit if more futures would be in line for a lane than
	// LaneSettings.MaxWaiting. Nothing of its transaction was written.
	ErrLaneFull = fdbmodel.ErrLaneFull
)

// LaneSettings are what all lanes of a kind obey, whichever worker runs their futures.
type LaneSettings struct {
	// Width is how many futures of one lane are admitted at a time, up to 1,000,000.
	// With 1, the default, they run one after the other in their order: higher
	// priorities first, then as they were submitted.
	Width int
	// Total is how many are admitted over all lanes of the kind, which take turns. All
	// admissions of such a kind conflict with one another. Defaults to 0, no bound.
	Total int
	// Rate is how many futures of one lane are admitted in each Every, up to 1,000,000 in
	// up to 31 days. It is the rate of admissions: while no worker takes them, up to Width are admitted, and may
	// start together afterwards. Defaults to no bound.
	Rate  int
	Every time.Duration
	// Aside has a future that waits for its next attempt give its slot to the next in
	// line, and get in line again when it is due. By default it keeps the slot, so that
	// no other overtakes it.
	Aside bool
	// MaxWaiting is how many futures may be in line for one lane, up to 10,000: a submit of more
	// returns ErrLaneFull. Those that were submitted before always get in line: retries, and what
	// waited for a time or for inputs. A submit to a full lane that has this bound reads its line.
	// Defaults to 0, no bound.
	MaxWaiting int
	// Bundle is the Go function, as go:NAME, that runs the futures of a lane together, in
	// bundles of up to Most futures (100 at most, and by default) and Bytes bytes of
	// arguments (4 MiB at most, 1 MB by default). A bundle that is not full, and has more
	// than one, waits for others until it is, up to Linger: at most a minute, 0 by default. Width, Total and
	// Rate count bundles then. See package grouping.
	Bundle string
	Most   int
	Bytes  int64
	Linger time.Duration
	// Target is where the JSON input of a future has the key of its lane, as an RFC 6901
	// pointer such as /table, up to 256 bytes, for submits without the code of the
	// function: over HTTP, or by LaneKind.Task. It needs Bundle. Defaults to none.
	Target string
}

// LaneKind is a kind of lanes.
type LaneKind struct {
	Name string
	LaneSettings
	// Paused says that none of its lanes admits futures.
	Paused bool
}

// LaneView is what is known of a lane.
type LaneView struct {
	Lane
	// Open is how many of its futures are admitted: ready, with a worker, or waiting for
	// a retry or inputs with their slot.
	Open int
	// Lined says that others are in line, and Line are the first of them. More is set if
	// there are others behind those. Lanes leaves Line out.
	Lined bool
	Line  []ID
	More  bool
	// Waiting is how many are in line, up to the MaxWaiting of the kind; 0 for a kind without one.
	// Lanes leaves both out.
	Waiting, MaxWaiting int
	// Paused says that it admits none until it is resumed. The pause of its kind is not
	// shown here.
	Paused bool
	// HeldUntil is when its rate lets it admit the next one, if that holds it back.
	HeldUntil time.Time
	// InTurn says that it waits for its turn within the total width of its kind.
	InTurn bool
}

// SetLaneKind makes a kind of lanes, or changes its settings; every process of a program
// may call it with the same ones. All processes obey them from then on, and what is
// admitted stays so. A kind that is paused stays paused. It returns ErrBadName,
// ErrBadConfig, ErrTooManyKinds, and ErrInUse if a total width is set or lifted while
// futures of the kind are admitted or in line. An unknown commit is retried and harmless.
func (c *Client) SetLaneKind(ctx context.Context, name string, s LaneSettings) error {
	if err := c.usable(); err != nil {
		return err
	}
	return lanes.Of(c.cluster).SetKind(ctx, name, layout.LaneKind{
		Width: s.Width, Total: s.Total, Rate: s.Rate, Every: s.Every, Aside: s.Aside, MaxWaiting: s.MaxWaiting,
		Bundle: s.Bundle, Most: s.Most, Bytes: s.Bytes, Linger: s.Linger, Target: s.Target,
	})
}

// LaneKinds returns all kinds of lanes in the order of their names. With ErrBadRecord or ErrNewerRecord it returns
// those that can be read.
func (c *Client) LaneKinds(ctx context.Context) ([]LaneKind, error) {
	known, err := lanes.Of(c.cluster).Kinds(ctx)
	if err != nil && !layout.IsUnreadable(err) {
		return nil, err
	}
	kinds := make([]LaneKind, 0, len(known))
	for _, name := range slices.Sorted(maps.Keys(known)) {
		kinds = append(kinds, laneKindOf(name, known[name]))
	}
	return kinds, err
}

// LaneKind returns a kind of lanes. It returns ErrBadName and ErrNotFound.
func (c *Client) LaneKind(ctx context.Context, name string) (LaneKind, error) {
	if err := layout.CheckLaneKind(name); err != nil {
		return LaneKind{}, err
	}
	k, err := lanes.Of(c.cluster).Kind(ctx, name)
	if err != nil {
		return LaneKind{}, err
	}
	return laneKindOf(name, k), nil
}

func laneKindOf(name string, k layout.LaneKind) LaneKind {
	return LaneKind{name, LaneSettings{k.Width, k.Total, k.Rate, k.Every, k.Aside, k.MaxWaiting, k.Bundle, k.Most,
		k.Bytes, k.Linger, k.Target}, k.Paused}
}

// PauseLaneKind keeps all lanes of a kind from admitting futures until ResumeLaneKind is
// called. What is admitted runs. It returns ErrNotFound.
func (c *Client) PauseLaneKind(ctx context.Context, name string) error {
	return lanes.Of(c.cluster).PauseKind(ctx, name, true)
}

// ResumeLaneKind ends a PauseLaneKind, and has the lanes admit what they have room for.
// Lanes that are paused themselves stay so. It returns ErrNotFound.
func (c *Client) ResumeLaneKind(ctx context.Context, name string) error {
	return lanes.Of(c.cluster).PauseKind(ctx, name, false)
}

// RemoveLaneKind removes a kind of lanes, and the pauses of its lanes. It returns ErrNotFound, and ErrInUse while
// futures of it are admitted or in line. Futures of it that are blocked or delayed
// without a slot then obey a width of 1.
func (c *Client) RemoveLaneKind(ctx context.Context, name string) error {
	return lanes.Of(c.cluster).RemoveKind(ctx, name)
}

// PauseLane keeps a lane from admitting futures until ResumeLane is called. What is
// admitted runs. It returns ErrBadName, and ErrNotFound for an unknown kind.
func (c *Client) PauseLane(ctx context.Context, lane Lane) error {
	return lanes.Of(c.cluster).Pause(ctx, lane, true)
}

// ResumeLane ends a PauseLane. It returns ErrBadName, and ErrNotFound for an unknown kind.
func (c *Client) ResumeLane(ctx context.Context, lane Lane) error {
	return lanes.Of(c.cluster).Pause(ctx, lane, false)
}

// maxLanes is the maximum number of lanes, or of futures in line, that one call returns.
const maxLanes = 1000

// Lane returns what is known of a lane, with up to limit of the futures in line, at most
// 1,000. A lane that no future uses is all zero. It returns ErrBadName, and ErrNotFound
// for an unknown kind.
func (c *Client) Lane(ctx context.Context, lane Lane, limit int) (LaneView, error) {
	if err := lane.Check(); err != nil {
		return LaneView{}, err
	}
	k, err := c.LaneKind(ctx, lane.Kind)
	if err != nil {
		return LaneView{}, err
	}
	limit = min(max(limit, 0), maxLanes)
	read, err := lanes.Of(c.cluster).View(ctx, lane, max(limit, k.MaxWaiting))
	v := laneView(&read)
	if k.MaxWaiting > 0 {
		v.Waiting, v.MaxWaiting = min(len(v.Line), k.MaxWaiting), k.MaxWaiting
	}
	if len(v.Line) > limit {
		v.Line, v.More = v.Line[:limit], true
	}
	return v, err
}

// Lanes returns up to limit lanes of a kind that futures use, or that are paused, after
// the one with a key, or the first ones for an empty one: in an order that is the same
// each time, and without those that can't be read. A limit of 0, or above 1,000, is 1,000: fewer come at the end
// alone. It returns ErrBadName and ErrNotFound.
func (c *Client) Lanes(ctx context.Context, kind, after string, limit int) ([]LaneView, error) {
	if _, err := c.LaneKind(ctx, kind); err != nil {
		return nil, err
	}
	if limit <= 0 || limit > maxLanes {
		limit = maxLanes
	}
	list, err := lanes.Of(c.cluster).List(ctx, kind, after, limit)
	views := make([]LaneView, len(list))
	for i := range list {
		views[i] = laneView(&list[i])
	}
	return views, err
}

func laneView(v *lanes.View) LaneView {
	return LaneView{
		Lane: v.Lane, Open: v.Open, Lined: v.Lined, Line: v.Line, More: v.More, Paused: v.Paused,
		HeldUntil: timeOf(v.Due), InTurn: v.Turn,
	}
}
