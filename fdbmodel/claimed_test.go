package fdbmodel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// begun counts the transactions of a store, by tag.
type begun struct {
	kv.Database
	tags map[string]int
}

func (b *begun) Begin(o kv.Options) kv.Tx {
	b.tags[o.Tag]++
	return b.Database.Begin(o)
}

// TestAClaimOfAFewReadsThemItself takes few futures in one transaction, with all that it has of them, and more in two.
func TestAClaimOfAFewReadsThemItself(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	counted := &begun{s.Faults, map[string]int{}}
	c, err := fdbmodel.Open(s.Ctx, counted, "unknown", fdbmodel.Options{Clock: s.Clock})
	require.NoError(t, err)
	r, err := c.Register(s.Ctx, s.Info())
	require.NoError(t, err)
	for n, reads := range map[int]int{1: 0, 4: 0, 5: 1} {
		for range n {
			s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.MaxRetries = 3 })
		}
		before := counted.tags["futura-read"]
		futures := s.Claim(r)
		require.Len(t, futures, n)
		require.Equal(t, reads, counted.tags["futura-read"]-before, "for %d", n)
		for i := range futures {
			f := &futures[i]
			require.NoError(t, f.Err)
			require.Equal(t, "go:f", f.Spec.Function)
			require.Equal(t, 3, f.Spec.MaxRetries)
			require.Equal(t, "x", string(f.Inline))
			require.Equal(t, 1, f.Attempt())
			require.Equal(t, fdbmodel.Applied, s.Finish(r, fdbmodel.Completion{Future: f, Result: &layout.Result{}}))
		}
	}
	s.RequireSound()
}

// rowless is a store whose claims can't read rows.
type rowless struct{ kv.Database }

type rowlessTx struct{ kv.Tx }

func (d rowless) Begin(o kv.Options) kv.Tx {
	if o.Tag == "futura-claim" {
		return rowlessTx{d.Database.Begin(o)}
	}
	return d.Database.Begin(o)
}

func (rowlessTx) GetRange(kv.Range, kv.RangeOptions) kv.Pending[kv.Page] {
	return kv.Ready(kv.Page{}, kv.ErrUnavailable)
}

// TestAClaimReadsAgainWhatItCouldNot has the reads of a claim fail though it commits: it reads after it.
func TestAClaimReadsAgainWhatItCouldNot(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	c, err := fdbmodel.Open(s.Ctx, rowless{s.Faults}, "unknown", fdbmodel.Options{Clock: s.Clock})
	require.NoError(t, err)
	r, err := c.Register(s.Ctx, s.Info())
	require.NoError(t, err)
	s.Submit()
	f := s.Claim(r)
	require.Len(t, f, 1)
	require.NoError(t, f[0].Err)
	require.Equal(t, "go:f", f[0].Spec.Function)
	require.Equal(t, fdbmodel.Applied, s.Finish(r, fdbmodel.Completion{Future: &f[0], Result: &layout.Result{}}))
	s.RequireSound()
}

// TestAClaimReadsInputs of what it has read itself.
func TestAClaimReadsInputs(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input := s.Submit()
	f := s.Claim(s.Worker)
	done := fdbmodel.Completion{Future: &f[0], Result: &layout.Result{Value: []byte("r")}}
	require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, done))
	s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{input} })
	f = s.Claim(s.Worker)
	require.Len(t, f, 1)
	require.NoError(t, f[0].Err)
	require.Len(t, f[0].Inputs, 1)
	require.Equal(t, "r", string(f[0].Inputs[0].Result.Value))
}

// TestAFutureIsAwaitedWhileItIsClaimed by another session, between the claim's reads and its commit: the end of the
// claim, which reads nothing, tells that session too.
func TestAFutureIsAwaitedWhileItIsClaimed(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id, other := s.Submit(), mailbox.Open(s.C, "other")
	c := s.Interrupted("futura-claim", func() {
		over, missing, err := other.Subscribe(s.Ctx, []layout.ID{id})
		require.NoError(t, err)
		require.Empty(t, over)
		require.Empty(t, missing)
	})
	r, err := c.Register(s.Ctx, s.Info())
	require.NoError(t, err)
	answer, err := r.Claim(s.Ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
	require.NoError(t, err)
	require.Len(t, answer.Futures, 1)
	require.Equal(t, 1, answer.Conflicts)
	done := fdbmodel.Completion{Future: &answer.Futures[0], Result: &layout.Result{}}
	require.Equal(t, fdbmodel.Applied, s.Finish(r, done))
	notices, watch, err := other.Listen(s.Ctx)
	require.NoError(t, err)
	watch.Cancel()
	require.Len(t, notices, 1)
	s.RequireSound()
}
