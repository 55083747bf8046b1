//go:build unix

package wasm

import (
	"bytes"
	"context"
	"io"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// TestAChildThatAsksWithoutEndIsCutOff has a child send more than the parent may keep, or what is no question.
func TestAChildThatAsksWithoutEndIsCutOff(t *testing.T) {
	t.Parallel()
	f := newFlow(t.Context(), &call{})
	frame := append(appendAsk(nil, &askPart{function: "step_put", left: 1}), make([]byte, mebibyte)...)
	var err error
	for sent := 0; err == nil; sent += mebibyte {
		require.Less(t, sent, maxAsked)
		err = f.ask(nil, frame)
	}
	require.ErrorIs(t, err, errFrame)
	require.LessOrEqual(t, len(f.asked), maxAsked)
	require.ErrorIs(t, newFlow(t.Context(), &call{}).ask(nil, []byte{200}), errFrame)
	require.ErrorIs(t, f.fetch(nil, nil), errFrame)
}

// TestAResultWithoutItsOutputIsNone has a child end a call well, while the parent fails to pass on its last output, as
// the context has ended.
func TestAResultWithoutItsOutputIsNone(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1})
	stillWorks(t, e)
	w := e.backend.(*processes).idle[0]
	var said bytes.Buffer
	require.NoError(t, writeFrame(&said, frameOutput, []byte("the last")))
	require.NoError(t, writeFrame(&said, frameResult, encodeResult(&result{})))
	w.frames = newFrameReader(&said, frameSlack)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &call{method: defaultMethod, output: writerFunc(func([]byte) (int, error) {
		cancel()
		return 0, ctx.Err()
	})}
	ran, err := e.backend.(*processes).call(ctx, w, c)
	require.NoError(t, err)
	require.Equal(t, KindCancelled, ran.kind)
	require.True(t, w.broken)
}

// TestAPanicOfAHostKeepsNoProcess has what answers a function panic.
func TestAPanicOfAHostKeepsNoProcess(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1})
	stillWorks(t, e)
	w := e.backend.(*processes).idle[0]
	inv := of("asking", asks(1, "name", get("name"), drop))
	inv.Host = func(context.Context, string, string, []byte) ([]byte, bool, error) { panic("a defect") }
	require.PanicsWithValue(t, "a defect", func() { _, _ = e.Run(t.Context(), inv) })
	require.Error(t, w.command.Process.Signal(syscall.Signal(0)), "it is gone")
	stillWorks(t, e)
}

// TestAnAnswerLeavesTheInput has a function read a part of its input between a question and the reading of its answer:
// both come by the same buffer.
func TestAnAnswerLeavesTheInput(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	for _, frame := range []struct {
		kind    byte
		content string
	}{{frameAnswer, "\x07"}, {frameInput, "the input"}, {frameAnswer, "answer"}} {
		require.NoError(t, writeFrame(&said, frame.kind, []byte(frame.content)))
	}
	c := &child{answers: io.Discard, frames: newFrameReader(iotest.OneByteReader(&said), frameSlack)}
	c.input = &childInput{child: c}
	host := &childHost{child: c}
	size, err := host.ask(t.Context(), "state_get", "", nil)
	require.NoError(t, err)
	require.Equal(t, int64(6), size)
	input, answer := make([]byte, 4), make([]byte, 6)
	_, err = c.input.Read(input)
	require.NoError(t, err)
	_, err = host.read(answer)
	require.NoError(t, err)
	require.Equal(t, "answer", string(answer))
	rest := make([]byte, 5)
	_, err = c.input.Read(rest)
	require.NoError(t, err)
	require.Equal(t, "the input", string(input)+string(rest))
}
