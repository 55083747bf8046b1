package embedded

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// TestQueuesByChance compares queues with slices. Rows come behind all others and go in order, as whole leaves
// do then, while checkpoints are written, readers hold them back, rows are left to the tables and read again,
// and the store is closed and killed.
func TestQueuesByChance(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]int64{"some on disk": 100 << 10, "all on disk": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			p := newProgram(t, seed, Options{SegmentSize: 64 << 10, CheckpointBytes: 1 << 40, Memory: memory})
			var queues [3]queueByChance
			for i := range queues {
				queues[i].name = fmt.Sprint("q", i)
			}
			for step := range p.steps(300) {
				queues[p.chance.IntN(len(queues))].change(p)
				switch p.chance.IntN(20) {
				case 0, 1:
					require.NoError(t, p.store.Checkpoint(context.Background()))
				case 2, 3, 4:
					p.store.checkpointLock.Lock()
					p.store.evict()
					p.store.checkpointLock.Unlock()
				case 5:
					p.reopen()
				case 6:
					p.remember()
				case 7, 8:
					p.forget()
				}
				require.Equal(t, len(p.want), len(contents(t, p.store)), "step %d", step)
				if step%10 == 0 {
					p.check(step)
				}
			}
			p.forget()
		})
	}
}

// queueByChance is a queue, whose rows are from first on and before next.
type queueByChance struct {
	name        string
	first, next int
}

func (q *queueByChance) key(i int) string { return fmt.Sprintf("%s%06d", q.name, i) }

// change pushes some rows, takes some from the front, or some out of turn.
func (q *queueByChance) change(p *program) {
	tx := p.store.Begin(kv.Options{})
	n := 1 + p.chance.IntN(4*nodeSize)
	remove := func(i int) {
		tx.Clear([]byte(q.key(i)))
		delete(p.want, q.key(i))
	}
	switch p.chance.IntN(5) {
	case 0, 1:
		for range n {
			value := fmt.Sprint(p.chance.IntN(1000))
			tx.Set([]byte(q.key(q.next)), []byte(value))
			p.want[q.key(q.next)] = value
			q.next++
		}
	case 2, 3:
		for ; n > 0 && q.first < q.next; n-- {
			remove(q.first)
			q.first++
		}
	default:
		if q.first < q.next {
			from := q.first + p.chance.IntN(q.next-q.first)
			for i := from; i < min(from+n, q.next); i++ {
				remove(i)
			}
		}
	}
	commit(p.t, tx)
}
