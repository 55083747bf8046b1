package remote

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

func serveMemory(t testing.TB, o ServerOptions) (*embedded.Store, Address) {
	store := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	at, _ := serve(t, store, o)
	return store, at
}

// requireRoom expects that clients can come again.
func requireRoom(t testing.TB, at Address) {
	require.Eventually(t, func() bool {
		db, err := Open(t.Context(), at, Options{})
		return err == nil && db.Close() == nil
	}, patience, time.Millisecond)
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	_, at := serveMemory(t, ServerOptions{MaxConnections: 2})
	first, second := dial(t, at), dial(t, at)
	_, err := Open(t.Context(), at, Options{})
	require.ErrorIs(t, err, kv.ErrUnavailable)
	require.ErrorContains(t, err, "2 connections are open")
	require.NoError(t, first.Close())
	require.Empty(t, get(t, second, "a"))
	requireRoom(t, at)
}

// TestTooManyUnauthenticatedConnections opens more connections that say nothing than may
// wait: one of them is closed, and when all are gone, clients can come again.
func TestTooManyUnauthenticatedConnections(t *testing.T) {
	t.Parallel()
	_, at := serveMemory(t, ServerOptions{HandshakeTimeout: time.Hour})
	closed := make(chan error, maxUnauthenticated+1)
	var conns []net.Conn
	for range maxUnauthenticated + 1 {
		conn, err := net.Dial(at.Network, at.Target)
		require.NoError(t, err)
		conns = append(conns, conn)
		go func() {
			_, err := conn.Read(make([]byte, 1))
			closed <- err
		}()
	}
	require.ErrorIs(t, <-closed, io.EOF)
	for _, conn := range conns {
		require.NoError(t, conn.Close())
	}
	for range maxUnauthenticated {
		<-closed
	}
	requireRoom(t, at)
}

func TestTooManyTransactions(t *testing.T) {
	t.Parallel()
	const limit = 3
	_, at := serveMemory(t, ServerOptions{MaxTransactions: limit})
	db := dial(t, at)
	var open []kv.Tx
	for range limit {
		tx := db.Begin(kv.Options{})
		_, err := tx.ReadVersion(t.Context())
		require.NoError(t, err)
		open = append(open, tx)
	}
	tx := db.Begin(kv.Options{})
	_, err := tx.Get([]byte("a")).Wait(t.Context())
	require.ErrorIs(t, err, kv.ErrUnavailable)
	require.ErrorContains(t, err, "has 3 transactions open")
	tx.Set([]byte("a"), nil)
	_, err = tx.Commit(t.Context())
	require.ErrorIs(t, err, kv.ErrUnavailable)
	require.NotErrorIs(t, err, kv.ErrUnknownResult)
	for _, tx := range open {
		tx.Cancel()
	}
	require.Empty(t, get(t, db, "a"))
}

func TestTransactionsThatAreLeftAloneEnd(t *testing.T) {
	t.Parallel()
	_, at := serveMemory(t, ServerOptions{TransactionTimeout: 10 * time.Millisecond})
	db := dial(t, at)
	tx := db.Begin(kv.Options{}).(*tx)
	_, err := tx.ReadVersion(t.Context())
	if err != nil {
		require.ErrorIs(t, err, kv.ErrTooOld, "a busy server takes longer to answer")
	}
	require.Eventually(t, func() bool { return tx.talk.failure() != nil }, patience, time.Millisecond)
	tx.Set([]byte("a"), nil)
	_, err = tx.Commit(t.Context())
	require.ErrorIs(t, err, kv.ErrTooOld)
	require.NotErrorIs(t, err, kv.ErrUnknownResult)
}

// rawClient is a client that speaks the protocol by hand.
type rawClient struct {
	net.Conn
	r *bufio.Reader
}

func newRawClient(t testing.TB, at Address) rawClient { return newRawClientOf(t, at, "raw") }

// newRawClientOf connects a client of that id.
func newRawClientOf(t testing.TB, at Address, id string) rawClient {
	conn, err := net.Dial(at.Network, at.Target)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	s := rawClient{conn, bufio.NewReader(conn)}
	_, err = greet(conn, s.r, hello{version: protocolVersion, id: id}, time.Now().Add(patience))
	require.NoError(t, err)
	return s
}

// requireCutOff expects that the server ends the connection for what was sent.
func (s rawClient) requireCutOff(t testing.TB, frame []byte, what string) {
	_, err := s.Write(frame)
	require.NoError(t, err)
	require.NoError(t, s.SetReadDeadline(time.Now().Add(patience)))
	for {
		if _, _, err = readFrame(s.r, maxAnswerFrame); err != nil {
			break
		}
	}
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), what)
}

func TestMalformedFramesCutOff(t *testing.T) {
	t.Parallel()
	store, at := serveMemory(t, ServerOptions{MaxFrame: minFrame, Logger: slog.New(slog.DiscardHandler)})
	begin := func(ops ...byte) []byte { return append([]byte{1, flagBegin, 0}, ops...) }
	for what, frame := range map[string][]byte{
		"too large":         {0, 8, 0, 1},
		"empty":             {0, 0, 0, 0},
		"unknown kind":      appendFrame(nil, 99, nil, nil),
		"answer":            appendFrame(nil, frameAnswers, []byte{1}, nil),
		"no number":         appendFrame(nil, frameBatch, nil, nil),
		"unknown flags":     appendFrame(nil, frameBatch, []byte{1, 0xf0}, nil),
		"no tag":            appendFrame(nil, frameBatch, []byte{1, flagBegin}, nil),
		"long tag":          appendFrame(nil, frameBatch, append([]byte{1, flagBegin, 17}, make([]byte, 17)...), nil),
		"begins twice":      appendFrame(appendFrame(nil, frameBatch, begin(), nil), frameBatch, begin(), nil),
		"unknown operation": appendFrame(nil, frameBatch, begin(0xee), nil),
		"operation 0":       appendFrame(nil, frameBatch, begin(0), nil),
		"no key":            appendFrame(nil, frameBatch, begin(opSet), nil),
		"key beyond frame":  appendFrame(nil, frameBatch, begin(opSet, 0xff, 0xff, 0x7f), nil),
		"half a commit":     appendFrame(nil, frameBatch, begin(opSet, 1, 'a', 1, 'b', opCommit), nil),
		"half a get":        appendFrame(nil, frameBatch, begin(opGet, 1), nil),
		"stamp's offset":    appendFrame(nil, frameBatch, begin(opStampKey, 1, 'a', 1, 0, 0), nil),
		"watches twice":     appendFrame(nil, frameBatch, begin(opWatch, 1, 1, 'a', opWatch, 1, 1, 'b', opCommit, 1), nil),
		"rest":              appendFrame(nil, framePing, []byte{1}, nil),
		"cancel of nothing": appendFrame(nil, frameCancelTx, nil, nil),
	} {
		newRawClient(t, at).requireCutOff(t, frame, what)
	}
	require.Empty(t, get(t, store, "a"))
	require.Empty(t, get(t, dial(t, at), "a"))
}

func TestNumbersAreNotUsedTwice(t *testing.T) {
	t.Parallel()
	_, at := serveMemory(t, ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	s := newRawClient(t, at)
	_, err := s.Write(appendFrame(nil, frameBatch, []byte{5, flagBegin, 0, opReadVersion, 1}, nil))
	require.NoError(t, err)
	kind, _, err := readFrame(s.r, maxAnswerFrame)
	require.NoError(t, err)
	require.Equal(t, frameAnswers, kind)
	// One that has ended fails by itself, and the connection stays.
	_, err = s.Write(appendFrame(nil, frameBatch, []byte{4, 0, opReadVersion, 1}, nil))
	require.NoError(t, err)
	kind, body, err := readFrame(s.r, maxAnswerFrame)
	require.NoError(t, err)
	require.Equal(t, frameTxFailed, kind)
	d := &decoder{b: body}
	require.EqualValues(t, 4, d.uvarint())
	require.ErrorIs(t, d.error(), kv.ErrTooOld)
	s.requireCutOff(t, appendFrame(nil, frameBatch, []byte{5, flagBegin, 0}, nil), "number 5 again")
}

// TestEndlessTransaction writes far more than a transaction may.
func TestEndlessTransaction(t *testing.T) {
	t.Parallel()
	_, at := serveMemory(t, ServerOptions{})
	s := newRawClient(t, at)
	go func() {
		value := make([]byte, kv.MaxValueSize)
		op := appendBytes(appendBytes([]byte{opSet}, []byte("k")), value)
		head := []byte{1, flagBegin, 0}
		for range 5 * kv.MaxTxSize / kv.MaxValueSize {
			_, _ = s.Write(appendFrame(nil, frameBatch, head, op))
			head = []byte{1, 0}
		}
	}()
	kind, body, err := readFrame(s.r, maxAnswerFrame)
	require.NoError(t, err)
	require.Equal(t, frameTxFailed, kind)
	d := &decoder{b: body[1:]}
	require.ErrorIs(t, d.error(), kv.ErrTxTooLarge)

	db := dial(t, at)
	tx := db.Begin(kv.Options{})
	value := make([]byte, kv.MaxValueSize)
	for range 10 + maxKept/kv.MaxValueSize {
		tx.Set([]byte("k"), value)
	}
	_, err = tx.Commit(t.Context())
	require.ErrorIs(t, err, kv.ErrTxTooLarge)
}

// TestSilentServer has the server give no sign of life: what waits ends.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	_, at := serveMemory(t, ServerOptions{})
	p := newProxy(t, at)
	db, err := Open(t.Context(), p.at, Options{PingInterval: 50 * time.Millisecond, DialTimeout: time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	p.hold(toClient)
	_, err = db.Begin(kv.Options{}).Get([]byte("a")).Wait(t.Context())
	require.ErrorIs(t, err, kv.ErrUnavailable)
	_, err = db.Begin(kv.Options{}).Get([]byte("a")).Wait(t.Context())
	require.ErrorIs(t, err, kv.ErrUnavailable)
	p.release()
	require.Empty(t, get(t, db, "a"))
}

// TestClientThatDoesNotRead asks for much and takes none of it: the server lets
// it go.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	gone := make(chan string, 1)
	store, at := serveMemory(t, ServerOptions{WriteTimeout: 20 * time.Millisecond, IdleTimeout: time.Hour,
		Grace: time.Millisecond, OnDisconnect: func(id string) { gone <- id }})
	update(t, store, func(tx kv.Tx) {
		for i := range 50 {
			tx.Set([]byte{'k', byte(i)}, make([]byte, kv.MaxValueSize))
		}
	})
	s := newRawClient(t, at)
	ask := binary.AppendUvarint([]byte{1, flagBegin, 0, opGetRange, 1, 0, 1, 'k', 1, 'l', 0}, 0)
	_, err := s.Write(appendFrame(nil, frameBatch, ask, nil))
	require.NoError(t, err)
	require.Equal(t, "raw", <-gone)
}

// TestSilentClient has a client give no sign of life: the server lets it go.
func TestSilentClient(t *testing.T) {
	t.Parallel()
	gone := make(chan string, 1)
	_, at := serveMemory(t, ServerOptions{IdleTimeout: 30 * time.Millisecond, Grace: time.Millisecond,
		OnDisconnect: func(id string) { gone <- id }})
	s := newRawClient(t, at)
	require.Equal(t, "raw", <-gone)
	_, err := s.r.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

// blocking is a store whose reads and commits wait for their context.
type blocking struct {
	kv.Database
	entered, ended chan string
}

func (b blocking) Begin(o kv.Options) kv.Tx { return blockingTx{b.Database.Begin(o), b} }

type blockingTx struct {
	kv.Tx
	b blocking
}

func (t blockingTx) wait(ctx context.Context, what string) error {
	t.b.entered <- what
	<-ctx.Done()
	t.b.ended <- what
	return ctx.Err()
}

func (t blockingTx) Get([]byte) kv.Pending[[]byte] {
	return kv.Later(func(ctx context.Context) ([]byte, error) { return nil, t.wait(ctx, "get") })
}

func (t blockingTx) Commit(ctx context.Context) (kv.Committed, error) {
	return kv.Committed{}, errors.Join(kv.ErrUnknownResult, t.wait(ctx, "commit"))
}

func TestCancelReachesTheServer(t *testing.T) {
	t.Parallel()
	store := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	b := blocking{store, make(chan string, 1), make(chan string, 1)}
	at, _ := serve(t, b, ServerOptions{})
	db := dial(t, at)

	ctx, cancel := context.WithCancel(t.Context())
	tx := db.Begin(kv.Options{})
	read := make(chan error, 1)
	go func() {
		_, err := tx.Get([]byte("a")).Wait(ctx)
		read <- err
	}()
	require.Equal(t, "get", <-b.entered)
	cancel()
	require.ErrorIs(t, <-read, context.Canceled)
	tx.Cancel()
	require.Equal(t, "get", <-b.ended)

	ctx, cancel = context.WithCancel(t.Context())
	tx = db.Begin(kv.Options{})
	tx.Set([]byte("a"), nil)
	go func() {
		_, err := tx.Commit(ctx)
		read <- err
	}()
	require.Equal(t, "commit", <-b.entered)
	cancel()
	require.ErrorIs(t, <-read, kv.ErrUnknownResult)
	require.Equal(t, "commit", <-b.ended)

	// A connection that ends, ends what waits for it.
	tx = db.Begin(kv.Options{})
	go func() { _, _ = tx.Get([]byte("a")).Wait(t.Context()) }()
	require.Equal(t, "get", <-b.entered)
	require.NoError(t, db.Close())
	require.Equal(t, "get", <-b.ended)
}

// TestRangesEqualTheStores reads ranges of every kind here and there.
func TestRangesEqualTheStores(t *testing.T) {
	t.Parallel()
	store, at := serveMemory(t, ServerOptions{})
	db := dial(t, at)
	const rows = 3000
	for i := range rows {
		update(t, store, func(tx kv.Tx) { tx.Set(fmt.Appendf(nil, "k%05d", i), make([]byte, i%1500)) })
	}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Custom(func(t *rapid.T) []byte {
			return fmt.Appendf(nil, "k%05d", rapid.IntRange(-1, rows+1).Draw(t, "row"))
		})
		r := kv.Range{Begin: key.Draw(t, "begin"), End: key.Draw(t, "end")}
		o := kv.RangeOptions{Limit: rapid.SampledFrom([]int{0, 1, 2, pageRows - 1, pageRows, pageRows + 1, 700, rows,
			2 * rows}).Draw(t, "limit"), Reverse: rapid.Bool().Draw(t, "reverse")}
		one, two := store.Begin(kv.Options{}), db.Begin(kv.Options{})
		defer one.Cancel()
		defer two.Cancel()
		own := key.Draw(t, "own")
		for _, tx := range []kv.Tx{one, two} {
			tx.ClearRange(kv.Range{Begin: own, End: append(own, '0')})
			tx.Set(append(own, 'x'), nil)
		}
		want, wantErr := one.GetRange(r, o).Wait(context.Background())
		got, err := two.GetRange(r, o).Wait(context.Background())
		if wantErr != nil {
			require.ErrorIs(t, err, errors.Unwrap(wantErr))
			return
		}
		require.NoError(t, err)
		require.Equal(t, want.More, got.More)
		require.Len(t, got.Items, len(want.Items))
		for i := range got.Items {
			require.Equal(t, want.Items[i], got.Items[i])
		}
	})
}

// TestLaterPagesDoNotSeeLaterWrites asks for a range of many pages, and clears
// it in the same transaction before it waits.
func TestLaterPagesDoNotSeeLaterWrites(t *testing.T) {
	t.Parallel()
	store, at := serveMemory(t, ServerOptions{})
	const rows = 20 * pageRows
	update(t, store, func(tx kv.Tx) {
		for i := range rows {
			tx.Set(fmt.Appendf(nil, "k%05d", i), make([]byte, 1000))
		}
	})
	tx := dial(t, at).Begin(kv.Options{})
	defer tx.Cancel()
	before := tx.GetRange(kv.Prefix([]byte("k")), kv.RangeOptions{})
	tx.ClearRange(kv.Prefix([]byte("k")))
	after := tx.GetRange(kv.Prefix([]byte("k")), kv.RangeOptions{})
	page, err := before.Wait(t.Context())
	require.NoError(t, err)
	require.Len(t, page.Items, rows)
	page, err = after.Wait(t.Context())
	require.NoError(t, err)
	require.Empty(t, page.Items)
}

// TestRoundTrips counts what a transaction costs: one for all reads that are
// asked together, one for the commit, none for a commit without writes.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	_, at := serveMemory(t, ServerOptions{})
	db := dial(t, at)
	l, _, err := db.current()
	require.NoError(t, err)
	count := func(want uint64, fn func(tx kv.Tx)) {
		before := l.frames.Load()
		tx := db.Begin(kv.Options{NoSync: true, Tag: "count", Turns: true})
		fn(tx)
		_, err := tx.Commit(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, l.frames.Load()-before)
	}
	readAll := func(tx kv.Tx) {
		var asked []kv.Pending[[]byte]
		for i := range 50 {
			asked = append(asked, tx.Get(binary.BigEndian.AppendUint64(nil, uint64(i))))
		}
		rows := tx.Snapshot().GetRange(kv.Prefix([]byte("k")), kv.RangeOptions{Limit: 10})
		for _, a := range asked {
			_, err := a.Wait(t.Context())
			require.NoError(t, err)
		}
		_, err := rows.Wait(t.Context())
		require.NoError(t, err)
	}
	count(0, func(kv.Tx) {})
	count(1, readAll)
	count(1, func(tx kv.Tx) { tx.Set([]byte("a"), nil); tx.Clear([]byte("b")) })
	count(2, func(tx kv.Tx) {
		readAll(tx)
		tx.Set([]byte("a"), nil)
		tx.Atomic(kv.Add, []byte("b"), []byte{1})
	})
}

func (x *exchange) failure() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

// emptyPages is a store whose pages have no rows, and more to follow.
type emptyPages struct{ kv.Database }

type emptyPagesTx struct{ kv.Tx }

func (s emptyPages) Begin(o kv.Options) kv.Tx { return emptyPagesTx{s.Database.Begin(o)} }

func (emptyPagesTx) GetRange(kv.Range, kv.RangeOptions) kv.Pending[kv.Page] {
	return kv.Ready(kv.Page{More: true}, nil)
}

// TestAStoreThatBreaksTheContract costs the client its read, and nobody the server.
func TestAStoreThatBreaksTheContract(t *testing.T) {
	t.Parallel()
	store, _ := serveMemory(t, ServerOptions{})
	at, _ := serve(t, emptyPages{store}, ServerOptions{})
	tx := dial(t, at).Begin(kv.Options{})
	defer tx.Cancel()
	_, err := tx.GetRange(kv.Range{End: []byte{0xff}}, kv.RangeOptions{}).Wait(t.Context())
	require.ErrorContains(t, err, errEmptyPage.Error())
}
