package attack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// peersOf is how many peers attack a head together.
const peersOf = 4

// messageTime bounds one message of an attack: a target may leave it waiting.
const messageTime = 10 * time.Second

// gang connects peers to the target, each with an identity of its own.
func (t *Target) gang(ctx context.Context) (gang []*p2p.Host, head p2p.PeerID, leave func(), err error) {
	leave = func() {
		for _, h := range gang {
			_ = h.Close() // nothing depends on it
		}
	}
	for range peersOf {
		h, err := p2p.Open(ctx, p2p.Options{Listen: []string{}})
		if err != nil {
			return gang, head, leave, err
		}
		gang = append(gang, h)
		h.OnCall(func(context.Context, p2p.PeerID, []byte) []byte { return nil })
		if err := h.Start(); err != nil {
			return gang, head, leave, err
		}
		if head, err = h.Connect(ctx, t.Peers); err != nil {
			return gang, head, leave, err
		}
	}
	return gang, head, leave, nil
}

// together has each of the gang take its share of size actions.
func together(ctx context.Context, gang []*p2p.Host, size int, do func(ctx context.Context, h *p2p.Host, i int)) {
	var all sync.WaitGroup
	for first, h := range gang {
		all.Go(func() {
			for i := first; i < size; i += len(gang) {
				one, cancel := context.WithTimeout(ctx, messageTime)
				do(one, h, i)
				cancel()
			}
		})
	}
	all.Wait()
}

// Gossip publishes noise and roll calls to everyone, small and as large as messages may be.
func Gossip(ctx context.Context, t *Target, size int) (func(), error) {
	gang, _, leave, err := t.gang(ctx)
	if err != nil {
		return leave, err
	}
	together(ctx, gang, size, func(ctx context.Context, h *p2p.Host, i int) {
		message := noise(i)
		switch i % 4 {
		case 0:
			message = encoded(&protocol.RollCall{FunctionID: "nobody", RequestID: uuid.NewString()})
		case 1:
			message = bytes.Repeat([]byte{'['}, 64<<10)
		}
		_ = h.Publish(ctx, p2p.TopicGeneral, append(message, 0)) // the head may have closed the connection
	})
	return leave, nil
}

// Messages sends a head what is no message, and messages about what it does not know.
func Messages(ctx context.Context, t *Target, size int) (func(), error) {
	gang, head, leave, err := t.gang(ctx)
	if err != nil {
		return leave, err
	}
	together(ctx, gang, size, func(ctx context.Context, h *p2p.Host, i int) {
		chunk := fmt.Sprintf("%016x", i)
		message := noise(i)
		switch i % 6 {
		case 0, 1:
			message = encoded(&protocol.WorkOrderBatchResponse{RequestID: chunk, ChunkID: chunk,
				OrderMAC: "none", Outcomes: []protocol.Outcome{{Code: protocol.CodeOK, Value: []byte("forged")}}})
		case 2:
			message = encoded(&protocol.WorkOrderProgress{ChunkID: chunk, Running: 1000, Done: 1000})
		case 3:
			message = []byte(strings.Repeat("[", 100_000))
		}
		if i%2 == 0 {
			_, _ = h.Call(ctx, head, message) // any answer is fine
		} else {
			_ = h.Send(ctx, head, message) // the head may refuse it
		}
	})
	return leave, nil
}

// Members has peers introduce themselves again and again, each time as another process with very many slots, that
// leave orders without an answer.
func Members(ctx context.Context, t *Target, size int) (func(), error) {
	gang, head, leave, err := t.gang(ctx)
	if err != nil {
		return leave, err
	}
	together(ctx, gang, size, func(ctx context.Context, h *p2p.Host, i int) {
		_, _ = h.Call(ctx, head, encoded(&protocol.Hello{Incarnation: fmt.Sprintf("%016x", i), Functions: []string{"wasm:*"},
			Capacity: protocol.Capacity{Slots: 1 << 19, CPUMillis: 1 << 30, RAMBytes: 1 << 40}})) // any answer is fine
	})
	return leave, nil
}

// Batches has peers ask for batches of a function that nobody has, with many arguments each, and wait for none.
func Batches(ctx context.Context, t *Target, size int) (func(), error) {
	gang, head, leave, err := t.gang(ctx)
	if err != nil {
		return leave, err
	}
	arguments := make([][]string, 1000)
	for i := range arguments {
		arguments[i] = []string{strings.Repeat("x", 500)}
	}
	message := encoded(&protocol.ExecuteBatch{Arguments: arguments,
		Template: protocol.Template{FunctionID: "nobody", Method: "main.wasm"}})
	together(ctx, gang, size, func(ctx context.Context, h *p2p.Host, i int) {
		if i%2 == 0 {
			_ = h.Send(ctx, head, message)
			return
		}
		brief, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_, _ = h.Call(brief, head, message)
	})
	return leave, nil
}

// module is the content id of one of 4,096 modules that nobody has.
func module(i int) string {
	const letters = "abcdefghijklmnop"
	return "bafkreigh2a" + string([]byte{letters[i&15], letters[i>>4&15], letters[i>>8&15]}) +
		"aildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
}

// encoded is a message as peers of Futura write it.
func encoded(m protocol.Message) []byte {
	data, err := protocol.Encode(m, protocol.DialectFutura)
	if err != nil {
		panic(err) // the message is written here
	}
	return data
}

// FalseHead is a head that a worker was told to serve, and that deceives it.
type FalseHead struct {
	host *p2p.Host

	mu      sync.Mutex
	worker  p2p.PeerID
	greeted chan struct{} // closed once a worker has introduced itself
}

// NewFalseHead opens one on loopback.
func NewFalseHead(ctx context.Context) (*FalseHead, error) {
	host, err := p2p.Open(ctx, p2p.Options{})
	if err != nil {
		return nil, err
	}
	f := &FalseHead{host: host, greeted: make(chan struct{})}
	host.OnCall(f.answer)
	if err := host.Start(); err != nil {
		return nil, errors.Join(err, host.Close())
	}
	return f, nil
}

// Address is where workers reach it.
func (f *FalseHead) Address() string { return f.host.Addrs()[0] }

// Close ends it.
func (f *FalseHead) Close() error { return f.host.Close() }

// answer accepts workers, and takes no result.
func (f *FalseHead) answer(_ context.Context, from p2p.PeerID, message []byte) []byte {
	m, err := protocol.Decode(message)
	if err != nil {
		return nil
	}
	if _, hello := m.(*protocol.Hello); !hello {
		return encoded(&protocol.Ack{Code: protocol.CodeUnavailable})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.worker == "" {
		f.worker = from
		close(f.greeted)
	}
	return encoded(&protocol.HelloResponse{Code: protocol.CodeOK, HeartbeatMS: 1, DeadAfterMS: 2})
}

// Orders gives the worker orders that are no orders, for modules that the head never sends, with chunks that it never
// takes back, and cancels what others may have ordered. It returns an error if the worker takes no order.
func (f *FalseHead) Orders(ctx context.Context, t *Target, size int) (func(), error) {
	select {
	case <-f.greeted:
	case <-ctx.Done():
		return nothing, fmt.Errorf("no worker came: %w", ctx.Err())
	}
	var taken atomic.Int64
	together(ctx, []*p2p.Host{f.host, f.host, f.host, f.host}, size, func(ctx context.Context, h *p2p.Host, i int) {
		chunk := uuid.NewString()
		arguments := make([][]string, 1+i%100)
		items := make([]protocol.OrderItem, len(arguments))
		for n := range arguments {
			arguments[n] = []string{"x"}
			items[n] = protocol.OrderItem{ID: uuid.Must(uuid.NewV7()).String(), Attempt: 1}
		}
		message := noise(i)
		switch i % 6 {
		case 0, 1:
			message = encoded(&protocol.WorkOrderBatch{RequestID: chunk, ChunkID: chunk, Arguments: arguments, Items: items,
				Module:   module(i),
				Template: protocol.Template{FunctionID: "nobody", Method: "main.wasm"}})
		case 2:
			message = encoded(&protocol.WorkOrderBatch{RequestID: chunk, ChunkID: chunk, Arguments: arguments, Items: items,
				Template: protocol.Template{FunctionID: "go:nobody"}})
		case 3:
			message = encoded(&protocol.CancelOrder{ChunkID: chunk, Reason: strings.Repeat("x", 1000)})
		case 4:
			message = encoded(&protocol.TakeBack{ChunkID: chunk})
		}
		answer, err := h.Call(ctx, f.worker, message)
		if err != nil {
			return // it may refuse to listen
		}
		m, err := protocol.Decode(answer)
		if ack, is := m.(*protocol.Ack); err == nil && is && ack.Code == protocol.CodeAccepted {
			taken.Add(1)
		}
	})
	if taken.Load() == 0 {
		return nothing, errors.New("the worker took no order: the attack tests nothing")
	}
	return nothing, nil
}
