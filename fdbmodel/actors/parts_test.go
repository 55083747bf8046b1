package actors_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

func part(name, value string) actors.Part {
	return actors.Part{Name: name, PartRecord: actors.PartRecord{Value: []byte(value)}}
}

// set ends an attempt that writes parts of an actor, and its state if value is not empty.
func set(s *modeltest.Stage, key, value string, parts ...actors.Part) {
	s.T.Helper()
	change := actors.Change{Read: read(s, key), Write: value != "", Value: []byte(value), Parts: parts}
	f := claim(s)
	beside, _, err := actors.Of(s.C).Turn(f, []actors.Change{change})
	require.NoError(s.T, err)
	done := fdbmodel.Completion{Future: f, Result: &layout.Result{}, Beside: beside}
	require.Equal(s.T, fdbmodel.Applied, s.Finish(s.Worker, done))
	require.Equal(s.T, layout.Realized, s.State(f.ID))
}

// valuesOf is a list of parts as text.
func valuesOf(t *testing.T, parts []actors.Part) string {
	text := make([]string, len(parts))
	for i := range parts {
		require.NoError(t, parts[i].Err)
		text[i] = parts[i].Name + "=" + string(parts[i].Value)
	}
	return strings.Join(text, " ")
}

func present(s *modeltest.Stage, key string, which actors.PartRange) string {
	s.T.Helper()
	parts, next, err := actors.Of(s.C).Parts(s.Ctx, ref(key), which)
	require.NoError(s.T, err)
	require.Empty(s.T, next)
	return valuesOf(s.T, parts)
}

// TestATurnThatWritesPartsLeavesTheState has turns write parts alone, with a state, and of an actor that has none.
func TestATurnThatWritesPartsLeavesTheState(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	set(s, "a", "state")
	set(s, "a", "", part("x", "1"), part("y", "2"))
	a := read(s, "a")
	require.Equal(t, "state", string(a.Value))
	require.EqualValues(t, 2, a.Head.Version, "parts make a new version")
	set(s, "a", "", actors.Part{Name: "x", Removed: true}, part("z", ""))
	require.Equal(t, "y=2 z=", present(s, "a", actors.PartRange{}))
	set(s, "b", "", actors.Part{Name: "x", Removed: true})
	b := read(s, "b")
	require.False(t, b.Exists(), "it has removed what is not there")
	set(s, "b", "", part("x", "1"))
	require.True(t, read(s, "b").Head.Parts)
	set(s, "b", "state")
	require.True(t, read(s, "b").Head.Parts)
	require.Equal(t, "x=1", present(s, "b", actors.PartRange{}))
	s.RequireSound()
}

// TestATurnOverPartsLeavesHowTheStateIsStored has code of another schema write parts alone, and remove one that is not
// there.
func TestATurnOverPartsLeavesHowTheStateIsStored(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	end := func(change actors.Change) actors.Head {
		change.Read = read(s, "a")
		f := claim(s)
		beside, _, err := actors.Of(s.C).Turn(f, []actors.Change{change})
		require.NoError(t, err)
		s.Finish(s.Worker, fdbmodel.Completion{Future: f, Result: &layout.Result{}, Beside: beside})
		return read(s, "a").Head
	}
	written := end(actors.Change{Write: true, Value: []byte("state"), Codec: layout.CodecMsgpack, Schema: 3})
	require.Equal(t, written, end(actors.Change{Parts: []actors.Part{{Name: "x", Removed: true}}}), "it changes nothing")
	h := end(actors.Change{Value: []byte("other"), Codec: layout.CodecJSON, Schema: 4,
		Parts: []actors.Part{part("x", "1")}})
	require.Equal(t, 3, h.Schema)
	require.Equal(t, layout.CodecMsgpack, h.Codec)
	require.EqualValues(t, len("state"), h.Size)
	require.EqualValues(t, 2, h.Version)
	require.True(t, h.Parts)
	s.RequireSound()
}

// TestPartsGoWithTheirActor removes actors with parts, by a turn and without one.
func TestPartsGoWithTheirActor(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for _, key := range []string{"a", "ab", "b"} {
		set(s, key, "", part("x", key))
	}
	require.NoError(t, actors.Of(s.C).Delete(s.Ctx, ref("b")))
	f := claim(s)
	beside, _, err := actors.Of(s.C).Turn(f, []actors.Change{{Read: read(s, "a"), Delete: true,
		Parts: []actors.Part{part("y", "1")}}})
	require.NoError(t, err)
	s.Finish(s.Worker, fdbmodel.Completion{Future: f, Result: &layout.Result{}, Beside: beside})
	for key, want := range map[string]string{"a": "", "ab": "x=ab", "b": ""} {
		require.Equal(t, want, present(s, key, actors.PartRange{}), key)
	}
	_, err = kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, func(tx kv.Attempt) error {
		tx.Set(actors.Keys(s.C.Keys()).Part(ref("damaged"), "x"), nil)
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, actors.Of(s.C).Delete(s.Ctx, ref("damaged")))
	require.ErrorIs(t, actors.Of(s.C).Delete(s.Ctx, ref("damaged")), fdbmodel.ErrNotFound)
	set(s, "a", "anew")
	require.False(t, read(s, "a").Head.Parts)
	s.RequireSound()
}

// TestPartsForAnAttempt has an attempt read parts that were written after its claim, and after the state that it has.
func TestPartsForAnAttempt(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	all := actors.Of(s.C)
	f := claim(s)
	none := read(s, "a")
	set(s, "a", "", part("x", "1"))
	first := read(s, "a")
	get := func(state actors.State) (string, bool) {
		parts, next, same, err := all.PartsFor(s.Ctx, s.Worker, f, &state, actors.PartRange{Name: "x"})
		require.NoError(t, err)
		require.Empty(t, next)
		return valuesOf(t, parts), same
	}
	for _, age := range []time.Duration{0, time.Minute} { // of the claim
		s.Clock.Advance(age)
		got, same := get(first)
		require.Equal(t, "x=1", got, "not those of the claim")
		require.True(t, same || age > 0)
	}
	set(s, "a", "", part("x", "2"))
	got, same := get(first)
	require.Equal(t, "x=2", got)
	require.False(t, same)
	s.Finish(s.Worker, write(s, f, "late", first))
	require.Equal(t, layout.Ready, s.State(f.ID), "it has seen a part that its state had not")
	got, same = get(none)
	require.Empty(t, got, "the end would not notice parts that came and went")
	require.True(t, same)
}

// TestPartsOfAReader reads parts as they were with a state, as long as the store knows.
func TestPartsOfAReader(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	all := actors.Of(s.C)
	set(s, "a", "", part("x", "1"))
	then := read(s, "a")
	get := func() (string, error) {
		parts, _, err := all.PartsOf(s.Ctx, &then, actors.PartRange{})
		return valuesOf(t, parts), err
	}
	forgetful, reliable := faultkv.Options{LateAfter: -1}, faultkv.Options{LateAfter: -1}
	forgetful.Read[faultkv.TooOld] = 0.3
	changed := 0
	for n := range 60 {
		if n == 30 {
			s.Faults.SetOptions(reliable)
			set(s, "a", "", part("x", "2"))
		}
		s.Faults.SetOptions(forgetful)
		forgetful.Seed++
		got, err := get()
		if n >= 30 && errors.Is(err, actors.ErrPartsChanged) {
			changed++
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "x=1", got)
	}
	require.Positive(t, changed)
	require.Less(t, changed, 30)
	s.Faults.SetOptions(reliable)
	require.Equal(t, "x=2", present(s, "a", actors.PartRange{}))
}

func TestPagesOfParts(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	all := actors.Of(s.C)
	var parts []actors.Part
	for i := range 150 {
		parts = append(parts, part(fmt.Sprintf("line/%03d", i), "v"))
	}
	set(s, "a", "", append(parts, part("line", "v"), part("line/\x00", "v"), part("linen", "v"), part("\x00", "v"))...)
	for limit, pages := range map[int]int{0: 2, 7: 22, 151: 2} {
		seen, after := 0, "line/"
		for n := 1; after != ""; n++ {
			page, next, err := all.Parts(s.Ctx, ref("a"), actors.PartRange{Prefix: "line/", After: after, Limit: limit})
			require.NoError(t, err)
			for _, p := range page {
				require.Greater(t, p.Name, after)
				after = p.Name
			}
			seen += len(page)
			require.LessOrEqual(t, n, pages)
			after = next
		}
		require.Equal(t, 151, seen)
	}
	_, next, err := all.Parts(s.Ctx, ref("a"), actors.PartRange{Prefix: "line/", After: "line/050", Limit: 99})
	require.NoError(t, err)
	require.Empty(t, next, "a full page is the last one")
	for _, which := range []actors.PartRange{{Name: "lin"}, {Prefix: "line/1", After: "line/2"}, {Prefix: "x"}} {
		require.Empty(t, present(s, "a", which))
	}
	require.Equal(t, "\x00=v", present(s, "a", actors.PartRange{Prefix: "\x00"}))
	require.Equal(t, "linen=v", present(s, "a", actors.PartRange{Prefix: "lin", After: "line/9"}))
	_, _, err = all.Parts(s.Ctx, actors.Ref{Type: "a/b", Key: "k"}, actors.PartRange{})
	require.ErrorIs(t, err, layout.ErrBadName)
	_, err = kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, func(tx kv.Attempt) error {
		tx.Set(actors.Keys(s.C.Keys()).Part(ref("a"), "line"), []byte{1})
		return nil
	})
	require.NoError(t, err)
	damaged, _, err := all.Parts(s.Ctx, ref("a"), actors.PartRange{Name: "line"})
	require.NoError(t, err)
	require.ErrorIs(t, damaged[0].Err, layout.ErrBadRecord)
}

// TestPagesOfLargeParts has a page end where its parts take about 1 MB.
func TestPagesOfLargeParts(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for i := range 20 {
		set(s, "a", "", part(fmt.Sprintf("%02d", i), strings.Repeat("x", actors.MaxPart)))
	}
	page, next, err := actors.Of(s.C).Parts(s.Ctx, ref("a"), actors.PartRange{})
	require.NoError(t, err)
	require.Len(t, page, 16)
	require.Equal(t, "15", next)
	page, next, err = actors.Of(s.C).Parts(s.Ctx, ref("a"), actors.PartRange{After: next})
	require.NoError(t, err)
	require.Len(t, page, 4)
	require.Empty(t, next)
}

func TestLimitsOfParts(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	f := claim(s)
	large, many := make([]actors.Part, 17), make([]actors.Part, actors.MaxTurnParts+1)
	for i := range large {
		large[i] = part(fmt.Sprint(i), strings.Repeat("x", actors.MaxPart))
	}
	for i := range many {
		many[i] = part(fmt.Sprint(i), "")
	}
	turn := func(parts ...actors.Part) error {
		_, _, err := actors.Of(s.C).Turn(f, []actors.Change{{Read: read(s, "a"), Parts: parts}})
		return err
	}
	require.NoError(t, turn(large[:15]...))
	require.ErrorIs(t, turn(large...), fdbmodel.ErrTooLarge)
	require.NoError(t, turn(many[1:]...))
	require.ErrorIs(t, turn(many...), fdbmodel.ErrTooLarge)
	require.ErrorIs(t, turn(part("x", strings.Repeat("x", actors.MaxPart+1))), fdbmodel.ErrTooLarge)
	for _, name := range []string{"", "\xff", strings.Repeat("n", actors.MaxPartName+1)} {
		require.ErrorIs(t, turn(part(name, "v")), layout.ErrBadName)
	}
}
