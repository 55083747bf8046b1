// Package futures is what an application imports: it submits work to a cluster
// and awaits the results.
//
// Execution is at least once, results are exactly once: a function may run
// again after its worker died, and the first attempt that ends while it holds
// the claim decides.
//
// A Client awaits any number of futures with one watch. Its methods, and those
// of Future, may be called from many goroutines. They return the store's errors
// as they are (see fdbmodel/kv) and ctx's error when that ends.
package futures

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
)

// ID names a future for ever.
type ID = fdbmodel.ID

// Options of a client. The zero value is right for most.
type Options struct {
	// Cluster is the cluster's name. Defaults to "default".
	Cluster string
	// Config is used if the cluster has none yet.
	Config fdbmodel.Config
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
}

// DefaultCluster is the cluster of those who name none.
const DefaultCluster = "default"

// Client submits futures and awaits them.
type Client struct {
	cluster *fdbmodel.Cluster
	options Options
	session fdbmodel.SessionID
	batcher batcher
	waiting waiting

	base context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup
}

// New opens a cluster in a store. The store stays the caller's: close the
// client first. It returns what fdbmodel.Open returns.
func New(ctx context.Context, db kv.Database, o Options) (*Client, error) {
	if o.Cluster == "" {
		o.Cluster = DefaultCluster
	}
	cluster, err := fdbmodel.Open(ctx, db, o.Cluster, fdbmodel.Options{
		Config: o.Config, Clock: o.Clock, Random: o.Random, Sleep: o.Sleep,
	})
	if err != nil {
		return nil, err
	}
	return FromCluster(cluster, o)
}

// FromCluster returns a client of a cluster that is open. Of the options,
// Logger and Manual count.
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
	c.batcher.init(c)
	c.waiting.init(c)
	return c, nil
}

// Cluster returns the data model below the client.
func (c *Client) Cluster() *fdbmodel.Cluster { return c.cluster }

// Close ends the client. Awaits that are under way return ErrClosed; the
// futures live on.
func (c *Client) Close(ctx context.Context) error {
	c.end()
	c.wg.Wait()
	c.waiting.close()
	if !c.waiting.opened() {
		return nil
	}
	if err := c.waiting.mailbox.Close(ctx); err != nil {
		return fmt.Errorf("futures: close: %w", err)
	}
	return nil
}

// Future returns a handle on a future that was submitted elsewhere.
func (c *Client) Future(id ID) *Future { return &Future{client: c, id: id, foreign: true} }

// Cancel asks for the end of a future; see fdbmodel.Cluster.Cancel.
func (c *Client) Cancel(ctx context.Context, id ID, reason string) (fdbmodel.Outcome, fdbmodel.State, error) {
	return c.cluster.Cancel(ctx, id, reason)
}

// Retry runs a failed future again, with all its attempts.
func (c *Client) Retry(ctx context.Context, id ID) error { return c.cluster.Retry(ctx, id) }

// Discard removes a future that is over, with its result.
func (c *Client) Discard(ctx context.Context, id ID) error { return c.cluster.Discard(ctx, id) }

// Get returns a future's records.
func (c *Client) Get(ctx context.Context, id ID) (fdbmodel.Row, error) { return c.cluster.Get(ctx, id) }

// List returns a page of futures; see fdbmodel.Cluster.List.
func (c *Client) List(ctx context.Context, f fdbmodel.Filter, cursor []byte, limit int,
) (rows []fdbmodel.Row, next []byte, err error) {
	return c.cluster.List(ctx, f, cursor, limit)
}

// Explain says why a future is not running.
func (c *Client) Explain(ctx context.Context, id ID) (fdbmodel.Explanation, error) {
	return c.cluster.Explain(ctx, id)
}

// Counts returns how many futures there are by queue and state.
func (c *Client) Counts(ctx context.Context) (fdbmodel.Counts, error) { return c.cluster.Counts(ctx) }
