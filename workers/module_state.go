package workers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// moduleState is the state of an actor as a module sees it in an attempt.
type moduleState struct {
	read    actors.State
	value   []byte
	exists  bool
	changed bool
}

// state returns the state of the actor in whose lane the future is.
func (h *moduleHost) state(ctx context.Context) (*moduleState, error) {
	ref, calls := actors.OfLane(h.job.future.Spec.Lane)
	if !calls {
		return nil, Permanent(fmt.Errorf("a module asked for the state of its actor, and future %s is no call of one: call "+
			"it as a method of an actor, in the lane actor.TYPE/KEY", h.job.future.ID))
	}
	seen, err := h.job.turn().Actors(ctx, []actors.Ref{ref}, seeModuleState)
	if err != nil {
		return nil, err
	}
	return seen[0].(*moduleState), nil
}

// seeModuleState implements taskcontext.JoinActor.
func seeModuleState(s *actors.State) (seen any, end func() (actors.Change, error), err error) {
	if s.Head.Schema > 0 {
		return nil, nil, fmt.Errorf("actor %s has a state of schema %d, which a module does not know: call it by the code "+
			"that has written it", s.Ref, s.Head.Schema)
	}
	m := &moduleState{read: *s, value: s.Value, exists: s.Exists()}
	return m, m.end, nil
}

// end says what the turn makes of the actor.
func (m *moduleState) end() (actors.Change, error) {
	c := actors.Change{Read: m.read, Delete: m.changed && !m.exists, Value: m.value, Codec: layout.CodecRaw}
	c.Write = m.changed && m.exists && !(m.read.Exists() && bytes.Equal(m.value, m.read.Value))
	if c.Write && json.Valid(m.value) {
		c.Codec = layout.CodecJSON
	}
	return c, nil
}

// getState returns the state, as the module has left it.
func (h *moduleHost) getState(ctx context.Context) (value []byte, exists bool, err error) {
	m, err := h.state(ctx)
	if err != nil {
		return nil, false, err
	}
	return m.value, m.exists, nil
}

// changeState has the end of the attempt write a state, or remove it.
func (h *moduleHost) changeState(ctx context.Context, value []byte, exists bool) error {
	h.changed = true
	if len(value) > actors.MaxState {
		return Permanent(fmt.Errorf("a module gave its actor a state of more than %d bytes: divide it among actors",
			actors.MaxState))
	}
	m, err := h.state(ctx)
	if err != nil {
		return err
	}
	m.value, m.exists, m.changed = bytes.Clone(value), exists, true
	return nil
}
