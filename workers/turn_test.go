package workers

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
)

// TestATurnWhoseCallFailsIsDropped has middleware turn the error of a function into a result: what the
// function made of actors, and sent, does not come with it.
func TestATurnWhoseCallFailsIsDropped(t *testing.T) {
	t.Parallel()
	b := realBed(t)
	swallow := func(next Call) Call {
		return func(ctx context.Context, args []byte) ([]byte, error) {
			_, _ = next(ctx, args)
			return []byte("done"), nil
		}
	}
	b.start(Options{Slots: 1, Middleware: []Middleware{swallow}}, map[string]Function{
		"f": func(ctx context.Context, _ []byte) ([]byte, error) {
			turn := ctx.Value(taskcontext.TurnKey{}).(taskcontext.Turn)
			subs, err := b.cluster.Prepare(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"}}})
			if err != nil {
				return nil, err
			}
			return nil, errors.Join(turn.Submit(subs), errors.New("failed"))
		},
	})
	id := b.one("go:f")
	b.awaitOver(id)
	counts := b.counts()
	require.Equal(t, []int64{1, 0, 0}, []int64{counts[layout.Realized], counts[layout.Ready], counts[layout.Claimed]})
}

// TestWhatHasNoTurn is a bundle, a member of one, and a function on a peer: what they would change and send has no
// end of its own to come with.
func TestWhatHasNoTurn(t *testing.T) {
	t.Parallel()
	for _, j := range []*job{
		{sourced: true, future: fdbmodel.ClaimedFuture{Spec: &layout.Spec{}}},
		{future: fdbmodel.ClaimedFuture{Spec: &layout.Spec{Bundle: true}}},
		{future: fdbmodel.ClaimedFuture{Spec: &layout.Spec{Member: true}}},
	} {
		_, err := j.turn().Actors(t.Context(), []actors.Ref{{Type: "account", Key: "a"}}, nil)
		for _, err := range []error{err, j.turn().Submit(make([]fdbmodel.Submission, 1))} {
			var permanent interface{ Permanent() bool }
			require.ErrorAs(t, err, &permanent)
			require.True(t, permanent.Permanent())
		}
	}
}

// TestAnActorThatIsAskedForTwiceJoinsOnce has one call ask for an actor twice, and for as many as a turn may have.
func TestAnActorThatIsAskedForTwiceJoinsOnce(t *testing.T) {
	t.Parallel()
	b := realBed(t)
	refs := []actors.Ref{{Type: "account", Key: "a"}, {Type: "account", Key: "a"}}
	for i := range actors.MaxTurn - 1 {
		refs = append(refs, actors.Ref{Type: "account", Key: strconv.Itoa(i)})
	}
	joined := 0
	join := func(*actors.State) (any, func() (actors.Change, error), error) {
		joined++
		return joined, func() (actors.Change, error) { return actors.Change{}, nil }, nil
	}
	var seen []any
	failed := make(chan error, 2)
	b.start(Options{Slots: 1}, map[string]Function{"f": func(ctx context.Context, _ []byte) ([]byte, error) {
		turn := ctx.Value(taskcontext.TurnKey{}).(taskcontext.Turn)
		all, err := turn.Actors(ctx, refs, join)
		seen = all
		failed <- err
		_, err = turn.Actors(ctx, []actors.Ref{{Type: "account", Key: "z"}}, join)
		failed <- err
		return nil, errors.New("that is all")
	}})
	id := b.one("go:f")
	require.NoError(t, <-failed)
	require.ErrorIs(t, <-failed, fdbmodel.ErrTooLarge)
	b.awaitOver(id)
	require.Equal(t, actors.MaxTurn, joined)
	require.Equal(t, seen[0], seen[1])
}

// TestASendThatIsRefusedChangesNothing has sends take the place of one of their name: it counts no more, unless they
// are refused.
func TestASendThatIsRefusedChangesNothing(t *testing.T) {
	t.Parallel()
	send := func(size int) fdbmodel.Submission {
		return fdbmodel.Submission{Args: make([]byte, size), Unique: &fdbmodel.Unique{OnConflict: fdbmodel.ConflictReplace},
			Spec: layout.Spec{Unique: &layout.Unique{Name: "x"}}}
	}
	of := &turn{job: &job{future: fdbmodel.ClaimedFuture{ID: layout.ID{1}, Spec: &layout.Spec{}}}}
	for range 2 {
		require.NoError(t, of.Submit([]fdbmodel.Submission{send(actors.MaxTurnBytes * 3 / 4)}))
	}
	require.Len(t, of.submits, 1)
	require.ErrorIs(t, of.Submit([]fdbmodel.Submission{send(actors.MaxTurnBytes)}), fdbmodel.ErrTooLarge)
	require.Len(t, of.submits, 1, "what was sent before comes with the result")
	require.Equal(t, of.submits[0].Size(), of.size)
}

// TestATurnThatIsOverTakesNoParts has what outlives the function use the turn.
func TestATurnThatIsOverTakesNoParts(t *testing.T) {
	t.Parallel()
	ref := actors.Ref{Type: "account", Key: "a"}
	of := &turn{actors: []*turnActor{{state: actors.State{Ref: ref}}}}
	require.NoError(t, of.SetPart(ref, actors.Part{Name: "x"}))
	require.ErrorIs(t, of.SetPart(actors.Ref{Type: "account", Key: "b"}, actors.Part{Name: "x"}), errTurnOver)
	require.NoError(t, of.end(false))
	require.ErrorIs(t, of.SetPart(ref, actors.Part{Name: "x"}), errTurnOver)
	_, _, err := of.Parts(t.Context(), ref, actors.PartRange{})
	require.ErrorIs(t, err, errTurnOver)
}

// TestAStateThatCannotBeReadCountsNoAttempt has the store fail a function, not the other way round.
func TestAStateThatCannotBeReadCountsNoAttempt(t *testing.T) {
	t.Parallel()
	b := realBed(t)
	failed := make(chan error, 1)
	b.start(Options{Slots: 1}, map[string]Function{"f": func(ctx context.Context, _ []byte) ([]byte, error) {
		turn := ctx.Value(taskcontext.TurnKey{}).(taskcontext.Turn)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err := turn.Actors(ended, []actors.Ref{{Type: "account", Key: "a"}}, nil)
		failed <- err
		return nil, nil
	}})
	b.awaitOver(b.one("go:f"))
	var unrecorded unrecordedError
	require.ErrorAs(t, <-failed, &unrecorded)
}
