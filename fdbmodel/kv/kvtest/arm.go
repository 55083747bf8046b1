package kvtest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

// What a case changes while it arms watches: how often, and how many other rows
// a large change writes before the watched one.
const (
	smallChanges = 300
	largeChanges = 60
	fillers      = 2_000
)

// ArmDuringChanges runs the case of small changes as often as it is told, on a store
// of its own that New returns.
func ArmDuringChanges(t *testing.T, o Options, changes int) {
	b := newBundle(t, o)
	b.ctx = t.Context()
	b.armDuring(changes, 0)
}

// armDuring changes a row and arms the only watch of the store meanwhile, again
// and again. A watch that saw the row as it was before fires once the change is
// published: it must not matter at which step of the commit it was armed. The
// change writes other rows first, so that the commit takes long enough to be met
// at all its steps. With faults the property does not hold: a commit that is made late may
// give the row the value that was seen.
func (b *bundle) armDuring(changes, before int) {
	random := rand.New(rand.NewPCG(uint64(changes), uint64(before)))
	var took time.Duration
	for round := range uint64(changes) {
		changed := make(chan error, 1)
		begun := time.Now()
		go func() {
			_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) error {
				for i := range before {
					a.Set(b.key(fmt.Sprintf("a%04d", i)), nil)
				}
				a.Set(b.key("b"), binary.BigEndian.AppendUint64(nil, round+1))
				return nil
			})
			changed <- err
		}()
		if took > 0 {
			spin(begun.Add(time.Duration(random.Int64N(int64(took)))))
		}
		w, seen := b.armOn("b")
		require.NoError(b, <-changed)
		took = max(time.Since(begun), time.Microsecond)
		if seen == round {
			b.fires(w)
		}
		w.Cancel()
	}
}

// armOn sets a watch on a counter in the transaction that reads it, and returns
// the value that it saw.
func (b *bundle) armOn(name string) (w kv.Watch, seen uint64) {
	b.Helper()
	_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) error {
		value, err := a.Get(b.key(name)).Wait(b.ctx)
		if err != nil {
			return err
		}
		if seen = 0; value != nil {
			seen = binary.BigEndian.Uint64(value)
		}
		w = a.Watch(b.key(name))
		return nil
	})
	require.NoError(b, err)
	return w, seen
}

// spin waits until at without giving the processor away, which would take
// longer than the steps to be met.
func spin(at time.Time) {
	for time.Now().Before(at) {
	}
}
