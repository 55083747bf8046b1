package p2p

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"

	"github.com/futura-run/futura/internal/budget"
)

// gossip is a host's part in its topics.
type gossip struct {
	host     *Host
	cancel   context.CancelFunc
	ctx      context.Context
	topics   map[string]*pubsub.Topic
	memory   *budget.Bytes
	handlers *budget.Bytes

	mu      sync.Mutex
	authors map[peer.ID]*rate.Limiter
}

// envelope is what a message on the wire has beside its data.
const envelope = 4 << 10

func newGossip(h *Host) (*gossip, error) {
	g := &gossip{
		host: h, topics: map[string]*pubsub.Topic{}, memory: budget.New(h.limits.GossipMemory),
		handlers: budget.New(int64(h.limits.GossipHandlers)), authors: map[peer.ID]*rate.Limiter{},
	}
	g.ctx, g.cancel = context.WithCancel(h.ctx)
	names := slices.Clone(h.options.Topics)
	if !h.options.NoGeneral {
		names = append(names, TopicGeneral)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	log := slog.New(quiet{h.log.Handler()})
	router, err := pubsub.NewGossipSub(g.ctx, h.node,
		pubsub.WithMessageSignaturePolicy(pubsub.StrictSign),
		pubsub.WithMaxMessageSize(h.limits.MaxGossip+envelope),
		pubsub.WithSubscriptionFilter(pubsub.WrapLimitSubscriptionFilter(pubsub.NewAllowlistSubscriptionFilter(names...),
			maxSubscriptions)),
		pubsub.WithAppSpecificRpcInspector(g.inspect),
		pubsub.WithFloodPublish(true),
		pubsub.WithPeerExchange(false),
		pubsub.WithLogger(log), pubsub.WithRPCLogger(log),
	)
	if err != nil {
		return g, fmt.Errorf("p2p: gossip: %w", err)
	}
	for _, name := range names {
		if err := g.join(router, name); err != nil {
			return g, fmt.Errorf("%w: topic %q: %w", ErrOptions, name, err)
		}
	}
	return g, nil
}

// maxSubscriptions is how many topics a peer may name in one message of the protocol.
const maxSubscriptions = 1024

func (g *gossip) join(router *pubsub.PubSub, name string) error {
	if err := router.RegisterTopicValidator(name, g.judge, pubsub.WithValidatorInline(true)); err != nil {
		return err
	}
	topic, err := router.Join(name)
	if err != nil {
		return err
	}
	messages, err := topic.Subscribe()
	if err != nil {
		return err
	}
	g.topics[name] = topic
	g.host.work.Go(func() { g.listen(messages) })
	return nil
}

func (g *gossip) close() {
	if g != nil {
		g.cancel()
	}
}

// inspect drops what a peer relays beyond its rate, before signatures are checked.
func (g *gossip) inspect(from peer.ID, rpc *pubsub.RPC) error {
	n := len(rpc.GetPublish())
	if n == 0 {
		return nil
	}
	share, release := g.host.table.use(from)
	defer release()
	if !share.relayed.AllowN(g.host.clock.Now(), n) {
		g.host.counts.gossipFast.Add(int64(n))
		return ErrBusy
	}
	return nil
}

// judge decides whether a message is delivered and relayed. Its signature was checked
// before.
func (g *gossip) judge(_ context.Context, _ peer.ID, m *pubsub.Message) pubsub.ValidationResult {
	author := m.GetFrom()
	switch {
	case author == g.host.id:
		return pubsub.ValidationAccept
	case len(m.GetData()) > g.host.limits.MaxGossip || len(m.GetData()) == 0:
		g.host.counts.gossipLarge.Add(1)
		return pubsub.ValidationReject
	case !g.host.gate.admits(author):
		return pubsub.ValidationIgnore
	case !g.limiter(author).AllowN(g.host.clock.Now(), 1):
		g.host.counts.gossipFast.Add(1)
		return pubsub.ValidationIgnore
	}
	return pubsub.ValidationAccept
}

// limiter returns what bounds an author's messages.
func (g *gossip) limiter(author peer.ID) *rate.Limiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	limits := &g.host.limits
	known := g.authors[author]
	if known == nil {
		if len(g.authors) >= 2*limits.Peers {
			g.forget(g.host.clock.Now())
		}
		known = rate.NewLimiter(rate.Limit(limits.AuthorRate), limits.AuthorBurst)
		g.authors[author] = known
	}
	return known
}

// forget drops authors that have rested, and all if those are too few.
func (g *gossip) forget(now time.Time) {
	for author, l := range g.authors {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(g.authors, author)
		}
	}
	if len(g.authors) >= g.host.limits.Peers {
		clear(g.authors)
	}
}

// listen hands a topic's messages to the handler.
func (g *gossip) listen(messages *pubsub.Subscription) {
	defer messages.Cancel()
	for {
		m, err := messages.Next(g.ctx)
		if err != nil {
			return
		}
		if m.GetFrom() != g.host.id {
			g.deliver(m)
		}
	}
}

// deliver has a message handled, now or once there is a handler. It never waits: a
// message for which there is no memory is dropped, as one that was lost on its way.
func (g *gossip) deliver(m *pubsub.Message) {
	h := g.host
	handler := h.onMessage.Load()
	size := int64(len(m.GetData()) + envelope)
	if handler == nil || !g.memory.TryAcquire(size) {
		h.counts.gossipDropped.Add(1)
		return
	}
	h.work.Go(func() {
		defer g.memory.Release(size)
		if g.handlers.Acquire(g.ctx, 1) != nil {
			return
		}
		defer g.handlers.Release(1)
		h.counts.heard.Add(1)
		(*handler)(h.ctx, nameOf(m.GetFrom()), m.GetData(), true)
	})
}

// Topics returns the topics that the host has joined, sorted.
func (h *Host) Topics() []string {
	var names []string
	for name := range h.gossip.topics {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Publish sends a message to everyone on a topic. It returns ErrUnknownTopic for a
// topic that is not among Topics, and ErrTooLarge above Limits.MaxGossip. A message
// may get lost on its way, and is lost for peers whose subscription has not come yet:
// see WaitTopicPeers.
func (h *Host) Publish(ctx context.Context, topic string, message []byte) error {
	joined, err := h.topic(topic)
	if err != nil {
		return err
	}
	if n := len(message); n == 0 || n > h.limits.MaxGossip {
		return fmt.Errorf("%w: the message has %d bytes, from 1 to %d", ErrTooLarge, n, h.limits.MaxGossip)
	}
	if h.ctx.Err() != nil {
		return ErrClosed
	}
	if err := joined.Publish(ctx, message); err != nil {
		return fmt.Errorf("p2p: publish on %s: %w", topic, err)
	}
	h.counts.published.Add(1)
	return nil
}

func (h *Host) topic(name string) (*pubsub.Topic, error) {
	joined := h.gossip.topics[name]
	if joined == nil {
		return nil, fmt.Errorf("%w: %q; this host has joined %q: see Options.Topics", ErrUnknownTopic, name, h.Topics())
	}
	return joined, nil
}

// TopicPeers returns the connected peers that are known to be on a topic, sorted. It
// returns ErrUnknownTopic as Publish does.
func (h *Host) TopicPeers(topic string) ([]PeerID, error) {
	joined, err := h.topic(topic)
	if err != nil {
		return nil, err
	}
	var names []PeerID
	for _, p := range joined.ListPeers() {
		names = append(names, nameOf(p))
	}
	slices.Sort(names)
	return names, nil
}

// WaitTopicPeers waits until at least n peers are known to be on a topic. It returns
// ErrUnknownTopic as Publish does, and ctx's error if that ends first.
func (h *Host) WaitTopicPeers(ctx context.Context, topic string, n int) error {
	joined, err := h.topic(topic)
	if err != nil {
		return err
	}
	// A subscription's event comes before or after the subscription counts, so events alone would be missed.
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		known := len(joined.ListPeers())
		if known >= n {
			return nil
		}
		select {
		case <-look.C:
		case <-h.ctx.Done():
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("p2p: %d of %d peers on topic %s: %w", known, n, topic, ctx.Err())
		}
	}
}
