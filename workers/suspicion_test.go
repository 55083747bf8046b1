package workers

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
)

// suspects returns how many futures are on record as run by a worker that may be their victim.
func (b *bed) suspects(w layout.WorkerID) (n int) {
	suspects := kv.Prefix(b.cluster.Keys().Worker(w, layout.WorkerSuspect))
	require.NoError(b.t, b.cluster.EachKey(b.ctx, suspects, func(kv.KeyValue) error { n++; return nil }))
	return n
}

// dying are how often the workers of a function die.
const dying = fdbmodel.MaxCrashes + 3

// candidateOf starts a worker with a function, in the place of a dead one.
func (b *bed) candidateOf(fn Function) *running {
	return b.start(Options{Slots: 1, Address: "10.0.0.1:1"}, map[string]Function{"candidate": fn})
}

// TestDeathsDuringAWaitAreNoCrashes kills each worker while its function waits.
func TestDeathsDuringAWaitAreNoCrashes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		b := virtualBed(t)
		f := newWaiter()
		id := b.one("go:candidate")
		for range dying {
			w := b.candidateOf(f.run)
			b.receive("a wait", f.began)
			b.await("the end of the suspicion", func() bool { return b.suspects(w.ID()) == 0 })
			w.crash()
			w.end()
		}
		close(f.over)
		w := b.candidateOf(f.run)
		b.awaitOver(id)
		row := b.row(id)
		require.Equal(t, layout.Realized, row.State())
		require.Zero(t, row.Attempts.Crashes)
		require.Positive(t, row.Attempts.Suspicion())
		require.Zero(t, b.suspects(w.ID()))
	})
}

// TestDeathsDuringAWaitOfABundleAreNoCrashes has the function run for the one member of a bundle.
func TestDeathsDuringAWaitOfABundleAreNoCrashes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		b := virtualBed(t)
		require.NoError(t, lanes.Of(b.cluster).SetKind(b.ctx, "k", layout.LaneKind{Bundle: "go:candidate"}))
		f := newWaiter()
		start := func() *running {
			w, err := FromCluster(b.cluster, Options{Slots: 1, Address: "10.0.0.1:1"})
			require.NoError(t, err)
			require.NoError(t, w.RegisterBundle("candidate",
				func(ctx context.Context, _ string, members []Member) ([]MemberEnd, error) {
					value, err := f.run(ctx, members[0].Args)
					return []MemberEnd{{Value: value, Err: err}}, nil
				}))
			return b.run(w)
		}
		id := b.one("go:candidate", func(s *fdbmodel.Submission) { s.Spec.Lane = layout.Lane{Kind: "k", Key: "x"} })
		for range dying {
			w := start()
			b.receive("a wait", f.began)
			b.await("the end of the suspicion", func() bool { return b.suspects(w.ID()) == 0 })
			w.crash()
			w.end()
		}
		close(f.over)
		start()
		b.awaitOver(id)
		row := b.row(id)
		require.Equal(t, layout.Realized, row.State())
		require.Zero(t, row.Attempts.Crashes)
		require.Positive(t, row.Attempts.Suspicion())
	})
}

// TestWhoEndsItsProcessAroundAWaitIsFound has a function kill each worker as it begins to wait, or once it has waited.
func TestWhoEndsItsProcessAroundAWaitIsFound(t *testing.T) {
	t.Parallel()
	for name, goesOn := range map[string]bool{"at its begin": false, "behind it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				b := virtualBed(t)
				id := b.one("go:candidate")
				crash, goOn, dead := make(chan func(), 1), make(chan struct{}), make(chan Info)
				fn := func(ctx context.Context, _ []byte) ([]byte, error) {
					info, _ := InfoFrom(ctx)
					ended := taskcontext.NoteAwait(ctx, nil, nil)
					if goesOn {
						<-goOn
						ended()
					}
					(<-crash)()
					dead <- info
					<-ctx.Done()
					return nil, nil
				}
				for range 1 + fdbmodel.MaxCrashes {
					w := b.candidateOf(fn)
					crash <- w.crash
					if goesOn {
						b.await("a wait", func() bool { return w.awaiting() == 1 })
						b.await("the end of the suspicion", func() bool { return b.suspects(w.ID()) == 0 })
						goOn <- struct{}{}
					}
					b.receive("the death", dead)
					w.end()
				}
				b.candidateOf(fn)
				b.awaitOver(id)
				require.Equal(t, layout.KindLost, b.row(id).Exception.Kind)
			})
		})
	}
}

func (r *running) awaiting() int {
	n, _ := r.slots.awaits()
	return n
}

// TestWhoGetsFurtherIsNoCulprit kills each worker when its function has recorded another step.
func TestWhoGetsFurtherIsNoCulprit(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		b := virtualBed(t)
		id := b.one("go:candidate")
		at := make(chan Info, 1)
		fn := func(ctx context.Context, _ []byte) ([]byte, error) {
			info, _ := InfoFrom(ctx)
			all := ctx.Value(taskcontext.StepsKey{}).(taskcontext.Steps)
			for n := range dying {
				name, earlier, err := all.Ask(ctx, string(rune('a'+n)))
				if err == nil && earlier == nil {
					if err = all.Record(ctx, name, taskcontext.RecordedStep{Started: b.clock.Now()}); err == nil {
						at <- info
						<-ctx.Done()
					}
				}
				if err != nil {
					return nil, err
				}
			}
			return nil, nil
		}
		for range dying {
			w := b.candidateOf(fn)
			b.receive("a step", at)
			require.Zero(t, b.suspects(w.ID()))
			w.crash()
			w.end()
		}
		b.candidateOf(fn)
		b.awaitOver(id)
		row := b.row(id)
		require.Equal(t, layout.Realized, row.State())
		require.Zero(t, row.Attempts.Crashes)
	})
}
