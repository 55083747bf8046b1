package batchtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

// testHeads lets several heads work on one batch, with lost workers, reports
// that come twice and late, and checks that nothing impossible happens.
func testHeads(f *fixture) {
	items, heads, attempts := 300, 6, 3
	if f.h.Small {
		items, heads = 30, 4
	}
	id := f.create(attempts, lists(items))
	l := &ledger{limit: attempts, held: map[int]string{}, done: map[int][]string{}, failed: map[int][]string{}}
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(f.Context(), 2*time.Minute)
	defer cancel()
	for n, s := range f.handles(heads) {
		h := &head{fixture: &fixture{T: f.T, h: f.h, s: s, now: f.now}, id: id, ledger: l,
			random: rand.New(rand.NewPCG(uint64(n), uint64(items)))}
		wg.Go(func() {
			if err := h.work(ctx); err != nil {
				f.Errorf("head %d: %v", n, err)
			}
		})
	}
	wg.Wait()
	require.Empty(f, l.broken)
	require.Equal(f, batch.Done, f.settle(id).Status)
	for _, item := range f.items(id) {
		require.True(f, item.Status.Over())
		require.LessOrEqual(f, item.Attempts, attempts)
		if f.h.Execute != nil {
			continue
		}
		done, failed := l.done[item.Index], l.failed[item.Index]
		require.Len(f, failed, item.Attempts)
		if item.Status == batch.Done {
			require.Equal(f, done, []string{item.Result.Stdout}, "item %d", item.Index)
		} else {
			require.Empty(f, done, "item %d", item.Index)
			require.Len(f, failed, attempts)
			require.Contains(f, failed, item.Result.Stdout)
		}
	}
	for _, c := range f.chunks(id) {
		require.NotEqual(f, batch.InProgress, c.Status)
		require.Positive(f, c.Items)
	}
}

// ledger records what heads did, outside the store.
type ledger struct {
	limit int

	mu sync.Mutex
	// held names the chunk that has an item.
	held map[int]string
	// done and failed are the outputs of the attempts that counted.
	done, failed map[int][]string
	broken       []string
}

func (l *ledger) breaks(format string, a ...any) {
	l.broken = append(l.broken, fmt.Sprintf(format, a...))
}

// won notes that a chunk has items.
func (l *ledger) won(chunk string, items []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range items {
		if l.held[i] != "" {
			l.breaks("item %d went to chunk %s while %s has it", i, chunk, l.held[i])
		}
		if len(l.done[i]) > 0 || len(l.failed[i]) >= l.limit {
			l.breaks("item %d went to chunk %s and is over", i, chunk)
		}
		l.held[i] = chunk
	}
}

// lost notes that a chunk will not have items any more: before the store is
// told, because another head may get them before the answer arrives.
func (l *ledger) lost(chunk string, items []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range items {
		if l.held[i] == chunk {
			delete(l.held, i)
		}
	}
}

// ended notes an attempt that counted. Heads note theirs in any order.
func (l *ledger) ended(end *batch.Completion) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end.Failed {
		l.failed[end.Index] = append(l.failed[end.Index], end.Result.Stdout)
	} else {
		l.done[end.Index] = append(l.done[end.Index], end.Result.Stdout)
	}
	if len(l.done[end.Index]) > 1 || len(l.failed[end.Index]) > l.limit {
		l.breaks("item %d ended %d times well and %d times not", end.Index, len(l.done[end.Index]),
			len(l.failed[end.Index]))
	}
}

// head works on a batch until it is over.
type head struct {
	*fixture
	id     string
	ledger *ledger
	random *rand.Rand
	// old are chunks that were given back, with what they had.
	old      []batch.Chunk
	oldItems [][]int
}

func (h *head) work(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := h.s.Settle(ctx, h.id, h.now)
		if err != nil || b.Status.Over() {
			return err
		}
		found, _, err := h.s.Waiting(ctx, h.id, h.now.Add(time.Hour), 1+h.random.IntN(12))
		if err != nil {
			return err
		}
		var wanted []int
		for _, item := range found {
			wanted = append(wanted, item.Index)
		}
		c := h.newChunk(h.id, fmt.Sprintf("worker %d", h.random.IntN(5)))
		given, err := h.s.Assign(ctx, &c, wanted)
		if err != nil {
			return err
		}
		if len(given) == 0 {
			continue
		}
		h.ledger.won(c.ID, given)
		if err := h.run(ctx, c, given); err != nil {
			return err
		}
	}
}

// run makes the attempts of a chunk end, some of them or all.
func (h *head) run(ctx context.Context, c batch.Chunk, given []int) error {
	if h.h.Execute != nil {
		h.ledger.lost(c.ID, given)
		h.h.Execute(h.T, h.s, c, h.attempt(c, given))
		return nil
	}
	done := given
	if h.random.IntN(4) == 0 {
		done = given[:h.random.IntN(len(given)+1)]
	}
	ended := h.attempt(c, done)
	h.ledger.lost(c.ID, done)
	if err := h.report(ctx, c, ended); err != nil {
		return err
	}
	if h.random.IntN(3) == 0 {
		if err := h.report(ctx, c, h.attempt(c, done)); err != nil {
			return err
		}
	}
	if len(done) < len(given) {
		h.ledger.lost(c.ID, given)
		if _, err := h.s.Release(ctx, h.id, c.ID); err != nil {
			return err
		}
		h.old, h.oldItems = append(h.old, c), append(h.oldItems, given)
	}
	if n := len(h.old); n > 0 && h.random.IntN(2) == 0 {
		late := h.random.IntN(n)
		return h.report(ctx, h.old[late], h.attempt(h.old[late], h.oldItems[late]))
	}
	return nil
}

// attempt invents how attempts end.
func (h *head) attempt(c batch.Chunk, items []int) (ended []batch.Completion) {
	for _, i := range items {
		end := h.succeeds(i)
		if h.random.IntN(3) == 0 {
			end = h.fails(i)
		}
		end.Result.Stdout = fmt.Sprintf("%s %d %x", c.ID, i, h.random.Uint64())
		ended = append(ended, end)
	}
	return ended
}

func (h *head) report(ctx context.Context, c batch.Chunk, ended []batch.Completion) error {
	counted, err := h.recorder().Complete(ctx, h.id, c.ID, ended)
	if err != nil {
		return err
	}
	for n, is := range counted {
		if is {
			h.ledger.ended(&ended[n])
		}
	}
	return nil
}
