package futures_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

// TestTimesBehindTheLast submits and sleeps until times that no answer could have.
func TestTimesBehindTheLast(t *testing.T) {
	t.Parallel()
	n := futurestest.New(t)
	const last = 253402300799
	for _, seconds := range []int64{last + 1, last * 1000, 1 << 56} {
		late := time.Unix(seconds, 0)
		for _, option := range []futures.Option{futures.NotBefore(late), futures.Deadline(late)} {
			task := futures.Task{Function: "go:f"}
			option(&task)
			_, err := n.Client.Submit(t.Context(), task)
			require.ErrorIs(t, err, futures.ErrBadSpec)
			require.ErrorContains(t, err, "the end of the year 9999")
		}
		sleep := futures.Define[int, int]("sleep")
		name, fn := sleep.Bind(func(ctx context.Context, _ int) (int, error) { return 1, futures.SleepUntil(ctx, late) })
		other := futurestest.New(t)
		other.Register(name, fn)
		_, err := sleep.Call(t.Context(), other.Client, 1)
		require.ErrorContains(t, err, "the end of the year 9999")
	}
	f, err := n.Client.Submit(t.Context(), futures.Task{
		Function: "go:f", NotBefore: time.Unix(last, 0), Deadline: time.Unix(-1<<60, 0),
	})
	require.NoError(t, err)
	v, err := n.Client.Get(t.Context(), f.ID())
	require.NoError(t, err)
	require.Equal(t, time.Unix(last, 0), v.DueAt)
	require.Equal(t, time.UnixMilli(1), v.Deadline, "it is over")
}
