package wasm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

// copying copies standard input to standard output, 100,000 bytes at a time, and goes on
// with body.
func copying(body []byte) []byte {
	const vector, count, begin, part = 0, 16, 1024, 100_000
	move := func(descriptor int32, function int) []byte {
		return code(constant(descriptor), constant(vector), constant(1), constant(count), callTo(function), drop)
	}
	isEnd := []byte{0x45, 0x0d, 1} // br_if out of the block unless there are any
	return starting(4, code(
		constant(vector), constant(begin), store32,
		[]byte{0x02, 0x40},
		endless(
			constant(vector+4), constant(part), store32, move(0, 0),
			constant(count), load32, isEnd,
			constant(vector+4), constant(count), load32, store32, move(1, 1)),
		[]byte{0x0b}, body,
	), wasiImport("fd_read", 4), wasiImport("fd_write", 4)).module()
}

// streaming is a call that streams to output.
func streaming(module []byte, input io.Reader, output io.Writer) Invocation {
	inv := of("copying", module)
	inv.Input, inv.Output = func(context.Context) io.Reader { return input }, output
	inv.Timeout = 20 * time.Second
	return inv
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>16) ^ byte(i>>8) ^ byte(i)
	}
	return b
}

// TestStreams copies what is larger than all limits of what a call has in memory.
func TestStreams(t *testing.T) {
	t.Parallel()
	limits := Config{MaxInput: 10_000, MaxOutput: 2 * streamFrom}
	inBoth(t, limits, func(t *testing.T, e *Executor) {
		for _, n := range []int{0, 1, framePart, streamFrom, streamFrom + 1, 5*streamFrom + 7} {
			want := pattern(n)
			var got bytes.Buffer
			out, err := e.Run(t.Context(), streaming(copying(nil), iotest.HalfReader(bytes.NewReader(want)), &got))
			require.NoError(t, err)
			if n <= streamFrom {
				require.Zero(t, out.Streamed)
				require.Zero(t, got.Len())
				require.True(t, bytes.Equal(want, out.Stdout))
				continue
			}
			require.Equal(t, int64(n), out.Streamed)
			require.True(t, bytes.Equal(want, got.Bytes()))
			require.True(t, bytes.Equal(want[:maxKeptOnOverflow], out.Stdout))
		}
		inv := of("copying", copying(nil))
		inv.Output = io.Discard
		out, err := e.Run(t.Context(), inv)
		require.NoError(t, err)
		require.Empty(t, out.Stdout)
		unread := streaming(printing(1, 1, "good"), iotest.ErrReader(errors.New("never read")), nil)
		unread.CID = "unread"
		out, err = e.Run(t.Context(), unread)
		require.NoError(t, err)
		require.Equal(t, "good", string(out.Stdout))
		flood := streaming(printing(1, 1<<30, strings.Repeat("o", 1000)), bytes.NewReader(nil), nil)
		flood.CID = "flood"
		_, err = e.Run(t.Context(), flood)
		requireKind(t, KindTooLarge, err)
		stillWorks(t, e)
	})
}

// limited takes n bytes and fails.
type limited struct{ n int }

var errLimited = errors.New("the other side is gone")

func (l *limited) Write(p []byte) (int, error) {
	if l.n -= len(p); l.n < 0 {
		return 0, errLimited
	}
	return len(p), nil
}

// TestStreamsThatFail end the function, whatever it is about to do.
func TestStreamsThatFail(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{}, func(t *testing.T, e *Executor) {
		broken := io.MultiReader(bytes.NewReader(pattern(3*streamFrom)), iotest.ErrReader(errLimited))
		var got bytes.Buffer
		_, err := e.Run(t.Context(), streaming(copying(endless()), broken, &got))
		require.ErrorIs(t, err, ErrStream)
		require.ErrorIs(t, err, errLimited)
		stillWorks(t, e)

		_, err = e.Run(t.Context(), streaming(copying(nil), bytes.NewReader(pattern(5*streamFrom)), &limited{2 * streamFrom}))
		require.ErrorIs(t, err, ErrStream)
		require.ErrorIs(t, err, errLimited)
		stillWorks(t, e)

		traps := streaming(copying(unreachable), bytes.NewReader(pattern(2*streamFrom)), io.Discard)
		traps.CID = "traps"
		out, err := e.Run(t.Context(), traps)
		requireKind(t, KindPanic, err)
		require.True(t, bytes.Equal(pattern(maxKeptOnOverflow), out.Stdout))
		stillWorks(t, e)
	})
}

// waiting has input for a while, and then waits for the end of a context.
type waiting struct {
	ctx  context.Context
	left int
}

func (w *waiting) Read(p []byte) (int, error) {
	if w.left == 0 {
		<-w.ctx.Done()
		return 0, w.ctx.Err()
	}
	n := min(len(p), w.left)
	w.left -= n
	return n, nil
}

// TestStreamsEndWithTheirCall has calls end that wait for their streams.
func TestStreamsEndWithTheirCall(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{}, func(t *testing.T, e *Executor) {
		var got bytes.Buffer
		slow := streaming(copying(nil), nil, &got)
		slow.Input = func(ctx context.Context) io.Reader { return &waiting{ctx, 2 * streamFrom} }
		// A busy machine may need longer until the first bytes are there.
		for slow.Timeout = shortly; got.Len() == 0; slow.Timeout *= 2 {
			require.Less(t, slow.Timeout, time.Minute)
			_, err := e.Run(t.Context(), slow)
			requireKind(t, KindTimeout, err)
		}
		stillWorks(t, e)

		ctx, cancel := context.WithCancel(t.Context())
		slow.Timeout, slow.Output = time.Minute, cancelling{cancel}
		_, err := e.Run(ctx, slow)
		requireKind(t, KindCancelled, err)
		stillWorks(t, e)
	})
}

// cancelling cancels with the first write.
type cancelling struct{ cancel context.CancelFunc }

func (c cancelling) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}

// writerFunc is a Write.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestStreamsAreBoundedAsTheySay has outputs around a bound that is below what is kept before it is streamed.
func TestStreamsAreBoundedAsTheySay(t *testing.T) {
	t.Parallel()
	const most = framePart
	inBoth(t, Config{MaxOutput: most}, func(t *testing.T, e *Executor) {
		for _, n := range []int{most, most + 1, 3 * streamFrom} {
			for _, bound := range []bool{false, true} {
				var got bytes.Buffer
				inv := streaming(copying(nil), bytes.NewReader(pattern(n)), &got)
				inv.OutputBound = bound
				out, err := e.Run(t.Context(), inv)
				switch {
				case n == most:
					require.NoError(t, err)
					require.True(t, bytes.Equal(pattern(n), out.Stdout))
				case bound:
					requireKind(t, KindTooLarge, err)
				default:
					require.NoError(t, err)
					require.Equal(t, int64(n), out.Streamed)
					require.True(t, bytes.Equal(pattern(n), got.Bytes()))
				}
			}
		}
	})
}

// TestAFloodTellsWhatItWroteBefore has a call end that writes more than its Output is to take.
func TestAFloodTellsWhatItWroteBefore(t *testing.T) {
	t.Parallel()
	inBoth(t, Config{MaxOutput: 3 * streamFrom}, func(t *testing.T, e *Executor) {
		said := strings.Repeat("said ", 2000)
		var got bytes.Buffer
		inv := of("flood", printingThen(said,
			endless(constant(1), constant(0), constant(1), constant(16), callTo(0), drop)).module())
		inv.Output, inv.OutputBound = &got, true
		out, err := e.Run(t.Context(), inv)
		requireKind(t, KindTooLarge, err)
		require.Equal(t, -1, out.ExitCode)
		require.Equal(t, said, string(out.Stderr))
		require.Equal(t, got.String()[:maxKeptOnOverflow], string(out.Stdout))
		require.Equal(t, int64(got.Len()), out.Streamed)
		require.Positive(t, out.PeakMemory)
	})
}
