package actors_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestStatesGrowAndShrink has states lie within their head and beside it in turn, changed alone, with parts and by
// turns over parts that leave them.
func TestStatesGrowAndShrink(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	small, large := strings.Repeat("s", actors.MaxInHead), strings.Repeat("l", actors.MaxInHead+1)
	of := func(r actors.Ref) []byte { return actors.Keys(s.C.Keys()).State(r) }
	require.Equal(t, 2, turn(s, "a", actors.Change{Write: true, Value: []byte(small),
		Parts: []actors.Part{part("x", "1")}}), "head and part")
	for n, c := range []struct {
		value  string
		writes int
	}{{large, 2}, {large, 2}, {small, 2}, {small, 1}, {"", 1}, {large, 2}, {"", 2}, {small, 1}, {large, 2}} {
		require.Equal(t, c.writes, turn(s, "a", actors.Change{Write: true, Value: []byte(c.value)}), n)
		a := read(s, "a")
		require.Equal(t, c.value, string(a.Value), n)
		require.NotNil(t, a.Value, n)
		require.Equal(t, len(a.Value) > actors.MaxInHead, s.Read(of(a.Ref)) != nil, n)
		listed, _, err := actors.Of(s.C).ListStates(s.Ctx, "account", "", 2)
		require.NoError(t, err)
		require.Equal(t, c.value, string(listed[0].Value), n)
		listed, _, err = actors.Of(s.C).List(s.Ctx, "account", "", 2)
		require.NoError(t, err)
		require.Empty(t, listed[0].Value)
		s.RequireSound()
	}
	require.Equal(t, 2, turn(s, "a", actors.Change{Parts: []actors.Part{part("x", "2")}}), "not the state, which stays")
	require.Equal(t, large, string(read(s, "a").Value))
	require.Equal(t, 3, turn(s, "a", actors.Change{Delete: true}), "head, state and the parts")
	require.Nil(t, s.Read(of(ref("a"))))
	s.RequireSound()
}

// TestSmallStatesBesideTheirHeads reads and changes states as a version of Futura wrote them that kept each one in a
// key of its own.
func TestSmallStatesBesideTheirHeads(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	keys := actors.Keys(s.C.Keys())
	for key, c := range map[string]actors.Change{
		"write": {Write: true, Value: []byte("new")}, "parts": {Parts: []actors.Part{part("x", "1")}},
		"delete": {Delete: true}, "read": {}, "grow": {Write: true, Value: make([]byte, actors.MaxInHead+1)},
	} {
		turn(s, key, actors.Change{Write: true, Value: []byte("old")})
		head, state := keys.Head(ref(key)), keys.State(ref(key))
		var record actors.HeadRecord
		require.NoError(t, layout.Decode(head, s.Read(head), &record))
		record.State = nil
		s.Store(head, layout.Encode(&record))
		s.Store(state, []byte("old"))
		s.RequireSound()
		require.Equal(t, "old", string(read(s, key).Value))
		listed, _, err := actors.Of(s.C).ListStates(s.Ctx, "account", "", 9)
		require.NoError(t, err)
		for _, one := range listed {
			require.NoError(t, one.Err)
			require.False(t, one.Key == key && string(one.Value) != "old")
		}
		turn(s, key, c)
		after := read(s, key)
		switch {
		case c.Delete:
			require.False(t, after.Exists())
		case c.Write:
			require.Equal(t, c.Value, after.Value)
		default:
			require.Equal(t, "old", string(after.Value))
		}
		require.Equal(t, key == "read" || key == "grow", s.Read(state) != nil, key)
		s.RequireSound()
	}
}

// turn ends an attempt with a change of an actor, and returns how many keys and ranges that takes.
func turn(s *modeltest.Stage, key string, c actors.Change) int {
	f := claim(s)
	c.Read = read(s, key)
	beside, _, err := actors.Of(s.C).Turn(f, []actors.Change{c})
	require.NoError(s.T, err)
	s.Finish(s.Worker, fdbmodel.Completion{Future: f, Result: &layout.Result{}, Beside: beside})
	return len(beside.Write) + len(beside.Clear)
}
