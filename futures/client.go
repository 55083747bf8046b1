// Package futures is what an application imports: it submits work to a cluster
// and awaits the results.
//
// Execution is at least once, results are exactly once: a function may run
// again after its worker died, and the first attempt that ends while it holds
// the claim decides.
//
// A [Client] awaits any number of futures with one watch of the store and no
// goroutine of their own. Its methods, and those of [Future], may be called
// from many goroutines. They return the store's errors as they are (see package
// fdbmodel/kv), ctx's error when that ends, and [ErrClosed] after Close.
package futures

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// ID names a future for ever.
type ID = layout.ID

// Options of a client. The zero value is right for most.
type Options struct {
	// Cluster is the cluster's name. Defaults to "default".
	Cluster string
	// Config is used if the cluster has none yet. Defaults to that of
	// layout.Config.
	Config layout.Config
	// Existing makes New return ErrNotFound where there is no such cluster.
	// Defaults to false: New makes it.
	Existing bool
	// Clock defaults to the machine's.
	Clock clock.Clock
	// Random is where ids come from. Defaults to crypto/rand.
	Random io.Reader
	// Sleep waits between two attempts of a transaction. Defaults to a timer.
	Sleep func(context.Context, time.Duration) error
	// Logger is told what is retried in the background. Defaults to none.
	Logger *slog.Logger
	// Manual makes the client run without goroutines, in its caller's Step.
	// Defaults to false.
	Manual bool
	// Drive is called by whoever awaits on a client with Manual, again and
	// again until what it awaits has ended. It should do a round of everything
	// that may end it, Step included; its error ends the await. Defaults to
	// none: others call Step.
	Drive func(context.Context) error
}

// DefaultCluster is the cluster of those who name none.
const DefaultCluster = "default"

// Client submits futures and awaits them.
type Client struct {
	cluster  *fdbmodel.Cluster
	options  Options
	session  layout.SessionID
	registry registry
	commits  committers
	listener listener

	// base ends with Close. What is done for nobody in particular runs in it.
	base context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu        sync.Mutex
	listening bool
	closed    bool
}

// New opens a cluster in a store. The store stays the caller's: close the
// client first. It returns what fdbmodel.Open returns.
func New(ctx context.Context, db kv.Database, o Options) (*Client, error) {
	if o.Cluster == "" {
		o.Cluster = DefaultCluster
	}
	cluster, err := fdbmodel.Open(ctx, db, o.Cluster, fdbmodel.Options{
		Config: o.Config, Existing: o.Existing, Clock: o.Clock, Random: o.Random, Sleep: o.Sleep,
	})
	if err != nil {
		return nil, err
	}
	return FromCluster(cluster, o)
}

// FromCluster returns a client of a cluster that is open. Of the options,
// Logger, Manual and Drive count.
func FromCluster(cluster *fdbmodel.Cluster, o Options) (*Client, error) {
	session, err := cluster.DrawSessionID()
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{cluster: cluster, options: o, session: session}
	c.base, c.end = context.WithCancel(context.Background())
	c.registry.init()
	c.commits.client = c
	c.listener.init(c)
	return c, nil
}

// Cluster returns the data model below the client.
func (c *Client) Cluster() *fdbmodel.Cluster { return c.cluster }

// Close ends the client and removes its session from the store. Awaits that are
// under way return ErrClosed, and so do concurrent Submits that share a
// transaction; joined with kv.ErrUnknownResult, their futures may exist. The
// futures live on. A second Close returns nil.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	first, listening := !c.closed, c.listening
	c.closed = true
	c.mu.Unlock()
	c.commits.close()
	c.end()
	c.wg.Wait()
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

// listen starts the await loop, which opens the session, unless it runs.
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
	if !c.options.Manual {
		c.wg.Go(c.listener.loop)
	}
	return nil
}

// spawn runs fn in a goroutine that Close waits for, unless it was called.
func (c *Client) spawn(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Go(fn)
	}
}

// Step runs one round of a client with Options.Manual: it says that the session
// lives, subscribes to what was asked for, delivers what has come, and lets go
// of it in the store. It returns when the next round is due at the latest; a
// round in between is harmless. An error is the store's or ctx's; the caller may
// step again.
func (c *Client) Step(ctx context.Context, now time.Time) (next time.Time, err error) {
	c.mu.Lock()
	listening, closed := c.listening, c.closed
	c.mu.Unlock()
	switch {
	case !c.options.Manual:
		return now, errors.New("futures: Step is for clients with Options.Manual")
	case closed:
		return now, ErrClosed
	case !listening:
		return now.Add(c.cluster.SessionInterval()), nil
	}
	return c.listener.stepOnce(ctx, now)
}

// Future returns a handle on a future that was submitted elsewhere. Whether it
// exists shows when it is awaited.
func (c *Client) Future(id ID) *Future { return &Future{client: c, id: id} }

// Cancel asks for the end of a future and returns its state after that; see
// fdbmodel.Cluster.Cancel.
func (c *Client) Cancel(ctx context.Context, id ID, reason string) (fdbmodel.Outcome, layout.State, error) {
	return c.cluster.Cancel(ctx, id, reason)
}

// Retry runs a failed future again, with all its attempts, and a delayed one at
// once. A handle that knows of the failure keeps it: await a new one, from
// Client.Future. See fdbmodel.Cluster.Retry.
func (c *Client) Retry(ctx context.Context, id ID) error { return c.cluster.Retry(ctx, id) }

// Discard removes a future that is over, with its result; see
// fdbmodel.Cluster.Discard.
func (c *Client) Discard(ctx context.Context, id ID) error { return c.cluster.Discard(ctx, id) }

// Get returns a future's records; see fdbmodel.Cluster.Get.
func (c *Client) Get(ctx context.Context, id ID) (layout.Row, error) { return c.cluster.Get(ctx, id) }

// List returns a page of futures; see fdbmodel.Cluster.List.
func (c *Client) List(ctx context.Context, f inspect.Filter, cursor []byte, limit int,
) (rows []layout.Row, next []byte, err error) {
	return inspect.List(ctx, c.cluster, f, cursor, limit)
}

// Explain says why a future is not running; see fdbmodel.Cluster.Explain.
func (c *Client) Explain(ctx context.Context, id ID) (inspect.Explanation, error) {
	return inspect.Explain(ctx, c.cluster, id)
}

// Counts returns how many futures there are by queue, group and state.
func (c *Client) Counts(ctx context.Context) (layout.Counts, error) { return c.cluster.Counts(ctx) }
