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
//
// A program that is content with the stores that Futura knows by name opens
// store, client and worker at once, with package futura.
package futures

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/seam"
)

// Options of a client. The zero value is right for most.
type Options struct {
	// Cluster is the cluster's name. Defaults to DefaultCluster.
	Cluster string
	// Config is used if the cluster has none yet. Defaults to that of type Config.
	Config Config
	// Existing makes New return ErrNotFound where there is no such cluster.
	// Defaults to false: New makes it.
	Existing bool
	// Logger is told what is retried in the background. Defaults to none.
	Logger *slog.Logger
	// Seam is for packages of this module: others can't make one.
	Seam *seam.Client
}

// DefaultCluster is the name of the cluster where none is given.
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

	// explaining is held while the end of an await is explained.
	explaining sync.Mutex

	mu        sync.Mutex
	listening bool
	closed    bool
}

// New opens a cluster in a store. The store stays the caller's: close the
// client first. It returns the store's errors, ErrBadName for the cluster's name,
// and ErrNewerRecord for a cluster that a newer version of Futura has made.
func New(ctx context.Context, db kv.Database, o Options) (*Client, error) {
	if o.Cluster == "" {
		o.Cluster = DefaultCluster
	}
	cluster, err := fdbmodel.Open(ctx, db, o.Cluster, fdbmodel.Options{Config: o.Config, Existing: o.Existing})
	if err != nil {
		return nil, err
	}
	return FromCluster(cluster, o)
}

// FromCluster returns a client of a cluster that is open. Of the options, Logger
// and Seam count.
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
	if o.Seam != nil {
		o.Seam.Step = c.step
	}
	return c, nil
}

// manual tells whether the client runs without goroutines.
func (c *Client) manual() bool { return c.options.Seam != nil }

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
	if !c.manual() {
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

// step runs one round of a manual client; see seam.Client.
func (c *Client) step(ctx context.Context, now time.Time) (next time.Time, err error) {
	c.mu.Lock()
	listening, closed := c.listening, c.closed
	c.mu.Unlock()
	switch {
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
