package fdbmodel

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestAWorkerWhoseHeartBeatIsAlive declares a worker dead by a heartbeat that
// has been followed by another, and takes back the claims of one that lives.
func TestAWorkerWhoseHeartBeatIsAlive(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	r := w.register(9, "go:f")
	w.submit(layout.Spec{Function: "go:f"})
	answer, err := r.Claim(w.ctx, ClaimRequest{Free: r.info.Capacity, Max: 1})
	require.NoError(t, err)
	require.Len(t, answer.Futures, 1)
	members, err := w.c.Workers(w.ctx)
	require.NoError(t, err)
	_, err = r.Heartbeat(w.ctx, layout.Heartbeat{Free: r.info.Capacity, Running: 1})
	require.NoError(t, err)

	dead, err := w.c.DeclareDead(w.ctx, r.ID(), members[0].Beat)
	require.NoError(t, err)
	require.False(t, dead)
	require.Zero(t, w.c.Deaths())
	_, err = w.c.ReapClaims(w.ctx, r.ID())
	require.ErrorIs(t, err, ErrTransition)
	_, err = r.Heartbeat(w.ctx, layout.Heartbeat{Free: r.info.Capacity, Running: 1})
	require.NoError(t, err)
	outcomes, err := r.Finish(w.ctx, []Completion{{Future: &answer.Futures[0], Result: &layout.Result{}}})
	require.NoError(t, err)
	require.Equal(t, []Outcome{Applied}, outcomes)
}

// TestADeathIsCountedOnce has another process declare a worker dead while one does so.
func TestADeathIsCountedOnce(t *testing.T) {
	t.Parallel()
	for name, declare := range map[string]func(*Cluster, context.Context, layout.WorkerID, []byte) error{
		"declared": func(c *Cluster, ctx context.Context, id layout.WorkerID, beat []byte) error {
			_, err := c.DeclareDead(ctx, id, beat)
			return err
		},
		"forced": func(c *Cluster, ctx context.Context, id layout.WorkerID, _ []byte) error {
			_, err := c.ForceReap(ctx, id)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWaker(t)
			r := w.register(9, "go:f")
			members, err := w.c.Workers(w.ctx)
			require.NoError(t, err)
			left := -1 // operations before the other one does
			slow := faultkv.Wrap(w.c.Database(), faultkv.Options{Latency: time.Second,
				Sleep: func(context.Context, time.Duration) error {
					if left--; left == 0 {
						_, err := w.c.DeclareDead(w.ctx, r.ID(), members[0].Beat)
						require.NoError(t, err)
					}
					return nil
				}})
			other, err := Open(w.ctx, slow, w.c.Name(), Options{})
			require.NoError(t, err)
			left = 2
			require.NoError(t, declare(other, w.ctx, r.ID(), members[0].Beat))
			require.EqualValues(t, 1, w.c.Deaths()+other.Deaths())
		})
	}
}

// TestAReturnThatFailsIsTakenUpAgain has a worker come back that lost a claim and
// can't reach the store at first.
func TestAReturnThatFailsIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	w := newWaker(t)
	r := w.register(9, "go:f")
	w.submit(layout.Spec{Function: "go:f"})
	answer, err := r.Claim(w.ctx, ClaimRequest{Free: r.info.Capacity, Max: 1})
	require.NoError(t, err)
	members, err := w.c.Workers(w.ctx)
	require.NoError(t, err)
	dead, err := w.c.DeclareDead(w.ctx, r.ID(), members[0].Beat)
	require.NoError(t, err)
	require.True(t, dead)
	require.EqualValues(t, 1, w.c.Deaths())
	_, err = w.c.ForceReap(w.ctx, r.ID())
	require.NoError(t, err)
	require.EqualValues(t, 1, w.c.Deaths(), "it was dead already")
	_, err = w.c.ReapClaims(w.ctx, r.ID())
	require.NoError(t, err)
	outcomes, err := r.Finish(w.ctx, []Completion{{Future: &answer.Futures[0], Result: &layout.Result{}}})
	require.NoError(t, err)
	require.Equal(t, []Outcome{Lost}, outcomes)
	deaths := func() int {
		row, err := w.c.Get(w.ctx, answer.Futures[0].ID)
		require.NoError(t, err)
		return row.Attempts.Deaths.Len()
	}
	require.Equal(t, 1, deaths())
	away, leave := context.WithCancel(w.ctx)
	leave()
	require.Error(t, r.reappear(away))
	require.Equal(t, 1, deaths())
	require.NoError(t, r.reappear(w.ctx))
	require.Zero(t, deaths())
}
