package steps_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/steps"
)

var balance = []byte("balance")

// addOne is a step that adds one to a row, and returns what it was.
func addOne(ctx context.Context, tx kv.Tx) ([]byte, error) {
	was, err := tx.Get(balance).Wait(ctx)
	if err != nil {
		return nil, err
	}
	now := make([]byte, 8)
	copy(now, was)
	tx.Set(balance, binary.LittleEndian.AppendUint64(nil, binary.LittleEndian.Uint64(now)+1))
	return append([]byte("was "), was...), nil
}

func balanceOf(s *modeltest.Stage) (n uint64) {
	require.NoError(s.T, s.C.View(s.Ctx, func(tx kv.Attempt) error {
		value, err := tx.Get(balance).Wait(s.Ctx)
		if err == nil && value != nil {
			n = binary.LittleEndian.Uint64(value)
		}
		return err
	}))
	return n
}

func TestUnknownResultsOfStepsWithEffects(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-step with a row": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)[0]
			strike()
			value, _, err := steps.Of(s.C).WriteTx(s.Ctx, s.Worker, entry(&f, 1, "add", true), addOne)
			require.NoError(s.T, err)
			require.Equal(s.T, "was ", string(value))
			s.Faults.Flush()
			require.EqualValues(s.T, 1, balanceOf(s))
			require.Equal(s.T, []string{"add"}, names(s, id))
		},
		"futura-step that reads nothing": func(s *modeltest.Stage, strike func()) {
			s.Submit()
			f := s.Claim(s.Worker)[0]
			strike()
			_, _, err := steps.Of(s.C).WriteTx(s.Ctx, s.Worker, entry(&f, 1, "add", true),
				func(_ context.Context, tx kv.Tx) ([]byte, error) {
					tx.Atomic(kv.Add, balance, binary.LittleEndian.AppendUint64(nil, 1))
					return nil, nil
				})
			require.NoError(s.T, err)
			s.Faults.Flush()
			require.EqualValues(s.T, 1, balanceOf(s))
		},
		"futura-step with a row that another claim records meanwhile": func(s *modeltest.Stage, strike func()) {
			s.Submit()
			f := s.Claim(s.Worker)[0]
			e := entry(&f, 1, "add", true)
			asked := 0
			e.Ended = func() bool {
				if asked++; asked != 2 {
					return false
				}
				s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Relinquish: true})
				next := s.Claim(s.Worker)[0]
				if len(names(s, f.ID)) == 0 {
					_, _, err := steps.Of(s.C).WriteTx(s.Ctx, s.Worker, entry(&next, 1, "add", true), addOne)
					require.NoError(s.T, err)
				}
				return false
			}
			strike()
			_, _, err := steps.Of(s.C).WriteTx(s.Ctx, s.Worker, e, addOne)
			s.Faults.Flush()
			all, listed := steps.Of(s.C).List(s.Ctx, f.ID)
			require.NoError(s.T, listed)
			require.Len(s.T, all, 1)
			require.Equal(s.T, all[0].Token == f.Token, err == nil, "a step of another claim is not this one")
			if err != nil {
				require.ErrorIs(s.T, err, steps.ErrLost)
			}
			require.EqualValues(s.T, 1, balanceOf(s))
		},
		"futura-step with a row whose claim ends meanwhile": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)[0]
			e := entry(&f, 1, "add", true)
			asked := 0
			e.Ended = func() bool {
				if asked++; asked == 2 {
					s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Relinquish: true})
				}
				return false
			}
			strike()
			_, _, err := steps.Of(s.C).WriteTx(s.Ctx, s.Worker, e, addOne)
			s.Faults.Flush()
			if err != nil {
				require.ErrorIs(s.T, err, steps.ErrLost)
			}
			require.EqualValues(s.T, len(names(s, id)), balanceOf(s), "the record and the row")
			require.Equal(s.T, err == nil, balanceOf(s) == 1, "what it says, and what is there")
		},
	})
}

// TestAStepWithEffectsIsFenced has others change what a step reads, and its claim end, before it commits.
func TestAStepWithEffectsIsFenced(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	f := s.Claim(s.Worker)[0]
	runs := 0
	meanwhile := func(then func()) func(context.Context, kv.Tx) ([]byte, error) {
		return func(ctx context.Context, tx kv.Tx) ([]byte, error) {
			value, err := addOne(ctx, tx)
			if runs++; runs == 1 {
				then()
			}
			return value, err
		}
	}
	value, _, err := steps.Of(s.C).WriteTx(s.Ctx, s.Worker, entry(&f, 1, "one", true), meanwhile(func() {
		_, err := s.C.Transact(s.Ctx, kv.Options{}, func(tx kv.Attempt) error {
			tx.Set(balance, binary.LittleEndian.AppendUint64(nil, 10))
			return nil
		})
		require.NoError(t, err)
	}))
	require.NoError(t, err)
	require.Equal(t, 2, runs)
	require.True(t, bytes.HasSuffix(value, binary.LittleEndian.AppendUint64(nil, 10)))
	require.EqualValues(t, 11, balanceOf(s))

	runs = 0
	_, _, err = steps.Of(s.C).WriteTx(s.Ctx, s.Worker, entry(&f, 2, "two", false), meanwhile(func() {
		s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Relinquish: true})
	}))
	require.ErrorIs(t, err, steps.ErrLost)
	require.Equal(t, 1, runs, "its claim is lost")
	require.EqualValues(t, 11, balanceOf(s))
	require.Equal(t, []string{"one"}, names(s, id))
	s.RequireSound()
}

// TestAStepWithEffectsIsOnRecord has the value that it returned, and its size. One of a claim that the worker ends has
// no effects.
func TestAStepWithEffectsIsOnRecord(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	f := s.Claim(s.Worker)[0]
	e := entry(&f, 1, "add", true)
	e.Record.Value, e.Record.Size = nil, 0
	value, _, err := steps.Of(s.C).WriteTx(s.Ctx, s.Worker, e, addOne)
	require.NoError(t, err)
	all, err := steps.Of(s.C).List(s.Ctx, id)
	require.NoError(t, err)
	require.Equal(t, value, all[0].Value)
	require.EqualValues(t, len(value), all[0].Size)
	late := entry(&f, 2, "late", false)
	late.Ended = func() bool { return true }
	_, _, err = steps.Of(s.C).WriteTx(s.Ctx, s.Worker, late, addOne)
	require.ErrorIs(t, err, steps.ErrLost)
	require.EqualValues(t, 1, balanceOf(s))
	require.Equal(t, []string{"add"}, names(s, id))
}

func TestAStepWithEffectsThatFailsWritesNothing(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	f := s.Claim(s.Worker)[0]
	own := errors.New("own")
	_, _, err := steps.Of(s.C).WriteTx(s.Ctx, s.Worker, entry(&f, 1, "a", true),
		func(ctx context.Context, tx kv.Tx) ([]byte, error) {
			_, err := addOne(ctx, tx)
			require.NoError(t, err)
			return nil, own
		})
	require.ErrorIs(t, err, own)
	_, _, err = steps.Of(s.C).WriteTx(s.Ctx, s.Worker, entry(&f, 1, "a", true),
		func(ctx context.Context, tx kv.Tx) ([]byte, error) {
			_, err := addOne(ctx, tx)
			return make([]byte, steps.MaxInline+1), err
		})
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
	require.Zero(t, balanceOf(s))
	require.Empty(t, names(s, id))
	require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Relinquish: true}))
	s.RequireSound()
}
