package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

// FuzzFrames reads frames from anything.
func FuzzFrames(f *testing.F) {
	f.Add(appendFrame(appendFrame(nil, framePing, nil, nil), frameCancelTx, []byte{1}, nil))
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		var again []byte
		for {
			kind, body, err := readFrame(r, 100)
			if err != nil {
				break
			}
			require.LessOrEqual(t, len(body), 99)
			again = appendFrame(again, kind, body, nil)
		}
		require.True(t, bytes.HasPrefix(b, again))
	})
}

// FuzzServer has a client send any frame behind some good ones.
func FuzzServer(f *testing.F) {
	ops := []byte{2, flagBegin, 0}
	ops = appendBytes(appendBytes(append(ops, opSet), []byte("a")), []byte("b"))
	ops = appendBytes(append(ops, opGet, 1, 0), []byte("a"))
	ops = append(ops, opGetRange, 2, readReverse, 1, 'a', 1, 'b', 5, 0, opReadVersion, 3, opWatch, 4, 1, 'a')
	f.Add(frameBatch, append(bytes.Clone(ops), opCommit, 5))
	f.Add(frameBatch, append(bytes.Clone(ops), opCancelWatch, 4, opSetReadVersion, 9))
	f.Add(frameBatch, append([]byte{2, flagBegin, 0, opStampKey, 11}, "0123456789a\x04\x01\x00\x00\x00\x00"...))
	f.Add(frameBatch, []byte{1, 0, opAtomic + 1, 1, 'a', 1, 1, opWriteConflictRange, 1, 'a', 1, 'c', opCommit, 6})
	f.Add(frameCancelTx, []byte{1})
	f.Add(frameCancelWatch, []byte{1})
	store := embedded.OpenMemory(embedded.Options{})
	f.Cleanup(func() { _ = store.Close() })
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		near, far := net.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		s := newServer(ctx, store, ServerOptions{}.withDefaults())
		p := newPeer(ctx, cancel, s, near, "x")
		answers := make(chan error, 1)
		go func() { answers <- readAnswers(far) }()
		first, err := p.take(frameBatch, []byte{1, flagBegin, 0, opReadVersion, 1}, batch{})
		require.NoError(t, err)
		first.run(reading{p, 1})
		second, err := p.take(kind, body, batch{})
		if err != nil {
			require.ErrorIs(t, err, errMalformed)
		}
		if second != nil {
			second.run(reading{p, 1})
		}
		p.end()
		require.NoError(t, <-answers)
	})
}

// readAnswers checks that a server says nothing malformed.
func readAnswers(conn net.Conn) error {
	r := bufio.NewReader(conn)
	for {
		kind, _, err := readFrame(r, maxAnswerFrame)
		switch {
		case errors.Is(err, errMalformed):
			return err
		case err != nil:
			return nil
		case kind < frameAnswers || kind > framePong:
			return errMalformed
		}
	}
}

// FuzzClient has a server send any frame to a client that waits for answers.
func FuzzClient(f *testing.F) {
	f.Add(frameAnswers, []byte{1, 1, answerValue, 1, 'a', 2, answerAbsent, 3, answerVersion, 2})
	f.Add(frameAnswers, append([]byte{1, 1, answerRows, 1, 1, 'a', 0, 1, answerLastRows, 1, 0, 4, answerCommitted, 2},
		make([]byte, kv.StampSize)...))
	f.Add(frameAnswers, append([]byte{1, 1, answerError}, appendError(nil, kv.ErrConflict)...))
	f.Add(frameTxFailed, appendError([]byte{1}, kv.ErrTooOld))
	f.Add(frameWatchEnded, appendError([]byte{1}, kv.ErrCancelled))
	f.Add(frameWatchEnded, []byte{1})
	f.Add(framePong, []byte{})
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		l := &link{txs: table[*exchange]{at: map[uint64]*exchange{}}, watches: table[*watch]{at: map[uint64]*watch{}}}
		x := &exchange{}
		_, err := l.add(x)
		require.NoError(t, err)
		var asked []*request
		for i := range 4 {
			q, err := x.ask(i == 3)
			require.NoError(t, err)
			asked = append(asked, q)
		}
		w := &watch{link: l, done: make(chan struct{})}
		_, err = l.addWatch(w)
		require.NoError(t, err)
		if err := l.take(kind, body); err != nil {
			require.ErrorIs(t, err, errMalformed)
		}
		x.fail(kv.ErrUnavailable)
		for _, q := range asked {
			<-q.done
		}
	})
}

func FuzzHandshake(f *testing.F) {
	f.Add(frameHello, hello{version: protocolVersion, token: []byte("t"), id: "i"}.encode())
	f.Add(frameHello, welcome{version: 2, refusal: refusedFull, text: "t", opening: "o"}.encode())
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		if h, err := decodeHello(kind, body); err == nil && h.version == protocolVersion {
			again, err := decodeHello(kind, h.encode())
			require.NoError(t, err)
			require.Equal(t, h, again)
		}
		if w, err := decodeWelcome(kind, body); err == nil {
			again, err := decodeWelcome(kind, w.encode())
			require.NoError(t, err)
			require.Equal(t, w, again)
		}
	})
}

// TestErrorsTravel sends every condition, alone and with another.
func TestErrorsTravel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var sent []error
		for code := range conditions {
			if code > 0 && rapid.Bool().Draw(t, "has") {
				sent = append(sent, conditions[code])
			}
		}
		text := rapid.StringN(1, 2*maxErrorText, -1).Draw(t, "text")
		err := errors.Join(append(sent, errors.New(text))...)
		d := &decoder{b: appendError(nil, err)}
		got := d.error()
		require.NoError(t, d.end())
		for code, condition := range conditions {
			if code > 0 {
				require.Equal(t, errors.Is(err, condition), errors.Is(got, condition), condition)
			}
		}
		require.LessOrEqual(t, len(got.Error()), maxErrorText)
	})
	for _, gone := range []error{kv.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		d := &decoder{b: appendError(nil, gone)}
		require.ErrorIs(t, d.error(), kv.ErrUnavailable)
	}
	d := &decoder{b: binary.AppendUvarint([]byte{2, 200, 1}, 0)}
	err := d.error()
	require.ErrorIs(t, err, kv.ErrConflict)
	require.NoError(t, d.end())
}

// TestNoOtherAnswerIsThatOfACommit: a commit is made only if the server says so.
func TestNoOtherAnswerIsThatOfACommit(t *testing.T) {
	t.Parallel()
	committed := append([]byte{answerCommitted, 2}, make([]byte, kv.StampSize)...)
	for _, answer := range [][]byte{{answerAbsent}, {answerValue, 1, 'a'}, {answerVersion, 2}, {answerLastRows, 0, 0},
		committed} {
		isCommit := answer[0] == answerCommitted
		x := &exchange{}
		q, err := x.ask(!isCommit)
		require.NoError(t, err)
		x.setDoubt()
		d := &decoder{b: append([]byte{1}, answer...)}
		x.answer(d)
		require.ErrorIs(t, d.end(), errMalformed, answer[0])
		x.fail(kv.ErrUnavailable)
		<-q.done
		require.Equal(t, !isCommit, errors.Is(q.err, kv.ErrUnknownResult))
		require.ErrorIs(t, q.err, kv.ErrUnavailable)
	}
}

// TestAServerOfAnotherVersionMaySayMore, or less, behind its version and that it refuses this one.
func TestAServerOfAnotherVersionMaySayMore(t *testing.T) {
	t.Parallel()
	for _, more := range [][]byte{nil, {0}, {200}, []byte("more")} {
		w, err := decodeWelcome(frameHello, append([]byte(magic), append([]byte{0, 9, byte(refusedVersion)}, more...)...))
		require.NoError(t, err)
		require.ErrorIs(t, w.err(), ErrBadVersion)
	}
}
