package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/futura-run/futura/internal/connlimit"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
)

// peersFlags are how a head takes peers.
type peersFlags struct {
	listen    []string
	keyFile   string
	bootNodes []string
	discover  string
	allow     []string
	deny      []string
	anyone    bool
	b7s       bool
	strand    bool
	clients   bool
	verify    string
	keepLost  time.Duration
	manifests string
	url       string
	flags     *pflag.FlagSet // that these are of
}

func (f *peersFlags) add(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringSliceVar(&f.listen, "peers", nil,
		"take libp2p peers as workers at this multiaddr, such as /ip4/127.0.0.1/tcp/9527; may be repeated (default: off)")
	flags.StringVar(&f.keyFile, "peer-key", "",
		"a file with this head's libp2p key, made if it is missing (default: peer.key in the store's directory)")
	flags.StringSliceVar(&f.bootNodes, "boot-node", nil, "a multiaddr with /p2p/ID to stay connected to; may be repeated")
	flags.StringVar(&f.discover, "discover", "",
		"with --peers on /tcp without /ws: announce this head to workers of this group in the local network: "+
			"up to 15 of a-z, 0-9 and hyphens")
	flags.StringSliceVar(&f.allow, "allow-peer", nil,
		"the id of a peer that may connect, and whose name and labels count; a worker prints its own; may be repeated")
	flags.StringSliceVar(&f.deny, "deny-peer", nil, "the id of a peer that may not connect; may be repeated")
	flags.BoolVar(&f.anyone, "any-peer", false,
		"let everyone who reaches the head be a worker: on loopback, every user of the machine")
	flags.StringVar(&f.verify, "verify", "",
		"M/K: run each item on K peers, and let it count when M say the same (default: 1/1)")
	flags.DurationVar(&f.keepLost, "keep-lost", time.Hour, "how long futura peers lists a peer that went")
	flags.BoolVar(&f.clients, "peer-clients", false, "let peers that may connect ask for batches, without a token")
	flags.BoolVar(&f.b7s, "b7s-workers", false, "take nodes of b7s as workers for modules, which they install by HTTP")
	flags.BoolVar(&f.strand, "b7s-strands", false, "with --b7s-workers: also take nodes that spell chunks as strands")
	flags.StringVar(&f.manifests, "manifest-listen", "127.0.0.1:0", "with --b7s-workers: where modules are served")
	flags.StringVar(&f.url, "manifest-url", "", "with --b7s-workers: the URL of that for nodes (default: http://ADDRESS)")
}

// on reports whether the head takes peers.
func (f *peersFlags) on() bool { return f != nil && (len(f.listen) > 0 || len(f.bootNodes) > 0) }

// check refuses flags that contradict each other or would be ignored, and addresses that strangers reach: on loopback
// too, those are the other users of the machine.
func (f *peersFlags) check() error {
	switch {
	case !f.on():
		return f.refuse("--peers or --boot-node: without them this process takes no peers", "peer-key", "discover",
			"allow-peer", "deny-peer", "any-peer", "verify", "keep-lost", "peer-clients", "b7s-workers", "b7s-strands",
			"manifest-listen", "manifest-url")
	case len(f.listen) == 0 && f.discover != "":
		return f.refuse("--peers: it announces the address of that", "discover")
	case len(f.allow) > 0 && f.anyone:
		return usageError{errors.New("--any-peer and --allow-peer exclude each other: let everyone who reaches the head be " +
			"a worker, or name the peers that may")}
	case !f.b7s:
		if err := f.refuse("--b7s-workers: it is about nodes of b7s", "b7s-strands", "manifest-listen",
			"manifest-url"); err != nil {
			return err
		}
	}
	if len(f.allow) > 0 || f.anyone {
		return nil
	}
	for _, address := range f.listen {
		who := "everyone on this network"
		if isLoopback(address) {
			who = "every user of this machine"
		}
		return usageError{fmt.Errorf("--peers %s would let %s run this cluster's futures: name the peers with "+
			"--allow-peer ID, which a worker prints at its start, or let everyone be a worker with --any-peer", address, who)}
	}
	return nil
}

// refuse refuses the flags that are set, and would do nothing without what they need.
func (f *peersFlags) refuse(need string, names ...string) error {
	for _, name := range names {
		if flag := f.flags.Lookup(name); flag.Value.String() != flag.DefValue {
			return usageError{fmt.Errorf("--%s needs %s", name, need)}
		}
	}
	return nil
}

// verification returns how peers check each other.
func (f *peersFlags) verification() (v peerhead.Verify, err error) {
	if f.verify == "" {
		return v, nil
	}
	if n, err := fmt.Sscanf(f.verify+";", "%d/%d;", &v.Agree, &v.Peers); err != nil || n != 2 || v.Agree < 1 ||
		v.Peers < v.Agree || 2*v.Agree <= v.Peers {
		return v, usageError{fmt.Errorf("--verify %q: use M/K with M more than half of K, such as 2/3", f.verify)}
	}
	return v, nil
}

// isLoopback reports whether a multiaddr is reached from this machine alone.
func isLoopback(address string) bool {
	parts := strings.Split(address, "/")
	if len(parts) < 3 {
		return false
	}
	ip := net.ParseIP(parts[2])
	return ip != nil && ip.IsLoopback()
}

// peers is a head's side of peers while it runs.
type peers struct {
	*peerhead.Head
	host      *p2p.Host
	clients   atomic.Pointer[peerClients] // once the head answers them
	cancel    context.CancelFunc
	done      chan struct{} // closed when the head has ended, with err
	err       error
	manifests *http.Server
	key       *os.File // no other head has it
}

// startPeers takes peers, nil for none.
func (n *node) startPeers(ctx context.Context) (_ *peers, err error) {
	f := n.peersFlags
	if !f.on() {
		return nil, nil
	}
	p := &peers{done: make(chan struct{})}
	key, file, err := n.peerKey()
	if err != nil {
		return nil, err
	}
	p.key = file
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	o := p2p.Options{Key: key, Listen: f.listen, BootNodes: f.bootNodes, LocalDiscovery: f.discover,
		Version: version, Logger: n.log}
	if o.Listen == nil {
		o.Listen = []string{}
	}
	if o.Allow, err = peerIDs("--allow-peer", f.allow); err == nil {
		o.Deny, err = peerIDs("--deny-peer", f.deny)
	}
	if err != nil {
		return nil, err
	}
	p2p.LibraryLog(n.log.Handler())
	if p.host, err = p2p.Open(ctx, o); err != nil {
		return nil, usageError{err}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.host.Close())
		}
	}()
	secret := sha256.Sum256(append([]byte("futura head key 1\n"), key...))
	options := peerhead.Options{
		Cluster: n.client.Cluster(), Network: p.host, Key: secret[:], Name: string(p.host.ID()), Logger: n.log,
		Trusted: func(id p2p.PeerID) bool { return slices.Contains(o.Allow, id) }, AdmitStrand: f.strand,
		KeepLost: max(f.keepLost, 1),
	}
	if options.Verify, err = f.verification(); err != nil {
		return nil, err
	}
	if f.b7s {
		if options.Manifest, err = p.serveManifests(n, secret[:]); err != nil {
			return nil, err
		}
	}
	if f.clients {
		options.Execute = p.execute
	}
	if p.Head, err = peerhead.New(options); err != nil {
		return nil, err
	}
	return p, p.run(ctx)
}

// execute answers a client once the head can.
func (p *peers) execute(ctx context.Context, from p2p.PeerID, m *protocol.ExecuteBatch) *protocol.ExecuteBatchResponse {
	if c := p.clients.Load(); c != nil {
		return c.execute(ctx, from, m)
	}
	return refused(protocol.CodeUnavailable, "the head is starting: try again")
}

// run takes peers until stop.
func (p *peers) run(ctx context.Context) error {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	go func() {
		p.err = p.Run(running)
		close(p.done)
	}()
	p.Serve(p.host)
	if err := p.host.Start(); err != nil {
		cancel()
		<-p.done
		return usageError{err}
	}
	return nil
}

// serveManifests has nodes of b7s install modules from here.
func (p *peers) serveManifests(n *node, key []byte) (func(cid string) string, error) {
	f := n.peersFlags
	listener, err := net.Listen("tcp", f.manifests)
	if err != nil {
		return nil, usageError{fmt.Errorf("%w: name another address with --manifest-listen", err)}
	}
	m := peerhead.NewManifests(n.client.Cluster(), key)
	limited := connlimit.New(listener, connlimit.Options{Logger: n.log})
	p.manifests = &http.Server{Handler: m, ReadTimeout: 10 * time.Second, WriteTimeout: 5 * time.Minute,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	go func() {
		if err := p.manifests.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
			n.log.Error("modules are not served to nodes of b7s any more", "error", err)
		}
	}()
	base := strings.TrimSuffix(f.url, "/")
	if base == "" {
		base = "http://" + listener.Addr().String()
	}
	return func(cid string) string { return base + m.Path(cid) }, nil
}

// ended is closed when the head has ended: never if there is none.
func (p *peers) ended() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.done
}

// stop lets what peers run end, and closes the host.
func (p *peers) stop() error {
	if p == nil {
		return nil
	}
	p.cancel()
	<-p.done
	err := errors.Join(p.err, p.host.Close(), p.key.Close())
	if p.manifests != nil {
		err = errors.Join(err, p.manifests.Close())
	}
	return err
}

// addresses are where peers reach the head.
func (p *peers) addresses() []string {
	if p == nil {
		return nil
	}
	return p.host.Addrs()
}

// peerKey returns the head's private key, and its file, which no other head has until it is closed.
func (n *node) peerKey() ([]byte, *os.File, error) {
	file := n.peersFlags.keyFile
	if file == "" {
		dir, here := embeddedDir(n.app.store)
		if !here {
			return nil, nil, usageError{errors.New("--peers needs --peer-key FILE where the store is not a directory: a head " +
				"keeps its key, so that peers know it again")}
		}
		file = filepath.Join(dir, "peer.key")
	}
	return loadPeerKey(file, "head")
}

// loadPeerKey returns the private key in a file, which is made if it is missing, and the file, which no other head
// or worker of this machine has until it is closed: two with one key would be one peer for others.
func loadPeerKey(file, who string) ([]byte, *os.File, error) {
	key, err := p2p.LoadKey(file)
	if err != nil {
		return nil, nil, usageError{err}
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	if err = lockFile(f); errors.Is(err, errWritten) {
		err = fmt.Errorf("another %s runs with the key %s: stop that one, or give this one a key of its own with "+
			"--peer-key FILE", who, file)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return key, f, nil
}

func peerIDs(flag string, texts []string) (ids []p2p.PeerID, err error) {
	for _, text := range texts {
		id, err := p2p.ParsePeerID(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", flag, err)}
		}
		ids = append(ids, id)
	}
	return ids, nil
}
