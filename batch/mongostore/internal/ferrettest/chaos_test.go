package ferrettest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

// TestHeadsThatDie lets heads die at any command, before or after the server
// did it. A head that comes gives back the chunks of those that died. All items
// are over at the end, none was tried too often, and no result changed once its
// item was over.
func TestHeadsThatDie(t *testing.T) {
	t.Parallel()
	const items, heads, attempts, deaths = 24, 3, 3, 60
	s := newScene(t)
	s.id = uuid.NewString()
	arguments := make([][]string, items)
	for i := range arguments {
		arguments[i] = []string{fmt.Sprint(i)}
	}
	require.NoError(t, s.s.Create(t.Context(), &batch.Batch{
		ID: s.id, MaxAttempts: attempts, CreatedAt: s.now, Template: batch.Template{FunctionID: "f", Method: "m"},
	}, arguments))
	random := rand.New(rand.NewPCG(1, uint64(items)))
	left := deaths
	s.proxy.set(func(p *proxy) {
		p.fault = func(c *command) fault {
			if quiet(c) || left == 0 || random.IntN(8) > 0 {
				return fault{}
			}
			left--
			return fault{answer: internal, applied: random.IntN(2) == 0}
		}
	})
	w := &world{scene: s, alive: map[string]bool{}, reported: map[int]map[string]bool{}, over: map[int]string{}}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var running sync.WaitGroup
	for n := range heads {
		running.Go(func() {
			h := &mortal{world: w, random: rand.New(rand.NewPCG(2, uint64(n)))}
			for over := false; !over && ctx.Err() == nil; {
				over, _ = h.live(ctx)
			}
		})
	}
	running.Wait()
	require.NoError(t, ctx.Err())
	s.proxy.set(func(p *proxy) { p.fault = nil })
	require.Zero(t, left, "not all deaths happened")
	w.check(t, attempts)
}

// world is what heads have done, which none of them remembers.
type world struct {
	*scene
	mu sync.Mutex
	// alive are the chunks whose head lives.
	alive map[string]bool
	// reported are the outputs that were ever reported for an item.
	reported map[int]map[string]bool
	// over is the output of an item that was seen to be over.
	over    map[int]string
	changed []string
}

// see notes the items that are over.
func (w *world) see(items []batch.Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, item := range items {
		before, is := w.over[item.Index]
		if item.Status.Over() && !is {
			w.over[item.Index] = item.Result.Stdout
		}
		if is && (!item.Status.Over() || item.Result.Stdout != before) {
			w.changed = append(w.changed, fmt.Sprint(item.Index))
		}
	}
}

func (w *world) check(t *testing.T, attempts int) {
	items, err := w.s.Items(t.Context(), w.id, 0, batch.MaxItems)
	require.NoError(t, err)
	w.see(items)
	require.Empty(t, w.changed, "items that changed after they were over")
	for _, item := range items {
		require.True(t, item.Status.Over())
		require.True(t, w.reported[item.Index][item.Result.Stdout], "item %d", item.Index)
		require.LessOrEqual(t, item.Attempts, attempts)
		if item.Status == batch.PermanentlyFailed {
			require.Equal(t, attempts, item.Attempts)
		}
	}
	b, err := w.s.Settle(t.Context(), w.id, w.now.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, batch.Done, b.Status)
	chunks, err := w.s.Chunks(t.Context(), w.id)
	require.NoError(t, err)
	for _, c := range chunks {
		require.NotEqual(t, batch.InProgress, c.Status)
	}
}

// mortal is a head that dies with the first error.
type mortal struct {
	*world
	random *rand.Rand
}

// live works until the batch is over or the head dies.
func (m *mortal) live(ctx context.Context) (over bool, err error) {
	if err := m.giveBack(ctx); err != nil {
		return false, err
	}
	for {
		b, err := m.s.Settle(ctx, m.id, m.now)
		if err != nil || b.Status.Over() {
			return err == nil, err
		}
		waiting, _, err := m.s.Waiting(ctx, m.id, m.now, 1+m.random.IntN(5))
		if err != nil {
			return false, err
		}
		if len(waiting) == 0 {
			if err := m.giveBack(ctx); err != nil {
				return false, err
			}
		}
		if err := m.run(ctx, waiting); err != nil {
			return false, err
		}
		found, err := m.s.Items(ctx, m.id, 0, batch.MaxItems)
		if err != nil {
			return false, err
		}
		m.see(found)
	}
}

// giveBack releases the chunks of heads that died.
func (m *mortal) giveBack(ctx context.Context) error {
	chunks, err := m.s.Chunks(ctx, m.id)
	if err != nil {
		return err
	}
	for _, c := range chunks {
		m.mu.Lock()
		alive := m.alive[c.ID]
		m.mu.Unlock()
		if !alive && c.Status != batch.Failed && c.Status != batch.Done {
			if _, err := m.s.Release(ctx, m.id, c.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// run makes attempts of items that wait.
func (m *mortal) run(ctx context.Context, waiting []batch.Item) error {
	c := batch.Chunk{ID: uuid.NewString(), Batch: m.id, Worker: "w", CreatedAt: m.now}
	m.setAlive(c.ID, true)
	defer m.setAlive(c.ID, false)
	var wanted []int
	for _, item := range waiting {
		wanted = append(wanted, item.Index)
	}
	given, err := m.s.Assign(ctx, &c, wanted)
	if err != nil || len(given) == 0 {
		return err
	}
	var ended []batch.Completion
	for _, i := range given {
		end := batch.Completion{Index: i, Result: batch.Result{Stdout: uuid.NewString()}, DueAt: m.now, At: m.now}
		if m.random.IntN(3) == 0 {
			end.Failed, end.Result.ExitCode = true, 1
		}
		ended = append(ended, end)
		m.mu.Lock()
		if m.reported[i] == nil {
			m.reported[i] = map[string]bool{}
		}
		m.reported[i][end.Result.Stdout] = true
		m.mu.Unlock()
	}
	_, err = m.s.Complete(ctx, m.id, c.ID, ended)
	return err
}

func (m *mortal) setAlive(chunk string, alive bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alive[chunk] = alive
}
