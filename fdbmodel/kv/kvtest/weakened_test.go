package kvtest_test

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
	"github.com/futura-run/futura/internal/anomaly"
)

// weakening is a store whose isolation is weaker, and what it must be found by.
type weakening struct {
	wrap  func(kv.Database) kv.Database
	finds []string
}

// each weakens the transactions of a store.
func each(defect func(kv.Tx) kv.Tx) func(kv.Database) kv.Database {
	return func(db kv.Database) kv.Database { return mutant{db, defect} }
}

func weakenings() map[string]weakening {
	unread := each(func(tx kv.Tx) kv.Tx { return snapshots{tx} })
	old := func(db kv.Database) kv.Database { return &stale{Database: db} }
	return map[string]weakening{
		"values are read without conflicts": {each(defects()["reads do not conflict"]), []string{anomaly.GSingle}},
		"phantoms do not conflict":          {each(defects()["phantoms do not conflict"]), []string{anomaly.G2}},
		"declared reads do not conflict":    {each(defects()["conflicts are kept secret"]), []string{anomaly.G2}},
		"reads do not conflict at all":      {unread, []string{anomaly.GSingle, anomaly.G2}},
		"reads are stale":                   {old, []string{anomaly.GSingle + anomaly.Realtime}},
		"failed transactions are written":   {leaking(false), []string{anomaly.G1a}},
		"each write is its own commit":      {leaking(true), []string{anomaly.G0, anomaly.G1b, anomaly.G1c}},
	}
}

// TestAppendsFindWeakenedIsolation runs the workload on stores with weaker isolation until it has found each of their
// anomalies.
func TestAppendsFindWeakenedIsolation(t *testing.T) {
	t.Parallel()
	for name, w := range weakenings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var names []string
			for round := 1; round <= 60; round++ {
				db := w.wrap(newEmbedded(t))
				a := kvtest.NewAppends([]byte("appends/"))
				require.NoError(t, a.Run(t.Context(), db))
				found, err := a.Check(t.Context(), db)
				require.NoError(t, err)
				names = append(names, anomaly.Names(found)...)
				if !slices.ContainsFunc(w.finds, func(name string) bool { return !slices.Contains(names, name) }) {
					t.Logf("found in %d rounds", round)
					return
				}
			}
			slices.Sort(names)
			require.Subset(t, slices.Compact(names), w.finds)
		})
	}
}

// snapshots reads without conflicts.
type snapshots struct{ kv.Tx }

func (s snapshots) Get(key []byte) kv.Pending[[]byte] { return s.Snapshot().Get(key) }
func (s snapshots) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return s.Snapshot().GetRange(r, o)
}
func (s snapshots) AddReadConflictRange(kv.Range) {}

// stale reads at the version of an earlier commit.
type stale struct {
	kv.Database

	mu       sync.Mutex
	versions []kv.Version
}

func (s *stale) Begin(o kv.Options) kv.Tx {
	tx := s.Database.Begin(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.versions); n > 0 {
		tx.SetReadVersion(s.versions[max(0, n-3)])
	}
	return staleTx{tx, s}
}

type staleTx struct {
	kv.Tx
	of *stale
}

func (t staleTx) Commit(ctx context.Context) (kv.Committed, error) {
	done, err := t.Tx.Commit(ctx)
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if err == nil && done.Version != kv.NoVersion {
		t.of.versions = append(t.of.versions, done.Version)
	} else if n := len(t.of.versions); err != nil && n > 0 {
		t.of.versions = append(t.of.versions, t.of.versions[n-1]) // who failed reads later versions in the end
	}
	return done, err
}

// leaking returns stores that write some writes in transactions of their own: those of transactions that fail, or all.
func leaking(all bool) func(kv.Database) kv.Database {
	return func(db kv.Database) kv.Database { return leaky{db, all} }
}

type leaky struct {
	kv.Database
	all bool
}

func (l leaky) Begin(o kv.Options) kv.Tx { return &leakyTx{Tx: l.Database.Begin(o), of: l} }

type leakyTx struct {
	kv.Tx
	of     leaky
	writes []func(kv.Tx)
	ended  bool
}

func (t *leakyTx) Set(key, value []byte) {
	key, value = bytes.Clone(key), bytes.Clone(value)
	t.write(func(tx kv.Tx) { tx.Set(key, value) })
}

func (t *leakyTx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	key, value = bytes.Clone(key), bytes.Clone(value)
	t.write(func(tx kv.Tx) { tx.SetVersionstampedKey(key, offset, value) })
}

func (t *leakyTx) write(fn func(kv.Tx)) {
	fn(t.Tx)
	if t.writes = append(t.writes, fn); t.of.all {
		t.leak(fn)
	}
}

// leak makes a write for all to see.
func (t *leakyTx) leak(fn func(kv.Tx)) {
	_, err := kv.Transact(context.Background(), t.of.Database, kv.Retry{}, func(a kv.Attempt) error {
		fn(a)
		return nil
	})
	if err != nil {
		panic(err)
	}
	runtime.Gosched()
}

func (t *leakyTx) Commit(ctx context.Context) (kv.Committed, error) {
	t.ended = true
	if t.of.all {
		t.Tx.Cancel()
		return kv.Committed{Version: kv.NoVersion}, nil
	}
	return t.Tx.Commit(ctx)
}

func (t *leakyTx) Cancel() {
	if !t.of.all && !t.ended {
		for _, fn := range t.writes {
			t.leak(fn)
		}
	}
	t.ended = true
	t.Tx.Cancel()
}
