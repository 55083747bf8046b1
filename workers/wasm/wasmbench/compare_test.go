package wasmbench

import (
	"context"
	"hash/fnv"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/workers/wasm"
)

func TestMain(m *testing.M) {
	wasm.ChildMain()
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		_, _ = os.Stderr.WriteString("leak: " + err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

func TestExpectedIsTheHash(t *testing.T) {
	t.Parallel()
	input := []byte("some text")
	h := fnv.New32a()
	_, _ = h.Write(input)
	_, _ = h.Write(input)
	got := expected(input, 2)
	require.Equal(t, h.Sum(nil), []byte{got[3], got[2], got[1], got[0]})
}

func TestCompare(t *testing.T) {
	t.Parallel()
	c, err := Compare(context.Background(), Options{Turns: 3, Turn: time.Millisecond, CallTime: 50 * time.Microsecond})
	require.NoError(t, err)
	require.Equal(t, wasm.IsolationProcess, c.Isolation)
	require.Len(t, c.Executor, c.Calls)
	require.GreaterOrEqual(t, c.Calls, 3)
	require.Positive(t, c.Stoppable)
	require.Positive(t, c.Unstoppable)
	require.Positive(t, c.ToStoppable)
	require.Positive(t, c.ToUnstoppable)
}

func TestCompareEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Compare(ctx, Options{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestWrongOutputIsAnError(t *testing.T) {
	t.Parallel()
	run := func(context.Context) ([]byte, error) { return []byte{1}, nil }
	_, err := turn(context.Background(), run, []byte{2}, 0)
	require.ErrorContains(t, err, "01 instead of 02")
}
