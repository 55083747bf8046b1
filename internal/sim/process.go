package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// longestStop is how long a process is stopped or paused at most: beyond the time
// after which a worker is dead.
const longestStop = 12 * time.Second

// process is a process's way to the store. The process can die or be stopped at
// any commit, before it or behind it.
type process struct {
	kv.Database
	world  *world
	agenda *agenda
	// dieIn and stopIn count the commits until then; 0 is never.
	dieIn, stopIn int
	dead          bool
	cluster       *fdbmodel.Cluster // its handle, once it has one
	onDeath       func()
	claims        map[layout.ID][]byte       // as it wrote them
	heads         map[string][]byte          // of actors, by their keys, as a planted bug has it know them
	checks        bool                       // it is that of the checkers
	gathered      map[layout.ID]layout.Token // its last claims of members of bundles
	beat          time.Time                  // when its last heartbeat began
	reading       runKey                     // the result that it is reading
	unsure        bool                       // the last commit was of a schedule, and may have been made
}

func (w *world) newProcess(s *agenda, onDeath func()) *process {
	return &process{
		Database: w.faults, world: w, agenda: s, onDeath: onDeath, claims: map[layout.ID][]byte{},
		gathered: map[layout.ID]layout.Token{},
	}
}

// startProcess starts a process that does what an actor does from now on, with a handle on the cluster.
func (w *world) startProcess(ctx context.Context, s *agenda, by actor) (*process, error) {
	p := w.newProcess(s, func() {})
	*s = agenda{actor: by, next: w.clock.Now()}
	return p, w.insist(ctx, func() error { return w.openCluster(ctx, p) })
}

// Begin implements kv.Database.
func (p *process) Begin(o kv.Options) kv.Tx {
	t := &tx{Tx: p.Database.Begin(o), process: p, tag: o.Tag, began: p.world.clock.Now()}
	if bug := p.world.bug; bug != nil && !p.checks && slices.Contains(bug.tags, o.Tag) {
		t.bug = bug
	}
	return t
}

// Traits returns those of the store.
func (p *process) Traits() kv.Traits {
	traits := kv.TraitsOf(p.Database)
	if wait := traits.WaitConflict; wait != nil {
		traits.WaitConflict = func(ctx context.Context, t kv.Tx) error {
			if own, ok := t.(*tx); ok {
				t = own.Tx
			}
			return wait(ctx, t)
		}
	}
	return traits
}

// die ends the process as a crash does.
func (p *process) die() {
	if !p.dead {
		p.dead = true
		p.onDeath()
	}
}

// due counts a commit, and reports whether what is planned in n commits happens
// now.
func due(n *int) bool {
	if *n == 0 {
		return false
	}
	*n--
	return *n == 0
}

// stop lets everybody else run on for a while. Only one process is stopped at a
// time.
func (p *process) stop(ctx context.Context) {
	w := p.world
	if w.stopped || w.healing {
		return
	}
	until := w.clock.Now().Add(time.Duration(w.random.Int64N(int64(longestStop))))
	defer func(paused time.Time) {
		w.stopped, p.agenda.pausedUntil, w.log.stopped = false, paused, w.clock.Now()
	}(p.agenda.pausedUntil)
	w.options.Log("%v a process is stopped until %v", w.clock.Now().Sub(epoch), until.Sub(epoch))
	w.report.Stops++
	w.stopped, p.agenda.pausedUntil, w.log.stopped = true, never, w.clock.Now()
	for now := w.clock.Now(); now.Before(until) && now.Before(w.until); now = w.clock.Now() {
		if err := w.round(context.WithoutCancel(ctx)); err != nil {
			w.broken = append(w.broken, fmt.Errorf("while a process is stopped: %w", err))
			break
		}
	}
}

// never is behind the end of each run.
var never = epoch.AddDate(1, 0, 0)

// verb is what a write does.
type verb uint8

const (
	setKey verb = iota + 1
	clearKey
	clearRange
	change
	stampKey
	stampValue
)

// mutation is a write on its way to the store.
type mutation struct {
	verb  verb
	key   layout.Key
	value []byte
	do    func()
}

// is reports whether it does that to a kind of key.
func (m *mutation) is(v verb, kind string) bool {
	return m.verb == v && m.key.Kind != nil && m.key.Kind.Name == kind
}

// tx is a transaction of a process.
type tx struct {
	kv.Tx
	process *process
	tag     string
	bug     *plantedBug // nil for none
	wrote   bool
	began   time.Time
	taken   []layout.Lane // of the members that it takes
	// For bugs: the first inputs that it linked, and what it blocked.
	linked  map[layout.ID]layout.ID
	blocked []layout.ID
	holders []layout.WorkerID // whom it gives copies
}

// link notes an input that the transaction links to a future.
func (t *tx) link(id, input layout.ID) {
	if t.linked == nil {
		t.linked = map[layout.ID]layout.ID{}
	}
	if _, linked := t.linked[id]; !linked {
		t.linked[id] = input
	}
}

// keys are those of the cluster.
func (t *tx) keys() layout.Keyspace { return t.process.world.reader.Keys() }

// reader returns where reads go that leave conflicts.
func (t *tx) reader() kv.Reader {
	if t.bug != nil && t.bug.blind {
		return t.Tx.Snapshot()
	}
	return t.Tx
}

// Get implements kv.Tx.
func (t *tx) Get(key []byte) kv.Pending[[]byte] { return t.get(t.reader(), key) }

// GetRange implements kv.Tx.
func (t *tx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return t.getRange(t.reader(), r, o)
}

// Snapshot implements kv.Tx.
func (t *tx) Snapshot() kv.Reader { return snapshot{t, t.Tx.Snapshot()} }

type snapshot struct {
	tx    *tx
	inner kv.Reader
}

// Get implements kv.Reader.
func (s snapshot) Get(key []byte) kv.Pending[[]byte] { return s.tx.get(s.inner, key) }

// GetRange implements kv.Reader.
func (s snapshot) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return s.tx.getRange(s.inner, r, o)
}

func (t *tx) get(r kv.Reader, key []byte) kv.Pending[[]byte] {
	if t.process.dead {
		return kv.Ready[[]byte](nil, kv.ErrClosed)
	}
	pending := r.Get(key)
	if t.bug == nil || t.bug.get == nil {
		return pending
	}
	return kv.Later(func(ctx context.Context) ([]byte, error) {
		value, err := pending.Wait(ctx)
		return t.bug.get(t, key, value), err
	})
}

func (t *tx) getRange(r kv.Reader, span kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	if t.process.dead {
		return kv.Ready(kv.Page{}, kv.ErrClosed)
	}
	pending := r.GetRange(span, o)
	if t.bug == nil || t.bug.page == nil {
		return pending
	}
	return kv.Later(func(ctx context.Context) (kv.Page, error) {
		page, err := pending.Wait(ctx)
		page.Items = t.bug.page(t, page.Items)
		return page, err
	})
}

// ReadVersion implements kv.Tx.
func (t *tx) ReadVersion(ctx context.Context) (kv.Version, error) {
	if t.process.dead {
		return kv.NoVersion, kv.ErrClosed
	}
	return t.Tx.ReadVersion(ctx)
}

// AddReadConflictKey implements kv.Tx.
func (t *tx) AddReadConflictKey(key []byte) {
	if t.bug == nil || !t.bug.blind {
		t.Tx.AddReadConflictKey(key)
	}
}

// AddReadConflictRange implements kv.Tx.
func (t *tx) AddReadConflictRange(r kv.Range) {
	if t.bug == nil || !t.bug.blind {
		t.Tx.AddReadConflictRange(r)
	}
}

// write notes a write, and lets the planted bug at it.
func (t *tx) write(v verb, key, value []byte, do func()) {
	t.wrote = true
	switch t.tag {
	case tagBegin, tagClaim:
		t.note(v, key, value)
	case tagGather:
		if err := t.noteGather(&mutation{verb: v, key: keyspace.Table().Parse(key), value: value}); err != nil {
			t.process.world.broken = append(t.process.world.broken, err)
		}
	case tagFinish, tagClone, tagLose, tagPut, tagUnschedulable:
		t.noteObject(&mutation{verb: v, key: keyspace.Table().Parse(key), value: value})
	}
	if t.bug == nil || t.bug.write == nil {
		do()
		return
	}
	t.bug.write(t, &mutation{v, keyspace.Table().Parse(key), value, do})
}

// note keeps what processes said about their claims.
func (t *tx) note(v verb, key, value []byte) {
	m := mutation{verb: v, key: keyspace.Table().Parse(key)}
	w := t.process.world
	switch {
	case m.is(setKey, layout.WorkerSuspect):
		w.log.begun[m.key.ID]++
	case m.is(stampValue, layout.StateClaim):
		t.process.claims[m.key.ID] = slices.Clone(value)
		var claim layout.Claim
		if _, err := layout.DecodeStamped(key, value, &claim); err != nil {
			w.broken = append(w.broken, err)
			return
		}
		if w.claimed[claim.Worker] == nil {
			w.claimed[claim.Worker] = map[layout.ID]int64{}
		}
		w.claimed[claim.Worker][m.key.ID] = claim.Sequence
		w.noteFloors(runKey{m.key.ID, claim.Token})
	}
}

// Set implements kv.Tx.
func (t *tx) Set(key, value []byte) {
	t.write(setKey, key, value, func() { t.Tx.Set(key, value) })
}

// Clear implements kv.Tx.
func (t *tx) Clear(key []byte) { t.write(clearKey, key, nil, func() { t.Tx.Clear(key) }) }

// ClearRange implements kv.Tx.
func (t *tx) ClearRange(r kv.Range) {
	t.write(clearRange, r.Begin, nil, func() { t.Tx.ClearRange(r) })
}

// Atomic implements kv.Tx.
func (t *tx) Atomic(op kv.AtomicOp, key, param []byte) {
	t.write(change, key, param, func() { t.Tx.Atomic(op, key, param) })
}

// SetVersionstampedKey implements kv.Tx.
func (t *tx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	t.write(stampKey, key, value, func() { t.Tx.SetVersionstampedKey(key, offset, value) })
}

// SetVersionstampedValue implements kv.Tx.
func (t *tx) SetVersionstampedValue(key, value []byte, offset int) {
	t.write(stampValue, key, value, func() { t.Tx.SetVersionstampedValue(key, value, offset) })
}

// Commit implements kv.Tx.
func (t *tx) Commit(ctx context.Context) (kv.Committed, error) {
	p, none := t.process, kv.Committed{Version: kv.NoVersion}
	if t.wrote && due(&p.stopIn) {
		p.stop(ctx)
	}
	switch {
	case p.dead:
		return none, kv.ErrClosed
	case t.wrote && due(&p.dieIn):
		p.world.report.Deaths++
		if p.world.random.IntN(2) == 0 {
			_, _ = t.Tx.Commit(context.WithoutCancel(ctx)) // nobody is left to hear of it
		}
		p.die()
		return none, kv.ErrClosed
	}
	paused := t.takesPaused()
	committed, err := t.Tx.Commit(ctx)
	switch {
	case err == nil && paused:
		p.world.flaw("a worker took %d members of lane %s, which is paused", len(t.taken), t.taken[0])
	case err == nil && t.tag == tagBeat:
		p.beat = t.began
	}
	p.unsure = t.tag == tagSchedule && kv.MaybeCommitted(err)
	if err == nil && len(t.holders) > 0 && t.tag != tagFinish {
		t.checkHolders()
	}
	return committed, err
}
