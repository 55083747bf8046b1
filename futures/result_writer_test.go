package futures_test

import (
	"bytes"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
)

// TestResultsAreWritten by their functions: to the object store, and in memory.
func TestResultsAreWritten(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	o.start(24 << 20)
	submit := func(n int, options ...futures.Option) *futures.Future {
		f, err := write.Submit(o.ctx, o.client, n, append(options, futures.Retries(0))...)
		require.NoError(t, err)
		return f.Future
	}
	stored := func(t *futures.Task) { t.AsObject = false }
	for _, c := range []struct {
		n       int
		options []futures.Option
		object  bool
	}{{0, nil, true}, {100, nil, true}, {9<<20 + 3, nil, true}, {100, []futures.Option{stored}, false},
		{200_000, []futures.Option{stored}, false}} {
		f := submit(c.n, c.options...)
		s, err := f.Open(o.ctx)
		require.NoError(t, err)
		got, err := io.ReadAll(s)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		_, err = s.Read(make([]byte, 1))
		require.ErrorIs(t, err, fs.ErrClosed)
		require.True(t, bytes.Equal(patternOf(c.n), got))
		require.Equal(t, futures.CodecRaw, s.Codec())
		require.Equal(t, c.object, o.isObject(f))
	}
	other := newObjectTeam(t)
	other.above = 1000
	other.start(1 << 20)
	for n, kept := range map[int]bool{1000: false, 1001: true} {
		f, err := write.Submit(other.ctx, other.client, n)
		require.NoError(t, err)
		got, err := f.Future.Await(other.ctx)
		require.NoError(t, err)
		require.True(t, bytes.Equal(patternOf(n), got.Value))
		require.Equal(t, kept, other.isObject(f.Future))
	}
	// Too much for the store, and a function that fails midway: nothing is kept.
	_, err := submit(30 << 20).Await(o.ctx)
	require.ErrorContains(t, err, "full")
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, futures.KindError, failed.Kind, "another worker may have room")
	_, err = submit(64<<20 + 1).Await(o.ctx)
	require.ErrorAs(t, err, &failed)
	require.Equal(t, futures.KindTooLarge, failed.Kind)
	_, err = submit(-1 << 20).Await(o.ctx)
	require.ErrorContains(t, err, "no luck")
	f := submit(7 << 20) // it would not fit beside what they wrote
	_, err = f.Await(o.ctx)
	require.NoError(t, err)
	o.requireSound()
}
