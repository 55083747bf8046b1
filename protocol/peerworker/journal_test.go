package peerworker

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// change writes to the store of a worker.
func (r *running) change(fn func(tx kv.Attempt)) {
	r.t.Helper()
	require.NoError(r.t, r.node.transact(r.t.Context(), func(tx kv.Attempt) error {
		fn(tx)
		return nil
	}))
}

// TestALargeResultThatIsDamagedRunsAgain has the store lose a part of a result: the head does not
// get the rest for the whole.
func TestALargeResultThatIsDamagedRunsAgain(t *testing.T) {
	t.Parallel()
	o := options(nil)
	o.State = t.TempDir()
	large := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	calls := make(chan bool, 10)
	sized := map[string]workers.Function{"large": func(context.Context, []byte) ([]byte, error) {
		calls <- true
		return large, nil
	}}
	m := goOrder("large", "a")
	r, h := again(t, o, sized)
	h.keepsAll(m)
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	r.awaitEnded(m)
	r.change(func(tx kv.Attempt) {
		tx.Clear(tuple.AppendInt(rowKey(r.chunk(chunkName{headID, m.ChunkID}), rowValue, 0), 3))
	})
	r.crash()

	r, h = again(t, o, sized)
	require.Equal(t, cidOf(t, large), h.all(m.ChunkID, 1)[0].Blob.ID)
	require.Len(t, calls, 2)
	r.idle()
}

// TestRowsThatCantBeReadAreForgotten has a store with orders that are none: the worker goes on
// with the others, says so, and keeps nothing of them.
func TestRowsThatCantBeReadAreForgotten(t *testing.T) {
	t.Parallel()
	o := options(nil)
	o.State = t.TempDir()
	r, h := again(t, o, functions)
	good := goOrder("double", "a")
	h.keepsAll(good)
	require.Equal(t, protocol.CodeAccepted, h.order(good).Code)
	r.awaitEnded(good)
	name := chunkName{headID, good.ChunkID}
	bad := func(row string) {
		c := &chunk{owner: chunkName{headID, row}.owner()}
		r.change(func(tx kv.Attempt) {
			for _, one := range parts(rowKey(c, rowOrder, 0), []byte(row)) {
				tx.Set(one.Key, one.Value)
			}
		})
	}
	bad("no JSON")
	bad(`{"head":"` + headID + `","message":{"type":"MsgNothing"}}`)
	bad(`{"head":"` + headID + `","message":` + string(encoded(t, good)) + `}`) // of another chunk
	r.change(func(tx kv.Attempt) {
		tx.Set(tuple.AppendInt(rowKey(&chunk{owner: name.owner()}, rowItem, 0), 0), []byte("no JSON"))
		tx.Set(tuple.AppendString(chunkKeys(), "alone"), nil)
		tx.Set(tuple.AppendInt(rowKey(&chunk{owner: "none"}, rowItem, -1), 0), []byte("{}"))
	})
	r.crash()

	var log stacktest.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r, h = again(t, o, functions)
	require.Equal(t, "aa", string(h.all(good.ChunkID, 1)[0].Value))
	r.idle()
	require.Equal(t, 3, strings.Count(log.String(), "an order can't be read"), log.String())
	require.Contains(t, log.String(), "the end of an item can't be read")
}

func encoded(t *testing.T, m protocol.Message) []byte {
	data, err := protocol.Encode(m, protocol.DialectFutura)
	require.NoError(t, err)
	return data
}

// TestOrdersOfAnEarlierVersionAreNamed has a directory with what earlier versions wrote.
func TestOrdersOfAnEarlierVersionAreNamed(t *testing.T) {
	t.Parallel()
	o := options(nil)
	o.State = t.TempDir()
	space := tuple.AppendString(nil, recordSpace)
	r, _ := again(t, o, functions)
	r.change(func(tx kv.Attempt) {
		owner := chunkName{headID, "old"}.owner()
		tx.Set(tuple.AppendString(chunkKeys(), owner), []byte(`{"head":"h","chunk":"c","items":1}`))
		tx.Set(tuple.AppendInt(tuple.AppendString(tuple.AppendString(space, oldIDs), owner), 0), make([]byte, 20))
	})
	r.crash()

	var log stacktest.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r, _ = again(t, o, functions)
	require.Contains(t, log.String(), "orders of an earlier version are not taken up")
	require.Contains(t, log.String(), "orders=1")
	require.NoError(t, r.node.cluster.EachKey(t.Context(), kv.Prefix(space), func(kv.KeyValue) error {
		t.Error("a key is left")
		return nil
	}))
	r.idle()
}

// TestOrdersOfAHeadThatIsNotServedWait has a worker start with another head in between.
func TestOrdersOfAHeadThatIsNotServedWait(t *testing.T) {
	t.Parallel()
	o := options(nil)
	o.State = t.TempDir()
	r, h := again(t, o, functions)
	m := goOrder("double", "a")
	h.keepsAll(m)
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	r.awaitEnded(m)
	r.crash()

	other := o
	other.Heads = []string{"/ip4/127.0.0.1/tcp/1/p2p/12D3KooWOther"}
	r, _ = again(t, other, functions)
	require.Zero(t, r.Stats().Chunks)
	require.Zero(t, r.Stats().Bytes)
	require.NoError(t, r.end())

	r, h = again(t, o, functions)
	require.Equal(t, "aa", string(h.all(m.ChunkID, 1)[0].Value))
	r.idle()
}

// TestARefusedOrderTakesNothingOver orders an attempt that runs once more, beside one that can't
// run here: the first order goes on.
func TestARefusedOrderTakesNothingOver(t *testing.T) {
	t.Parallel()
	everyState(t, func(t *testing.T, n *memory, o Options) {
		h := newHead(t, n, headID)
		w, called, release := holding(t, o)
		r := start(t, w, n)
		m := goOrder("held", "a")
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		<-called
		bad := goOrder("held", "a", "b")
		bad.Items[0], bad.Items[1].Codec = m.Items[0], "no codec"
		require.Equal(t, protocol.CodeInvalid, h.order(bad).Code)
		close(release)
		require.Equal(t, "a", string(h.all(m.ChunkID, 1)[0].Value))
		r.idle()
	})
}

// TestAChunkStaysUntilItsItemsAreInAnother has an order take an item over: until the journal has
// the order, it has the item in the earlier one.
func TestAChunkStaysUntilItsItemsAreInAnother(t *testing.T) {
	t.Parallel()
	n, h, o := withState(t)
	w, called, release := holding(t, o)
	r := start(t, w, n)
	m := goOrder("held", "a")
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	<-called
	later := &order{WorkOrderBatch: sameAttempts(m), function: "go:held"}
	later.name = chunkName{headID, later.ChunkID}
	require.Nil(t, later.readItems())
	c := newChunk(r.Worker, later.name, later.WorkOrderBatch, 1, later.items)
	require.True(t, r.admit(c, later.size))
	r.runner.hold(c, r.submissions(later, c))
	require.NoError(t, r.tidy(t.Context()))
	require.NotNil(t, r.chunk(chunkName{headID, m.ChunkID}))
	require.NoError(t, r.journal.begin(t.Context(), c, encoded(t, later.WorkOrderBatch)))
	c.keep()
	r.runChunk(c)
	close(release)
	require.Equal(t, "a", string(h.all(later.ChunkID, 1)[0].Value))
	r.idle()
}

// TestAnOrderWaitsForItsModuleAfterACancel orders an attempt that is being stopped as one of a
// module that has not come: it does not begin before.
func TestAnOrderWaitsForItsModuleAfterACancel(t *testing.T) {
	t.Parallel()
	everyState(t, func(t *testing.T, n *memory, o Options) {
		h := newHead(t, n, headID)
		h.stuck = true
		o.Modules = echoRunner{}
		made, called, release := deaf(t, o)
		r := start(t, made, n)
		m := goOrder("deaf", "a")
		h.keepsAll(m)
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		<-called
		require.Equal(t, protocol.CodeOK, h.order(&protocol.CancelOrder{ChunkID: m.ChunkID}).Code)
		later := moduleOrder(cidOf(t, []byte("\x00asm some module")), []string{"a"})
		later.Items[0].ID, later.Items[0].Attempt = m.Items[0].ID, m.Items[0].Attempt
		require.Equal(t, protocol.CodeAccepted, h.order(later).Code)
		id := r.chunk(chunkName{headID, later.ChunkID}).ids[0]
		stateOf := func() runState {
			r.runner.mu.Lock()
			defer r.runner.mu.Unlock()
			return r.runner.items[id].state
		}
		require.Equal(t, runTaken, stateOf())
		close(release)
		require.Eventually(t, func() bool { return stateOf() != runTaken }, testTime, time.Millisecond)
		require.Equal(t, runHeld, stateOf())
	})
}

// TestWhatTheJournalKeepsOfAnOrderCounts orders what is long in other fields than arguments.
func TestWhatTheJournalKeepsOfAnOrderCounts(t *testing.T) {
	t.Parallel()
	_, h, o := withHead(t)
	o.State, o.MaxBytes = t.TempDir(), 200<<10
	w := run(t, o)
	long := func(n int) *protocol.WorkOrderBatch {
		m := goOrder("double", "a")
		m.Template.Config.Permissions = []string{}
		for range n {
			m.Template.Config.Permissions = append(m.Template.Config.Permissions, strings.Repeat("x", 250))
		}
		return m
	}
	require.Equal(t, protocol.CodeUnavailable, h.order(long(2000)).Code)
	m := long(1000)
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	h.all(m.ChunkID, 1)
	w.idle()
}

// TestManyItemsAreSettledTogether settles more than a transaction takes.
func TestManyItemsAreSettledTogether(t *testing.T) {
	t.Parallel()
	o := options(nil)
	o.State = t.TempDir()
	r, _ := again(t, o, functions)
	c := &chunk{owner: chunkName{headID, "many"}.owner()}
	places := make([]place, 50_000)
	for i := range places {
		places[i] = place{c, i}
	}
	require.NoError(t, r.journal.settle(t.Context(), places))
	require.NoError(t, r.journal.forget(t.Context(), []*chunk{c}))
	r.idle()
}

// TestSmallResultsDontWaitForLargeOnes has ends wait for the journal.
func TestSmallResultsDontWaitForLargeOnes(t *testing.T) {
	t.Parallel()
	end := func(size int64, blob *protocol.Blob) keptEnd {
		return keptEnd{ended: ended{size: size, outcome: &protocol.Outcome{Blob: blob}}}
	}
	large := &protocol.Blob{ID: "large"}
	j := &journal{ends: []keptEnd{end(9, large), end(1, nil), end(maxWrite, nil), end(8, large), end(2, nil)}}
	var sizes [][]int64
	for next := j.next(); len(next) > 0; next = j.next() {
		var of []int64
		for _, e := range next {
			of = append(of, e.size)
		}
		sizes = append(sizes, of)
	}
	require.Equal(t, [][]int64{{1, maxWrite}, {2}, {9}, {8}}, sizes)
}

// TestAnItemThatEndsTwiceAtOnceHasItsFirstEnd has both ends of an item in one flush: the head gets the one that a
// restart would find.
func TestAnItemThatEndsTwiceAtOnceHasItsFirstEnd(t *testing.T) {
	t.Parallel()
	n, h, o := withState(t)
	w, called, release := holding(t, o)
	r := start(t, w, n)
	m := goOrder("held", "a")
	h.keepsAll(m)
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	<-called
	c := r.chunk(chunkName{headID, m.ChunkID})
	first := ended{outcome: returned(0, "the first end"), discarded: true}
	second := ended{outcome: returned(0, "the second end"), discarded: true}
	require.NoError(t, r.journal.writeAll(t.Context(), []keptEnd{{c, first}, {c, second}}))
	all, _, err := r.journal.read(t.Context())
	require.NoError(t, err)
	row, err := all[c.owner].item(0)
	require.NoError(t, err)
	require.Equal(t, first.outcome, row.Outcome)
	close(release)
	r.crash()
}

// TestUnknownCommitsOfTheJournal has commits of the journal get lost, or only their answers, before
// and after the worker dies.
func TestUnknownCommitsOfTheJournal(t *testing.T) {
	t.Parallel()
	o := options(nil)
	o.State = t.TempDir()
	var store *faultkv.Database
	o.Seam = &seam.PeerWorker{Open: func(ctx context.Context) (kv.Database, error) {
		db, err := kvopen.Open(ctx, "embedded:"+o.State, kvopen.Options{Exclusive: true})
		if err != nil {
			return nil, err
		}
		store = faultkv.Wrap(db, faultkv.Options{})
		return store, nil
	}}
	unsure := func() {
		for _, fault := range []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.Conflict,
			faultkv.UnknownCommitted, faultkv.Unavailable} {
			store.FailNext(fault, func(tag string) bool { return tag == "futura-peer" })
		}
	}
	large := bytes.Repeat([]byte("x"), 3<<20)
	sized := map[string]workers.Function{"sized": func(_ context.Context, args []byte) ([]byte, error) {
		if string(args) == "large" {
			return large, nil
		}
		return args, nil
	}}
	r, h := again(t, o, sized)
	m, other := goOrder("sized", "a", "large", "b"), goOrder("sized", "c")
	h.keepsAll(m)
	unsure()
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	unsure()
	require.Equal(t, protocol.CodeAccepted, h.order(other).Code)
	require.Equal(t, "c", string(h.all(other.ChunkID, 1)[0].Value))
	r.awaitEnded(m)
	r.crash()

	r, h = again(t, o, nil) // nothing can run again
	unsure()
	all := h.all(m.ChunkID, 3)
	require.Equal(t, "a", string(all[0].Value))
	require.Equal(t, cidOf(t, large), all[1].Blob.ID)
	require.Equal(t, "b", string(all[2].Value))
	r.idle()
}
