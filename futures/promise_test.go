package futures_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

type verdict struct {
	Approved bool   `json:"approved" msgpack:"approved"`
	By       string `json:"by" msgpack:"by"`
}

type shipment struct {
	Order   string
	Verdict futures.Arg[verdict]
}

var (
	shipped = futures.Define[shipment, string]("shipped")
	decide  = futures.Define[string, string]("decide")
	quick   = futures.Define[int, int]("quick")
)

// TestPromiseIsAnArgument gives a promise to a function whose arguments are msgpack, and resolves
// it as a webhook would: with JSON.
func TestPromiseIsAnArgument(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClient(t, storetest.New(t))
	work(t, func() (*workers.Worker, error) { return workers.New(c, workers.Options{}) },
		func(w *workers.Worker) error {
			return w.Register(shipped.Bind(func(_ context.Context, s shipment) (string, error) {
				return s.Order + " by " + s.Verdict.Get().By, nil
			}))
		})
	p, err := futures.NewPromise[verdict](ctx, c, futures.Label("order 7"), futures.Tags("approval"))
	require.NoError(t, err)
	user, err := shipped.Submit(ctx, c, shipment{"order 7", futures.From(p.Typed)})
	require.NoError(t, err)
	view, err := c.Get(ctx, user.ID())
	require.NoError(t, err)
	require.Equal(t, futures.Blocked, view.State)
	already, err := c.ResolveBy(ctx, p.Token(), futures.PromiseValue{
		Bytes: []byte(`{"approved": true, "by": "Ada"}`), Codec: futures.CodecJSON})
	require.NoError(t, err)
	require.False(t, already)
	text, err := user.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "order 7 by Ada", text)
	got, err := p.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, verdict{true, "Ada"}, got)
	already, err = c.Resolve(ctx, p.ID(), verdict{true, "Ada"})
	require.NoError(t, err)
	require.True(t, already, "the same value by Go and by JSON")
	_, err = c.Resolve(ctx, p.ID(), verdict{false, "Ada"})
	require.ErrorIs(t, err, futures.ErrPromiseConflict)
	views, _, err := c.List(ctx, futures.Filter{Function: futures.FunctionPromise}, nil, 9)
	require.NoError(t, err)
	require.Len(t, views, 1)
	require.Equal(t, "order 7", views[0].Label)
}

// TestPromiseGivesTheSlotBack has a function await a promise on a worker with one slot, which
// runs another function meanwhile: that resolves the promise.
func TestPromiseGivesTheSlotBack(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClient(t, storetest.New(t))
	made := make(chan futures.ID, 1)
	w := work(t, func() (*workers.Worker, error) { return workers.New(c, workers.Options{Slots: 1}) },
		func(w *workers.Worker) error {
			return w.Register(decide.Bind(func(ctx context.Context, key string) (string, error) {
				c, err := futures.FromContext(ctx)
				if err != nil {
					return "", err
				}
				p, err := futures.NewPromise[string](ctx, c, futures.Key(key))
				if err != nil {
					return "", err
				}
				made <- p.ID()
				return p.Await(ctx)
			}))
		},
		func(w *workers.Worker) error {
			return w.Register(quick.Bind(func(_ context.Context, n int) (int, error) { return n, nil }))
		})
	f, err := decide.Submit(ctx, c, "k")
	require.NoError(t, err)
	id := <-made
	_, err = quick.Call(ctx, c, 1)
	require.NoError(t, err, "its slot is free")
	_, err = c.Resolve(ctx, id, "yes")
	require.NoError(t, err)
	text, err := f.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "yes", text)
	w.stop()
	require.Equal(t, 1, w.Stats().Free.Slots)
}

func TestPromiseIsRejected(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClient(t, storetest.New(t))
	p, err := futures.NewPromise[int](ctx, c)
	require.NoError(t, err)
	already, err := c.RejectBy(ctx, p.Token(), "too dear")
	require.NoError(t, err)
	require.False(t, already)
	_, err = p.Await(ctx)
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, futures.KindError, failed.Kind)
	require.Equal(t, "too dear", failed.Message)
	require.Equal(t, futures.FunctionPromise, failed.Function)
	already, err = c.Reject(ctx, p.ID(), "too dear")
	require.NoError(t, err)
	require.True(t, already)
	require.NoError(t, c.Retry(ctx, p.ID()))
	again := futures.Typed[int]{Future: c.Future(p.ID())}
	_, err = c.ResolveBy(ctx, p.Token(), 7)
	require.NoError(t, err)
	n, err := again.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, 7, n)
}

func TestPromiseOptionsAndTokens(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClient(t, storetest.New(t))
	p, err := futures.NewPromise[int](ctx, c, futures.Key("k"))
	require.NoError(t, err)
	require.NotEmpty(t, p.Token())
	again, err := futures.NewPromise[int](ctx, c, futures.Key("k"))
	require.NoError(t, err)
	require.True(t, again.Existed())
	require.Equal(t, p.ID(), again.ID())
	require.Empty(t, again.Token())
	opened, err := c.OpenPromise(ctx, p.Token())
	require.NoError(t, err)
	require.Equal(t, futures.Opened{ID: p.ID(), State: futures.Blocked}, opened)
	token, err := c.NewPromiseToken(ctx, p.ID())
	require.NoError(t, err)
	for _, bad := range []string{p.Token(), "", "prm_", p.ID().String()} {
		_, err = c.ResolveBy(ctx, bad, 1)
		require.ErrorIs(t, err, futures.ErrBadPromiseToken)
		_, err = c.RejectBy(ctx, bad, "")
		require.ErrorIs(t, err, futures.ErrBadPromiseToken)
		_, err = c.OpenPromise(ctx, bad)
		require.ErrorIs(t, err, futures.ErrBadPromiseToken)
	}
	_, err = c.ResolveBy(ctx, token, make(chan int))
	require.ErrorIs(t, err, futures.ErrBadSpec)
	_, err = c.ResolveBy(ctx, token, json.RawMessage(`1 `))
	require.NoError(t, err)
	n, err := again.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	for _, o := range []futures.Option{futures.Retries(1), futures.Delay(time.Second), futures.AsObject(),
		futures.InLane("k", "y"), futures.After(p), futures.Timeout(time.Second), futures.RequireFit()} {
		_, err = futures.NewPromise[int](ctx, c, o)
		require.ErrorIs(t, err, futures.ErrBadSpec)
	}
	late, err := futures.NewPromise[int](ctx, c, futures.Deadline(time.UnixMilli(1)))
	require.NoError(t, err)
	_, err = c.ResolveBy(ctx, late.Token(), 1)
	require.ErrorIs(t, err, futures.ErrPromiseExpired)
	_, err = late.Await(ctx)
	require.ErrorIs(t, err, futures.ErrFailed)
}
