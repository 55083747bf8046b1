package sharing

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/internal/clock"
)

// Options of Open. The zero value is ready to use.
type Options struct {
	// Embedded are the options of the store where this process owns it.
	Embedded embedded.Options
	// Wait is how long Open waits for a store that another process has open and does not serve
	// yet. Defaults to 10 s.
	Wait time.Duration
	// GiveUpAfter is how long the store may be without an owner that serves it before everything
	// fails with remote.ErrGone. Defaults to no limit.
	GiveUpAfter time.Duration
	// ConnectTimeout is how long an owner that takes a connection has to answer. Defaults to 5 s.
	ConnectTimeout time.Duration
	// Logger receives that this process took the store over, and what keeps it from serving it.
	// Defaults to none.
	Logger *slog.Logger
}

// Database is a store that processes share. It implements kv.Database.
type Database struct {
	dir     string
	options Options
	id      string
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	now     atomic.Pointer[role]
	away    chan struct{} // one is in it while the owner may have to be replaced
	failed  chan struct{} // closed when the store that this process owns has failed
	owns    atomic.Bool   // set before this process serves the store: from then on it does not follow, see dial
	// followed is the id of the store that this process has followed last, the only one that it takes
	// over. It is nil until then.
	followed atomic.Pointer[string]

	mu     sync.Mutex
	closed bool
	lost   []string // connections that were lost since this process is the owner
	hear   []func(connection string)
}

// role is the part that this process has: one of the two is set.
type role struct {
	owner    *owner
	follower *remote.Database
}

func (r *role) database() kv.Database {
	if r.owner != nil {
		return r.owner.store
	}
	return r.follower
}

func (r *role) close() error {
	if r.owner != nil {
		return r.owner.close()
	}
	return r.follower.Close()
}

// Open opens the store in dir, and makes it if it is not there: as its owner, or through the
// process that is. It returns kv.ErrStoreInUse if another process has it open and does not serve
// it, or at once with remote.ErrBadVersion if that speaks another version of the protocol, and else the errors of
// embedded.Open. ctx bounds only the opening.
func Open(ctx context.Context, dir string, o Options) (*Database, error) {
	return open(ctx, dir, o, (*Database).enter)
}

// Follow opens the store in dir through the process that owns it, and takes it over when that ends. Its errors are
// those of remote.Open where no process serves it.
func Follow(ctx context.Context, dir string, o Options) (*Database, error) {
	return open(ctx, dir, o, func(d *Database, ctx context.Context) (*role, error) {
		f, err := d.reach(ctx)
		return &role{follower: f}, err
	})
}

func open(ctx context.Context, dir string, o Options, enter func(*Database, context.Context) (*role, error),
) (*Database, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("sharing: %w", err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Wait <= 0 {
		o.Wait = openWait
	}
	d := &Database{dir: dir, options: o, id: rand.Text(), away: make(chan struct{}, 1),
		failed: make(chan struct{})}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	first, err := enter(d, ctx)
	if err != nil {
		d.cancel()
		return nil, err
	}
	d.now.Store(first)
	if f := first.follower; f != nil {
		d.running.Go(func() { d.follow(f) })
	}
	return d, nil
}

const (
	openWait = 10 * time.Second
	// Waits between two tries to own a store that has no owner, or to reach its owner.
	tryMin = 5 * time.Millisecond
	tryMax = 200 * time.Millisecond
)

// enter finds the first role.
func (d *Database) enter(ctx context.Context) (*role, error) {
	began := time.Now()
	deadline := began.Add(d.options.Wait)
	for wait := tryMin; ; wait = min(2*wait, tryMax) {
		own, inUse := d.own(ctx)
		if inUse == nil {
			return &role{owner: own}, nil
		}
		if !errors.Is(inUse, kv.ErrStoreInUse) {
			return nil, inUse
		}
		f, err := d.reach(ctx)
		if err == nil {
			return &role{follower: f}, nil
		}
		if errors.Is(err, remote.ErrBadVersion) { // it serves the store, and waiting changes nothing
			return nil, fmt.Errorf("%w: %w", inUse, err)
		}
		if late := !time.Now().Before(deadline); late && errors.Is(err, remote.ErrSilent) {
			record, _ := ReadRecord(d.dir)
			return nil, Silent(record, time.Since(began))
		} else if late {
			return nil, fmt.Errorf("%w: another process has it open and does not serve it: stop that process, or have it "+
				"share the store: %w", inUse, err)
		}
		if err := clock.Sleep(ctx, clock.Real{}, wait); err != nil {
			return nil, errors.Join(err, inUse)
		}
	}
}

// Begin implements kv.Database.
func (d *Database) Begin(o kv.Options) kv.Tx { return d.now.Load().database().Begin(o) }

// Traits name this Database as a connection, whichever process owns the store. They are exclusive
// while this process does and no other one uses it.
func (d *Database) Traits() kv.Traits {
	now := d.now.Load()
	traits := kv.TraitsOf(now.database())
	traits.Connection = d.id
	traits.Exclusive = now.owner != nil && now.owner.isAlone()
	if now.owner == nil {
		traits.Snapshot = d.snapshot
	}
	return traits
}

// snapshot is that of the store which this process has followed last.
func (d *Database) snapshot(ctx context.Context) (kv.Database, error) {
	o := d.options.Embedded
	if id := d.followed.Load(); id != nil {
		o.Only = *id
	}
	return embedded.Snapshot(ctx, d.dir, o)
}

// IsOwner reports whether this process owns the store. The owner owns it until it closes it. Once the owner before
// has ended, nothing that this process does to the store succeeds until another process owns it, or IsOwner reports
// true.
func (d *Database) IsOwner() bool { return d.now.Load().owner != nil }

// Socket returns the path of the socket at which the store is served, empty if it is not.
func (d *Database) Socket() string {
	if own := d.now.Load().owner; own != nil {
		return own.servedAt()
	}
	record, _ := ReadRecord(d.dir)
	return record.Socket
}

// Stats are those of the store while this process owns it.
func (d *Database) Stats() embedded.Stats {
	if own := d.now.Load().owner; own != nil {
		return own.store.Stats()
	}
	return embedded.Stats{}
}

// Measures reports whether StoredBytes knows how much the store holds: it does in the process that owns it.
func (d *Database) Measures() bool { return d.IsOwner() }

// StoredBytes is that of the store. It returns ErrNotOwner while another process owns it.
func (d *Database) StoredBytes(ctx context.Context, r kv.Range) (int64, error) {
	if own := d.now.Load().owner; own != nil {
		return own.store.StoredBytes(ctx, r)
	}
	return 0, ErrNotOwner
}

// ErrNotOwner is returned for what only the process can tell that owns the store.
var ErrNotOwner = errors.New("sharing: another process owns the store: ask that one")

// Failed is closed when this process owns the store and that has failed. Everything fails with
// kv.ErrStoreFailed from then on, while another process takes over.
func (d *Database) Failed() <-chan struct{} { return d.failed }

// OnLost has hear called for each process that stopped using the store, with the name of its
// connection: the owner that this process has taken over from, and others that closed the store or
// were away for a second. It is called while this process owns the store, for those that were
// lost before as well, each time on a goroutine of its own that Close waits for.
func (d *Database) OnLost(hear func(connection string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hear = append(d.hear, hear)
	for _, id := range d.lost {
		d.tell(hear, id)
	}
}

// maxLost is how many lost connections are kept for those that ask late. Each command is one.
const maxLost = 1000

// lose says that connections are lost.
func (d *Database) lose(connections ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range connections {
		if id == "" || slices.Contains(d.lost, id) {
			continue
		}
		if len(d.lost) == maxLost {
			d.lost = slices.Delete(d.lost, 0, 1)
		}
		d.lost = append(d.lost, id)
		for _, hear := range d.hear {
			d.tell(hear, id)
		}
	}
}

// find says that a connection is there again: it may be lost once more.
func (d *Database) find(connection string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = slices.DeleteFunc(d.lost, func(id string) bool { return id == connection })
}

// tell needs d.mu.
func (d *Database) tell(hear func(string), id string) {
	if !d.closed {
		d.running.Go(func() { hear(id) })
	}
}

// Close implements kv.Database. An owner leaves the store to the others, which continue within
// about a second.
func (d *Database) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	now := d.now.Load()
	err := now.close()
	d.running.Wait()
	if last := d.now.Load(); last != now { // it has just taken the store over
		err = errors.Join(err, last.close())
	}
	return err
}
