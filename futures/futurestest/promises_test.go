package futurestest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

var approve = futures.Define[string, bool]("approve")

// approval asks for a promise by a label, which expires after a day.
func approval(c *futurestest.Cluster) {
	c.Register(approve.Bind(func(ctx context.Context, label string) (bool, error) {
		client, err := futures.FromContext(ctx)
		if err != nil {
			return false, err
		}
		p, err := futures.NewPromise[bool](ctx, client, futures.Label(label), futures.Key(label),
			futures.Expires(24*time.Hour))
		if err != nil {
			return false, err
		}
		return p.Await(ctx)
	}))
}

func TestPromisesAreCompleted(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), futurestest.New(t)
	approval(c)
	c.OnPromise(func(v futures.View) (any, error) {
		switch v.Label {
		case "never":
			return nil, futurestest.ErrLeave
		case "no":
			return nil, errors.New("too dear")
		}
		return true, nil
	})
	yes, err := approve.Call(ctx, c.Client, "yes")
	require.NoError(t, err)
	require.True(t, yes)
	_, err = approve.Call(ctx, c.Client, "no", futures.Retries(0))
	require.ErrorContains(t, err, "too dear")
	before := c.Now()
	_, err = approve.Call(ctx, c.Client, "never", futures.Retries(0))
	require.ErrorContains(t, err, "expired")
	require.GreaterOrEqual(t, c.Now().Sub(before), 24*time.Hour)
}

func TestAPromiseThatNobodyCompletesIsNamed(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), futurestest.New(t)
	p, err := futures.NewPromise[int](ctx, c.Client)
	require.NoError(t, err)
	_, err = p.Await(ctx)
	require.ErrorIs(t, err, futurestest.ErrStuck)
	require.ErrorContains(t, err, "it waits to be resolved")
	_, err = c.Client.ResolveBy(ctx, p.Token(), 7)
	require.NoError(t, err)
	n, err := p.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, 7, n)
}
