package embedded

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// versionJump is how far versions are raised whenever a store is opened. It is
// more than the versions that can be handed out before they are logged.
const versionJump = 100_000_000

// Store is an open store. It implements kv.Database.
type Store struct {
	options Options
	opened  kv.Version

	index   index
	line    timeline
	watches watchTable

	workspaces sync.Pool

	// commitLock guards the sequencer.
	commitLock sync.Mutex
	sequencer  sequencer
	spill      spill
	// batches is the number of the last batch.
	batches uint64
	// body is reused by commits that run in their callers.
	body []byte
	// sequenced is the version of the last commit that was applied.
	sequenced atomic.Int64

	// disk is nil in a store in memory.
	disk           *disk
	checkpointLock sync.Mutex
	checkpoints    atomic.Int64
	// through is the version up to which the tables have what changed. It is guarded by
	// checkpointLock.
	through   kv.Version
	mergeLock sync.Mutex
	// unmerged is how many checkpoints there were when a merge failed. It is guarded by
	// mergeLock.
	unmerged int64
	// futile is how many checkpoints, or looks without any, a merge of all tables waits because the last one freed
	// nothing, futileUntil until how many checkpoints there are, and looks how many looks there were. They are guarded
	// by mergeLock.
	futile, futileUntil, looks int64
	// pacing is that of the last checkpoint, nil if there was none.
	pacing atomic.Pointer[pace]
	// retryAt is the size of the log to wait for after a checkpoint failed.
	retryAt   atomic.Int64
	closeOnce sync.Once

	// hinted says that the file COLD has something. It is guarded by checkpointLock.
	hinted  bool
	warming warming
	turns   turns

	// ended is why the store has stopped serving, nil while it serves.
	ended   atomic.Pointer[ending]
	endOnce sync.Once
	failed  chan struct{}

	news broadcast
}

// ending is why a store has stopped serving.
type ending struct{ err error }

// OpenMemory opens a store that is empty and forgotten at Close. It uses
// neither disk nor goroutines.
func OpenMemory(o Options) *Store {
	s := newStore(o)
	s.begin(versionJump)
	return s
}

func newStore(o Options) *Store {
	s := &Store{options: o.withDefaults(), failed: make(chan struct{}), unmerged: -1}
	s.workspaces.New = newWorkspace
	s.warming.init()
	s.turns.clock = s.options.Clock
	s.index.init(s.options.LargeValue, s.options.heapPages())
	s.spill.most = s.options.CheckpointBytes / spillFraction
	s.watches.init(&s.index, &s.line)
	s.sequencer = sequencer{index: &s.index, line: &s.line, watch: &s.watches, history: s.options.HistoryVersions,
		loaded: map[string][]byte{}}
	return s
}

// begin starts to serve at version v.
func (s *Store) begin(v kv.Version) {
	s.opened = v
	s.line.init(v, s.options.TxLifetime)
	s.sequencer.last = v
	s.sequenced.Store(int64(v))
}

// Begin implements kv.Database.
func (s *Store) Begin(o kv.Options) kv.Tx {
	o.Turns = o.Turns && !s.options.Inline
	return &transaction{store: s, options: o, work: s.workspaces.Get().(*workspace)}
}

// Traits tells that only this process can reach the store. Its opening is named
// by the version that the store was opened at, which no other opening that
// commits has.
func (s *Store) Traits() kv.Traits {
	traits := kv.Traits{Exclusive: true, Opening: strconv.FormatInt(int64(s.opened), 10), WaitConflict: s.waitConflict,
		ReadsAtOnce: s.readsAtOnce}
	if s.disk != nil {
		if err := s.disk.unwritable.Load(); err != nil {
			traits.Unwritable = *err
		}
		traits.Snapshot = s.snapshot
	}
	return traits
}

// readsAtOnce reports whether a transaction with o would wait for no turn.
func (s *Store) readsAtOnce(o kv.Options) bool { return !o.Turns || s.turns.find(o.Tag) == nil }

// Failed is closed when the store has failed. Err says why.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// Err is nil while the store serves, and what everything fails with after it
// was closed or has failed.
func (s *Store) Err() error {
	if e := s.ended.Load(); e != nil {
		return e.err
	}
	return nil
}

// end makes everything fail with err from now on. The first reason stays.
func (s *Store) end(err error) {
	s.endOnce.Do(func() {
		s.ended.Store(&ending{err: err})
		if errors.Is(err, kv.ErrStoreFailed) {
			close(s.failed)
		}
	})
	s.watches.endAll(s.Err())
	s.news.fire()
}

// submit passes a commit on. Its answer comes through r.done.
func (s *Store) submit(r *request) {
	switch {
	case s.disk == nil || s.disk.begun.Load():
		s.pass(r)
	case s.disk.pipeline == nil:
		s.submitFirst(r)
	default:
		// Whoever waits for r may give up before.
		go s.submitFirst(r)
	}
}

// submitFirst passes a commit on once the log can be written.
func (s *Store) submitFirst(r *request) {
	if err := s.beginLog(); err != nil {
		r.finish(err)
		return
	}
	s.pass(r)
}

func (s *Store) pass(r *request) {
	if s.disk != nil && s.disk.pipeline != nil {
		s.disk.pipeline.submit(r)
		return
	}
	s.commitInline(r)
	if s.disk != nil {
		s.checkpointIfDue(context.Background())
	}
}

// publish makes batches visible.
func (s *Store) publish(batches ...*commitBatch) {
	s.line.publish(batches[len(batches)-1].last, s.options.Clock.Now())
	for _, b := range batches {
		s.watches.published(b.touched)
	}
	s.news.fire()
}

// waitConflict returns when the commit that tx conflicted with is visible to new
// transactions. It does not let that commit linger.
func (s *Store) waitConflict(ctx context.Context, tx kv.Tx) error {
	t, ok := tx.(*transaction)
	if !ok {
		return ctx.Err()
	}
	return s.await(ctx, t.conflictVersion())
}

// reached returns ErrFutureVersion if the store has not come to v.
func (s *Store) reached(v kv.Version) error {
	if last := kv.Version(s.sequenced.Load()); v > last {
		return fmt.Errorf("%w: %d, the last one is %d", kv.ErrFutureVersion, v, last)
	}
	return nil
}

func (s *Store) expired(since time.Time) bool {
	return s.options.Clock.Now().Sub(since) > s.options.TxLifetime
}

// broadcast wakes all that wait for it.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

// wait returns a channel that the next fire closes.
func (s *broadcast) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *broadcast) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
