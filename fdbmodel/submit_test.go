package fdbmodel_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
)

// TestWhatMakesWorkAnother submits an id again, with one field changed at a time.
func TestWhatMakesWorkAnother(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	submission := func() fdbmodel.Submission {
		return fdbmodel.Submission{Key: "k", Args: []byte("args"), Spec: layout.Spec{
			Function: "go:f", Queue: "q", Codec: layout.CodecJSON, Argv: []string{"a"}, Env: map[string]string{"E": "1"},
		}}
	}
	submit := func(s fdbmodel.Submission) (fdbmodel.Submitted, error) {
		answers, err := m.c.Submit(m.ctx, []fdbmodel.Submission{s})
		if err != nil {
			return fdbmodel.Submitted{}, err
		}
		return answers[0], nil
	}
	first, err := submit(submission())
	require.NoError(t, err)
	again, err := submit(submission())
	require.NoError(t, err)
	require.True(t, again.Existed)
	require.Equal(t, first.ID, again.ID)
	for name, change := range map[string]func(*fdbmodel.Submission){
		"function":    func(s *fdbmodel.Submission) { s.Spec.Function = "go:g" },
		"queue":       func(s *fdbmodel.Submission) { s.Spec.Queue = "r" },
		"codec":       func(s *fdbmodel.Submission) { s.Spec.Codec = layout.CodecRaw },
		"argv":        func(s *fdbmodel.Submission) { s.Spec.Argv = []string{"b"} },
		"environment": func(s *fdbmodel.Submission) { s.Spec.Env = map[string]string{"E": "2"} },
		"a variable":  func(s *fdbmodel.Submission) { s.Spec.Env = nil },
		"args":        func(s *fdbmodel.Submission) { s.Args = []byte("argS") },
		"more args":   func(s *fdbmodel.Submission) { s.Args = make([]byte, layout.MaxArgsInKey) },
		"large args":  func(s *fdbmodel.Submission) { s.Args = make([]byte, layout.MaxArgsInKey+1) },
	} {
		s := submission()
		change(&s)
		_, err := submit(s)
		require.ErrorIs(t, err, fdbmodel.ErrIDInUse, name)
	}
}

// TestPiecesThatAreGoneOrCut loses a piece of large arguments, and cuts one.
func TestPiecesThatAreGoneOrCut(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	ids, err := m.c.DrawIDs(2)
	require.NoError(t, err)
	args := bytes.Repeat([]byte("x"), layout.ChunkSize+1)
	ref, err := m.c.PutArgs(m.ctx, ids[0], args)
	require.NoError(t, err)
	submission := fdbmodel.Submission{ID: ids[0], Spec: layout.Spec{Function: "go:f", ArgsRef: &ref}}

	restore := m.replace(m.c.Keys().Chunk(ids[0], ref, 0), nil)
	_, err = m.c.Submit(m.ctx, []fdbmodel.Submission{submission})
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	restore()
	_, err = m.c.Submit(m.ctx, []fdbmodel.Submission{submission})
	require.NoError(t, err)
	got, err := m.c.Args(m.ctx, ids[0], &submission.Spec)
	require.NoError(t, err)
	require.Equal(t, args, got)

	for _, piece := range [][]byte{[]byte("xx"), {}} {
		restore := m.replace(m.c.Keys().Chunk(ids[0], ref, 1), piece)
		_, err = m.c.Args(m.ctx, ids[0], &submission.Spec)
		require.ErrorIs(t, err, layout.ErrBadRecord)
		restore()
	}
	m.replace(m.c.Keys().Chunk(ids[0], ref, 1), nil)
	_, err = m.c.Args(m.ctx, ids[0], &submission.Spec)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}

// TestAnUnreadableFutureExpiresLater has futures of a newer version in a list of
// the done whose time has come: they are kept, and expire once they can be read.
func TestAnUnreadableFutureExpiresLater(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	ids := m.submit(2, nil)
	w := m.worker("w")
	m.finish(w, m.claim(w))
	restore := m.replace(m.c.Keys().Spec(ids[0]), newerRecord)
	removed := func() (n int) {
		m.clock.Advance(m.c.Config().Retention + time.Second)
		for {
			some, next, err := maintenance.Of(m.c).ExpireDone(m.ctx)
			require.NoError(t, err)
			if n += some; next.IsZero() || next.After(m.clock.Now()) {
				return n
			}
		}
	}
	require.Equal(t, 1, removed())
	restore()
	require.Equal(t, 1, removed())
	require.Zero(t, removed())
}

// TestADiscardedFutureLeavesNoPieces discards futures with large arguments in
// each of the ways there are.
func TestADiscardedFutureLeavesNoPieces(t *testing.T) {
	t.Parallel()
	for name, discard := range map[string]func(*mixed, layout.ID) error{
		"one":  func(m *mixed, id layout.ID) error { return m.c.Discard(m.ctx, id) },
		"many": func(m *mixed, id layout.ID) error { _, err := m.c.DiscardMany(m.ctx, []layout.ID{id}); return err },
		"expired": func(m *mixed, _ layout.ID) error {
			m.clock.Advance(m.c.Config().Retention + time.Second)
			_, _, err := maintenance.Of(m.c).ExpireDone(m.ctx)
			return err
		},
	} {
		m := newMixed(t)
		id := m.submit(1, func(s *fdbmodel.Submission) { s.Args = make([]byte, layout.MaxArgsInKey+1) })[0]
		count := func() int {
			tx := m.db.Begin(kv.Options{})
			defer tx.Cancel()
			page, err := tx.GetRange(kv.Prefix(m.c.Keys().ChunksOfFuture(id)), kv.RangeOptions{}).Wait(m.ctx)
			require.NoError(t, err)
			return len(page.Items)
		}
		w := m.worker("w")
		m.finish(w, m.claim(w))
		require.Positive(t, count())
		require.NoError(t, discard(m, id))
		_, err := m.c.Get(m.ctx, id)
		require.ErrorIs(t, err, fdbmodel.ErrNotFound, name)
		require.Zero(t, count(), name)
	}
}
