package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/dashboard"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/internal/console"
	"github.com/futura-run/futura/protocol/peerhead"
)

// stopTime bounds the end of what a process serves.
const stopTime = 10 * time.Second

// node is a process that serves a store.
type node struct {
	app    *app
	db     kv.Database
	client *futures.Client
	log    *slog.Logger
	token  string
	listen string
	// certificate is that of the server, nil for none.
	certificate *certificate
	// alone is set for a head without a worker.
	alone bool
	// drain is how long requests may go on once it stops.
	drain time.Duration
	// accessLog is set if each request has a line in the log.
	accessLog bool
	// listenFlag is the flag that set it.
	listenFlag string
	// tokens are those of HTTP requests: named ones, whose file has no secrets, and the one of tokenFile if there is
	// that. open is set if none is needed.
	tokens           *stack.Tokens
	open             bool
	named, tokenFile string
	// batches say how head is made, which drives batches.
	batches    *batchStoreFlags
	peersFlags *peersFlags
	peers      *peers
	asks       atomic.Pointer[peerhead.Head] // for nodes of b7s with labels, once it takes peers
	head       *runningHead
	checker    *checker
	// here takes the endpoint away that commands of this user find; nil without one.
	here func() error
	// unannounce ends the tries to write the endpoint into the store's directory; nil if it is there.
	unannounce func()
	// doorListen is where the store is served over TCP, if anywhere.
	doorListen string
}

// want has nodes of b7s asked for labels that a batch or an execution requires.
func (n *node) want(function string, labels map[string]string) {
	if h := n.asks.Load(); h != nil {
		h.Want(function, labels)
	}
}

// run serves until ctx ends or a part fails, with a worker unless f is nil.
func (n *node) run(ctx context.Context, f *workerFlags) error {
	listener, err := net.Listen("tcp", n.listen)
	if err != nil {
		return usageError{fmt.Errorf("%w: name another address with %s, or 127.0.0.1:0 for a free port",
			err, n.listenFlag)}
	}
	if n.head, err = n.batches.startHead(ctx, n.client, n.log, n.want); err != nil {
		return errors.Join(err, listener.Close())
	}
	w, err := n.startWorker(ctx, f)
	if err != nil {
		return errors.Join(err, n.head.stop(), listener.Close())
	}
	if n.peers, err = n.startPeers(ctx); err != nil {
		return errors.Join(err, w.stop(), n.head.stop(), listener.Close())
	}
	if n.peers != nil {
		n.asks.Store(n.peers.Head)
	}
	n.checker = &checker{log: n.log}
	server, served := n.serve(listener, w)
	d, err := n.openDoor(ctx)
	if err == nil {
		err = n.announce(listener, d, w)
	}
	if err == nil {
		select {
		case <-ctx.Done():
			n.log.Info("stopping")
		case <-w.ended():
		case <-n.head.done:
		case <-n.peers.ended():
		case <-n.storeFailed():
		case err = <-served:
		case err = <-d.failed:
		}
	}
	// Requests are answered while the worker drains, those that wait at once.
	server.stopping()
	err = errors.Join(err, n.head.stop(), n.peers.stop(), w.stop(), n.shutDown(server))
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	return errors.Join(err, n.checker.close(stopping), d.close(), n.leave())
}

// shutDown waits for the requests in progress, and cuts off those that take too long.
func (n *node) shutDown(server *httpServer) error {
	draining, cancel := context.WithTimeout(context.Background(), n.drain)
	defer cancel()
	err := server.Shutdown(draining)
	if errors.Is(err, context.DeadlineExceeded) {
		n.log.Warn("requests that took too long were cut off", "after", n.drain)
		return nil
	}
	return err
}

// storeFailed is closed when a store of this process has failed: it can't be used
// until another process opens it.
func (n *node) storeFailed() <-chan struct{} {
	if s, ok := n.db.(interface{ Failed() <-chan struct{} }); ok {
		return s.Failed()
	}
	return nil
}

// leave takes away what announce left for others.
func (n *node) leave() (err error) {
	if n.here != nil {
		err = n.here()
	}
	if n.unannounce != nil {
		n.unannounce()
	}
	if dir, ok := n.ownDir(); ok {
		err = errors.Join(err, removeEndpoint(dir))
	}
	return err
}

// leaveHere leaves the endpoint for commands of this user. Where there is no place for it, they
// name the head.
func (n *node) leaveHere(e *endpoint) {
	h := &headHere{endpoint: *e, Started: time.Now()}
	var err error
	if n.here, err = leaveHere(h, n.app.store, e.Store, e.StoreTCP); err != nil {
		n.log.Debug("commands need --url: the head can't leave its address for them", "error", err)
	}
}

// ownDir is the directory of the store, if this process is the one that serves it over HTTP: a
// dev, or a head that has the store open.
func (n *node) ownDir() (string, bool) {
	dir, ok := embeddedDir(n.app.store)
	if store, isShared := n.db.(*sharing.Database); isShared {
		return dir, ok && (!n.alone || store.IsOwner())
	}
	return dir, ok && kv.TraitsOf(n.db).Exclusive
}

// nameForOthers is how other processes here name the store, from any directory. A store that processes share
// they name by its own directory: they still have it when this process ends, and not its socket. One that they
// need no socket for has the same name for all.
func (n *node) nameForOthers(socket string) string {
	dir, ok := embeddedDir(n.app.store)
	if _, isShared := n.db.(*sharing.Database); !ok || !isShared {
		return cmp.Or(socket, n.app.store)
	}
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return "embedded:" + dir
}

// httpServer is the server and what ends the waiting of its requests.
type httpServer struct {
	*stack.Server
	stopping context.CancelFunc
}

// serve answers HTTP requests. An error that ends it comes from served.
func (n *node) serve(listener net.Listener, w *running) (*httpServer, <-chan error) {
	waiting, stopping := context.WithCancel(context.Background())
	options := rest.Options{Client: n.client, BatchAnswer: rest.Answer(n.batches.answer), Stack: stack.Options{
		Tokens: n.tokens, Hosts: hostsOf(listener.Addr()), Collectors: n.collectors(w), Stopping: waiting.Done(),
		Version: version, Logger: n.log, AccessLog: n.accessLog, Trace: n.app.traces.requests(),
	}}
	options.PrivateSources, options.CheckModule = n.batches.privateSources, n.checker.check
	options.Choose = n.head.Choose
	if n.peers != nil {
		options.Peers, options.OnAttributes = n.peers.list, n.want
	}
	if w != nil {
		options.CheckModule = w.executor.Check
	}
	routes := rest.New(n.app.traces.head(n.head), options)
	dashboard.Register(routes)
	if n.peers != nil {
		token := n.token
		if token == "" && n.tokens != nil { // clients among the peers need none of their own
			token = stack.NewSecret()
			n.tokens.Add("peers", token, stack.Submit)
		}
		n.peers.clients.Store(&peerClients{handler: routes.Handler(), host: listener.Addr().String(), token: token})
	}
	server := routes.Server(n.certificate.config())
	served := make(chan error, 1)
	go func() {
		if err := server.Serve(listener); err != nil {
			served <- err
		}
	}()
	return &httpServer{server, stopping}, served
}

// hostsOf are the names that requests to a loopback address may use. Elsewhere
// the server does not know its names.
func hostsOf(addr net.Addr) []string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		names := []string{"localhost", "127.0.0.1", "::1"}
		if ip := tcp.IP.String(); !slices.Contains(names, ip) {
			names = append(names, ip)
		}
		return names
	}
	return nil
}

// announce says where everything is, to people and to other processes.
func (n *node) announce(listener net.Listener, d *door, w *running) error {
	scheme := "http"
	if n.certificate != nil {
		scheme = "https"
	}
	e := endpoint{
		URL: scheme + "://" + listener.Addr().String(), Token: n.token, PID: os.Getpid(), Store: d.store, StoreTCP: d.tcp,
		Cluster: n.app.cluster, Peers: n.peers.addresses(),
	}
	var durable bool
	if e.Batches, durable = n.describeBatches(); !durable {
		n.log.Warn("batches are kept in memory and lost when this process ends", "store", e.Batches)
	}
	var missing []string
	if w != nil {
		e.Walls, missing = w.executor.Walls()
	}
	n.leaveHere(&e)
	if dir, ok := n.ownDir(); ok {
		if err := n.announceIn(dir, &e); err != nil {
			return err
		}
	}
	if n.app.json {
		return n.app.printJSON(&e)
	}
	return n.print(&e, w, missing)
}

// page is where a browser finds the pages. With a terminal that is a link that logs in: elsewhere it would
// stay in logs.
func (n *node) page(e *endpoint) string {
	link := ""
	if n.tokens != nil && console.Terminal(n.app.out) != nil {
		link = n.tokens.NewLink(n.token)
	}
	if link == "" {
		return e.URL + dashboard.Path
	}
	return e.URL + dashboard.LoginPath + link
}

// describeToken says where a token is, and which flag of a command has it.
func (n *node) describeToken() (where, flag string) {
	switch {
	case n.open:
		return "none needed", ""
	case n.tokenFile == "":
		return "one that futura token create has added to " + n.named, " --token-file FILE"
	}
	whole, err := filepath.Abs(n.tokenFile)
	if err != nil {
		whole = n.tokenFile
	}
	return "in " + n.tokenFile, " --token-file " + whole
}

func (n *node) print(e *endpoint, w *running, missing []string) error {
	token, withToken := n.describeToken()
	lines := pairs{
		{"  store", n.app.store}, {"  cluster", n.app.cluster}, {"  http", e.URL}, {"  token", token},
		{"  page", n.page(e)}, {"  metrics", e.URL + "/metrics"}, {"  API", e.URL + "/docs"},
		{"  batches", "in " + e.Batches},
	}
	lines.add(e.Walls != nil || missing != nil, "  functions", "%s", describeWalls(e.Walls, missing))
	if w != nil {
		lines.add(true, "  timeout", "%s", describeTimeout(w.ModuleTimeout()))
	}
	for i, address := range e.Peers {
		name := ""
		if i == 0 {
			name = "  peers"
		}
		lines.add(true, name, "%s", address)
	}
	lines.add(e.Store != "", "  others", "--store %s", n.nameForOthers(e.Store))
	secured := ""
	if n.certificate != nil {
		secured = "&ca=FILE"
	}
	lines.add(e.StoreTCP != "", "", "--store '%s?token-file=FILE%s'", e.StoreTCP, secured)
	store := " --store " + n.nameForOthers(e.Store)
	what, try := "A cluster without a worker", "  futura worker"+store
	switch {
	case n.alone:
		what = "A head for batches"
		try = "  futura batch submit --url " + e.URL + withToken + " --function NAME --file arguments.csv --wait"
	case n.hasNoSocket(e):
		try = "  curl " + e.URL + "/docs"
	}
	if w != nil {
		if n.app.store == defaultStore {
			store = ""
		}
		what, try = "A cluster", "  futura function put FILE.wasm --alias NAME"+store+"\n"+
			"  futura submit wasm:NAME --args hello --wait"+store
	}
	fmt.Fprintln(n.app.out, what+" is running here; stop it with Ctrl-C.")
	if err := n.app.table(lines); err != nil {
		return err
	}
	_, err := fmt.Fprintln(n.app.out, "Try, in another terminal:\n"+try)
	return err
}
