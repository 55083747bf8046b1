package serial

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest/reference"
	"github.com/futura-run/futura/internal/bubble"
)

// model is a store with the machine's clock.
type model struct{ kv.Database }

func (m model) Transact(ctx context.Context, o kv.Options, fn func(kv.Attempt) error) (kv.Result, error) {
	return kv.Transact(ctx, m.Database, kv.Retry{Options: o}, fn)
}

func (m model) Now() time.Time { return time.Now() }

// contender is a transaction of a serializer that waits inside until it is let go.
type contender struct {
	inside bool
	last   kv.Version
	rivals bool
	let    chan error
	end    error
	result kv.Result
	done   chan struct{} // closed at the end
}

// contend begins a transaction that conflicts so many times first.
func contend(ctx context.Context, m Model, k *Serializer, conflicts int) *contender {
	return contendFor(ctx, m, k, 1, conflicts)
}

// contendFor is contend for a transaction of n changes.
func contendFor(ctx context.Context, m Model, k *Serializer, n, conflicts int) *contender {
	t := &contender{let: make(chan error, 1), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		t.result, t.end = k.Transact(ctx, m, kv.Options{Tag: "test"}, n,
			func(_ context.Context, tx kv.Attempt, past Past) error {
				if tx.Number <= conflicts {
					return kv.ErrConflict
				}
				t.inside, t.last, t.rivals = true, past.Last, past.Rivals
				tx.Set([]byte("x"), nil)
				return <-t.let
			})
		t.inside = false
	}()
	return t
}

// TestSerializer lets transactions run side by side until one has met another, one after
// the other then, and side by side again after a while.
func TestSerializer(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx := context.Background()
		c := model{reference.Open(reference.Options{})}
		k := New()
		a, b := contend(ctx, c, k, 0), contend(ctx, c, k, 0)
		synctest.Wait()
		require.True(t, a.inside && b.inside, "two that have not met")
		require.Equal(t, kv.NoVersion, a.last)

		met := contend(ctx, c, k, 1)
		<-time.After(retried)
		synctest.Wait()
		require.True(t, met.inside)
		waits, plain := contend(ctx, c, k, 0), contend(ctx, c, nil, 0)
		gone, leave := context.WithCancel(ctx)
		left := contend(gone, c, k, 0)
		synctest.Wait()
		require.False(t, waits.inside, "it waits for the one that has met another")
		require.True(t, plain.inside, "it takes no part")
		leave()
		synctest.Wait()
		require.ErrorIs(t, left.end, context.Canceled)

		met.let <- nil
		synctest.Wait()
		require.NoError(t, met.end)
		require.True(t, waits.inside)
		require.Equal(t, met.result.Version, waits.last, "it reads what the one before it wrote")

		waits.let <- kv.ErrClosed
		synctest.Wait()
		require.ErrorIs(t, waits.end, kv.ErrClosed)
		<-time.After(For)
		d, e := contend(ctx, c, k, 0), contend(ctx, c, k, 0)
		synctest.Wait()
		require.True(t, d.inside && e.inside, "they have not met for a while")
		for _, one := range []*contender{a, b, plain, d, e} {
			one.let <- nil
		}
		synctest.Wait()
		require.Empty(t, k.turn)
	})
}

// TestSerializerKnowsItsRivals: what meets another though it has the turn has met one of another process, and
// is told so for ten seconds. One that meets its own is not.
func TestSerializerKnowsItsRivals(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx := context.Background()
		c := model{reference.Open(reference.Options{})}
		k := New()
		run := func(conflicts int) *contender {
			one := contend(ctx, c, k, conflicts)
			<-time.After(10 * retried)
			synctest.Wait()
			require.True(t, one.inside)
			one.let <- nil
			synctest.Wait()
			require.NoError(t, one.end)
			return one
		}
		require.False(t, run(0).rivals)
		require.False(t, run(1).rivals, "it had no turn")
		require.True(t, run(2).rivals)
		require.True(t, run(0).rivals)
		<-time.After(rivalsFor - time.Second)
		require.True(t, run(0).rivals)
		<-time.After(time.Second)
		require.False(t, run(0).rivals)
	})
}

// retried is longer than the wait before a second attempt.
const retried = 20 * time.Millisecond

// TestLosersAreSplit: a transaction of several changes that meets those of other processes each time is to be split,
// the parts grow again as they succeed, and for their size nothing counts that was long ago.
func TestLosersAreSplit(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx := context.Background()
		c := model{reference.Open(reference.Options{})}
		k := New()
		run := func(n, conflicts int) error {
			one := contendFor(ctx, c, k, n, conflicts)
			one.let <- nil
			<-one.done
			return one.end
		}
		most := func() int { return k.Most(128, c.Now()) }
		require.NoError(t, run(100, splitAfter-1))
		require.Equal(t, 128, most())
		require.ErrorIs(t, run(100, splitAfter), ErrSplit)
		require.Equal(t, 50, most())
		require.ErrorIs(t, run(50, 2*splitAfter), ErrSplit)
		require.Equal(t, 25, most())
		require.NoError(t, run(20, 0))
		require.Equal(t, 25, most(), "it was smaller than it might have been")
		require.NoError(t, run(25, 1))
		require.Equal(t, 31, most())
		require.NoError(t, run(1, 2*splitAfter), "one change can't be split")
		<-time.After(rivalsFor)
		require.Equal(t, 128, most())
	})
}

// unknownCommits is a model of whose commits the first is unknown, and was not made.
type unknownCommits struct{ model }

func (m unknownCommits) Transact(ctx context.Context, o kv.Options, fn func(kv.Attempt) error) (kv.Result, error) {
	unknown := false
	return m.model.Transact(ctx, o, func(tx kv.Attempt) error {
		if !unknown {
			unknown = true
			return kv.ErrUnknownResult
		}
		return fn(tx)
	})
}

// TestNoUnknownCommitIsSplit: what an earlier attempt may have written, only an attempt at the same can tell.
func TestNoUnknownCommitIsSplit(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		c := unknownCommits{model{reference.Open(reference.Options{})}}
		one := contendFor(context.Background(), c, New(), 100, 2*splitAfter)
		one.let <- nil
		<-one.done
		require.NoError(t, one.end)
	})
}
