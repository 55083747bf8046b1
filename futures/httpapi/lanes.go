package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

const lanesPath = "/api/v1/lanes"

// Lane names a lane.
type Lane struct {
	_ struct{} `additionalProperties:"false"` // reject misspelt fields

	Kind string `json:"kind" minLength:"1" maxLength:"64"`
	Key  string `json:"key" minLength:"1" maxLength:"256" doc:"Futures with the same one share the lane"`
}

// of returns the lane that is named, none for nil.
func (l *Lane) of() futures.Lane {
	if l == nil {
		return futures.Lane{}
	}
	return futures.Lane{Kind: l.Kind, Key: l.Key}
}

// LaneSettings are those of a kind of lanes.
type LaneSettings struct {
	_ struct{} `additionalProperties:"false"` // reject misspelt fields

	Width   int   `json:"width,omitempty" minimum:"1" doc:"Futures of one lane admitted at a time; 1 by default"`
	Total   int   `json:"total,omitempty" minimum:"0" doc:"The same over all lanes, which take turns; 0 for no bound"`
	Rate    int   `json:"rate,omitempty" minimum:"0" doc:"Futures of one lane admitted in every_ms; 0 for no bound"`
	EveryMS int64 `json:"every_ms,omitempty" minimum:"0" doc:"The time of the rate; a second by default"`
	Aside   bool  `json:"aside,omitempty" doc:"What waits for its next attempt lets the next in line go first"`

	MaxWaiting int `json:"max_waiting,omitempty" minimum:"0" maximum:"10000" doc:"Most in line for a lane; 0 for no bound"`

	Bundle   string `json:"bundle,omitempty" doc:"The function, as go:NAME, that runs futures of a lane together"`
	Most     int    `json:"most,omitempty" minimum:"0" maximum:"100" doc:"Most futures of a bundle; 100 by default"`
	Bytes    int64  `json:"bytes,omitempty" minimum:"0" doc:"Most bytes of their arguments; 1 MB by default"`
	LingerMS int64  `json:"linger_ms,omitempty" minimum:"0" doc:"How long a bundle with more than one waits for others"`
	Target   string `json:"target,omitempty" maxLength:"256" doc:"Where the input has the key: a JSON pointer"`
}

// LaneKind is a kind of lanes.
type LaneKind struct {
	Name    string `json:"name"`
	Width   int    `json:"width"`
	Total   int    `json:"total,omitempty"`
	Rate    int    `json:"rate,omitempty"`
	EveryMS int64  `json:"every_ms,omitempty"`
	Aside   bool   `json:"aside,omitempty"`
	Paused  bool   `json:"paused,omitempty"`

	MaxWaiting int `json:"max_waiting,omitempty" doc:"Most futures in line for one lane; a submit of more is refused"`

	Bundle   string `json:"bundle,omitempty" doc:"The function that runs futures of a lane together"`
	Most     int    `json:"most,omitempty"`
	Bytes    int64  `json:"bytes,omitempty"`
	LingerMS int64  `json:"linger_ms,omitempty"`
	Target   string `json:"target,omitempty" doc:"Where the input has the key, as a JSON pointer"`
}

// LaneKindOf returns the view of a kind of lanes.
func LaneKindOf(k *futures.LaneKind) LaneKind {
	return LaneKind{
		Name: k.Name, Width: k.Width, Total: k.Total, Rate: k.Rate, EveryMS: k.Every.Milliseconds(), Aside: k.Aside,
		Paused: k.Paused, Bundle: k.Bundle, Most: k.Most, Bytes: k.Bytes, LingerMS: k.Linger.Milliseconds(),
		Target: k.Target, MaxWaiting: k.MaxWaiting,
	}
}

// LaneView is what is known of a lane.
type LaneView struct {
	Kind   string       `json:"kind"`
	Key    string       `json:"key"`
	Open   int          `json:"open" doc:"Futures that are admitted"`
	Lined  bool         `json:"lined" doc:"Futures are in line"`
	Line   []futures.ID `json:"line,omitempty" doc:"The first ones; not in lists"`
	More   bool         `json:"more,omitempty" doc:"There are others behind those"`
	Paused bool         `json:"paused,omitempty"`

	Waiting    int `json:"waiting,omitempty" doc:"How many are in line, up to max_waiting; not in lists"`
	MaxWaiting int `json:"max_waiting,omitempty" doc:"How many may be, if that is bounded; not in lists"`

	HeldUntil *time.Time `json:"held_until,omitempty" doc:"When its rate lets it admit the next one"`
	InTurn    bool       `json:"in_turn,omitempty" doc:"It waits for its turn within the total width of its kind"`
}

// LaneOf returns the view of a lane.
func LaneOf(v *futures.LaneView) LaneView {
	return LaneView{
		Kind: v.Kind, Key: v.Key, Open: v.Open, Lined: v.Lined, Line: v.Line, More: v.More, Paused: v.Paused,
		HeldUntil: TimeIfAny(v.HeldUntil), InTurn: v.InTurn, Waiting: v.Waiting, MaxWaiting: v.MaxWaiting,
	}
}

func (s *server) registerLanes() {
	kind, lane := lanesPath+"/{kind}", lanesPath+"/{kind}/keys/{key}"
	stack.Register(s.Stack, stack.Admin, operation(http.MethodPut, kind, "set-lane-kind", "Make or change a kind of lanes",
		"The settings are those of the body, all of them. A kind that is paused stays paused."), s.setLaneKind)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, lanesPath, "list-lane-kinds", "List the kinds of lanes",
		"In the order of their names, without those that can't be read: the overview tells of them."), s.listLaneKinds)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, kind, "get-lane-kind", "Get a kind of lanes", ""),
		s.getLaneKind)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodDelete, kind, "remove-lane-kind", "Remove a kind of lanes",
		"Refused while futures of it are admitted or in line."), s.removeLaneKind)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodPost, kind+":pause", "pause-lane-kind",
		"Pause a kind of lanes", "None of its lanes admits futures until it is resumed. What is admitted runs."),
		s.pauseLaneKind)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodPost, kind+":resume", "resume-lane-kind",
		"Resume a kind of lanes", "Lanes that are paused themselves stay so."), s.resumeLaneKind)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, kind+"/keys", "list-lanes", "List the lanes of a kind",
		"Those that futures use or that are paused, in an order that is the same each time."), s.listLanes)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, lane, "get-lane", "Get a lane",
		"With the first futures in line. A slash in the key is %2F."), s.getLane)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodPut, lane, "pause-lane", "Pause or resume a lane",
		"A paused lane admits no futures. What is admitted runs."), s.pauseLane)
}

type laneKindInput struct {
	Kind string `path:"kind"`
}

// laneKind answers with a kind as it is after a change, unless that has failed.
func (s *server) laneKind(ctx context.Context, name string, err error) (*body[LaneKind], error) {
	if err != nil {
		return nil, err
	}
	return viewed(LaneKindOf)(s.client.LaneKind(ctx, name))
}

type setLaneKindInput struct {
	Kind string `path:"kind"`
	Body LaneSettings
}

func (s *server) setLaneKind(ctx context.Context, in *setLaneKindInput) (*body[LaneKind], error) {
	b := &in.Body
	if b.EveryMS > maxMillis {
		return nil, stack.BadRequest("every_ms=%d: use at most %d", b.EveryMS, maxMillis)
	}
	if b.LingerMS > maxMillis {
		return nil, stack.BadRequest("linger_ms=%d: use at most a minute", b.LingerMS)
	}
	settings := futures.LaneSettings{
		Width: b.Width, Total: b.Total, Rate: b.Rate, Every: time.Duration(b.EveryMS) * time.Millisecond, Aside: b.Aside,
		Bundle: b.Bundle, Most: b.Most, Bytes: b.Bytes, Linger: time.Duration(b.LingerMS) * time.Millisecond,
		Target: b.Target, MaxWaiting: b.MaxWaiting,
	}
	if settings.Rate > 0 && settings.Every == 0 {
		settings.Every = time.Second
	}
	return s.laneKind(ctx, in.Kind, s.client.SetLaneKind(ctx, in.Kind, settings))
}

type laneKindsOutputBody struct {
	Kinds []LaneKind `json:"kinds"`
}

func (s *server) listLaneKinds(ctx context.Context, _ *struct{}) (*body[laneKindsOutputBody], error) {
	kinds, err := s.client.LaneKinds(ctx)
	if layout.IsUnreadable(err) {
		err = nil
	}
	return answerWith(laneKindsOutputBody{viewsOf(kinds, LaneKindOf)}, err)
}

func (s *server) getLaneKind(ctx context.Context, in *laneKindInput) (*body[LaneKind], error) {
	return s.laneKind(ctx, in.Kind, nil)
}

func (s *server) removeLaneKind(ctx context.Context, in *laneKindInput) (*struct{}, error) {
	return nil, s.client.RemoveLaneKind(ctx, in.Kind)
}

func (s *server) pauseLaneKind(ctx context.Context, in *laneKindInput) (*body[LaneKind], error) {
	return s.laneKind(ctx, in.Kind, s.client.PauseLaneKind(ctx, in.Kind))
}

func (s *server) resumeLaneKind(ctx context.Context, in *laneKindInput) (*body[LaneKind], error) {
	return s.laneKind(ctx, in.Kind, s.client.ResumeLaneKind(ctx, in.Kind))
}

type listLanesInput struct {
	Kind  string `path:"kind"`
	After string `query:"after" maxLength:"256" doc:"The key of the last lane of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type lanesOutputBody struct {
	Lanes []LaneView `json:"lanes"`
}

func (s *server) listLanes(ctx context.Context, in *listLanesInput) (*body[lanesOutputBody], error) {
	if err := stack.Reserve(ctx, int64(in.Limit)*laneBytes); err != nil {
		return nil, err
	}
	list, err := s.client.Lanes(ctx, in.Kind, in.After, in.Limit)
	return answerWith(lanesOutputBody{viewsOf(list, LaneOf)}, err)
}

// laneBytes is what a lane of a list and its view hold in memory, at most.
const laneBytes = 2 << 10

type getLaneInput struct {
	Kind  string `path:"kind"`
	Key   string `path:"key"`
	Limit int    `query:"limit" minimum:"0" maximum:"1000" default:"100" doc:"How many of the futures in line"`
}

func (s *server) getLane(ctx context.Context, in *getLaneInput) (*body[LaneView], error) {
	return viewed(LaneOf)(s.client.Lane(ctx, futures.Lane{Kind: in.Kind, Key: in.Key}, in.Limit))
}

type pauseLaneInput struct {
	Kind string `path:"kind"`
	Key  string `path:"key"`
	Body struct {
		_      struct{} `additionalProperties:"false"`
		Paused bool     `json:"paused"`
	}
}

func (s *server) pauseLane(ctx context.Context, in *pauseLaneInput) (*body[LaneView], error) {
	lane, pause := futures.Lane{Kind: in.Kind, Key: in.Key}, s.client.ResumeLane
	if in.Body.Paused {
		pause = s.client.PauseLane
	}
	if err := pause(ctx, lane); err != nil {
		return nil, err
	}
	return viewed(LaneOf)(s.client.Lane(ctx, lane, 0))
}
