package sharing_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
	"github.com/futura-run/futura/internal/clock"
)

// pair is a store with an owner and one that follows it.
type pair struct {
	dir             string
	clock           *clock.Virtual
	owner, follower *sharing.Database
}

// stores opens stores for the conformance suite, and hands out one of a pair.
type stores struct {
	follows bool

	mu   sync.Mutex
	open map[kv.Database]*pair
}

func (c *stores) join(t testing.TB, p *pair) *sharing.Database {
	db, err := sharing.Open(context.Background(), p.dir, sharing.Options{Embedded: embedded.Options{Clock: p.clock}})
	require.NoError(t, err)
	return db
}

func (c *stores) give(p *pair) kv.Database {
	c.mu.Lock()
	defer c.mu.Unlock()
	db := p.owner
	if c.follows {
		db = p.follower
	}
	c.open[db] = p
	return db
}

func (c *stores) find(db kv.Database) *pair {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[db]
}

// takeOver ends the owner, so that the follower takes over, and has another one follow.
func (c *stores) takeOver(t testing.TB, p *pair) {
	require.NoError(t, p.owner.Close())
	require.Eventually(t, p.follower.IsOwner, patience, time.Millisecond)
	p.owner, p.follower = p.follower, c.join(t, p)
	require.False(t, p.follower.IsOwner())
}

func (c *stores) suite() kvtest.Options {
	c.open = map[kv.Database]*pair{}
	return kvtest.Options{
		New: func(t testing.TB) kv.Database {
			p := &pair{dir: place(t), clock: clock.NewVirtual(time.Unix(0, 0))}
			p.owner, p.follower = c.join(t, p), c.join(t, p)
			require.True(t, p.owner.IsOwner())
			require.False(t, p.follower.IsOwner())
			t.Cleanup(func() {
				require.NoError(t, p.follower.Close())
				require.NoError(t, p.owner.Close())
			})
			return c.give(p)
		},
		Reopen: func(t testing.TB, db kv.Database) kv.Database {
			p := c.find(db)
			if c.follows {
				require.NoError(t, db.Close())
				p.follower = c.join(t, p)
			}
			c.takeOver(t, p)
			return c.give(p)
		},
		ExpireTx:    func(db kv.Database) { c.find(db).clock.Advance(kv.TxLifetime + time.Second) },
		ManyWatches: true,
	}
}

func TestConformanceOfTheOwner(t *testing.T) {
	t.Parallel()
	c := &stores{}
	kvtest.Run(t, c.suite())
}

func TestConformanceOfAFollower(t *testing.T) {
	t.Parallel()
	c := &stores{follows: true}
	kvtest.Run(t, c.suite())
}
