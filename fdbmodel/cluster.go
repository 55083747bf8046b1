package fdbmodel

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/claim"
	"github.com/futura-run/futura/fdbmodel/internal/edge"
	"github.com/futura-run/futura/fdbmodel/internal/lane"
	"github.com/futura-run/futura/fdbmodel/internal/listen"
	"github.com/futura-run/futura/fdbmodel/internal/module"
	"github.com/futura-run/futura/fdbmodel/internal/notify"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/internal/random"
	"github.com/futura-run/futura/fdbmodel/internal/serial"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// Options of Open. The zero value is right outside of tests.
type Options struct {
	// Config is used if the cluster has none yet.
	Config layout.Config
	// Existing makes Open return ErrNotFound, and write nothing, if the cluster
	// does not exist. Defaults to false: Open creates it.
	Existing bool
	// Clock defaults to the machine's. Other ones are for tests.
	Clock Clock
	// Random is the source of ids, tokens and jitter. Defaults to crypto/rand.
	Random io.Reader
	// Sleep waits between two attempts of a transaction. Defaults to a timer.
	Sleep func(context.Context, time.Duration) error

	// Incoming opens a cluster that is being copied into, to verify the copy.
	// Defaults to false: such a cluster is ErrIncomplete.
	Incoming bool
}

// Clock is the time that a cluster runs by. Its methods, which may be called from
// many goroutines, are Now() time.Time; At(time.Time) Timer, whose timer fires
// once Now is that time or later; and AfterFunc(time.Time, func()) (stop func()),
// which calls the function then. A Timer has C() <-chan time.Time and Stop().
type (
	Clock = clock.Clock
	Timer = clock.Timer
)

// Cluster is the data model over one cluster's keys in a store. Its methods are
// safe for concurrent use. Each one documents its behaviour on an unknown
// commit; those that don't only read.
//
// Every method returns the store's own errors unchanged (see package kv), and
// ctx's error when ctx ends.
type Cluster struct {
	db       kv.Database
	name     string
	keys     layout.Keyspace
	config   layout.Config
	clock    Clock
	random   *random.Source
	sleep    func(context.Context, time.Duration) error
	ids      layout.IdSource
	notifier *notify.Notifier
	claimed  claim.Cache
	edges    *edge.Resolver
	paused   *pause.Known

	roomsMu sync.Mutex
	rooms   map[any]any
	claims  listen.All[int]
	notices listen.All[map[layout.SessionID][]layout.Notice]
	lost    listen.First[[]layout.Row]

	modules *module.Known
	deaths  atomic.Int64 // see Deaths
	lanes   lane.Known
	// finishSerializer and submitSerializer are for transactions that finish and submit
	// futures of lanes.
	finishSerializer, submitSerializer *serial.Serializer

	openingMu   sync.Mutex
	openingDone bool
}

// orderBits is how many bits of a number the order in which two clusters of one process
// count apart from each other leaves to count.
const orderBits = 32

// Open returns the model of a cluster, and writes its config if it has none. A
// config that other processes wrote first wins over the one in o. Open returns
// ErrBadName, ErrBadConfig for an invalid config, ErrNotFound with
// Options.Existing, and ErrNewerRecord. An unknown commit is retried and
// harmless.
func Open(ctx context.Context, db kv.Database, name string, o Options) (*Cluster, error) {
	if err := layout.CheckClusterName(name); err != nil {
		return nil, err
	}
	c := &Cluster{db: db, name: name, keys: layout.NewKeyspace(name), clock: o.Clock, sleep: o.Sleep,
		finishSerializer: serial.New(), submitSerializer: serial.New()}
	if c.clock == nil {
		c.clock = clock.Real{}
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	c.random = random.From(o.Random)
	c.ids.Random = c.random
	c.lanes.Order.Store(int64(c.random.Uint64() >> orderBits))
	wanted := o.Config
	if wanted.Shards == 0 && kv.TraitsOf(db).Opening != "" {
		wanted.Shards = 1
	}
	wanted = wanted.WithDefaults()
	if err := wanted.Validate(); err != nil {
		return nil, err
	}
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-open"}, func(tx kv.Attempt) error {
		return c.readConfig(ctx, tx, wanted, o)
	})
	if err != nil {
		return nil, fmt.Errorf("open cluster %q: %w", name, err)
	}
	c.keys.Shards = c.config.Shards
	c.paused, c.modules = pause.Of(c), &module.Known{Keys: c.keys, View: c.View}
	c.edges = &edge.Resolver{Keys: c.keys, Model: edgeModel{c}}
	c.notifier = notify.New(db, c.keys, c.Now, func(n int) int { return c.random.Intn(n) })
	return c, nil
}

func (c *Cluster) readConfig(ctx context.Context, tx kv.Tx, wanted layout.Config, o Options) error {
	key := c.keys.Config()
	asked, marked := tx.Get(key), tx.Get(c.keys.Incoming())
	value, err := asked.Wait(ctx)
	if err != nil {
		return err
	}
	mark, err := marked.Wait(ctx)
	if err != nil {
		return err
	}
	if mark != nil && !o.Incoming {
		return ErrIncomplete
	}
	if value == nil {
		if o.Existing {
			return fmt.Errorf("%w in this store", ErrNotFound)
		}
		c.config = wanted
		tx.Set(key, layout.Encode(&wanted))
		return nil
	}
	c.config = layout.Config{}
	if err := layout.Decode(key, value, &c.config); err != nil {
		return err
	}
	return c.config.Validate()
}

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.name }

// Config returns the config that the cluster had when it was opened.
func (c *Cluster) Config() layout.Config { return c.config }

// Now returns the time by the cluster's clock.
func (c *Cluster) Now() time.Time { return c.clock.Now() }

// Clock returns the cluster's clock.
func (c *Cluster) Clock() Clock { return c.clock }

// Database returns the store, for transactions that hold the caller's own keys
// and the cluster's together.
func (c *Cluster) Database() kv.Database { return c.db }

// DrawIDs returns n new ids that share a shard, none for an n below 1.
func (c *Cluster) DrawIDs(n int) ([]layout.ID, error) {
	return c.ids.Draw(c.clock.Now(), c.config.Shards, n)
}

// IDOf returns the id of a future that is put with a key.
func (c *Cluster) IDOf(key string) layout.ID { return layout.KeyedID(c.name, key) }

// DrawWorkerID returns an id for one start of a worker.
func (c *Cluster) DrawWorkerID() (layout.WorkerID, error) {
	id, err := layout.DrawHex(c.random)
	return layout.WorkerID(id), err
}

// DrawSessionID returns an id for one client process.
func (c *Cluster) DrawSessionID() (layout.SessionID, error) {
	id, err := layout.DrawHex(c.random)
	return layout.SessionID(id), err
}

// Keys returns the maker of the cluster's keys.
func (c *Cluster) Keys() layout.Keyspace { return c.keys }

// Room returns what a room of the model keeps for this cluster: what open returned when it was
// first asked for with the key, whose type is the room's own. open must not ask for a room.
func (c *Cluster) Room(key any, open func() any) any {
	c.roomsMu.Lock()
	defer c.roomsMu.Unlock()
	room, opened := c.rooms[key]
	if !opened {
		if c.rooms == nil {
			c.rooms = map[any]any{}
		}
		room = open()
		c.rooms[key] = room
	}
	return room
}

// OnClaims has fn called after each commit by which this process has claimed n futures, or by
// which, below 0, as many of its claims have ended, with the version of the commit.
func (c *Cluster) OnClaims(fn func(n int, version kv.Version)) { c.claims.Add(fn) }

// OnNotices has fn called after commits by which this process has put notices into mailboxes,
// with those notices and the version of the commit. It may miss some. fn must not wait.
func (c *Cluster) OnNotices(fn func(map[layout.SessionID][]layout.Notice, kv.Version)) {
	c.notices.Add(fn)
}

// OnLost has hear called with the futures that this process fails because too
// many workers died while they ran them, whatever in this process notices the
// death, or because no worker could run them. If several ask, the one that asked first and did not stop is called.
func (c *Cluster) OnLost(hear func([]layout.Row)) (stop func()) { return c.lost.Add(hear) }

// ResolveFunction returns a function's name with its alias, if it is one,
// replaced by the content id of the module that it presently stands for.
// NAME/METHOD is the module with that alias, or else the export METHOD of the
// module NAME, or its start if METHOD is FILE.wasm. It returns ErrBadName, and
// ErrNotFound for a module or alias that is not stored.
func (c *Cluster) ResolveFunction(ctx context.Context, function string) (string, error) {
	return c.modules.Resolve(ctx, function)
}

// RetryPolicy returns the policy for repeating the cluster's transactions, with
// its own clock and randomness.
func (c *Cluster) RetryPolicy(o kv.Options) kv.Retry {
	return kv.Retry{Options: o, Sleep: c.sleep, Random: c.random.Float}
}

// Transact runs fn in a transaction of the cluster, and repeats it as kv.Transact does,
// by RetryPolicy. All commits of the model go through it.
func (c *Cluster) Transact(ctx context.Context, o kv.Options, fn func(kv.Attempt) error) (kv.Result, error) {
	return kv.Transact(ctx, c.db, c.RetryPolicy(o), fn)
}

// Patient is a cluster for what a worker writes under its claims. While the store can only be read, it waits: what a
// function has come to would be lost otherwise.
type Patient struct{ *Cluster }

// Transact is Cluster.Transact, and repeats after kv.ErrReadOnly too.
func (p Patient) Transact(ctx context.Context, o kv.Options, fn func(kv.Attempt) error) (kv.Result, error) {
	retry := p.RetryPolicy(o)
	retry.Patient = true
	return kv.Transact(ctx, p.db, retry, fn)
}

// View runs fn in a transaction that writes nothing.
func (c *Cluster) View(ctx context.Context, fn func(kv.Attempt) error) error {
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-read"}, fn)
	return err
}

// EachKey calls fn for each key of a range, read in pages at different versions.
func (c *Cluster) EachKey(ctx context.Context, r kv.Range, fn func(kv.KeyValue) error) error {
	const page = 500
	for {
		var items kv.Page
		err := c.View(ctx, func(tx kv.Attempt) error {
			var err error
			items, err = tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: page}).Wait(ctx)
			return err
		})
		if err != nil {
			return err
		}
		for _, item := range items.Items {
			if err := fn(item); err != nil {
				return err
			}
		}
		if !items.More {
			return nil
		}
		r.Begin = kv.After(items.Items[len(items.Items)-1].Key)
	}
}

// Wipe removes all keys of a cluster from a store. Processes that have the
// cluster open must be stopped first. It returns ErrBadName. An unknown commit
// is retried and harmless.
func Wipe(ctx context.Context, db kv.Database, name string) error {
	if err := layout.CheckClusterName(name); err != nil {
		return err
	}
	_, err := kv.Transact(ctx, db, kv.Retry{Options: kv.Options{Tag: "futura-wipe"}}, func(tx kv.Attempt) error {
		tx.ClearRange(layout.NewKeyspace(name).All())
		return nil
	})
	return err
}
