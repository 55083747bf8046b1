package fdbmodel

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// staleStore shows the first transactions of a tag an old version, unless they
// ask for one.
type staleStore struct {
	kv.Database
	tag     string
	version kv.Version
	left    int
}

type staleTx struct {
	kv.Tx
	asked bool
	old   kv.Version
}

func (s *staleStore) Begin(o kv.Options) kv.Tx {
	tx := s.Database.Begin(o)
	if o.Tag != s.tag || s.left == 0 {
		return tx
	}
	s.left--
	return &staleTx{Tx: tx, old: s.version}
}

func (t *staleTx) SetReadVersion(v kv.Version) {
	t.asked = true
	t.Tx.SetReadVersion(v)
}

func (t *staleTx) fix() {
	if !t.asked {
		t.SetReadVersion(t.old)
	}
}

func (t *staleTx) ReadVersion(ctx context.Context) (kv.Version, error) {
	t.fix()
	return t.Tx.ReadVersion(ctx)
}

func (t *staleTx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	t.fix()
	return t.Tx.GetRange(r, o)
}

func (t *staleTx) Get(key []byte) kv.Pending[[]byte] {
	t.fix()
	return t.Tx.Get(key)
}

func (t *staleTx) Snapshot() kv.Reader {
	t.fix()
	return t.Tx.Snapshot()
}

// TestFinishSeesItsClaim ends one of two claims on a store that shows commits
// late: right after the claim, and when its version may be too old to ask for.
// A claim that seemed lost would write nothing, and so conflict with nothing.
func TestFinishSeesItsClaim(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"at once": 0, "later": 2 * recentClaim} {
		ctx, virtual := context.Background(), clock.NewVirtual(time.Unix(1_900_000_000, 0))
		db := &staleStore{Database: storetest.New(t), tag: "futura-finish"}
		c, err := Open(ctx, db, "late", Options{Clock: virtual, Config: layout.Config{Shards: 1}})
		require.NoError(t, err)
		w := &waker{t, ctx, db, c}
		r := w.register(9, "go:f")
		w.submit(layout.Spec{Function: "go:f"}, layout.Spec{Function: "go:f"})
		before := db.Begin(kv.Options{})
		defer before.Cancel()
		db.version, err = before.ReadVersion(ctx)
		require.NoError(t, err)
		db.left = 2
		answer, err := r.Claim(ctx, ClaimRequest{Free: layout.Resources{Slots: 2}, Max: 2})
		require.NoError(t, err)
		require.Len(t, answer.Futures, 2)
		virtual.Advance(wait)
		outcomes, err := r.Finish(ctx, []Completion{{Future: &answer.Futures[0], Result: &layout.Result{}}})
		require.NoError(t, err)
		require.Equal(t, []Outcome{Applied}, outcomes, name)
	}
}

// TestAClaimFitsTheWorker has futures that fit one at a time and not together.
func TestAClaimFitsTheWorker(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]layout.Requirements{"cpu": {CPU: 6}, "ram": {RAM: 600}, "gpu": {GPU: 6}} {
		w := newWaker(t)
		capacity := layout.Resources{Slots: 9, CPU: 11, RAM: 1100, GPU: 11}
		r, err := w.c.Register(w.ctx, layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: capacity})
		require.NoError(t, err)
		spec := layout.Spec{Function: "go:f", Requirements: q}
		w.submit(spec, spec, spec)
		answer, err := r.Claim(w.ctx, ClaimRequest{Free: capacity, Max: 9})
		require.NoError(t, err)
		require.Len(t, answer.Futures, 1, name)
	}
}
