package futures_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
	"github.com/futura-run/futura/workers"
)

// TestADeadlineIsNotPassedToWhatACallSends has a call with a deadline send, and remind.
func TestADeadlineIsNotPassedToWhatACallSends(t *testing.T) {
	t.Parallel()
	b := newBank()
	cluster := futurestest.New(t)
	b.register(cluster.Register)
	now := cluster.Client.Cluster().Now()
	var sent, own, reminder futures.ID
	late := now.Add(time.Hour)
	send := futures.DefineMethod(b.account, "send", func(ctx context.Context, _ *account, _ int) (_ int, err error) {
		if sent, err = b.deposit.Send(ctx, "shop", 1); err != nil {
			return 0, err
		}
		if own, err = b.deposit.Send(ctx, "shop", 2, futures.Deadline(late)); err != nil {
			return 0, err
		}
		reminder, err = b.deposit.Remind(ctx, "shop", "r", time.Minute, 4)
		return 0, err
	})
	cluster.Register(send.Bind())
	_, err := send.Call(t.Context(), cluster.Client, "a", 0, futures.Deadline(now.Add(10*time.Second)))
	require.NoError(t, err)
	for id, deadline := range map[futures.ID]int64{sent: 0, own: layout.Millis(late), reminder: 0} {
		row, err := cluster.Client.Cluster().Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, deadline, row.Spec.Deadline)
	}
	_, err = cluster.Client.Future(reminder).Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, 7, b.balance(t, cluster.Client, "shop"))
}

// TestALaterReminderOfACallTakesThePlaceOfTheFirst within the call.
func TestALaterReminderOfACallTakesThePlaceOfTheFirst(t *testing.T) {
	t.Parallel()
	b := newBank()
	cluster := futurestest.New(t)
	b.register(cluster.Register)
	var all []futures.ID
	remind := futures.DefineMethod(b.account, "remind", func(ctx context.Context, _ *account, _ int) (int, error) {
		all = nil
		for i := range 3 {
			id, err := b.deposit.Remind(ctx, "shop", "r", time.Duration(i+1)*time.Minute, 1+i)
			if err != nil {
				return 0, err
			}
			all = append(all, id)
		}
		id, err := b.deposit.Remind(ctx, "shop", "another", time.Minute, 10)
		all = append(all, id)
		return 0, err
	})
	cluster.Register(remind.Bind())
	_, err := remind.Call(t.Context(), cluster.Client, "a", 0)
	require.NoError(t, err)
	for i, id := range all {
		_, err := cluster.Client.Future(id).Await(t.Context())
		if i < 2 {
			require.ErrorIs(t, err, futures.ErrNotFound)
			continue
		}
		require.NoError(t, err)
	}
	require.Equal(t, 13, b.balance(t, cluster.Client, "shop"))
}

// TestASendThatOthersTakeIsNotReplaced: the call is refused, rather than one of its sends left without an input.
func TestASendThatOthersTakeIsNotReplaced(t *testing.T) {
	t.Parallel()
	b := newBank()
	cluster := futurestest.New(t)
	b.register(cluster.Register)
	unique := futures.WithUnique(futures.Unique{Key: "k", OnConflict: futures.ConflictReplace})
	send := futures.DefineMethod(b.account, "send", func(ctx context.Context, _ *account, after int) (int, error) {
		first, err := b.deposit.Send(ctx, "shop", 1, unique)
		if err != nil {
			return 0, err
		}
		takes := func(t *futures.Task) { t.After = append(t.After, first) }
		if after == 0 { // the one that would replace it
			_, err = b.deposit.Send(ctx, "shop", 2, unique, takes)
			return 0, err
		}
		if _, err := b.deposit.Send(ctx, "other", 2, takes); err != nil {
			return 0, err
		}
		_, err = b.deposit.Send(ctx, "shop", 4, unique)
		return 0, err
	}, futures.Retries(0))
	cluster.Register(send.Bind())
	for after := range 2 {
		_, err := send.Call(t.Context(), cluster.Client, "a", after)
		var failed *futures.FailedError
		require.ErrorAs(t, err, &failed)
		require.Contains(t, failed.Message, "not unique")
		require.Zero(t, b.balance(t, cluster.Client, "shop"))
	}
}

// TestACallThatMiddlewareSavesLeavesTheState as one that fails does, whether it returned an error or panicked.
func TestACallThatMiddlewareSavesLeavesTheState(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	saved := 0
	cluster.Use(func(next workers.Call) workers.Call {
		return func(ctx context.Context, args []byte) (value []byte, err error) {
			defer func() {
				if p := recover(); p != nil || err != nil {
					saved++
					value, err = []byte{0}, nil
				}
			}()
			return next(ctx, args)
		}
	})
	broken := futures.DefineMethod(b.account, "broken", func(ctx context.Context, s *account, panics bool) (int, error) {
		s.Balance += 5
		if _, err := b.deposit.Send(ctx, "bob", 5); err != nil {
			return 0, err
		}
		if panics {
			panic("no luck")
		}
		return 1, errOnce
	})
	cluster.Register(broken.Bind())
	for i, panics := range []bool{false, true} {
		got, err := broken.Call(t.Context(), cluster.Client, "alice", panics)
		require.NoError(t, err)
		require.Zero(t, got)
		require.Equal(t, i+1, saved)
		require.Zero(t, b.balance(t, cluster.Client, "alice"), "panics: %v", panics)
	}
	got, err := b.deposit.Call(t.Context(), cluster.Client, "bob", 1)
	require.NoError(t, err)
	require.Equal(t, 1, got)
}

// TestWhatIsSentIsAsItWas when it was sent, whatever the call does with its memory.
func TestWhatIsSentIsAsItWas(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	var got []string
	cluster.Register("note", func(_ context.Context, args []byte) ([]byte, error) {
		got = append(got, string(args))
		return nil, nil
	})
	cluster.Register("send", func(ctx context.Context, _ []byte) ([]byte, error) {
		buffer := make([]byte, 0, 8)
		labels := map[string]string{}
		for _, text := range []string{"one", "two"} {
			buffer = append(buffer[:0], text...)
			task := futures.Task{Function: "go:note", Args: buffer, Requirements: futures.Requirements{Labels: labels}}
			if _, err := futures.Send(ctx, task); err != nil {
				return nil, err
			}
		}
		labels["disk"] = "fast"
		return nil, nil
	})
	f, err := cluster.Client.Submit(t.Context(), futures.Task{Function: "go:send"})
	require.NoError(t, err)
	_, err = f.Await(t.Context())
	require.NoError(t, err)
	cluster.Run()
	require.ElementsMatch(t, []string{"one", "two"}, got)
}

// TestWhatIsChangedAfterADeleteFailsTheCall for good, and removes nothing.
func TestWhatIsChangedAfterADeleteFailsTheCall(t *testing.T) {
	t.Parallel()
	b := newBank()
	notes := futures.DefineParts[string](b.account, "notes")
	cluster := futurestest.New(t)
	b.register(cluster.Register)
	var change func(ctx context.Context, s *account) error
	runs := 0
	leave := futures.DefineMethod(b.account, "leave", func(ctx context.Context, s *account, _ int) (int, error) {
		runs++
		if err := notes.Set(ctx, "a", "set in the call", "x"); err != nil {
			return 0, err
		}
		if err := b.account.Delete(ctx, "a"); err != nil {
			return 0, err
		}
		_, found, err := notes.Get(ctx, "a", "one")
		list, next, failed := notes.List(ctx, "a", "", 0)
		require.False(t, found || len(list) > 0 || next != "", "it sees what it has removed")
		return s.Balance, errors.Join(err, failed, change(ctx, s))
	})
	cluster.Register(leave.Bind())
	set := futures.DefineMethod(b.account, "set", func(ctx context.Context, s *account, _ int) (int, error) {
		s.Balance = 5
		return 0, notes.Set(ctx, "a", "one", "note")
	})
	cluster.Register(set.Bind())
	_, err := set.Call(t.Context(), cluster.Client, "a", 0)
	require.NoError(t, err)
	for says, fn := range map[string]func(context.Context, *account) error{
		"changed after Delete":      func(_ context.Context, s *account) error { s.Balance++; return nil },
		"part notes/two of actor":   func(ctx context.Context, _ *account) error { return notes.Set(ctx, "a", "two", "x") },
		"part notes/three of actor": func(ctx context.Context, _ *account) error { return notes.Delete(ctx, "a", "three") },
	} {
		change, runs = fn, 0
		_, err := leave.Call(t.Context(), cluster.Client, "a", 0)
		var failed *futures.FailedError
		require.ErrorAs(t, err, &failed)
		require.Contains(t, failed.Message, says)
		require.Equal(t, 1, runs, "for good")
		require.Equal(t, 5, b.balance(t, cluster.Client, "a"))
	}
	change = func(ctx context.Context, _ *account) error { // a look changes nothing
		_, err := b.account.State(ctx, "a")
		return err
	}
	left, err := leave.Call(t.Context(), cluster.Client, "a", 0)
	require.NoError(t, err)
	require.Equal(t, 5, left)
	_, exists, err := b.account.Read(t.Context(), cluster.Client, "a")
	require.NoError(t, err)
	require.False(t, exists)
}
