package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// bank charges cards once its code is mended.
type bank struct {
	mended   atomic.Bool
	reserved atomic.Int64
	mu       sync.Mutex
	charged  map[int]int
	some     chan struct{} // closed once a quarter of so many are charged
	want     int
}

func (b *bank) order(ctx context.Context, n int) (string, error) {
	_, err := futures.Step(ctx, "reserve", func(context.Context) (int, error) { return n, b.reserve() })
	if err != nil {
		return "", err
	}
	return futures.Step(ctx, "charge", func(context.Context) (string, error) {
		if !b.mended.Load() {
			return "", workers.Permanent(errors.New("timeout of the bank"))
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.charged[n]++; len(b.charged) == b.want/4 {
			close(b.some)
		}
		return fmt.Sprint("paid ", n), nil
	})
}

func (b *bank) reserve() error {
	b.reserved.Add(1)
	return nil
}

// TestForksOfAKilledCommand has many futures fail in a step, mends it, and kills the command that forks them
// while it is at work. Repeated, it forks the others: each future is charged once, and reserved nothing again.
func TestForksOfAKilledCommand(t *testing.T) {
	t.Parallel()
	count := 300
	if os.Getenv("FUTURA_LONG") != "" {
		count = 10_000
	}
	c, b := newTerminal(t), &bank{charged: map[int]int{}, some: make(chan struct{}), want: count}
	order := futures.Define[int, string]("order")
	node, err := futura.Open(t.Context(), c.store, futura.Function(order.Bind(b.order)))
	require.NoError(t, err)
	var all []*futures.Typed[string]
	for n := range count {
		f, err := order.Submit(t.Context(), node.Client, n)
		require.NoError(t, err)
		all = append(all, f)
	}
	for _, f := range all {
		_, err := f.Await(t.Context())
		require.ErrorIs(t, err, futures.ErrFailed)
	}
	b.mended.Store(true)
	args := []string{"fork", "--where", "function=order error~timeout", "--name", "fix", "--yes", "--json"}
	killed := c.command(args...)
	require.NoError(t, killed.Start())
	<-b.some
	require.NoError(t, killed.Process.Kill())
	_ = killed.Wait()

	var done forkedMany
	require.NoError(t, json.Unmarshal([]byte(c.ok(args...)), &done))
	require.Equal(t, count, done.Forked+done.Existed)
	require.GreaterOrEqual(t, done.Existed, count/4)
	forks := 0
	for cursor, more := []byte(nil), true; more; more = len(cursor) > 0 {
		var page []futures.View
		page, cursor, err = node.Client.List(t.Context(), futures.Filter{Label: "fix"}, cursor, 1000)
		require.NoError(t, err)
		for i := range page {
			_, err := node.Client.Future(page[i].ID).Await(t.Context())
			require.NoError(t, err)
			forks++
		}
	}
	require.Equal(t, count, forks)
	require.Equal(t, int64(count), b.reserved.Load())
	for n := range count {
		require.Equal(t, 1, b.charged[n], "order %d", n)
	}
	c.ok("check")
	require.NoError(t, node.Close())
}
