package peerhead_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestPeersThatAreGoneWhenTheyAreHeard has hellos be handled after the connections they
// came over ended, of which the host tells nothing. They leave no peers behind.
func TestPeersThatAreGoneWhenTheyAreHeard(t *testing.T) {
	inWorld(t, peerhead.Options{MaxPeers: 20}, func(w *world) {
		for i := range 20 {
			p := w.join(fmt.Sprint("ghost", i), 4)
			p.mu.Lock()
			p.away = true // and Observe is never told
			p.mu.Unlock()
		}
		require.Len(w, w.head.Peers(), 20)
		w.settle(time.Minute)
		require.Empty(w, w.head.Peers())
		ids := w.submit(8)
		w.join("honest", 4)
		w.settle(time.Minute)
		w.requireEchoes(ids)
	})
}

// TestPeersDoNotFillTheLog has a client that can't be answered ask again and again, and peers come and go.
func TestPeersDoNotFillTheLog(t *testing.T) {
	var log bytes.Buffer
	execute := func(context.Context, peerhead.PeerID, *protocol.ExecuteBatch) *protocol.ExecuteBatchResponse {
		return &protocol.ExecuteBatchResponse{Code: protocol.CodeInvalid}
	}
	o := peerhead.Options{Execute: execute,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	inWorld(t, o, func(w *world) {
		data, err := protocol.Encode(&protocol.ExecuteBatch{Arguments: [][]string{{}},
			Template: protocol.Template{FunctionID: "f", Method: "m"}}, protocol.DialectChunk)
		require.NoError(w, err)
		for range 1000 {
			w.head.HandleMessage(w.Context(), "nobody", data, false)
		}
		for i := range 30 {
			p := w.join(fmt.Sprint("brief", i), 4)
			p.mu.Lock()
			p.away = true
			p.mu.Unlock()
		}
		w.settle(time.Minute)
		require.Empty(w, w.head.Peers())
	})
	require.Contains(t, log.String(), "was not sent")
	require.Contains(t, log.String(), "a peer is lost")
	require.Less(t, bytes.Count(log.Bytes(), []byte("\n")), 8, "%s", &log)
}

// TestWhatCantBeReadIsAnswered has a stranger send a number of a megabyte. It is told so in few words, and nothing is
// logged that operators see.
func TestWhatCantBeReadIsAnswered(t *testing.T) {
	var log bytes.Buffer
	o := peerhead.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	inWorld(t, o, func(w *world) {
		m, err := protocol.Decode(w.head.HandleCall(w.Context(), "stranger",
			fmt.Appendf(nil, `{"code":%s,"type":"MsgHealthCheck"}`, bytes.Repeat([]byte("1"), 1<<20))))
		require.NoError(w, err)
		require.Equal(w, protocol.CodeInvalid, m.(*protocol.Ack).Code)
		require.Empty(w, log.String())
	})
}

// TestAnswersThatHaveNoRoom has a client ask for a batch whose results no message can have, or the network does not
// carry. It is told so.
func TestAnswersThatHaveNoRoom(t *testing.T) {
	for name, c := range map[string]struct {
		network func(*world) peerhead.Network
		message int
	}{
		"in a message":   {func(w *world) peerhead.Network { return w }, protocol.MaxText + 1},
		"in the network": {func(w *world) peerhead.Network { return short{w} }, protocol.MaxText},
	} {
		t.Run(name, func(t *testing.T) {
			execute := func(context.Context, peerhead.PeerID, *protocol.ExecuteBatch) *protocol.ExecuteBatchResponse {
				return &protocol.ExecuteBatchResponse{RequestID: "a", Code: protocol.CodeOK,
					Message: strings.Repeat("x", c.message)}
			}
			inWorld(t, peerhead.Options{}, func(w *world) {
				w.stop()
				w.network = c.network(w)
				w.start(peerhead.Options{Execute: execute})
				got := make(chan protocol.Message, 1)
				w.mu.Lock()
				w.peers["client"] = &fakePeer{world: w, b7s: func(m protocol.Message) { got <- m }}
				w.mu.Unlock()
				data, err := protocol.Encode(&protocol.ExecuteBatch{Arguments: [][]string{{}},
					Template: protocol.Template{FunctionID: "f", Method: "m"}}, protocol.DialectChunk)
				require.NoError(w, err)
				w.head.HandleMessage(w.Context(), "client", data, false)
				synctest.Wait()
				require.Len(w, got, 1)
				answer := (<-got).(*protocol.ExecuteBatchResponse)
				require.Equal(w, "a", answer.RequestID)
				require.Equal(w, protocol.CodeError, answer.Code)
				require.Contains(w, answer.Message, "by HTTP")
			})
		})
	}
}

// short is a network that carries no long messages.
type short struct{ *world }

func (s short) Send(ctx context.Context, to peerhead.PeerID, message []byte) error {
	if len(message) > 1<<10 {
		return fmt.Errorf("%w: %w", p2p.ErrNotSent, p2p.ErrTooLarge)
	}
	return s.world.Send(ctx, to, message)
}

// TestRollCallsAreWithinTheLimitsOfGossip asks for more attributes than are read in what is published.
func TestRollCallsAreWithinTheLimitsOfGossip(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		attributes := &protocol.Attributes{Values: make([]protocol.Parameter, 5)}
		for i := range attributes.Values {
			attributes.Values[i] = protocol.Parameter{Name: "a", Value: strings.Repeat("x", 15<<10)}
		}
		_, err := w.head.RollCall(w.Context(), protocol.RollCall{FunctionID: "f", Attributes: attributes}, time.Second,
			func(peerhead.PeerID) bool { return true })
		require.ErrorIs(w, err, protocol.ErrLimit)
		require.Empty(w, w.published)
	})
}

// TestAPeerThatOffersTooMuch has a peer offer as many functions as a message takes, which its
// record in the store would not.
func TestAPeerThatOffersTooMuch(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 4)
		for n, code := range map[int]protocol.Code{250: protocol.CodeOK, 10_000: protocol.CodeInvalid} {
			p.hello.Functions = nil
			for i := range n {
				p.hello.Functions = append(p.hello.Functions, fmt.Sprintf("go:%0125d", i))
			}
			answer := p.sayHello()
			require.Equal(w, code, answer.Code, answer.Message)
		}
		require.Len(w, w.head.Peers(), 1)
	})
}

// TestAPeerThatWasTakenForAway has the host's word come late: the peer is connected.
func TestAPeerThatWasTakenForAway(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 4)
		w.head.Observe(p2p.Peer{ID: p.id, Futura: true})
		w.settle(time.Minute)
		require.Len(w, w.head.Peers(), 1)
		require.True(w, w.head.Peers()[0].Connected)
	})
}

// TestAPeerThatKeepsChanging has a peer change what it offers whenever it has work, to
// get more of it than it has slots.
func TestAPeerThatKeepsChanging(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		greedy := w.join("greedy", 4, func(p *fakePeer) { p.takes = time.Hour })
		ids := w.submit(100)
		refused := 0
		for i := range 100 {
			greedy.hello.Capacity.CPUMillis = int64(1<<20 + i + 1)
			if greedy.sayHello().Code == protocol.CodeUnavailable {
				refused++
			}
			w.settle(200 * time.Millisecond)
		}
		require.Greater(w, refused, 50, "each membership costs the store something")
		running := 0
		for _, row := range w.rows(ids) {
			if row.State() == layout.Claimed {
				running++
			}
		}
		require.LessOrEqual(w, running, 8)
		w.settle(time.Second)
		w.join("honest", 100)
		w.settle(10 * time.Second)
		realized := 0
		for _, row := range w.rows(ids) {
			if ending := row.Ending(); ending.Over() {
				realized++
			}
		}
		require.GreaterOrEqual(w, realized, 90)
	})
}

// TestBlobsThatNeverCome has peers answer with blobs of which nothing comes. Blobs of others
// are fetched meanwhile.
func TestBlobsThatNeverCome(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.over)
		defer cancel()
		for i := range 8 {
			p := w.join(fmt.Sprint("slow", i), 1, func(p *fakePeer) { p.silent = true })
			w.submit(1)
			w.settle(time.Second)
			require.Len(w, p.orders, 1)
			r := protocol.WorkOrderBatchResponse{RequestID: p.orders[0].RequestID, ChunkID: p.orders[0].ChunkID,
				OrderMAC: p.orders[0].OrderMAC, Outcomes: []protocol.Outcome{{Code: protocol.CodeOK,
					Blob: &protocol.Blob{ID: endlessBlob, Size: layout.MaxPut}}}}
			data, err := protocol.Encode(&r, protocol.DialectFutura)
			require.NoError(w, err)
			for range 4 {
				go w.head.HandleCall(ctx, p.id, data)
			}
		}
		value := bytes.Repeat([]byte("v"), 10<<20)
		w.blobs["b"] = value
		w.join("honest", 1, func(p *fakePeer) {
			p.run = func(*protocol.WorkOrderBatch, int) protocol.Outcome {
				return protocol.Outcome{Code: protocol.CodeOK, Blob: &protocol.Blob{ID: "b", Size: int64(len(value))}}
			}
		})
		ids := w.submit(1)
		w.settle(2 * time.Second)
		row := w.rows(ids)[0]
		require.Equal(w, layout.Realized, row.State())
	})
}

// TestABlobLargerThanResults has a peer say that it has more than a result may be, or a blob of nothing. Each answer
// is a fault of it, and another peer runs the item.
func TestABlobLargerThanResults(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		w.join("liar", 4, func(p *fakePeer) {
			p.run = func(_ *protocol.WorkOrderBatch, i int) protocol.Outcome {
				return protocol.Outcome{Index: i, Code: protocol.CodeOK, Blob: &protocol.Blob{ID: "b", Size: layout.MaxPut + 1}}
			}
		})
		w.join("empty", 4, func(p *fakePeer) {
			p.run = func(_ *protocol.WorkOrderBatch, i int) protocol.Outcome {
				return protocol.Outcome{Index: i, Code: protocol.CodeOK, Blob: &protocol.Blob{ID: "b"}}
			}
		})
		ids := w.submit(8, func(s *layout.Spec) { s.MaxRetries = 0 })
		w.settle(time.Second)
		require.NotZero(w, w.about("empty").Refused)
		require.NotZero(w, w.about("liar").Refused)
		require.Less(w, w.about("liar").Score, 1.0)
		w.join("honest", 4)
		w.settle(time.Minute)
		w.requireEchoes(ids)
		for _, row := range w.rows(ids) {
			require.Zero(w, row.Attempts.Failed)
		}
	})
}
