package modeltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/fit"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/fdbmodel/owners"
	"github.com/futura-run/futura/fdbmodel/promises"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// cutContext ends after a number of calls that ask whether it has ended.
type cutContext struct {
	context.Context
	left int
}

func (c *cutContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return c.Context.Err()
}

// actorWorker is a worker as the machine knows it. Its futures may have been
// taken from it.
type actorWorker struct {
	*fdbmodel.Registration
	held  []*fdbmodel.ClaimedFuture
	begun map[layout.ID]int64 // claims of futures that it may have recorded to run
	gone  bool                // it left, or was declared dead
	doubt bool                // one of its claims was interrupted
}

// change reports whether an operation may turn one row into another; the first
// is nil for a new future, the second for a removed one.
type change func(before, after *layout.Row) bool

// operation runs one operation and says which changes it may make.
type operation func(context.Context) (change, error)

// Machine runs random operations on a cluster and predicts what each may do.
type Machine struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	Clock  *clock.Virtual
	disk   *vfs.MemFS
	Store  kv.Database
	Faults *faultkv.Database
	// unstored is set when a module was removed as one that nothing uses.
	unstored bool
	C        *fdbmodel.Cluster
	names    int
	tokens   map[layout.ID][]promises.Token // of promises, as they were drawn
	pausing  pausing
	peers    peerOps

	workers       []*actorWorker
	crashed       []*actorWorker // of processes that crashed: what they had begun counts when they are reaped
	Rows          map[layout.ID]*layout.Row
	lost          map[layout.ID]bool // futures whose results were lost
	away          map[layout.ID][]awayCopy
	missed        map[missedCopy]bool
	unschedulable fit.Unschedulable
	unplaceable   results.UnplaceableWalk
	boxes         map[layout.SessionID]*mailbox.Mailbox
	watched       map[layout.SessionID]map[layout.ID]bool
	owed          map[layout.SessionID]map[string]bool // notices that must arrive
	seen          map[layout.SessionID]map[string]bool
	steps         machineSteps
	actors        machineActors
	rarely        []operation
	loose         []change // interrupted operations that may still commit
	log           []string
}

// NewMachine returns a machine on an empty store. The same seed makes the same
// machine.
func NewMachine(t *testing.T, seed uint64) *Machine {
	m := &Machine{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0xf0)),
		Clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000)), disk: vfs.NewCrashableMem(),
		tokens: map[layout.ID][]promises.Token{},
		Rows:   map[layout.ID]*layout.Row{}, lost: map[layout.ID]bool{}, boxes: map[layout.SessionID]*mailbox.Mailbox{},
		away: map[layout.ID][]awayCopy{}, missed: map[missedCopy]bool{},
		watched: map[layout.SessionID]map[layout.ID]bool{}, owed: map[layout.SessionID]map[string]bool{},
		seen: map[layout.SessionID]map[string]bool{}, steps: newMachineSteps(), actors: newMachineActors(),
		peers: peerOps{
			metered: map[layout.WorkerID]time.Duration{}, written: map[layout.WorkerID]time.Duration{},
			told: map[layout.WorkerID][]int64{}, paced: map[string]time.Time{},
		},
	}
	for _, s := range []layout.SessionID{"s1", "s2"} {
		m.watched[s], m.owed[s], m.seen[s] = map[layout.ID]bool{}, map[string]bool{}, map[string]bool{}
	}
	m.open()
	m.draw()
	return m
}

// open opens the store, for the first time or after a crash.
func (m *Machine) open() {
	odds := faultkv.Everywhere(m.random.Uint64(), 0.02)
	odds.LateAfter = 40
	db := m.openStore(odds)
	m.names++
	seed := [32]byte{byte(m.names), byte(m.seed), byte(m.seed >> 8), byte(m.seed >> 16)}
	var err error
	m.C, err = fdbmodel.Open(context.Background(), db, "machine", fdbmodel.Options{
		Clock: m.Clock, Random: rand.NewChaCha8(seed),
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Config: layout.Config{Shards: 2, Heartbeat: time.Second, Retention: time.Minute, InfeasibleAfter: infeasibleAfter,
			Policy: layout.Policy{DefaultTimeout: time.Second, MaxTimeout: 2 * time.Second, MaxPriority: 1}},
	})
	m.require(err)
	for s := range m.watched {
		m.boxes[s] = mailbox.Open(m.C, s)
	}
	m.Faults.Pause()
	m.setLanes()
	m.Faults.Resume()
}

// openStore opens the disk, or the server, and returns it with faults.
func (m *Machine) openStore(odds faultkv.Options) kv.Database {
	if storetest.OnServer {
		if m.Store == nil {
			m.Store = storetest.New(m.t)
		}
		m.Faults = faultkv.Wrap(m.Store, odds)
		return m.Faults
	}
	o := embedded.Options{FS: m.disk, Clock: m.Clock, Inline: true}
	store, err := embedded.Open(context.Background(), "store", o)
	m.require(err)
	m.Store, m.Faults = store, faultkv.Wrap(store, odds)
	return m.Faults
}

func (m *Machine) fail(format string, args ...any) {
	m.t.Helper()
	text := fmt.Sprintf(format, args...)
	if len(m.log) > 40 {
		m.log = m.log[len(m.log)-40:]
	}
	for _, line := range m.log {
		text += "\n  " + line
	}
	m.t.Fatalf("seed %d: %s", m.seed, text)
}

func (m *Machine) require(err error) {
	m.t.Helper()
	if err != nil {
		m.fail("%v", err)
	}
}

func (m *Machine) logf(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

// context returns a context that sometimes ends early.
func (m *Machine) context() context.Context {
	if m.random.IntN(12) == 0 {
		return &cutContext{context.Background(), m.random.IntN(30)}
	}
	return context.Background()
}

// wasCut reports whether an operation ended because its context did. Other
// errors are the machine's to judge.
func wasCut(ctx context.Context, err error) bool {
	c, ok := ctx.(*cutContext)
	return ok && c.left < 0 && (kv.Retryable(err) || errors.Is(err, context.Canceled))
}

// often are the operations that bring futures on from the states in which they are. Half of all steps are one
// of them, so that the others, one of rarely, meet futures in all states.
func (m *Machine) often() []operation {
	ops := []operation{m.submit, m.submit, m.crowd, m.staff, m.staff, m.promote, m.resolve}
	if _, waits := m.any(func(r *layout.Row) bool { return r.State() == layout.Ready }); waits {
		ops = append(ops, m.claim, m.claim, m.claim, m.claim)
	}
	if _, runs := m.any(func(r *layout.Row) bool { return r.State() == layout.Claimed }); runs {
		ops = append(ops, m.begin, m.gather, m.finish, m.finish, m.finish)
	}
	if _, found := m.any(hasObject); found {
		ops = append(ops, m.follow, m.follow, m.lose)
	}
	return append(ops, m.rare()...)
}

// draw draws which of the others a machine runs: a third of them. Machines that each favour something reach
// states that even ones hardly ever do.
func (m *Machine) draw() {
	m.rarely = slices.DeleteFunc([]operation{
		m.put, m.finish, m.late, m.late, m.wreck, m.poison, m.poison, m.poison, m.reappear, m.reappear,
		m.cancel, m.cancel, m.retry, m.retry, m.discard, m.promote, m.beat, m.die, m.die, m.reap, m.reap,
		m.register, m.leave, m.expire, m.sweep, m.listen, m.listen, m.subscribe, m.idle,
		m.janitor, m.infeasible, m.infeasible, m.replace, m.assign, m.assign, m.unassign, m.store, m.unstore,
		m.lose, m.lose, m.leaveCopies, m.leaveCopies,
		m.block, m.block, m.clone, m.pin, m.pin, m.reassign, m.free, m.limitCluster,
		m.schedule, m.schedule, m.overdue,
		m.report, m.report, m.recordStep, m.recordStep, m.recordStep, m.startOver, m.fork, m.fork,
		m.promise, m.promise, m.complete, m.complete, m.act, m.act, m.act,
		m.setLaneKind, m.pauseLane, m.admitDue, m.admitDue, m.pauseWork,
		m.beatMany, m.beatMany, m.forceReap, m.meter, m.meter, m.reservePace,
	}, func(operation) bool { return m.random.IntN(3) > 0 })
}

// Step runs one operation and checks everything.
func (m *Machine) Step() {
	if m.random.IntN(160) == 0 {
		m.crash()
		return
	}
	ctx := m.context()
	m.Clock.Advance(time.Millisecond)
	ops := m.often()
	if m.random.IntN(2) == 0 {
		ops = m.rarely
	}
	allowed, err := ops[m.random.IntN(len(ops))](ctx)
	if wasCut(ctx, err) {
		m.logf("  cut off: %v", err)
		m.loose = append(m.loose, allowed)
		if m.random.IntN(2) == 0 {
			m.Faults.Flush()
		}
	} else {
		m.require(err)
	}
	m.verify(allowed)
}

// verify checks the cluster, and compares it with its previous state.
func (m *Machine) verify(allowed change) {
	ctx := context.Background()
	m.Faults.Pause()
	defer m.Faults.Resume()
	report, err := audit.Check(ctx, m.C, audit.Options{})
	m.require(err)
	if len(report.Problems) > 0 {
		m.fail("%+v", report.Problems)
	}
	rows, next, err := inspect.List(ctx, m.C, inspect.Filter{}, nil, inspect.MaxList)
	m.require(err)
	require.Empty(m.t, next)
	now := map[layout.ID]*layout.Row{}
	for i := range rows {
		now[rows[i].ID] = &rows[i]
	}
	m.verifyLanes(now)
	m.verifyBounds(now)
	allowed = admitted(allowed)
	for i := range rows {
		rows[i].Attempts.Slot, rows[i].Attempts.Taken = false, false // an audit has compared them with the lanes
	}
	for i := range rows {
		m.compare(m.Rows[rows[i].ID], &rows[i], func(before, after *layout.Row) bool {
			return allowed(before, after) || m.isResolved(before, after, now) || isNear(before, after) ||
				isAdmitted(before, after) || isCalled(before, after) || m.endsOver(before, after) ||
				(isNeeded(m.Rows, rows[i].ID) || isNeeded(now, rows[i].ID)) && m.isLost(before, after)
		})
	}
	m.verifyInputs(now)
	for id, row := range m.Rows {
		if now[id] == nil {
			m.compare(row, nil, allowed)
		}
	}
	m.Rows = now
	m.lookAway(ctx)
	m.verifyOpen()
	m.verifyUnique()
	m.verifyModule()
	m.verifySteps(ctx)
	m.verifyActors(ctx)
	if m.Faults.Counts().Pending == 0 {
		m.loose = nil
	}
}

// verifyModule requires that a module was removed only while nothing needs it.
func (m *Machine) verifyModule() {
	for id, row := range m.Rows {
		if m.unstored && row.Spec.Function == moduleFunction && !row.State().Terminal() {
			m.fail("module was removed, and future %s is %s", id, row.State())
		}
	}
	m.unstored = false
}

// verifyOpen compares the counters of held futures with the futures.
func (m *Machine) verifyOpen() {
	open, err := owners.Of(m.C).Open(context.Background(), "g")
	m.require(err)
	n := int64(0)
	for _, row := range m.Rows {
		if row.Open() {
			n++
		}
	}
	if open["y"] != n || len(open) > 1 {
		m.fail("%d held futures are with workers, and the counters say %v", n, open)
	}
}

// digest is the part of a row that is compared.
func digest(r *layout.Row) string {
	if r == nil {
		return "none"
	}
	s := fmt.Sprintf("%v %+v cancel=%t", r.State(), r.Attempts, r.Cancel != nil)
	if r.Blocked != nil {
		s += fmt.Sprintf(" linked=%d", r.Blocked.Linked)
	}
	if r.InLine() {
		s += " in line"
	}
	if r.Pins != nil {
		s += fmt.Sprintf(" pins=%v", *r.Pins)
	}
	if r.Claim != nil {
		s += " claim=" + r.Claim.Token.String()
	}
	if r.Result != nil {
		s += fmt.Sprintf(" result=%v %x", r.Result.Token, r.Result.Value)
	}
	if r.Exception != nil {
		s += fmt.Sprintf(" exception=%v final=%t", r.Exception.Kind, r.Exception.Final)
	}
	return s + lifeDigest(r)
}

func (m *Machine) compare(before, after *layout.Row, allowed change) {
	if digest(before) == digest(after) {
		return
	}
	if before != nil && after != nil && before.Object() != "" && after.State() != layout.Realized {
		m.lost[before.ID] = true
	}
	if before != nil && after != nil && len(m.loose) == 0 && !remembers(before, after) {
		m.fail("the history of future %s changed from %+v to %+v", after.ID, before.History, after.History)
	}
	fits := allowed(before, after)
	for _, other := range m.loose {
		fits = fits || other(before, after)
	}
	// Two changes at once can't be told apart, except those of finished
	// futures.
	over := before != nil && before.State() == layout.Realized
	if !fits && (len(m.loose) == 0 || over) {
		m.fail("a change that the operation does not make:\n  %s\n  %s", digest(before), digest(after))
	}
	if after == nil {
		delete(m.lost, before.ID)
		delete(m.tokens, before.ID)
		for s := range m.watched {
			delete(m.watched[s], before.ID) // another future may get the same key
		}
	}
	if after != nil && after.State().Terminal() {
		for s := range m.watched {
			if after.Spec.Session == s || m.watched[s][after.ID] {
				m.owed[s][noticeKey(after.ID, after.State())] = true
			}
		}
	}
}

func noticeKey(id layout.ID, s layout.State) string { return id.String() + " " + s.String() }

// worker returns one of the workers, mostly a registered one, nil if there is
// none.
func (m *Machine) worker(alive bool) *actorWorker {
	var some []*actorWorker
	alive = alive || m.random.IntN(4) > 0
	for _, w := range m.workers {
		if !alive || !w.gone {
			some = append(some, w)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[m.random.IntN(len(some))]
}

// holder returns one of the workers that hold something, or held it when they
// were declared dead.
func (m *Machine) holder(alive bool) *actorWorker {
	var some []*actorWorker
	for _, w := range m.workers {
		if len(w.held) > 0 && !(alive && w.gone) {
			some = append(some, w)
		}
	}
	if len(some) == 0 {
		return m.worker(alive)
	}
	return some[m.random.IntN(len(some))]
}

// some returns a future, often a claimed one, and sometimes one that no longer
// exists.
func (m *Machine) some() layout.ID {
	ids, claimed := make([]layout.ID, 0, len(m.Rows)), []layout.ID(nil)
	for id, row := range m.Rows {
		ids = append(ids, id)
		if row.State() == layout.Claimed {
			claimed = append(claimed, id)
		}
	}
	if len(claimed) > 0 && m.random.IntN(3) == 0 {
		ids = claimed
	}
	if len(ids) == 0 {
		return layout.ID{15: 1}
	}
	slices.SortFunc(ids, func(a, b layout.ID) int { return slices.Compare(a[:], b[:]) })
	return ids[m.random.IntN(len(ids))]
}
