package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/internal/storetest"
)

// vandal damages a cluster at random: it clears keys that follow from records, alters their values, and
// brings back keys that once were there.
type vandal struct {
	c      *fdbmodel.Cluster
	db     kv.Database
	random *rand.Rand
	once   []kv.KeyValue
	gone   bool // it brings nothing back
}

// follows reports whether a key follows from others. Values of some must be there, and others only
// be cleared or altered.
func follows(item kv.KeyValue) (clear, alter, bringBack bool) {
	key := keyspace.Table().Parse(item.Key)
	if key.Kind == nil {
		return false, false, false
	}
	switch name := key.Kind.Name; name {
	case layout.PlaceReady, layout.PlaceAssigned, layout.PlaceHeld:
		return true, true, true
	case layout.PlaceLine, layout.PlaceDelayed, layout.KeyLimit, layout.KeyDependant, layout.KeyInput, layout.KeyLaneDue,
		layout.KeyUniqueDue, layout.KeyBatchTime, layout.KeyIdle, layout.KeyAddress, joblog.KeyRetry:
		return true, false, true
	case layout.KeyCount:
		return true, true, false
	case layout.KeyOwnerOpen:
		return true, true, true
	case layout.KeyLaneTurn, layout.KeyResolve, "done", "has dependants":
		return true, false, false
	case layout.WorkerClaims, layout.WorkerHeartbeat:
		return true, false, false
	case layout.KeyLane:
		return false, true, false
	case layout.KeyUnique:
		var r layout.UniqueRecord
		return layout.Decode(item.Key, item.Value, &r) == nil && r.Until == layout.UntilEnd && r.FreeAt == 0, false, false
	}
	clear = key.Subspace == layout.SubListed
	return clear, false, clear
}

func (v *vandal) altered(item kv.KeyValue) []byte {
	switch key := keyspace.Table().Parse(item.Key); key.Kind.Name {
	case layout.KeyCount, layout.KeyOwnerOpen:
		return layout.EncodeCounter(int64(v.random.IntN(9) - 3))
	case layout.KeyLane:
		var r layout.LaneRecord
		if layout.Decode(item.Key, item.Value, &r) != nil {
			return item.Value
		}
		switch v.random.IntN(4) {
		case 0:
			r.Open += v.random.IntN(5) - 2
		case 1:
			r.Called += v.random.IntN(3) - 1
		case 2:
			r.Lined = false
		default:
			r.Due = 0
		}
		return layout.Encode(&r)
	}
	return append(bytes.Clone(item.Value), " worker"...)
}

// strike damages up to n keys.
func (v *vandal) strike(t require.TestingT, n int) (did []string) {
	_, err := kv.Transact(context.Background(), v.db, kv.Retry{}, func(tx kv.Attempt) error {
		did = nil
		page, err := tx.Snapshot().GetRange(v.c.Keys().All(), kv.RangeOptions{}).Wait(context.Background())
		if err != nil || len(page.Items) == 0 {
			return err
		}
		kinds := map[string][]kv.KeyValue{}
		for _, item := range page.Items {
			clear, alter, back := follows(item)
			if name := keyspace.Table().Describe(item.Key).Kind; clear || alter {
				kinds[name] = append(kinds[name], item)
			}
			if back && len(v.once) < 3000 {
				v.once = append(v.once, item)
			}
		}
		names := slices.Sorted(maps.Keys(kinds))
		for range min(n, 100*len(names)) {
			some := kinds[names[v.random.IntN(len(names))]]
			item := some[v.random.IntN(len(some))]
			clear, alter, _ := follows(item)
			what := v.random.IntN(3)
			switch {
			case what == 0 && len(v.once) > 0 && !v.gone:
				item = v.once[v.random.IntN(len(v.once))]
				tx.Set(item.Key, item.Value)
			case what == 1 && alter:
				tx.AddReadConflictKey(item.Key) // what is gone by then does not come back
				tx.Set(item.Key, v.altered(item))
			case clear:
				tx.Clear(item.Key)
			default:
				continue
			}
			did = append(did, fmt.Sprintf("%d %s", what, keyspace.Table().Describe(item.Key).Text))
		}
		return nil
	})
	require.NoError(t, err)
	return did
}

func (v *vandal) records(t require.TestingT) map[string]string {
	records := map[string]string{}
	err := v.c.EachKey(context.Background(), v.c.Keys().All(), func(item kv.KeyValue) error {
		key := keyspace.Table().Parse(item.Key)
		if key.Subspace == layout.SubFutures && key.Kind.Name != "has dependants" && key.Kind.Name != "has steps" {
			records[string(item.Key)] = string(item.Value)
		}
		return nil
	})
	require.NoError(t, err)
	return records
}

// TestRandomDamageIsRepaired damages clusters in random states, and repairs them, under faults.
// Nothing of a future is another one afterwards, all goes on as if nothing had happened, and everything
// ends. FUTURA_LONG=1 runs many more, FUTURA_SEED=N repeats one.
func TestRandomDamageIsRepaired(t *testing.T) {
	t.Parallel()
	seeds, steps := storetest.Fewer(36, 1), 40
	first := uint64(95_000)
	if os.Getenv("FUTURA_LONG") == "1" {
		seeds, first = 300, rand.Uint64()
	}
	if seed, err := strconv.ParseUint(os.Getenv("FUTURA_SEED"), 10, 64); err == nil {
		seeds, first = 1, seed
	}
	repaired := map[audit.Invariant]int64{}
	for n := range seeds {
		seed := first + uint64(n)
		m := modeltest.NewMachine(t, seed)
		random := rand.New(rand.NewPCG(seed, 1))
		v := &vandal{random: random}
		for range 3 {
			for range steps {
				m.Step()
			}
			v.c, v.db = m.C, m.Store
			m.Faults.Pause()
			before := v.records(t)
			did := v.strike(t, 1+random.IntN(60))
			var last audit.Report
			for round := 0; ; round++ {
				report, err := audit.Check(context.Background(), m.C, audit.Options{})
				require.NoError(t, err)
				if last = report; report.Repairable() == 0 {
					break
				}
				require.Less(t, round, 10, "seed %d: %q: %+v", seed, did, report.Problems)
				m.Faults.Resume()
				done, err := audit.Repair(context.Background(), m.C, report, audit.Options{})
				m.Faults.Pause()
				require.NoError(t, err)
				for of, n := range done.Repaired {
					repaired[of] += n
				}
			}
			require.Empty(t, last.Problems, "seed %d: %q", seed, did)
			require.Equal(t, before, v.records(t), "seed %d: %q", seed, did)
			m.Faults.Resume()
		}
		m.Finale()
	}
	if seeds > 20 {
		for _, of := range []audit.Invariant{audit.InvariantCounts, audit.InvariantLane, audit.InvariantEdge,
			audit.InvariantClaim, audit.InvariantDone, audit.InvariantWorker, audit.InvariantListed, audit.InvariantLimit,
			audit.InvariantUnique, layout.PlaceReady, layout.PlaceDelayed, layout.PlaceLine,
			layout.PlaceAssigned, layout.PlaceHeld} {
			require.NotZero(t, repaired[of], of)
		}
	}
	t.Log(repaired)
}
