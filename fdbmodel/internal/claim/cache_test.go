package claim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// cacheModel is what a cache should hold.
type cacheModel struct {
	flying    map[layout.ID]bool
	committed []layout.ID // oldest first
	at        map[layout.ID]kv.Version
}

// gone returns whether a snapshot hides that another claim has the future.
func (m *cacheModel) gone(id layout.ID, snapshot kv.Version) bool {
	at, known := m.at[id]
	return m.flying[id] || known && snapshot < at
}

func (m *cacheModel) commit(id layout.ID, at kv.Version) {
	delete(m.flying, id)
	if m.committed = append(m.committed, id); len(m.committed) > maxCommitted {
		delete(m.at, m.committed[0])
		m.committed = m.committed[1:]
	}
	m.at[id] = at
}

// TestCache compares a cache with its model, for a few futures that claims take
// again and again, among many others.
func TestCache(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l Cache
		now := time.Unix(1, 0)
		m := cacheModel{flying: map[layout.ID]bool{}, at: map[layout.ID]kv.Version{}}
		version, others := kv.Version(10), uint16(0)
		some := rapid.Custom(func(t *rapid.T) layout.ID { return layout.ID{1, byte(rapid.IntRange(1, 4).Draw(t, "id"))} })
		entries := func(ids ...layout.ID) (all []layout.ReadyEntry) {
			for _, id := range ids {
				all = append(all, layout.ReadyEntry{ID: id})
			}
			return all
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				id, snapshot := some.Draw(t, "future"), version-kv.Version(rapid.IntRange(0, 3).Draw(t, "age"))
				gone := m.gone(id, snapshot)
				require.Equal(t, gone, l.Gone(id, snapshot, now))
				require.Equal(t, !gone, l.Take(id, snapshot, now))
				if !gone {
					m.flying[id] = true
				}
			},
			"end": func(t *rapid.T) {
				id := some.Draw(t, "future")
				if !m.flying[id] {
					t.Skip("nothing has it")
				}
				if version++; rapid.Bool().Draw(t, "commits") {
					l.Commit(entries(id), version, now)
					m.commit(id, version)
					return
				}
				l.Release(entries(id))
				delete(m.flying, id)
				delete(m.at, id)
			},
			"others": func(t *rapid.T) {
				version++
				for range rapid.SampledFrom([]int{1, maxCommitted / 2, maxCommitted - 1, maxCommitted}).Draw(t, "number") {
					others++
					id := layout.ID{2, byte(others), byte(others >> 8)}
					require.True(t, l.Take(id, version, now))
					l.Commit(entries(id), version, now)
					m.commit(id, version)
				}
			},
			"": func(t *rapid.T) {
				flying := 0
				for n := range byte(4) {
					id := layout.ID{1, n + 1}
					if m.flying[id] {
						flying++
					}
					for age := range kv.Version(4) {
						require.Equal(t, m.gone(id, version-age), l.Gone(id, version-age, now), "%v at %d", id, version-age)
					}
				}
				require.Equal(t, flying, l.InFlight())
				require.LessOrEqual(t, len(l.taken), maxCommitted+flying)
			},
		})
	})
}

// TestACacheForgets: an entry ends with the last snapshot that may precede it.
func TestACacheForgets(t *testing.T) {
	t.Parallel()
	var l Cache
	id, now := layout.ID{1}, time.Unix(1, 0)
	entry := []layout.ReadyEntry{{ID: id}}
	require.True(t, l.Take(id, 5, now))
	require.False(t, l.Take(id, 1<<40, now.Add(time.Hour)), "a claim in flight may commit at any version and time")
	require.Equal(t, 1, l.InFlight())
	l.Commit(entry, 7, now)
	require.Zero(t, l.InFlight())
	require.True(t, l.Gone(id, 6, now), "the snapshot precedes the claim")
	require.False(t, l.Take(id, 6, now))
	require.False(t, l.Gone(id, 6, now.Add(kv.TxLifetime)), "snapshots that precede the claim have ended")
	require.True(t, l.Take(id, 7, now), "the snapshot shows what the claim left")
	l.Release(entry)
	require.False(t, l.Gone(id, 0, now))
}
