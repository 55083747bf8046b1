// Package futures is the package that applications import: it submits work to a
// cluster and awaits the results.
//
// Execution is at least once, results are exactly once: a function may run
// again after its worker died, and the first attempt that ends while it holds
// the claim determines the result.
//
// A [Client] awaits any number of futures with one watch of the store and no
// goroutine of their own. Its methods, and those of [Future], may be called
// from many goroutines. They return the store's errors unchanged (see package
// fdbmodel/kv), ctx's error when ctx ends, and, where they submit or wait, [ErrClosed]
// after Close.
//
// A program that uses one of the stores that Futura knows by name can open
// store, client and worker in one call with package futura.
package futures

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/internal/taskcontext"
	"github.com/futura-run/futura/workers/objects/held"
	"github.com/futura-run/futura/workers/objects/hints"
)

// Options of a client. The zero value suits most programs.
type Options struct {
	// Cluster is the cluster's name. Defaults to DefaultCluster.
	Cluster string
	// Config is used if New creates the cluster. Its zero fields have the defaults
	// of type Config.
	Config Config
	// Existing makes New return ErrNotFound if the cluster does not exist.
	// Defaults to false: New creates it.
	Existing bool
	// NoHints makes the client neither send nor receive hints. With them, a submit has
	// an idle worker of another process look for work at once, and that worker has the
	// client look for the result, over a connection of their own; without, all of this
	// goes through the store, which takes longer. Hints reach workers that have an
	// object store. They change nothing but when others look. Defaults to false.
	NoHints bool
	// Logger receives what is retried in the background. Defaults to none.
	Logger *slog.Logger
	// Tracer is told of submits and awaits. Package futures/tracing has one for OpenTelemetry.
	// Defaults to none.
	Tracer Tracer
	// Seam is for packages of this module; others can't construct one.
	Seam *seam.Client
}

// DefaultCluster is the name of the cluster if none is given.
const DefaultCluster = "default"

// Client submits futures and awaits them.
type Client struct {
	cluster  *fdbmodel.Cluster
	options  Options
	session  layout.SessionID
	registry registry
	commits  committers
	listener listener
	objects  held.Reader
	hints    *hints.Sender // nil without
	wakes    wakes
	actors   sync.Map // the types of them whose kind of lanes exists, and when that was found: kindFound
	methods  sync.Map // of actors, that workers know
	unhear   func()   // ends what hears of mail within the process, nil for nothing

	// base ends with Close. Work that serves no single caller runs in it.
	base context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup

	// explaining is held while an await that ended reads the state of its future.
	explaining sync.Mutex

	mu        sync.Mutex
	listening bool
	closed    bool
}

// New opens a cluster in a store. The store remains the caller's, who closes it
// after the client. New returns the store's errors, ErrBadName for an invalid
// cluster name, and ErrNewerRecord for a cluster that a newer version of Futura
// created.
func New(ctx context.Context, db kv.Database, o Options) (*Client, error) {
	name := cmp.Or(o.Cluster, DefaultCluster)
	cluster, err := fdbmodel.Open(ctx, db, name, fdbmodel.Options{Config: o.Config, Existing: o.Existing})
	if err != nil {
		return nil, err
	}
	return FromCluster(cluster, o)
}

// FromCluster returns a client of an open cluster. Of the options, only Logger,
// NoHints, Tracer and Seam have an effect.
func FromCluster(cluster *fdbmodel.Cluster, o Options) (*Client, error) {
	session, err := cluster.DrawSessionID()
	if err != nil {
		return nil, err
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	c := &Client{cluster: cluster, options: o, session: session}
	c.base, c.end = context.WithCancel(context.Background())
	c.registry.init()
	c.commits.client = c
	results.Of(cluster).OfferReader(&c.objects)
	c.listener.init(c)
	c.startHints()
	if !c.manual() {
		c.wakes.start(cluster.Notifier())
	}
	if o.Seam != nil {
		o.Seam.Step = c.step
	}
	return c, nil
}

// FromContext returns a client of the cluster that runs the function to which ctx
// was given, also a context derived from it. It is one for all functions of a
// worker: the client that the worker was made from, or one that the first call
// makes and the worker closes when it stops, after its functions. So don't close
// it. Await with the function's context, so that the worker gives the function's
// slot to others meanwhile. FromContext returns ErrOutsideFunction for other
// contexts, and an error after the worker has stopped.
func FromContext(ctx context.Context) (*Client, error) {
	source, ok := ctx.Value(taskcontext.ClientKey{}).(taskcontext.ClientSource)
	if !ok {
		return nil, ErrOutsideFunction
	}
	given := source.Given()
	if c, ok := given.(*Client); ok && c.usable() == nil {
		return c, nil
	}
	made, err := source.Made(func(logger *slog.Logger) (taskcontext.MadeClient, error) {
		of, ok := given.(interface{ Cluster() *fdbmodel.Cluster })
		if !ok {
			return nil, fmt.Errorf("futures: a worker that was made from a %T has no cluster for a client", given)
		}
		return FromCluster(of.Cluster(), Options{Logger: logger})
	})
	if err != nil {
		return nil, err
	}
	return made.(*Client), nil
}

// manual reports whether the client runs without goroutines.
func (c *Client) manual() bool { return c.options.Seam != nil }

// Cluster returns the data model that the client uses.
func (c *Client) Cluster() *fdbmodel.Cluster { return c.cluster }

// Close ends the client and removes its session from the store. Awaits in
// progress return ErrClosed, and so do concurrent Submits that share a
// transaction; if the error is also kv.ErrUnknownResult, their futures may
// exist. Submitted futures go on. Close waits, for a second at most, until idle workers of other
// processes have been woken for them; where a process ends without Close, a worker may find its last
// ones with its next poll only. A second Close returns nil.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	first, listening := !c.closed, c.listening
	c.closed = true
	c.mu.Unlock()
	c.commits.close()
	c.wakes.close()
	c.end()
	c.wg.Wait()
	c.stopHints()
	results.Of(c.cluster).WithdrawReader(&c.objects)
	_ = c.objects.Close() // what it reads has no use any more
	c.registry.close(ErrClosed)
	if !first || !listening {
		return nil
	}
	c.listener.stop()
	if err := c.listener.mailbox.Close(ctx); err != nil && !errors.Is(err, kv.ErrClosed) {
		return fmt.Errorf("futures: close: %w", err)
	}
	return nil
}

// usable returns ErrClosed after Close.
func (c *Client) usable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	return nil
}

// listen starts the await loop, which opens the session, unless it is running.
func (c *Client) listen() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	if c.listening {
		return nil
	}
	c.listening = true
	if !c.manual() {
		c.wg.Go(c.listener.loop)
	}
	return nil
}

// spawn runs fn in a goroutine that Close waits for, unless Close was called.
func (c *Client) spawn(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Go(fn)
	}
}

// step runs one round of a manual client; see seam.Client.
func (c *Client) step(ctx context.Context, now time.Time) (next time.Time, err error) {
	c.mu.Lock()
	listening, closed := c.listening, c.closed
	c.mu.Unlock()
	switch {
	case closed:
		return now, ErrClosed
	case !listening:
		return now.Add(c.listener.mailbox.Interval()), nil
	}
	return c.listener.stepOnce(ctx, now)
}

// Future returns a handle on a future that was submitted elsewhere. It does not
// check that the future exists: Await returns ErrNotFound if it does not.
func (c *Client) Future(id ID) *Future { return &Future{client: c, id: id} }
