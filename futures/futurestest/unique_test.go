package futurestest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

// TestUniqueForAPeriod submits a unique future again before and after its period, on the
// virtual clock, and looks at what a janitor leaves.
func TestUniqueForAPeriod(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := futurestest.New(t)
	c.Register(upper.Bind(func(_ context.Context, s string) (string, error) { return s, nil }))
	hourly := futures.WithUnique(futures.Unique{Key: "k", For: time.Hour})
	got, err := upper.Call(ctx, c.Client, "a", hourly)
	require.NoError(t, err)
	require.Equal(t, "a", got)
	c.Advance(59 * time.Minute)
	_, err = upper.Submit(ctx, c.Client, "b", hourly)
	var other *futures.NotUniqueError
	require.ErrorAs(t, err, &other)
	require.Equal(t, futures.Realized, other.State)
	require.Equal(t, "arguments", other.Differs)
	require.Equal(t, time.Minute, other.FreeAt.Sub(c.Now()).Round(time.Minute))
	c.Advance(2 * time.Minute)
	_, err = c.Client.UniqueHolder(ctx, futures.Task{Unique: &futures.Unique{Key: "k"}})
	require.ErrorIs(t, err, futures.ErrNotFound)
	got, err = upper.Call(ctx, c.Client, "b", hourly)
	require.NoError(t, err)
	require.Equal(t, "b", got)
}
