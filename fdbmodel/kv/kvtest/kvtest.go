package kvtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

// Options of the suite. Only New is needed.
type Options struct {
	// New returns a store for one test. It may be the same store for all: each
	// test keeps to a random prefix of its own and clears it. A store that is
	// not shared is closed by a cleanup that New registers.
	New func(testing.TB) kv.Database

	// Reopen closes a store that New returned and opens what it kept.
	// Transactions and watches may still be open. Defaults to none, for stores
	// that keep nothing.
	Reopen func(testing.TB, kv.Database) kv.Database

	// ExpireTx makes every transaction of the store that has begun to read
	// older than kv.TxLifetime, for instance by moving its clock. Defaults to
	// waiting that long where FUTURA_LONG=1 is set, and skipping otherwise.
	ExpireTx func(kv.Database)

	// Faults says that the store injects faults. Cases that depend on what one
	// attempt of a transaction does are not run then. Defaults to false.
	Faults bool

	// Brief says that the store keeps versions for transactions that have begun to read
	// alone. Cases that read at others are not run then. Defaults to false.
	Brief bool

	// ManyWatches says that the store is not shared, and that opening more than
	// kv.MaxWatches takes no more than seconds. Defaults to false.
	ManyWatches bool

	// Programs is how many random programs are run here and on the reference.
	// Defaults to 200, and to 10,000 with fresh seeds where FUTURA_LONG=1 is
	// set.
	Programs int
}

// Run runs the suite as parallel subtests of t.
func Run(t *testing.T, o Options) {
	if o.Programs == 0 {
		o.Programs = 200
		if long() {
			o.Programs = 10_000
		}
	}
	for _, c := range allCases() {
		if o.Faults && c.exact || o.Brief && c.earlier {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newBundle(t, o))
		})
	}
}

// testCase is one test of the suite. An exact one depends on what a single
// attempt does, and an earlier one reads at versions that no transaction holds.
type testCase struct {
	name    string
	exact   bool
	earlier bool
	run     func(*bundle)
}

func allCases() []testCase {
	return slices.Concat(readCases(), conflictCases(), versionCases(), atomicCases(), stampCases(), watchCases(),
		limitCases(), retryCases(), concurrencyCases(), sliceCases(), reopenCases(), snapshotCases(), programCases())
}

// long reports whether the long variants are asked for.
func long() bool { return os.Getenv("FUTURA_LONG") == "1" }

// caseTimeout bounds one case, the slowest of them on the slowest store.
func caseTimeout() time.Duration {
	if long() {
		return 10 * time.Minute
	}
	return 2 * time.Minute
}

// bundle is what a case works with.
type bundle struct {
	*testing.T
	o      Options
	ctx    context.Context
	db     kv.Database
	prefix []byte

	guards     []byte // prefix of the keys of guarded transactions
	guardsUsed atomic.Uint64
}

func newBundle(t *testing.T, o Options) *bundle {
	ctx, cancel := context.WithTimeout(context.Background(), caseTimeout())
	t.Cleanup(cancel)
	b := &bundle{T: t, o: o, ctx: ctx, db: o.New(t), prefix: randomPrefix(), guards: randomPrefix()}
	t.Cleanup(func() { b.clean() })
	return b
}

func randomPrefix() []byte {
	random := make([]byte, 8)
	if _, err := rand.Read(random); err != nil {
		panic(err)
	}
	return append([]byte("kvtest/"), hex.EncodeToString(random)+"/"...)
}

// clean clears what the case left behind, however long the case took.
func (b *bundle) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), caseTimeout())
	defer cancel()
	_, err := kv.Transact(ctx, b.db, b.retry(), func(a kv.Attempt) error {
		a.ClearRange(kv.Prefix(b.prefix))
		a.ClearRange(kv.Prefix(b.guards))
		return nil
	})
	require.NoError(b, err)
}

// key returns the case's own key of that name.
func (b *bundle) key(name string) []byte { return append(slices.Clone(b.prefix), name...) }

// span returns the range between two of the case's keys. The empty name as the
// end is the end of all.
func (b *bundle) span(from, to string) kv.Range {
	if to == "" {
		return kv.Range{Begin: b.key(from), End: kv.AfterPrefix(b.prefix)}
	}
	return kv.Range{Begin: b.key(from), End: b.key(to)}
}

// begin starts a transaction that ends with the case.
func (b *bundle) begin() kv.Tx {
	tx := b.db.Begin(kv.Options{})
	b.Cleanup(tx.Cancel)
	return tx
}

// beginRead starts a transaction and fixes its read version.
func (b *bundle) beginRead() kv.Tx {
	tx := b.begin()
	_, err := tx.ReadVersion(b.ctx)
	require.NoError(b, err)
	return tx
}

// commit commits tx, which must succeed.
func (b *bundle) commit(tx kv.Tx) kv.Committed {
	b.Helper()
	done, err := tx.Commit(b.ctx)
	require.NoError(b, err)
	return done
}
