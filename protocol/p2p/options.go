package p2p

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/connlimit"
	wire "github.com/futura-run/futura/protocol"
)

// Protocols that a host speaks.
const (
	// ProtocolB7s is b7s's: one message per stream, up to its end or the first newline,
	// without an answer.
	ProtocolB7s = wire.StreamB7S
	// ProtocolFutura is Futura's own: one message up to the end of the sender's side,
	// answered with exactly one message on the same stream.
	ProtocolFutura = wire.StreamFutura
	// TopicGeneral is the topic that all b7s nodes join.
	TopicGeneral = wire.TopicGeneral
)

// Options are the options of a host. All fields may be left out.
type Options struct {
	// Key is the host's private key, as NewKey returns it. KeyFile names a file with
	// one, as LoadKey reads and makes it. With neither, the host has a new key, and so
	// a new id, each time.
	Key     []byte
	KeyFile string
	// Listen are the multiaddrs to listen on, such as /ip4/0.0.0.0/tcp/9527 or
	// /ip4/127.0.0.1/tcp/0/ws; port 0 is a free port. Nil is DefaultListen: loopback
	// alone. An empty list that is not nil means that the host only dials.
	Listen []string
	// BootNodes are multiaddrs with /p2p/ and a peer's id at their end. The host dials
	// them from Start on, and again whenever it is not connected to them.
	BootNodes []string
	// Allow are the peers that may connect, or be dialled; nil allows all. Deny are
	// those that may not, whatever Allow says. Both hold for published messages too,
	// whoever relays them.
	Allow, Deny []PeerID
	// Topics are joined in addition to TopicGeneral, without which NoGeneral leaves the
	// host.
	Topics    []string
	NoGeneral bool
	// LocalDiscovery names a group, such as "futura": the host looks for others of the group
	// in the local network, by multicast DNS, and connects to them. If it listens it
	// announces itself too; others reach it by addresses that are not loopback. Those with
	// /ws are left out, so a host that is to be found listens on one without it. A host that
	// can't be announced, such as one whose network is not up yet, warns of that once and
	// tries again about every ten seconds. Within that time it announces changed addresses.
	// Names have up to 15 letters a to z, digits and hyphens, and are no secret: Allow says
	// who may connect. Nothing is announced or looked for without it.
	LocalDiscovery string
	// Version is announced to peers, as futura/<version>. The default is "dev".
	Version string
	// Limits bound what peers can make the host hold. Zero fields have defaults.
	Limits Limits
	// Redial is how long the host waits before it dials a boot node again after a
	// failure: at first RedialMin, then twice as long each time up to RedialMax, with a
	// random fifth more or less. The defaults are 500 milliseconds and 30 seconds.
	RedialMin, RedialMax time.Duration
	// Clock is that of rates and redials, for tests of this module. The default is the
	// machine's. Deadlines of streams go by the machine's in any case.
	Clock clock.Clock
	// Logger takes what the host has to say. The default drops it.
	Logger *slog.Logger
}

// DefaultListen is where a host listens that was not told otherwise.
const DefaultListen = "/ip4/127.0.0.1/tcp/0"

// Limits bound what peers can make a host hold or do. Zero fields stand for the
// defaults of DefaultLimits.
type Limits struct {
	// Peers are connected at most, with PeerConns connections each. Above nine tenths of
	// Peers the host closes connections that have idled longest; boot nodes are spared. The
	// default is no more than a quarter of the files that the process may have open.
	Peers, PeerConns int
	// Streams are open at most in each direction, PeerStreams with one peer.
	Streams, PeerStreams int
	// Buffers bounds the bytes of receive buffers of all connections, and PeerBuffers
	// those of one peer.
	Buffers, PeerBuffers int64
	// MaxMessage is the size of a message and an answer, in bytes.
	MaxMessage int
	// Memory bounds the bytes of messages that are being received or handled, and
	// PeerMemory those of one peer, both at least MaxMessage. 32 KiB of each message are not
	// counted: streams bound those.
	Memory, PeerMemory int64
	// Handlers run at once, PeerHandlers of them for one peer.
	Handlers, PeerHandlers int
	// Blobs are served at once, and as many fetched, PeerBlobs of them each for one peer.
	Blobs, PeerBlobs int
	// PeerRate is how many messages per second are taken from a peer on average, and
	// PeerBurst how many at once. Further ones wait. As many published ones are looked at,
	// whoever wrote them; further ones of those are dropped.
	PeerRate  float64
	PeerBurst int
	// MaxGossip is the size of a published message, in bytes.
	MaxGossip int
	// GossipMemory bounds the bytes of published messages that wait for a handler, each with
	// 4 KiB beside its own. It is at least what one of MaxGossip takes.
	GossipMemory int64
	// GossipHandlers run at once for published messages.
	GossipHandlers int
	// AuthorRate is how many published messages per second are taken from an author on
	// average, and AuthorBurst how many at once. Further ones are dropped.
	AuthorRate  float64
	AuthorBurst int
	// DialTimeout is how long a connection may take to be made, MessageTimeout how
	// long a message may take beside its bytes, at MinRate bytes per second.
	DialTimeout, MessageTimeout time.Duration
	MinRate                     int64
	// AnswerTimeout is how long the handler of a call may take.
	AnswerTimeout time.Duration
	// ProtocolTimeout is how long a connected peer may take to announce a protocol that
	// a message needs. b7s's nodes announce theirs late.
	ProtocolTimeout time.Duration
}

// DefaultLimits are for a head with a thousand workers.
func DefaultLimits() Limits {
	return Limits{
		Peers: 2048, PeerConns: 4,
		Streams: 16384, PeerStreams: 128,
		Buffers: 2 << 30, PeerBuffers: 64 << 20,
		MaxMessage: 16 << 20, Memory: 512 << 20, PeerMemory: 48 << 20,
		Handlers: 256, PeerHandlers: 16,
		Blobs: 64, PeerBlobs: 8,
		PeerRate: 500, PeerBurst: 1000,
		MaxGossip: 1<<20 - envelope, GossipMemory: 32 << 20, GossipHandlers: 16,
		AuthorRate: 50, AuthorBurst: 200,
		DialTimeout: 10 * time.Second, MessageTimeout: 15 * time.Second, MinRate: 64 << 10,
		AnswerTimeout: time.Minute, ProtocolTimeout: 3 * time.Second,
	}
}

// peersWithin is how many peers a process has by default that may have so many files open:
// its store and others who reach it need some of them too.
func peersWithin(descriptors int) int { return min(DefaultLimits().Peers, max(1, descriptors/4)) }

// number is what limits are made of.
type number interface {
	~int | ~int64 | ~float64
}

func orDefault[T number](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// complete returns the limits with their defaults.
func (l Limits) complete() (Limits, error) {
	d := DefaultLimits()
	d.Peers = peersWithin(connlimit.Descriptors())
	for _, f := range l.counts(&d) {
		orDefault(f.value, *f.standard)
	}
	for _, f := range l.sizes(&d) {
		orDefault(f.value, *f.standard)
	}
	for _, f := range l.times(&d) {
		orDefault(f.value, *f.standard)
	}
	orDefault(&l.PeerRate, d.PeerRate)
	orDefault(&l.AuthorRate, d.AuthorRate)
	return l, l.check()
}

func (l *Limits) check() error {
	for _, f := range l.counts(l) {
		if *f.value < 1 {
			return fmt.Errorf("%w: Limits.%s is %d, at least 1", ErrOptions, f.name, *f.value)
		}
	}
	for _, f := range l.sizes(l) {
		if *f.value < 1 {
			return fmt.Errorf("%w: Limits.%s is %d, at least 1", ErrOptions, f.name, *f.value)
		}
	}
	for _, f := range l.times(l) {
		if *f.value < 0 {
			return fmt.Errorf("%w: Limits.%s is %v, at least 0", ErrOptions, f.name, *f.value)
		}
	}
	if !(l.PeerRate > 0) || !(l.AuthorRate > 0) {
		return fmt.Errorf("%w: Limits.PeerRate and Limits.AuthorRate must be above 0", ErrOptions)
	}
	if l.PeerMemory < int64(l.MaxMessage) || l.Memory < l.PeerMemory {
		return fmt.Errorf("%w: Limits.PeerMemory is %d and Limits.Memory %d; MaxMessage of %d is the least for both, and no "+
			"peer may have more than all together", ErrOptions, l.PeerMemory, l.Memory, l.MaxMessage)
	}
	if least := int64(l.MaxGossip) + envelope; l.GossipMemory < least {
		return fmt.Errorf("%w: Limits.GossipMemory is %d; one message of MaxGossip, which is %d, takes %d", ErrOptions,
			l.GossipMemory, l.MaxGossip, least)
	}
	if least := int64(l.PeerStreams) * window; l.PeerBuffers < least {
		return fmt.Errorf("%w: Limits.PeerBuffers is %d; PeerStreams of %d want at least %d", ErrOptions, l.PeerBuffers,
			l.PeerStreams, least)
	}
	return nil
}

// field is one of the limits, with its default.
type field[T number] struct {
	name            string
	value, standard *T
}

func (l *Limits) counts(d *Limits) []field[int] {
	return []field[int]{
		{"Peers", &l.Peers, &d.Peers}, {"PeerConns", &l.PeerConns, &d.PeerConns},
		{"Streams", &l.Streams, &d.Streams}, {"PeerStreams", &l.PeerStreams, &d.PeerStreams},
		{"MaxMessage", &l.MaxMessage, &d.MaxMessage}, {"Handlers", &l.Handlers, &d.Handlers},
		{"PeerHandlers", &l.PeerHandlers, &d.PeerHandlers}, {"PeerBurst", &l.PeerBurst, &d.PeerBurst},
		{"MaxGossip", &l.MaxGossip, &d.MaxGossip}, {"GossipHandlers", &l.GossipHandlers, &d.GossipHandlers},
		{"Blobs", &l.Blobs, &d.Blobs}, {"PeerBlobs", &l.PeerBlobs, &d.PeerBlobs},
		{"AuthorBurst", &l.AuthorBurst, &d.AuthorBurst},
	}
}

func (l *Limits) sizes(d *Limits) []field[int64] {
	return []field[int64]{
		{"Buffers", &l.Buffers, &d.Buffers}, {"PeerBuffers", &l.PeerBuffers, &d.PeerBuffers},
		{"Memory", &l.Memory, &d.Memory}, {"PeerMemory", &l.PeerMemory, &d.PeerMemory},
		{"GossipMemory", &l.GossipMemory, &d.GossipMemory}, {"MinRate", &l.MinRate, &d.MinRate},
	}
}

func (l *Limits) times(d *Limits) []field[time.Duration] {
	return []field[time.Duration]{
		{"DialTimeout", &l.DialTimeout, &d.DialTimeout}, {"MessageTimeout", &l.MessageTimeout, &d.MessageTimeout},
		{"AnswerTimeout", &l.AnswerTimeout, &d.AnswerTimeout},
		{"ProtocolTimeout", &l.ProtocolTimeout, &d.ProtocolTimeout},
	}
}
