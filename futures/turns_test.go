package futures_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// TestAReadOfAnOldStateRunsAgain has another process change an actor whose state a worker has in memory: a call that
// only reads finds that out.
func TestAReadOfAnOldStateRunsAgain(t *testing.T) {
	t.Parallel()
	ctx, db, b := t.Context(), storetest.New(t), newBank()
	c, other := newClient(t, db), newClient(t, db)
	peek := futures.DefineMethod(b.account, "peek", func(_ context.Context, s *account, _ int) (int, error) {
		return s.Balance, nil
	})
	work(t, func() (*workers.Worker, error) { return workers.New(c, workers.Options{Slots: 1}) },
		func(w *workers.Worker) error { return w.Register(b.deposit.Bind()) },
		func(w *workers.Worker) error { return w.Register(peek.Bind()) })
	for want := 1; want < 4; want++ {
		_, err := b.deposit.Call(ctx, c, "alice", want)
		require.NoError(t, err)
		got, err := peek.Call(ctx, c, "alice", 0)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, other.DeleteActor(ctx, "account", "alice"))
		got, err = peek.Call(ctx, c, "alice", 0)
		require.NoError(t, err)
		require.Zero(t, got, "it is gone")
	}
}

// TestAMigratedStateIsWritten has a call leave the very bytes that code of an earlier schema had written.
func TestAMigratedStateIsWritten(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	inCents := b.account.Migrate(1, func(_ int, state []byte) (s account, err error) {
		err = futures.DecodeState(state, &s)
		s.Balance *= 100
		return s, err
	})
	spend := futures.DefineMethod(inCents, "spend", func(_ context.Context, s *account, cents int) (int, error) {
		s.Balance -= cents
		return s.Balance, nil
	})
	cluster.Register(spend.Bind())
	_, err := b.deposit.Call(t.Context(), cluster.Client, "alice", 5)
	require.NoError(t, err)
	for _, cents := range []int{495, 0} {
		left, err := spend.Call(t.Context(), cluster.Client, "alice", cents)
		require.NoError(t, err)
		require.Equal(t, 5, left)
	}
	v, err := cluster.Client.ActorState(t.Context(), "account", "alice")
	require.NoError(t, err)
	require.Equal(t, 1, v.Schema)
}

// TestAStateThatDoesNotMigrateFailsForGood is not tried again.
func TestAStateThatDoesNotMigrateFailsForGood(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	runs := 0
	newer := b.account.Migrate(1, func(int, []byte) (account, error) {
		runs++
		return account{}, errPoor
	})
	look := futures.DefineMethod(newer, "look", func(context.Context, *account, int) (int, error) { return 0, nil })
	cluster.Register(look.Bind())
	_, err := b.deposit.Call(t.Context(), cluster.Client, "alice", 5)
	require.NoError(t, err)
	_, err = look.Call(t.Context(), cluster.Client, "alice", 0)
	require.ErrorContains(t, err, "does not migrate to 1: "+errPoor.Error())
	require.Equal(t, 1, runs)
}

// TestAnActorTwiceInATurn names an actor twice in one call, and again later: it is one state.
func TestAnActorTwiceInATurn(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	twice := futures.Define[int, int]("twice")
	cluster.Register(twice.Bind(func(ctx context.Context, n int) (int, error) {
		states, err := b.account.States(ctx, "alice", "bob", "alice")
		if err != nil {
			return 0, err
		}
		again, err := b.account.State(ctx, "alice")
		require.Same(t, states[0], states[2])
		require.Same(t, states[0], again)
		for _, s := range states {
			s.Balance += n
		}
		return states[0].Balance, err
	}))
	got, err := twice.Call(t.Context(), cluster.Client, 1)
	require.NoError(t, err)
	require.Equal(t, 2, got)
	require.Equal(t, 2, b.balance(t, cluster.Client, "alice"))
	require.Equal(t, 1, b.balance(t, cluster.Client, "bob"))
}

// TestASendToATypeThatIsNew has a function send the first call of a type, whose lanes are younger than its claim.
func TestASendToATypeThatIsNew(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	first := futures.Define[int, int]("first", futures.Retries(0))
	cluster.Register(first.Bind(func(ctx context.Context, n int) (int, error) {
		_, err := b.deposit.Send(ctx, "alice", n)
		return n, err
	}))
	_, err := first.Call(t.Context(), cluster.Client, 5)
	require.NoError(t, err)
	cluster.Run()
	require.Equal(t, 5, b.balance(t, cluster.Client, "alice"))
}

// TestNobodyIsToldOfASend has a call send another one, whose end no client awaits.
func TestNobodyIsToldOfASend(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	var id futures.ID
	tell := futures.DefineMethod(b.account, "tell", func(ctx context.Context, _ *account, n int) (int, error) {
		var err error
		id, err = b.deposit.Send(ctx, "bob", n)
		return n, err
	})
	cluster.Register(tell.Bind())
	_, err := tell.Call(t.Context(), cluster.Client, "alice", 1)
	require.NoError(t, err)
	row, err := cluster.Client.Cluster().Get(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, row.Spec.Session)
}

// TestSendsOfOneCallHaveLimits counts how many sends one call may make, small and large ones.
func TestSendsOfOneCallHaveLimits(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	sends := futures.DefineMethod(b.account, "sends", func(ctx context.Context, _ *account, size int) (int, error) {
		for n := 0; ; n++ {
			_, err := futures.Send(ctx, futures.Task{Function: "go:x", Args: make([]byte, size)})
			if err != nil {
				require.ErrorIs(t, err, futures.ErrTooLarge)
				return n, nil
			}
		}
	})
	cluster.Register(sends.Bind())
	n, err := sends.Call(t.Context(), cluster.Client, "alice", 1)
	require.NoError(t, err)
	require.Equal(t, futures.MaxTurnSubmits, n)
	n, err = sends.Call(t.Context(), cluster.Client, "alice", 16<<10)
	require.NoError(t, err)
	require.Less(t, n, 1_000_000/(16<<10))
	require.Greater(t, n, 50)
}
