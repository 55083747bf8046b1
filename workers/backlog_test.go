package workers

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

// heldFinishes is a store that commits no completions until open is closed.
type heldFinishes struct {
	kv.Database
	open chan struct{}
}

type heldFinish struct {
	kv.Tx
	open chan struct{}
}

func (d heldFinishes) Begin(o kv.Options) kv.Tx {
	tx := d.Database.Begin(o)
	if o.Tag == "futura-finish" {
		return heldFinish{tx, d.open}
	}
	return tx
}

func (t heldFinish) Commit(ctx context.Context) (kv.Committed, error) {
	<-t.open
	return t.Tx.Commit(ctx)
}

// TestABacklogOfCompletionsHoldsClaimsBack: a worker whose completions can't be
// written claims no more than a bounded number, and goes on once they are.
func TestABacklogOfCompletionsHoldsClaimsBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		const number = 6 * maxEnded
		db := heldFinishes{storetest.New(t), make(chan struct{})}
		b := bedOn(t, db, layout.Config{Shards: 1, Heartbeat: 100 * time.Millisecond, DeadAfter: time.Minute}, nil)
		var ran atomic.Int64
		b.many(number, "go:count")
		b.start(Options{}, map[string]Function{"count": func(context.Context, []byte) ([]byte, error) {
			ran.Add(1)
			return nil, nil
		}})
		b.await("a full backlog", func() bool { return ran.Load() > maxEnded })
		before := int64(0)
		b.await("the end of claims", func() bool {
			still := ran.Load() == before && b.counts()[layout.Claimed] == before
			before = ran.Load()
			return still
		})
		require.Less(t, before, int64(number/2))
		close(db.open)
		b.await("all results", func() bool { return b.counts()[layout.Realized] == number })
	})
}
