package notify

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// ringStore is a store with idle workers in the ring of the queue q.
func ringStore(t *testing.T, keys layout.Keyspace, workers int) kv.Database {
	return ringStoreOf(t, keys, workers, embedded.Options{})
}

func ringStoreOf(t *testing.T, keys layout.Keyspace, workers int, o embedded.Options) kv.Database {
	db := embedded.OpenMemory(o)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err := kv.Transact(t.Context(), db, kv.Retry{}, func(tx kv.Attempt) error {
		for i := range workers {
			record := layout.IdleRecord{Resources: layout.Resources{Slots: 1}}
			tx.Set(keys.Idle("q", layout.WorkerID(fmt.Sprintf("%03d", i))), layout.Encode(&record))
		}
		return nil
	})
	require.NoError(t, err)
	return db
}

// idle returns how many workers are in the ring.
func idle(t *testing.T, db kv.Database, keys layout.Keyspace) int {
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	page, err := tx.GetRange(kv.Prefix(keys.IdleQueue("q")), kv.RangeOptions{}).Wait(t.Context())
	require.NoError(t, err)
	return len(page.Items)
}

// TestNoCallerWaitsForOtherProcesses has the search for their workers be made in the background, one for all that ask
// for it meanwhile, and by the callers themselves without one.
func TestNoCallerWaitsForOtherProcesses(t *testing.T) {
	t.Parallel()
	keys := layout.NewKeyspace("c")
	db := ringStore(t, keys, 90)
	n := New(db, keys, time.Now, func(int) int { return 0 })
	var asked []func(context.Context)
	withdraw := n.OfferBackground(func(fn func(context.Context)) { asked = append(asked, fn) })
	n.OfferBackground(func(func(context.Context)) { require.Fail(t, "one is in use") })()
	wake := func(futures int) {
		n.Wake(t.Context(), kv.NoVersion, Demands{{Queue: "q"}: futures})
	}
	wake(1)
	wake(2)
	wake(60)
	require.Len(t, asked, 1, "those that come meanwhile share the search")
	require.Equal(t, 90, idle(t, db, keys))
	asked[0](t.Context())
	require.Equal(t, 90-3*wakeLimit, idle(t, db, keys), "a search of three wakes as many as three")
	wake(1)
	require.Len(t, asked, 2, "the last one has ended")
	withdraw()
	asked[1](t.Context())
	require.Equal(t, 90-3*wakeLimit-1, idle(t, db, keys), "what was asked for is done")
	wake(2)
	require.Len(t, asked, 2)
	require.Equal(t, 90-3*wakeLimit-3, idle(t, db, keys))
	n.OfferBackground(func(fn func(context.Context)) { asked = append(asked, fn) })
	withdraw()
	wake(1)
	require.Len(t, asked, 3, "another one is used now")
}

// TestAnotherBackgroundTakesOver has what runs the searches be withdrawn, at rest and during one: another one that was
// offered has the next, and what runs the present one is left with that alone.
func TestAnotherBackgroundTakesOver(t *testing.T) {
	t.Parallel()
	keys := layout.NewKeyspace("c")
	db := ringStore(t, keys, 9)
	n := New(db, keys, time.Now, func(int) int { return 0 })
	var asked [3][]func(context.Context)
	var withdraw [3]func()
	for i := range asked {
		withdraw[i] = n.OfferBackground(func(fn func(context.Context)) { asked[i] = append(asked[i], fn) })
	}
	wake := func() { n.Wake(t.Context(), kv.NoVersion, Demands{{Queue: "q"}: 1}) }
	wake()
	withdraw[0]()
	wake()
	require.Len(t, asked[0], 1)
	require.Empty(t, asked[1], "a search is under way")
	asked[0][0](t.Context())
	require.Equal(t, 9, idle(t, db, keys), "it is left to another one")
	require.Len(t, asked[1], 1)
	withdraw[1]()
	withdraw[2]()
	asked[1][0](t.Context())
	require.Equal(t, 7, idle(t, db, keys), "nobody else is there")
	wake()
	require.Equal(t, 6, idle(t, db, keys), "who asks for it does it")
	require.Empty(t, asked[2])
}

// namedHinter is one of several.
type namedHinter struct{ name string }

func (*namedHinter) Hint(context.Context, []byte, int) int { return 0 }

func (*namedHinter) Met([]layout.WorkerID) {}

// TestAnotherHinterTakesOver uses the first of those that were offered and not withdrawn.
func TestAnotherHinterTakesOver(t *testing.T) {
	t.Parallel()
	n := New(nil, layout.NewKeyspace("c"), time.Now, nil)
	first, second, third := &namedHinter{"a"}, &namedHinter{"b"}, &namedHinter{"c"}
	n.OfferHinter(first)
	n.OfferHinter(second)
	n.OfferHinter(third)
	n.WithdrawHinter(second)
	require.Same(t, first, n.hinter())
	n.WithdrawHinter(first)
	require.Same(t, third, n.hinter())
	n.WithdrawHinter(third)
	require.Nil(t, n.hinter())
}

// TestASearchThatComesLateReadsWhatIsThere has the process be stopped between a commit and the search that follows, for
// longer than the store can read at the version of the commit.
func TestASearchThatComesLateReadsWhatIsThere(t *testing.T) {
	t.Parallel()
	keys, virtual := layout.NewKeyspace("c"), clock.NewVirtual(time.Unix(1_900_000_000, 0))
	db := ringStoreOf(t, keys, 3, embedded.Options{Clock: virtual})
	before := db.Begin(kv.Options{})
	defer before.Cancel()
	version, err := before.ReadVersion(t.Context())
	require.NoError(t, err)
	n := New(db, keys, virtual.Now, func(int) int { return 0 })
	n.Wake(t.Context(), version, Demands{{Queue: "q"}: 1})
	require.Equal(t, 2, idle(t, db, keys))
	virtual.Advance(2 * kv.TxLifetime)
	n.Wake(t.Context(), version, Demands{{Queue: "q"}: 1})
	require.Equal(t, 1, idle(t, db, keys))
}

// TestASearchSeesWhatItsCallersDid shares the newest version of those that ask, and none if one of them knows none.
func TestASearchSeesWhatItsCallersDid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		versions []kv.Version
		want     kv.Version
	}{
		"one":     {[]kv.Version{7}, 7},
		"newest":  {[]kv.Version{7, 9, 8}, 9},
		"first":   {[]kv.Version{kv.NoVersion, 9}, kv.NoVersion},
		"unknown": {[]kv.Version{7, kv.NoVersion, 9}, kv.NoVersion},
	} {
		var s search
		for _, v := range c.versions {
			s.share(v, Demands{{Queue: "q"}: 1})
		}
		require.Equal(t, c.want, s.version, name)
		require.Equal(t, len(c.versions), s.placed[Demand{Queue: "q"}], name)
	}
}
