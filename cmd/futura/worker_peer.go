package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerworker"
	"github.com/futura-run/futura/workers/wasm"
)

// peerWorkerFlags are how a worker reaches heads instead of a store.
type peerWorkerFlags struct {
	heads    []string
	discover string
	anyHead  bool
	keyFile  string
	listen   []string
	state    string
	private  bool
}

func (f *peerWorkerFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.heads, "head", nil,
		"serve the head at this multiaddr with /p2p/ID at its end, instead of a store; may be repeated")
	flags.StringVar(&f.discover, "discover", "",
		"with --head: find heads of this group in the local network, which --head /p2p/ID then names without an address")
	flags.BoolVar(&f.anyHead, "allow-any-head", false,
		"let every peer that reaches --peer-listen, or is found by --discover, give orders")
	flags.StringVar(&f.keyFile, "peer-key", "",
		"with --head: a file with this worker's libp2p key, made if missing (default: peer.key in --state, or a new key)")
	flags.StringSliceVar(&f.listen, "peer-listen", nil,
		"with --head: a multiaddr where heads reach this worker, such as /ip4/0.0.0.0/tcp/9528 (default: it only dials)")
	flags.StringVar(&f.state, "state", "",
		"with --head: a directory for results that heads have not taken, kept across a restart (default: memory)")
	flags.BoolVar(&f.private, "install-private", false,
		"with --head: let heads of b7s install from private addresses and over plain HTTP")
}

// on reports whether the worker serves heads.
func (f *peerWorkerFlags) on() bool { return len(f.heads) > 0 || f.anyHead }

// check refuses flags that don't go together.
func (f *peerWorkerFlags) check(flags *pflag.FlagSet) error {
	if !f.on() {
		for _, name := range []string{"peer-key", "peer-listen", "state", "install-private", "discover"} {
			if flags.Changed(name) {
				return usageError{fmt.Errorf("--%s needs --head, or --allow-any-head: name the head that this worker is to serve",
					name)}
			}
		}
		return nil
	}
	for _, name := range []string{"store", "cluster"} {
		if flags.Changed(name) {
			return usageError{fmt.Errorf("--%s and --head: a worker that serves heads has no access to their store; "+
				"leave out one of them", name)}
		}
	}
	for _, name := range []string{
		"queue", "address", "no-hints", "object-memory", "object-disk", "object-above", "object-dir", "object-listen",
		"object-plain-text",
	} {
		if flags.Changed(name) {
			return usageError{fmt.Errorf("--%s and --head: the head decides that; leave out one of them", name)}
		}
	}
	for _, head := range f.heads {
		if !strings.Contains(head, "/p2p/") {
			return usageError{fmt.Errorf("--head %q: use a multiaddr that ends in the head's id, such as "+
				"/ip4/10.0.0.1/tcp/9527/p2p/12D3KooW...: futura head --peers says its own", head)}
		}
		if strings.HasPrefix(head, "/p2p/") && f.discover == "" {
			return usageError{fmt.Errorf("--head %q has no address: name one, or the group of the head by --discover", head)}
		}
	}
	if f.anyHead && len(f.heads) == 0 && len(f.listen) == 0 && f.discover == "" {
		return usageError{errors.New(
			"--allow-any-head needs --peer-listen, --discover or --head: else no head reaches this worker")}
	}
	return nil
}

// key returns the worker's private key, nil for a new one, and its file, which no other worker has until it is
// closed.
func (f *peerWorkerFlags) key() ([]byte, *os.File, error) {
	file := f.keyFile
	if file == "" && f.state == "" {
		return nil, nil, nil
	}
	if file == "" {
		if err := os.MkdirAll(f.state, 0o700); err != nil {
			return nil, nil, usageError{fmt.Errorf("--state: %w", err)}
		}
		file = filepath.Join(f.state, "peer.key")
	}
	return loadPeerKey(file, "worker")
}

// peerWorker runs a worker that serves heads, until ctx ends.
func (a *app) peerWorker(ctx context.Context, f *workerFlags) error {
	log := f.options.Logger
	p2p.LibraryLog(log.Handler())
	key, held, err := f.peer.key()
	if err != nil {
		return err
	}
	if held != nil {
		defer held.Close()
	}
	executor, err := wasm.New(ctx, wasm.Config{CacheDir: f.cache, MemoryLimit: f.memory, Logger: log})
	if errors.Is(err, wasm.ErrBadConfig) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = executor.Close(closing) // the process ends
	}()
	o := &f.options
	var transfers func(peerworker.Transfer)
	if !a.json {
		transfers = (&transferLines{app: a}).tell
	}
	w, err := peerworker.New(peerworker.Options{
		Heads: f.peer.heads, Discover: f.peer.discover, AllowAnyHead: f.peer.anyHead, Key: key,
		Listen: f.peer.listen, State: f.peer.state,
		Name: o.Name, Version: version, Labels: o.Labels, Slots: o.Slots, CPU: o.CPU, RAM: o.RAM, GPU: o.GPU,
		Policy: o.Policy, Modules: executor, ModuleTimeout: o.ModuleTimeout,
		CheckModule: executor.Check, PrivateSources: f.peer.private,
		DrainTimeout: o.DrainTimeout, Transfers: transfers, Middleware: o.Middleware, StreamsOutput: o.StreamsOutput,
		Logger: log,
	})
	if err != nil {
		return usageError{err}
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- w.Run(running) }()
	select {
	case <-w.Ready():
	case err := <-done:
		return peerWorkerError(err)
	}
	metrics, stopMetrics, err := f.metrics.serve(log, peerworker.NewCollector(w))
	if err != nil {
		stop()
		return errors.Join(err, peerWorkerError(<-done))
	}
	fields := map[string]any{"worker": w.ID(), "heads": headIDs(f.peer.heads), "addresses": w.Addresses()}
	text := f.peer.describe(w) + "\n  " + describeTimeout(cmp.Or(o.Policy.Timeout(0), max(o.ModuleTimeout, 0)))
	if metrics != "" {
		fields["metrics"] = metrics
		text += "\n  metrics at " + metrics
	}
	if err = a.say(fields, text); err != nil {
		stop()
	}
	return errors.Join(err, peerWorkerError(<-done), stopMetrics())
}

// peerWorkerError says what is wrong with the flags.
func peerWorkerError(err error) error {
	if errors.Is(err, peerworker.ErrOptions) || errors.Is(err, p2p.ErrAddress) {
		return usageError{err}
	}
	return err
}

// headIDs are the ids at the end of addresses, each once.
func headIDs(addresses []string) []string {
	ids := []string{}
	for _, address := range addresses {
		if id := address[strings.LastIndex(address, "/")+1:]; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (f *peerWorkerFlags) describe(w *peerworker.Worker) string {
	whom := strings.Join(headIDs(f.heads), ", ")
	switch {
	case f.anyHead && whom == "":
		whom = "every head"
	case f.anyHead:
		whom += " and every other head"
	}
	if f.discover != "" {
		whom += ", found in the group " + f.discover + " of the local network"
	}
	text := fmt.Sprintf("worker %s serves %s; stop it with Ctrl-C", w.ID(), whom)
	for _, address := range w.Addresses() {
		text += "\n  at " + address
	}
	return text
}
