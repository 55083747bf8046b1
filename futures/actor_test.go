package futures_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

type account struct {
	Balance int
	Calls   []string
}

var errPoor = errors.New("the balance is too low")

// bank is a type of actors with its methods, for one test.
type bank struct {
	account  *futures.Actor[account]
	deposit  futures.Method[int, int]
	withdraw futures.Method[int, int]
	pay      futures.Method[payment, int]
	transfer futures.Definition[payment, int]
}

type payment struct {
	From, To string
	Amount   int
}

func newBank() *bank {
	b := &bank{account: futures.DefineActor[account]("account")}
	b.deposit = futures.DefineMethod(b.account, "deposit", func(_ context.Context, s *account, amount int) (int, error) {
		s.Balance += amount
		return s.Balance, nil
	})
	b.withdraw = futures.DefineMethod(b.account, "withdraw", func(_ context.Context, s *account, amount int) (int, error) {
		s.Balance -= amount
		if s.Balance < 0 {
			return 0, workers.Permanent(errPoor)
		}
		return s.Balance, nil
	})
	b.pay = futures.DefineMethod(b.account, "pay", func(ctx context.Context, s *account, p payment) (int, error) {
		s.Balance -= p.Amount
		_, err := b.deposit.Send(ctx, p.To, p.Amount)
		return s.Balance, err
	})
	b.transfer = futures.Define[payment, int]("transfer")
	return b
}

// move is a turn over two accounts.
func (b *bank) move(ctx context.Context, p payment) (int, error) {
	from, err := b.account.State(ctx, p.From)
	if err != nil {
		return 0, err
	}
	to, err := b.account.State(ctx, p.To)
	if err != nil {
		return 0, err
	}
	from.Balance -= p.Amount
	to.Balance += p.Amount
	return from.Balance, nil
}

func (b *bank) register(register func(string, func(context.Context, []byte) ([]byte, error))) {
	register(b.deposit.Bind())
	register(b.withdraw.Bind())
	register(b.pay.Bind())
	register(b.transfer.Bind(b.move))
}

func (b *bank) balance(t *testing.T, c *futures.Client, key string) int {
	s, _, err := b.account.Read(t.Context(), c, key)
	require.NoError(t, err)
	return s.Balance
}

func newBankCluster(t *testing.T) (*bank, *futurestest.Cluster) {
	b, cluster := newBank(), futurestest.New(t)
	b.register(cluster.Register)
	return b, cluster
}

func TestACallChangesTheStateOfAnActor(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	c := cluster.Client
	_, exists, err := b.account.Read(t.Context(), c, "alice")
	require.NoError(t, err)
	require.False(t, exists)
	for want := 1; want < 4; want++ {
		got, err := b.deposit.Call(t.Context(), c, "alice", 1)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = b.withdraw.Call(t.Context(), c, "alice", 4)
	require.ErrorContains(t, err, errPoor.Error())
	require.Equal(t, 3, b.balance(t, c, "alice"))
	require.Equal(t, 0, b.balance(t, c, "bob"))
}

// TestACallThatFailsLeavesTheState has a call change the state, send and fail: neither happens, and
// its next attempt begins from the state as it was.
func TestACallThatFailsLeavesTheState(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	attempts := 0
	flaky := futures.DefineMethod(b.account, "flaky", func(ctx context.Context, s *account, _ int) (int, error) {
		s.Balance += 5
		if _, err := b.deposit.Send(ctx, "bob", 5); err != nil {
			return 0, err
		}
		if attempts++; attempts < 3 {
			return 0, errOnce
		}
		return s.Balance, nil
	})
	cluster.Register(flaky.Bind())
	got, err := flaky.Call(t.Context(), cluster.Client, "alice", 0)
	require.NoError(t, err)
	require.Equal(t, 5, got)
	cluster.Run()
	require.Equal(t, 5, b.balance(t, cluster.Client, "bob"))
	require.Equal(t, 3, attempts)
}

func TestWhatACallSendsIsMadeOnce(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	left, err := b.pay.Call(t.Context(), cluster.Client, "alice", payment{To: "bob", Amount: 7})
	require.NoError(t, err)
	require.Equal(t, -7, left)
	cluster.Run()
	require.Equal(t, 7, b.balance(t, cluster.Client, "bob"))
	_, err = b.pay.Call(t.Context(), cluster.Client, "alice", payment{To: "alice", Amount: 2})
	require.NoError(t, err)
	cluster.Run()
	require.Equal(t, -7, b.balance(t, cluster.Client, "alice"))
}

// TestMiddlewareThatRunsACallTwice has each call run twice in its attempt: the second run counts.
func TestMiddlewareThatRunsACallTwice(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	cluster.Use(futurestest.Twice)
	for want := -7; want >= -14; want -= 7 {
		left, err := b.pay.Call(t.Context(), cluster.Client, "alice", payment{To: "bob", Amount: 7})
		require.NoError(t, err)
		require.Equal(t, want, left)
	}
	cluster.Run()
	require.Equal(t, 14, b.balance(t, cluster.Client, "bob"))
}

func TestATurnOverTwoActors(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	_, err := b.transfer.Call(t.Context(), cluster.Client, payment{From: "alice", To: "bob", Amount: 3})
	require.NoError(t, err)
	require.Equal(t, -3, b.balance(t, cluster.Client, "alice"))
	require.Equal(t, 3, b.balance(t, cluster.Client, "bob"))
}

// TestATurnRunsAgainIfAStateChanges has the state of an actor change while a function that read it
// runs: its result does not count, and it runs again without an attempt.
func TestATurnRunsAgainIfAStateChanges(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	runs := 0
	slow := futures.Define[int, int]("slow", futures.Retries(0))
	cluster.Register(slow.Bind(func(ctx context.Context, _ int) (int, error) {
		s, err := b.account.State(ctx, "alice")
		if err != nil {
			return 0, err
		}
		if runs++; runs < 3 {
			if _, err := b.deposit.Call(ctx, cluster.Client, "alice", 10); err != nil {
				return 0, err
			}
		}
		s.Balance++
		return s.Balance, nil
	}))
	got, err := slow.Call(t.Context(), cluster.Client, 0)
	require.NoError(t, err)
	require.Equal(t, 21, got)
	require.Equal(t, 21, b.balance(t, cluster.Client, "alice"))
	require.Equal(t, 3, runs)
}

// TestReadsOfOneTimeAreNotRepeated has actors change while functions that only read run: those that have read
// all at one time count.
func TestReadsOfOneTimeAreNotRepeated(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"together": 1, "apart": 2, "and sends": 2} {
		b, cluster := newBankCluster(t)
		runs := 0
		sum := futures.Define[string, int]("sum", futures.Retries(0))
		cluster.Register(sum.Bind(func(ctx context.Context, how string) (int, error) {
			keys := [][]string{{"alice", "bob"}}
			if how == "apart" {
				keys = [][]string{{"alice"}, {"bob"}}
			}
			total := 0
			for _, some := range keys {
				states, err := b.account.States(ctx, some...)
				if err != nil {
					return 0, err
				}
				for _, s := range states {
					total += s.Balance
				}
				if runs++; runs == 1 {
					move := payment{From: "alice", To: "bob", Amount: 5}
					if _, err := b.transfer.Call(ctx, cluster.Client, move); err != nil {
						return 0, err
					}
				}
			}
			if how == "and sends" {
				_, err := b.deposit.Send(ctx, "carol", 1)
				return total, err
			}
			return total, nil
		}))
		got, err := sum.Call(t.Context(), cluster.Client, name)
		require.NoError(t, err)
		require.Equal(t, 0, got, name)
		require.Equal(t, want*map[bool]int{true: 2, false: 1}[name == "apart"], runs, name)
	}
}

// TestTurnsThatShareATransactionDoNotOverwrite has many functions of one worker, without a lane, change
// one actor: ends of the same transaction count one after the other.
func TestTurnsThatShareATransactionDoNotOverwrite(t *testing.T) {
	t.Parallel()
	b := newBank()
	c, err := futures.New(t.Context(), storetest.New(t), futures.Options{Cluster: "bank"})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	w, err := workers.New(c, workers.Options{Slots: 16})
	require.NoError(t, err)
	add := futures.Define[int, int]("add")
	require.NoError(t, w.Register(add.Bind(func(ctx context.Context, n int) (int, error) {
		s, err := b.account.State(ctx, "alice")
		if err != nil {
			return 0, err
		}
		s.Balance += n
		return s.Balance, nil
	})))
	stop := storetest.Background(t, w.Run)
	defer stop()
	inputs := make([]int, 300)
	for i := range inputs {
		inputs[i] = 1
	}
	fs, err := add.Map(t.Context(), c, inputs)
	require.NoError(t, err)
	got, err := futures.AwaitAll(t.Context(), fs)
	require.NoError(t, err)
	seen := map[int]bool{}
	for _, n := range got {
		require.False(t, seen[n], "two results are %d", n)
		seen[n] = true
	}
	require.Equal(t, len(inputs), b.balance(t, c, "alice"))
}

// TestASendThatIsRefusedFailsTheCall has the end of a call submit to a lane that does not exist.
func TestASendThatIsRefusedFailsTheCall(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	bad := futures.DefineMethod(b.account, "bad", func(ctx context.Context, s *account, _ int) (int, error) {
		s.Balance = 1
		_, err := futures.Send(ctx, futures.Task{Function: "go:none", Lane: futures.Lane{Kind: "unknown", Key: "k"}})
		return 0, err
	}, futures.Retries(0))
	cluster.Register(bad.Bind())
	_, err := bad.Call(t.Context(), cluster.Client, "alice", 0)
	require.ErrorContains(t, err, `future 1 of those that are submitted with the result: lane unknown/k: kind "unknown"`)
	require.Equal(t, 0, b.balance(t, cluster.Client, "alice"))
	_, err = b.deposit.Call(t.Context(), cluster.Client, "alice", 1)
	require.NoError(t, err)
}

func TestSendsHaveLimits(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	var errs []error
	many := futures.DefineMethod(b.account, "many", func(ctx context.Context, _ *account, _ int) (int, error) {
		_, err := futures.Send(ctx, futures.Task{Function: "go:x", Args: make([]byte, 17<<10)})
		errs = append(errs, err)
		info, _ := workers.InfoFrom(ctx)
		for _, t := range []futures.Task{{Key: "k"}, {ID: futures.ID{1}}, {RequireFit: true}, {WaitForRoom: true},
			{After: []futures.ID{info.ID}}, {Near: info.ID, MustBeNear: true}} {
			t.Function = "go:x"
			if _, err = futures.Send(ctx, t); !errors.Is(err, futures.ErrBadSpec) {
				break
			}
		}
		errs = append(errs, err)
		for err = nil; err == nil; {
			_, err = futures.Send(ctx, futures.Task{Function: "go:x"})
		}
		errs = append(errs, err)
		_, err = b.account.State(ctx, strings.Repeat("k", 257))
		errs = append(errs, err)
		for i := 0; err != nil || i < 300 && err == nil; i++ {
			_, err = b.account.State(ctx, fmt.Sprint(i))
			if err != nil {
				break
			}
		}
		errs = append(errs, err)
		return 0, nil
	})
	cluster.Register(many.Bind())
	_, err := many.Call(t.Context(), cluster.Client, "alice", 0)
	require.NoError(t, err)
	require.ErrorIs(t, errs[0], futures.ErrTooLarge)
	require.ErrorIs(t, errs[1], futures.ErrBadSpec)
	require.ErrorIs(t, errs[2], futures.ErrTooLarge)
	require.ErrorIs(t, errs[3], futures.ErrBadName)
	require.ErrorIs(t, errs[4], futures.ErrTooLarge)
}

func TestAStateMayNotBeTooLarge(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	grow := futures.DefineMethod(b.account, "grow", func(_ context.Context, s *account, n int) (int, error) {
		s.Calls = append(s.Calls, strings.Repeat("x", n))
		return 0, nil
	})
	cluster.Register(grow.Bind())
	_, err := grow.Call(t.Context(), cluster.Client, "alice", 60_000)
	require.NoError(t, err)
	_, err = grow.Call(t.Context(), cluster.Client, "alice", 10_000)
	require.ErrorContains(t, err, "the state of actor account/alice has 70")
}

// TestAReminderRunsOnceAfterAnOutage has an actor remind itself every minute, and a day pass.
func TestAReminderRunsOnceAfterAnOutage(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	var tick futures.Method[int, int]
	tick = futures.DefineMethod(b.account, "tick", func(ctx context.Context, s *account, minutes int) (int, error) {
		s.Balance++
		_, err := tick.Remind(ctx, "alice", "tick", time.Duration(minutes)*time.Minute, 1)
		return s.Balance, err
	})
	cluster.Register(tick.Bind())
	_, err := tick.Call(t.Context(), cluster.Client, "alice", 10)
	require.NoError(t, err)
	_, err = tick.Call(t.Context(), cluster.Client, "alice", 1) // takes the place of the first reminder
	require.NoError(t, err)
	cluster.Advance(3*time.Minute + time.Second)
	require.Equal(t, 5, b.balance(t, cluster.Client, "alice"))
	cluster.Elapse(24 * time.Hour)
	cluster.Run()
	require.Equal(t, 6, b.balance(t, cluster.Client, "alice"))
}

func TestAStateMigrates(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	type cents struct{ Cents int }
	newer := futures.DefineActor[cents]("account").Migrate(2, func(from int, state []byte) (cents, error) {
		require.Equal(t, 0, from)
		var old account
		err := futures.DecodeState(state, &old)
		return cents{old.Balance * 100}, err
	})
	get := futures.DefineMethod(newer, "get", func(_ context.Context, s *cents, _ int) (int, error) {
		return s.Cents, nil
	})
	cluster.Register(get.Bind())
	_, err := b.deposit.Call(t.Context(), cluster.Client, "alice", 5)
	require.NoError(t, err)
	for range 2 {
		got, err := get.Call(t.Context(), cluster.Client, "alice", 0)
		require.NoError(t, err)
		require.Equal(t, 500, got)
	}
	_, _, err = b.account.Read(t.Context(), cluster.Client, "alice")
	require.ErrorContains(t, err, "has a state of schema 2, and this code knows 0")
}

func TestADeletedActorBeginsAnew(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	drop := futures.Define[string, int]("drop")
	cluster.Register(drop.Bind(func(ctx context.Context, key string) (int, error) {
		return 0, b.account.Delete(ctx, key)
	}))
	_, err := b.deposit.Call(t.Context(), cluster.Client, "alice", 5)
	require.NoError(t, err)
	for range 2 {
		_, err = drop.Call(t.Context(), cluster.Client, "alice")
		require.NoError(t, err)
		_, exists, err := b.account.Read(t.Context(), cluster.Client, "alice")
		require.NoError(t, err)
		require.False(t, exists)
	}
	got, err := b.deposit.Call(t.Context(), cluster.Client, "alice", 1)
	require.NoError(t, err)
	require.Equal(t, 1, got)
}

// TestAMethodThatAwaitsItsOwnActor is told what to do, and the call that it has made runs after it.
func TestAMethodThatAwaitsItsOwnActor(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	selfish := futures.DefineMethod(b.account, "selfish", func(ctx context.Context, _ *account, _ int) (int, error) {
		c, err := futures.FromContext(ctx)
		if err != nil {
			return 0, err
		}
		return b.deposit.Call(ctx, c, futures.ActorKey(ctx), 5)
	}, futures.Retries(0))
	cluster.Register(selfish.Bind())
	_, err := selfish.Call(t.Context(), cluster.Client, "alice", 0)
	require.ErrorContains(t, err, futures.ErrOwnLane.Error())
	require.ErrorContains(t, err, "Method.Send")
	got, err := b.deposit.Call(t.Context(), cluster.Client, "alice", 1)
	require.NoError(t, err)
	require.Equal(t, 6, got)
}

func TestActorsOutsideAFunction(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	_, err := b.account.State(t.Context(), "alice")
	require.ErrorIs(t, err, futures.ErrOutsideFunction)
	_, err = b.deposit.Send(t.Context(), "alice", 1)
	require.ErrorIs(t, err, futures.ErrOutsideFunction)
	require.ErrorContains(t, err, "elsewhere use Read, Call")
	_, err = b.deposit.Submit(t.Context(), cluster.Client, "alice", 1, futures.InLane("mail", "alice"))
	require.ErrorIs(t, err, futures.ErrBadSpec)
	require.ErrorContains(t, err, "leave InLane out")
	_, err = b.deposit.Submit(t.Context(), cluster.Client, "alice", 1, futures.InLane("actor.account", "alice"))
	require.NoError(t, err)
	_, err = b.deposit.Definition.Call(t.Context(), cluster.Client, 1) // without a key
	require.ErrorContains(t, err, "is a method of actors")
	_, err = futures.DefineMethod(futures.DefineActor[int]("no/type"), "m",
		func(context.Context, *int, int) (int, error) { return 0, nil }).Call(t.Context(), cluster.Client, "k", 1)
	require.ErrorIs(t, err, futures.ErrBadName)
}

// TestATurnTakesNothingAfterItsFunction has a goroutine that outlives its function use its turn.
func TestATurnTakesNothingAfterItsFunction(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	var kept atomic.Pointer[context.Context]
	var once sync.Once
	late := futures.DefineMethod(b.account, "late", func(ctx context.Context, _ *account, _ int) (int, error) {
		once.Do(func() { kept.Store(&ctx) })
		return 0, nil
	})
	cluster.Register(late.Bind())
	_, err := late.Call(t.Context(), cluster.Client, "alice", 0)
	require.NoError(t, err)
	_, err = b.account.State(*kept.Load(), "bob")
	require.ErrorContains(t, err, "its turn takes no more")
	_, err = b.deposit.Send(*kept.Load(), "bob", 1)
	require.ErrorContains(t, err, "its turn takes no more")
}
