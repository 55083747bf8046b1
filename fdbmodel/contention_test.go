package fdbmodel

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/internal/claim"
	"github.com/futura-run/futura/fdbmodel/internal/random"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// heldClaims is a store that holds back one claim, or another transaction of a
// worker: before its commit, or once it has a read version.
type heldClaims struct {
	kv.Database
	tag     string
	early   bool
	mu      sync.Mutex
	arrived chan struct{} // closed when the claim is held; nil if none is to be held
	answer  chan error    // lets it go, or makes it fail
}

func newHeldClaims(t *testing.T, early bool) *heldClaims {
	return &heldClaims{
		Database: storetest.New(t), tag: "futura-claim", early: early, arrived: make(chan struct{}), answer: make(chan error),
	}
}

// hold holds back the first claim that comes.
func (d *heldClaims) hold() error {
	d.mu.Lock()
	arrived := d.arrived
	d.arrived = nil
	d.mu.Unlock()
	if arrived == nil {
		return nil
	}
	close(arrived)
	return <-d.answer
}

type heldTx struct {
	kv.Tx
	db *heldClaims
}

func (d *heldClaims) Begin(o kv.Options) kv.Tx {
	tx := d.Database.Begin(o)
	if o.Tag != d.tag {
		return tx
	}
	return heldTx{tx, d}
}

func (t heldTx) ReadVersion(ctx context.Context) (kv.Version, error) {
	version, err := t.Tx.ReadVersion(ctx)
	if t.db.early {
		err = errors.Join(err, t.db.hold())
	}
	return version, err
}

func (t heldTx) Commit(ctx context.Context) (kv.Committed, error) {
	if !t.db.early {
		if err := t.db.hold(); err != nil {
			return kv.Committed{}, err
		}
	}
	return t.Tx.Commit(ctx)
}

// during calls act, calls meanwhile while a transaction of it is held, and lets
// that go with an answer.
func (d *heldClaims) during(act func() error, meanwhile func(), answer error) error {
	arrived, ended := d.arrived, make(chan error)
	go func() { ended <- act() }()
	<-arrived
	meanwhile()
	d.answer <- answer
	return <-ended
}

// whileHeld is during for a claim of n futures.
func (d *heldClaims) whileHeld(w *waker, r *Registration, n int, meanwhile func(), answer error,
) (got ClaimAnswer, err error) {
	err = d.during(func() (err error) {
		got, err = r.Claim(w.ctx, ClaimRequest{Free: r.info.Capacity, Max: n})
		return err
	}, meanwhile, answer)
	return got, err
}

// claimersOn returns a cluster with n futures, in the order of the index, and two
// workers.
func claimersOn(t *testing.T, db kv.Database, n int) (*waker, []layout.ID, [2]*Registration) {
	t.Helper()
	c, err := Open(context.Background(), db, "ledger", Options{Config: layout.Config{Shards: 1}})
	require.NoError(t, err)
	w := &waker{t, context.Background(), db, c}
	subs := make([]Submission, n)
	for i := range subs {
		subs[i].Spec = layout.Spec{Function: "go:f", Priority: uint8(100 - i)}
	}
	submitted, err := c.Submit(w.ctx, subs)
	require.NoError(t, err)
	ids := make([]layout.ID, len(submitted))
	for i := range submitted {
		ids[i] = submitted[i].ID
	}
	return w, ids, [2]*Registration{w.register(100, "go:f"), w.register(100, "go:f")}
}

func claimedBy(w *waker, r *Registration, n int) []layout.ID {
	w.Helper()
	answer, err := r.Claim(w.ctx, ClaimRequest{Free: r.info.Capacity, Max: n})
	require.NoError(w, err)
	require.Zero(w, answer.Conflicts)
	return idsOf(answer)
}

func idsOf(answer ClaimAnswer) (ids []layout.ID) {
	for i := range answer.Futures {
		ids = append(ids, answer.Futures[i].ID)
	}
	return ids
}

// TestClaimsOfAProcessDoNotCompete holds back a claim: another worker of the
// process takes the futures behind it, without a conflict, and those of the
// claim again if it fails.
func TestClaimsOfAProcessDoNotCompete(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"committed": nil, "failed": errors.New("the store is gone")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newHeldClaims(t, false)
			w, ids, workers := claimersOn(t, db, 9)
			got, err := db.whileHeld(w, workers[0], 3, func() {
				require.Equal(t, ids[3:6], claimedBy(w, workers[1], 3))
			}, failure)
			require.ErrorIs(t, err, failure)
			if failure != nil {
				require.Equal(t, ids[:3], claimedBy(w, workers[1], 3))
				return
			}
			require.Zero(t, got.Conflicts)
			require.Equal(t, ids[:3], idsOf(got))
			require.Equal(t, ids[6:], claimedBy(w, workers[1], 9))
		})
	}
}

// TestAClaimLooksBehindAllThatOthersTake has a claim under way that takes many
// times more than the next one looks for.
func TestAClaimLooksBehindAllThatOthersTake(t *testing.T) {
	t.Parallel()
	const many = 60
	db := newHeldClaims(t, false)
	w, ids, workers := claimersOn(t, db, many+1)
	_, err := db.whileHeld(w, workers[0], many, func() {
		require.Equal(t, ids[many:], claimedBy(w, workers[1], 1))
	}, nil)
	require.NoError(t, err)
}

// TestAnOldSnapshotShowsNothingThatIsTaken has a claim whose snapshot precedes
// another claim of the process, which has committed since.
func TestAnOldSnapshotShowsNothingThatIsTaken(t *testing.T) {
	t.Parallel()
	db := newHeldClaims(t, true)
	w, ids, workers := claimersOn(t, db, 9)
	got, err := db.whileHeld(w, workers[0], 3, func() {
		require.Equal(t, ids[:3], claimedBy(w, workers[1], 3))
	}, nil)
	require.NoError(t, err)
	require.Zero(t, got.Conflicts)
	require.Equal(t, ids[3:6], idsOf(got))
}

// TestAClaimThatLosesToAnotherProcessTakesTheRest: the next attempt takes again
// what the lost one wanted, but for the future that is gone.
func TestAClaimThatLosesToAnotherProcessTakesTheRest(t *testing.T) {
	t.Parallel()
	db := newHeldClaims(t, false)
	w, ids, workers := claimersOn(t, db, 9)
	w.c.random = random.From(zeros{})
	workers[0].scan = claim.NewScanner(w.c.keys, w.c.random.Intn)
	c, err := Open(w.ctx, db, "ledger", Options{})
	require.NoError(t, err)
	other := (&waker{t, w.ctx, db, c}).register(9, "go:f")
	got, err := db.whileHeld(w, workers[0], 3, func() {
		require.Equal(t, ids[:1], claimedBy(w, other, 1))
	}, nil)
	require.NoError(t, err)
	require.Equal(t, 1, got.Conflicts)
	require.Equal(t, ids[1:4], idsOf(got))
	require.Zero(t, w.c.claimed.InFlight())
}

// TestClaimsFollowTheIndex claims one by one, by two workers in turn.
func TestClaimsFollowTheIndex(t *testing.T) {
	t.Parallel()
	w, ids, workers := claimersOn(t, storetest.New(t), 9)
	for i := range ids {
		require.Equal(t, ids[i:i+1], claimedBy(w, workers[i%2], 1))
	}
}

// TestFuturesThatComeBackAreClaimedAgain: the cache of claims does not hide futures that
// its process took and gave back.
func TestFuturesThatComeBackAreClaimedAgain(t *testing.T) {
	t.Parallel()
	w, ids, workers := claimersOn(t, storetest.New(t), 9)
	for i := range 6 {
		answer, err := workers[i%2].Claim(w.ctx, ClaimRequest{Free: workers[0].info.Capacity, Max: 9})
		require.NoError(t, err)
		require.Equal(t, ids, idsOf(answer))
		var completions []Completion
		for j := range answer.Futures {
			completions = append(completions, Completion{Future: &answer.Futures[j], Relinquish: true})
		}
		_, err = workers[i%2].Finish(w.ctx, completions)
		require.NoError(t, err)
	}
	require.Zero(t, w.c.claimed.InFlight())
}

// TestTheDeadChangeNothing declares a worker dead and reaps it while a
// transaction of its own is about to commit.
func TestTheDeadChangeNothing(t *testing.T) {
	t.Parallel()
	for tag, act := range map[string]func(w *waker, r *Registration) error{
		"futura-claim": func(w *waker, r *Registration) error {
			_, err := r.Claim(w.ctx, ClaimRequest{Free: r.info.Capacity, Max: 9})
			return err
		},
		"futura-beat": func(w *waker, r *Registration) error {
			_, err := r.Heartbeat(w.ctx, layout.Heartbeat{Free: r.info.Capacity})
			return err
		},
		"futura-beat of many": func(w *waker, r *Registration) error {
			other := w.register(1, "go:f")
			answers, err := w.c.HeartbeatMany(w.ctx, []Beat{{Worker: other}, {Worker: r}})
			require.NoError(w, errors.Join(err, answers[0].Err))
			require.NoError(w, other.Leave(w.ctx))
			return answers[1].Err
		},
		"futura-idle": func(w *waker, r *Registration) error {
			_, err := r.EnterIdleRing(w.ctx, ClaimRequest{Runs: func(string) bool { return false }})
			return err
		},
	} {
		t.Run(tag, func(t *testing.T) {
			t.Parallel()
			db := newHeldClaims(t, false)
			db.tag, _, _ = strings.Cut(tag, " ")
			w, ids, workers := claimersOn(t, db, 9)
			dead := workers[0].ID()
			require.ErrorIs(t, db.during(func() error { return act(w, workers[0]) }, func() {
				members, err := w.c.Workers(w.ctx)
				require.NoError(t, err)
				at := slices.IndexFunc(members, func(m Member) bool { return m.ID == dead })
				declared, err := w.c.DeclareDead(w.ctx, dead, members[at].Beat)
				require.NoError(t, err)
				require.True(t, declared)
				_, err = w.c.ReapClaims(w.ctx, dead)
				require.NoError(t, err)
			}, nil), ErrReaped)
			require.Equal(t, []bool{false}, w.inRing(workers[0]))
			members, err := w.c.Workers(w.ctx)
			require.NoError(t, err)
			require.Len(t, members, 1, "nothing is left of it")
			require.Equal(t, ids, claimedBy(w, workers[1], 9))
		})
	}
}

// TestClaimsFromARestoredStore puts a store behind a process that holds an
// earlier state of the same futures, at lower versions.
func TestClaimsFromARestoredStore(t *testing.T) {
	t.Parallel()
	clk := clock.NewVirtual(time.Unix(1_900_000_000, 0))
	id := layout.ID{1}
	db := &struct{ kv.Database }{}
	fill := func(c *Cluster, others int) *waker {
		w := &waker{t, context.Background(), db, c}
		for range others {
			w.submit(layout.Spec{Function: "go:other"})
		}
		_, err := c.Submit(w.ctx, []Submission{{ID: id, Spec: layout.Spec{Function: "go:f"}}})
		require.NoError(t, err)
		return w
	}
	open := func() *Cluster {
		db.Database = storetest.New(t)
		c, err := Open(context.Background(), db, "ledger", Options{Clock: clk, Config: layout.Config{Shards: 1}})
		require.NoError(t, err)
		return c
	}
	w := fill(open(), 50)
	require.Equal(t, []layout.ID{id}, claimedBy(w, w.register(9, "go:f"), 1))
	fill(open(), 0)
	clk.Advance(kv.TxLifetime)
	require.Equal(t, []layout.ID{id}, claimedBy(w, w.register(9, "go:f"), 1))
}
