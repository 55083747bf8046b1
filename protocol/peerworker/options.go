package peerworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/workers"
)

// ErrOptions is returned by New for options that contradict each other or are out
// of their range.
var ErrOptions = errors.New("peerworker: unusable options")

// Options of a worker. Only Heads or AllowAnyHead is required.
type Options struct {
	// Heads are the addresses of heads: multiaddrs that end in /p2p/ and the id of the
	// head, such as /ip4/10.0.0.1/tcp/9527/p2p/12D3KooW…. A head may have several. Only
	// these heads may give orders.
	Heads []string
	// Discover names a group of hosts in the local network, as p2p.Options.LocalDiscovery
	// says. Heads of it are found by their ids, and dialled at the addresses that they
	// announce: then an entry of Heads may be /p2p/ and an id alone. With AllowAnyHead the
	// worker serves every head of the group, whoever that is. Defaults to none.
	Discover string
	// AllowAnyHead lets every peer that reaches the worker give orders and install
	// functions. Defaults to false.
	AllowAnyHead bool
	// Key is the private key that makes the worker's id, as p2p.NewKey returns it, and
	// KeyFile a file with one, as p2p.LoadKey reads and makes it. With neither, the worker
	// has a new id each time.
	Key     []byte
	KeyFile string
	// Listen are multiaddrs to listen on, such as /ip4/0.0.0.0/tcp/9527, for heads that
	// dial their workers. Defaults to none: the worker dials its heads.
	Listen []string
	// Network carries the messages instead of a host of package p2p, with Key, KeyFile and
	// Listen left out. Run closes it.
	Network Network
	// State is the directory of the worker's own store, which one process at a time
	// may use. Orders, and results that no head has acknowledged, are in it across a restart.
	// Defaults to none: memory.
	State string

	// Name is shown to people. Defaults to none.
	Name string
	// Version is that of the program, for people. Defaults to none.
	Version string
	// Labels are those that futures may require. Default to none.
	Labels map[string]string
	// Slots, CPU, RAM and GPU are what workers.Options say.
	Slots         int
	CPU, RAM, GPU int64
	// Policy limits what functions get, as workers.Options say.
	Policy layout.Policy
	// Modules runs WASM modules, such as a wasm.Executor. Defaults to none: the worker
	// takes orders for Go functions alone.
	Modules workers.ModuleRunner
	// ModuleTimeout is the timeout of modules whose futures have none, as workers.Options
	// say.
	ModuleTimeout time.Duration
	// Middleware is around every call of a function, and StreamsOutput says that it passes on
	// what functions return, as workers.Options say.
	Middleware    []workers.Middleware
	StreamsOutput bool

	// MaxChunk is how many items a chunk may have, and MaxItems at most. Defaults to 1,000. A chunk
	// of a head of b7s may have MaxItems.
	MaxChunk int
	// MaxChunks, MaxItems and MaxBytes are the most chunks, items, and bytes of
	// arguments and results that the worker has at a time, until they are
	// acknowledged. Beyond them it takes no order. Default to 256, 50,000 and 256 MiB. What
	// runs may exceed MaxBytes by its results; nothing begins until heads have some of them.
	// Heads share them, and have up to twice as much together; see the package comment.
	MaxChunks, MaxItems int
	MaxBytes            int64
	// ModuleCache is how many bytes of modules are kept: beyond it those that no chunk uses are
	// removed, the longest ago used first, and first of the head that has the most. Chunks may use
	// more: a module waits for room then, unless its head has less than its share. Defaults to 512 MiB.
	ModuleCache int64
	// CheckModule returns an error for a module that can't run, before it is installed for
	// heads of b7s. Defaults to none: its runs fail then.
	CheckModule func(ctx context.Context, cid string, module []byte) error
	// PrivateSources lets heads of b7s install functions from private addresses and
	// over HTTP without TLS. Defaults to false.
	PrivateSources bool

	// DrainTimeout is how long running functions may go on after Run's context has
	// ended. Defaults to 25 s. Up to 5 s more, results are delivered.
	DrainTimeout time.Duration
	// RedialMin and RedialMax bound the wait before a head is dialled again, which
	// doubles with each failure. Default to 500 ms and 30 s.
	RedialMin, RedialMax time.Duration
	// Transfers is told now and then of large values on their way, and at their end. It
	// must not block. Defaults to none; the log has some of it.
	Transfers func(Transfer)
	// Logger receives what goes wrong. Defaults to none.
	Logger *slog.Logger

	// Seam is for packages of this module; others can't construct one.
	Seam *seam.PeerWorker

	clock clock.Clock
}

// Defaults of Options.
const (
	defaultMaxChunk    = 1000
	defaultMaxChunks   = 256
	defaultMaxItems    = 50_000
	defaultMaxBytes    = 256 << 20
	defaultModuleCache = 512 << 20
	defaultDrain       = 25 * time.Second
	defaultRedialMin   = 500 * time.Millisecond
	defaultRedialMax   = 30 * time.Second
)

// complete returns the options with their defaults.
func (o Options) complete() (Options, error) {
	numbers := []struct {
		name            string
		value, standard int64
		set             func(int64)
	}{
		{"MaxChunk", int64(o.MaxChunk), defaultMaxChunk, func(n int64) { o.MaxChunk = int(n) }},
		{"MaxChunks", int64(o.MaxChunks), defaultMaxChunks, func(n int64) { o.MaxChunks = int(n) }},
		{"MaxItems", int64(o.MaxItems), defaultMaxItems, func(n int64) { o.MaxItems = int(n) }},
		{"MaxBytes", o.MaxBytes, defaultMaxBytes, func(n int64) { o.MaxBytes = n }},
		{"ModuleCache", o.ModuleCache, defaultModuleCache, func(n int64) { o.ModuleCache = n }},
		{"DrainTimeout", int64(o.DrainTimeout), int64(defaultDrain), func(n int64) { o.DrainTimeout = time.Duration(n) }},
		{"RedialMin", int64(o.RedialMin), int64(defaultRedialMin), func(n int64) { o.RedialMin = time.Duration(n) }},
		{"RedialMax", int64(o.RedialMax), int64(defaultRedialMax), func(n int64) { o.RedialMax = time.Duration(n) }},
	}
	for _, n := range numbers {
		if n.value < 0 {
			return o, fmt.Errorf("%w: %s is %d: at least 0, which stands for the default", ErrOptions, n.name, n.value)
		}
		if n.value == 0 {
			n.set(n.standard)
		}
	}
	if len(o.Heads) == 0 && !o.AllowAnyHead {
		return o, fmt.Errorf("%w: no head: name one in Heads, or set AllowAnyHead", ErrOptions)
	}
	if o.Network != nil && (o.Key != nil || o.KeyFile != "" || o.Listen != nil || o.Discover != "") {
		return o, fmt.Errorf("%w: Key, KeyFile, Listen and Discover are not for a Network of one's own", ErrOptions)
	}
	if o.AllowAnyHead && len(o.Heads) == 0 && o.Network == nil && len(o.Listen) == 0 && o.Discover == "" {
		return o, fmt.Errorf("%w: no head to dial and no address to listen on: no head can reach the worker", ErrOptions)
	}
	o.MaxChunk = min(o.MaxChunk, o.MaxItems) // heads would send again and again what never has room
	o.RedialMax = max(o.RedialMax, o.RedialMin)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.clock == nil {
		o.clock = clock.Real{}
	}
	return o, nil
}

// headAddress is where a head can be dialled.
type headAddress struct {
	peer      string
	addresses []string
}

// parseHeads returns the heads with all addresses of each.
// Those that are discovered need none.
func parseHeads(addresses []string, discover bool) ([]headAddress, error) {
	var heads []headAddress
	for _, address := range addresses {
		at := strings.LastIndex(address, "/p2p/")
		peer := ""
		if at > 0 || at == 0 && discover {
			peer = address[at+len("/p2p/"):]
		}
		if peer == "" || strings.Contains(peer, "/") {
			return nil, fmt.Errorf("%w: the head %.200q: use an address that ends in /p2p/ and the id of the head, "+
				"such as /ip4/10.0.0.1/tcp/9527/p2p/12D3KooW…", ErrOptions, address)
		}
		i := slices.IndexFunc(heads, func(h headAddress) bool { return h.peer == peer })
		if i < 0 {
			i = len(heads)
			heads = append(heads, headAddress{peer: peer})
		}
		if at > 0 {
			heads[i].addresses = append(heads[i].addresses, address)
		}
	}
	return heads, nil
}
