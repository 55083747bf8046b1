package modeltest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/batches"
	"github.com/futura-run/futura/fdbmodel/forks"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/fdbmodel/pauses"
	"github.com/futura-run/futura/fdbmodel/promises"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/fdbmodel/schedule"
	"github.com/futura-run/futura/fdbmodel/steps"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// Population is a cluster with a future in each state and of each kind.
type Population struct {
	C      *fdbmodel.Cluster
	DB     kv.Database
	Worker *fdbmodel.Registration
	IDs    map[layout.State]layout.ID
	Held   [2]layout.ID // the second one is assigned to the worker
	Large  layout.ID    // realized, with chunks
	Middle layout.ID    // ready, with a key for its arguments
	// Inputs are those of the blocked one: it waits for the first, the others are realized.
	Inputs [layout.MaxUnlistedInputs + 1]layout.ID
	// Lanes are futures in lanes, two of each kind, the second one in line: of the same
	// lane for the kinds narrow and rated, of another one for the kind turns.
	Lanes    [6]layout.ID
	Claim    layout.Token
	Begun    *fdbmodel.ClaimedFuture // the claimed one
	Result   layout.ChunkRef         // of large
	Args     layout.ChunkRef         // of large
	Step     layout.ChunkRef         // of a step of the claimed one
	Fork     layout.ID               // of the failed one
	lease    *joblog.Lease
	promises int
}

// Populate makes a population. It satisfies every invariant.
func Populate(t *testing.T) *Population {
	ctx := context.Background()
	db := storetest.New(t)
	c, err := fdbmodel.Open(ctx, db, "check", fdbmodel.Options{
		Clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000)), Config: layout.Config{Shards: 16},
	})
	require.NoError(t, err)
	p := &Population{C: c, DB: db, IDs: map[layout.State]layout.ID{}}
	p.addGlobals(t)
	p.Worker, err = c.Register(ctx, layout.WorkerInfo{
		Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 9}, Address: "10.0.0.1:1",
	})
	require.NoError(t, err)
	require.NoError(t, mailbox.Open(c, "s").Refresh(ctx))
	submit := func(args int) layout.ID { return submitUnique(t, c, args, nil) }
	claim := func() *fdbmodel.ClaimedFuture {
		answer, err := p.Worker.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
		require.NoError(t, err)
		require.Len(t, answer.Futures, 1)
		return &answer.Futures[0]
	}
	finish := func(done fdbmodel.Completion) {
		outcomes, err := p.Worker.Finish(ctx, []fdbmodel.Completion{done})
		require.NoError(t, err)
		require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied}, outcomes)
	}
	p.IDs[layout.Realized] = submit(10)
	f := claim()
	beside := p.actOn(t, f)
	finish(fdbmodel.Completion{Future: f, Result: &layout.Result{Value: []byte("v")}, Beside: beside})
	p.Large = submit(100_000)
	f = claim()
	ref, err := results.Of(c).Store(ctx, f.ID, f.Token, make([]byte, 200_000))
	require.NoError(t, err)
	finish(fdbmodel.Completion{Future: f, Result: &layout.Result{ValueRef: &ref, Size: ref.Size}})
	p.Result, p.Args = ref, *f.Spec.ArgsRef
	for i := range p.Inputs[1:] {
		p.Inputs[1+i] = submit(10)
		result := [...]layout.Result{{Object: "hash", Size: 5}, {Value: []byte("v")}}[min(i, 1)]
		finish(fdbmodel.Completion{Future: claim(), Result: &result})
	}
	p.IDs[layout.Failed] = submitUnique(t, c, 10, &fdbmodel.Unique{Key: "failed", For: time.Hour})
	failed := layout.Exception{Kind: layout.KindError, Message: "m"}
	finish(fdbmodel.Completion{Future: claim(), Exception: &failed})
	require.NoError(t, c.Retry(ctx, p.IDs[layout.Failed]))
	finish(fdbmodel.Completion{Future: claim(), Exception: &failed})
	p.IDs[layout.Claimed] = submit(10)
	p.Begun = claim()
	p.Claim = p.Begun.Token
	p.report(t)
	p.recordSteps(t)
	p.fork(t)
	p.IDs[layout.Delayed], p.Inputs[0] = submitLater(t, c, time.Hour), submitLater(t, c, 2*time.Hour)
	p.IDs[layout.Ready] = submit(10)
	p.Middle = submitUnique(t, c, 5000, &fdbmodel.Unique{Key: "middle"})
	require.NoError(t, results.Of(c).Pin(ctx, p.Middle, "p", ""))
	p.hold(t)
	got, err := c.Submit(ctx, []fdbmodel.Submission{{
		Key: "blocked", Spec: layout.Spec{Function: "go:f", Tags: []string{"t"}}, Inputs: p.Inputs[:],
	}})
	require.NoError(t, err)
	p.IDs[layout.Blocked] = got[0].ID
	require.Len(t, p.IDs, len(layout.States()))
	p.fillLanes(t)
	p.EnterIdleRing(t)
	report := p.Check(t)
	require.Empty(t, append(report.Notes, report.Problems...))
	return p
}

// fork makes a fork of the future that has failed, and cancels it.
func (p *Population) fork(t *testing.T) {
	ctx, request := context.Background(), forks.Request{Source: p.IDs[layout.Failed], From: forks.FromStart()}
	made, err := forks.Of(p.C).Make(ctx, []forks.Request{request})
	require.NoError(t, err)
	require.NoError(t, made[0].Err)
	p.Fork = made[0].ID
	_, _, err = p.C.Cancel(ctx, p.Fork, "a fork")
	require.NoError(t, err)
}

// hold makes a batch with two futures, and assigns one.
func (p *Population) hold(t *testing.T) {
	ctx, spec := context.Background(), layout.Spec{Function: "go:f", Owner: "g"}
	got, err := p.C.Submit(ctx, []fdbmodel.Submission{{Spec: spec}, {Spec: spec}})
	require.NoError(t, err)
	p.Held = [2]layout.ID{got[0].ID, got[1].ID}
	batch := &layout.BatchRecord{ID: "b", Template: []byte("{}"), Made: true, CreatedAt: 7}
	require.NoError(t, batches.Of(p.C).Create(ctx, batch))
	chunk := layout.BatchChunk{Worker: p.Worker.ID(), ID: "c"}
	_, _, err = batches.Of(p.C).AssignChunk(ctx, "b", chunk, p.Held[1:], AnyBatch)
	require.NoError(t, err)
}

// report has the future that runs tell how far it is.
func (p *Population) report(t *testing.T) {
	_, err := p.Worker.WriteProgress(context.Background(), func() []fdbmodel.Progress {
		return []fdbmodel.Progress{{Future: p.Begun, Done: 1, Total: 2, Text: "half", At: time.UnixMilli(1)}}
	})
	require.NoError(t, err)
}

// Actor is the one actor of a population.
var Actor = actors.Ref{Type: "account", Key: "a"}

// ActorState is its state, which is too large for its head.
var ActorState = bytes.Repeat([]byte("s"), actors.MaxInHead+1)

// actOn has the end of an attempt write the state of an actor.
func (p *Population) actOn(t *testing.T, f *fdbmodel.ClaimedFuture) *fdbmodel.Beside {
	state, err := actors.Of(p.C).Read(context.Background(), Actor)
	require.NoError(t, err)
	part := actors.Part{Name: "p", PartRecord: actors.PartRecord{Value: []byte("v")}}
	beside, _, err := actors.Of(p.C).Turn(f, []actors.Change{
		{Read: state, Write: true, Value: ActorState, Schema: 1, Parts: []actors.Part{part}},
	})
	require.NoError(t, err)
	return beside
}

// recordSteps has the future that runs record two steps, of which the second one is large and unused.
func (p *Population) recordSteps(t *testing.T) {
	ctx, at := context.Background(), steps.Of(p.C)
	ref, err := at.Store(ctx, p.Begun.ID, p.Begun.Token, "large", make([]byte, 100_000))
	require.NoError(t, err)
	p.Step = ref
	record := steps.Record{Token: p.Begun.Token, Number: 1, Attempt: 1, Value: []byte("v"), Size: 1, At: 1}
	large := steps.Record{Token: p.Begun.Token, Number: 2, Attempt: 1, ValueRef: &ref, Size: ref.Size, At: 2}
	recorded, _, err := at.Write(ctx, p.Worker, []steps.Entry{
		{Future: p.Begun, Name: "charge", Record: record, First: true}, {Future: p.Begun, Name: "large", Record: large},
	})
	require.NoError(t, err)
	require.Equal(t, []bool{true, true}, recorded)
	unused := at.Unused(p.Begun, []string{"large"}, false)
	p.Write(t, func(tx kv.Tx) { tx.Set(unused.Key, unused.Value) })
}

// fillLanes makes lanes with futures in line.
func (p *Population) fillLanes(t *testing.T) {
	ctx := context.Background()
	for name, k := range map[string]layout.LaneKind{
		"narrow": {}, "turns": {Total: 1}, "rated": {Width: 2, Rate: 1, Every: time.Hour},
	} {
		require.NoError(t, lanes.Of(p.C).SetKind(ctx, name, k))
	}
	for i, lane := range []layout.Lane{{Kind: "narrow", Key: "a"}, {Kind: "narrow", Key: "a"}, {Kind: "turns", Key: "a"},
		{Kind: "turns", Key: "b"}, {Kind: "rated", Key: "a"}, {Kind: "rated", Key: "a"}} {
		got, err := p.C.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f", Lane: lane}}})
		require.NoError(t, err)
		p.Lanes[i] = got[0].ID
	}
}

// limit sets limits that are far off.
func (p *Population) limit(tx kv.Tx) {
	tx.Set(quota.Keys(p.C.Keys()).Limits(), layout.Encode(&quota.Limits{Pending: 1e6, PerSecond: 1e6}))
	tx.Set(quota.Keys(p.C.Keys()).Rate(), layout.Encode(&quota.RateRecord{Tokens: 7, At: 1}))
	tx.Set(quota.Keys(p.C.Keys()).Usage(), layout.Encode(&quota.UsageRecord{Bytes: 1, At: 1}))
	used := meter.MeteredKey{Day: "2026-01-31", Kind: meter.Peer, Name: "p", Membership: "w"}
	tx.Set(meter.Keys(p.C.Keys()).Metered(used), layout.Encode(&meter.Metered{Items: 1, RunTime: time.Second}))
	var a meter.Activity
	a.Count(&meter.Ended{Function: "go:f", Queue: layout.DefaultQueue, Succeeded: true, Run: time.Second})
	minute := meter.ActivityKey{Step: meter.Minutes, At: 60, Membership: "w"}
	tx.Set(meter.Keys(p.C.Keys()).Activity(minute), layout.Encode(&a))
}

// Promise makes a promise.
func (p *Population) Promise(t *testing.T) promises.Made {
	p.promises++
	made, err := promises.Of(p.C).Make(context.Background(), fdbmodel.Submission{})
	require.NoError(t, err)
	return made
}

func submitUnique(t *testing.T, c *fdbmodel.Cluster, args int, u *fdbmodel.Unique) layout.ID {
	got, err := c.Submit(context.Background(), []fdbmodel.Submission{{Unique: u, Args: make([]byte, args),
		Spec: layout.Spec{Function: "go:f", Session: "s"}}})
	require.NoError(t, err)
	return got[0].ID
}

func submitLater(t *testing.T, c *fdbmodel.Cluster, wait time.Duration) layout.ID {
	due := c.Now().Add(wait)
	got, err := c.Submit(context.Background(), []fdbmodel.Submission{{NotBefore: due,
		Spec: layout.Spec{Function: "go:f", ExpiresAt: layout.Millis(due.Add(time.Hour))}}})
	require.NoError(t, err)
	return got[0].ID
}

// EnterIdleRing puts the worker into the ring of idle workers, as one that
// knows none of the functions.
func (p *Population) EnterIdleRing(t *testing.T) {
	request := fdbmodel.ClaimRequest{Runs: func(string) bool { return false }}
	watch, err := p.Worker.EnterIdleRing(context.Background(), request)
	require.NoError(t, err)
	watch.Cancel()
}

// Get reads a future.
func (p *Population) Get(t *testing.T, id layout.ID) layout.Row {
	row, err := p.C.Get(context.Background(), id)
	require.NoError(t, err)
	return row
}

// Futures returns how many futures there are.
func (p *Population) Futures() int64 {
	others := p.promises + 3 // the large one, the middle one, and the fork
	return int64(len(p.IDs) + len(p.Held) + len(p.Inputs) + len(p.Lanes) + others)
}

// Check audits the cluster.
func (p *Population) Check(t *testing.T) audit.Report {
	report, err := audit.Check(context.Background(), p.C, audit.Options{})
	require.NoError(t, err)
	return report
}

// Write commits raw writes that bypass the model.
func (p *Population) Write(t *testing.T, fn func(kv.Tx)) {
	tx := p.DB.Begin(kv.Options{})
	fn(tx)
	_, err := tx.Commit(context.Background())
	require.NoError(t, err)
}

// Row returns a future in a state, to be changed.
func (p *Population) Row(t *testing.T, s layout.State) *layout.Row {
	row, err := p.C.Get(context.Background(), p.IDs[s])
	require.NoError(t, err)
	return &row
}

// Enrich adds the kinds of keys that a population lacks.
func (p *Population) Enrich(t *testing.T) {
	ctx := context.Background()
	_, held, err := maintenance.Of(p.C).Acquire(ctx, p.Worker.ID(), nil, 1)
	require.NoError(t, err)
	require.True(t, held)
	_, _, err = mailbox.Open(p.C, "another").Subscribe(ctx, []layout.ID{p.IDs[layout.Ready], p.IDs[layout.Claimed]})
	require.NoError(t, err)
	_, _, err = p.C.Cancel(ctx, p.IDs[layout.Claimed], "not wanted")
	require.NoError(t, err)
	require.NoError(t, p.Worker.Begin(ctx, p.Begun))
	p.Promise(t)
	p.lease, _, err = joblog.Of(p.C).Take(ctx, JobsConsumer(), joblog.Take{})
	require.NoError(t, err)
	p.wake(t)
	p.EnterIdleRing(t)
	p.Write(t, func(tx kv.Tx) {
		tx.Set(p.C.Keys().Incoming(), layout.Encode(&layout.IncomingRecord{Writer: "w"}))
		tx.Set(p.C.Keys().Resolve(p.IDs[layout.Blocked]), layout.Encode(&layout.ResolveRecord{Released: 1}))
		p.limit(tx)
		tx.Set(p.C.Keys().PendingCheck(p.IDs[layout.Blocked], p.Inputs[1]), layout.Mark())
	})
}

// Items returns every key of the cluster.
func (p *Population) Items(t *testing.T) []kv.KeyValue {
	var items []kv.KeyValue
	require.NoError(t, p.C.EachKey(context.Background(), p.C.Keys().All(), func(item kv.KeyValue) error {
		items = append(items, item)
		return nil
	}))
	return items
}

// OpenMemory returns an empty store in memory, even if the tests run on a
// server.
func OpenMemory(t *testing.T) *embedded.Store {
	db := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// Leave ends the members of a population: its worker leaves with its claim, its
// session's record is removed, and its consumer of jobs stops.
func (p *Population) Leave(t *testing.T) {
	p.Write(t, func(tx kv.Tx) { tx.Clear(p.C.Keys().Incoming()) })
	require.NoError(t, p.Worker.Leave(context.Background()))
	if p.lease != nil {
		require.NoError(t, p.lease.Release(context.Background()))
	}
	sessions, err := maintenance.Of(p.C).Sessions(context.Background())
	require.NoError(t, err)
	for session := range sessions {
		require.NoError(t, maintenance.Of(p.C).DropSession(context.Background(), session))
	}
}

// wake writes the wake key of the worker, as a submit would.
func (p *Population) wake(t *testing.T) {
	ctx, tx := context.Background(), p.DB.Begin(kv.Options{})
	submitted, err := p.C.SubmitTx(ctx, tx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"}}})
	require.NoError(t, err)
	tx.Cancel()
	p.C.Wake(ctx, kv.NoVersion, submitted)
}

// AnyBatch lets a chunk be assigned whatever its batch is like.
func AnyBatch(*layout.BatchRecord) bool { return true }

// Jobs is the log of jobs of a population, from its second job to its fourth. Its
// consumer has done the first three but for the second, which it has parked and is
// to try again.
const Jobs = "jobs"

// JobsConsumer is the consumer of Jobs.
func JobsConsumer() joblog.Consumer { return joblog.Consumer{Queue: Jobs, Name: "consumer"} }

// addGlobals adds what is not a future: a module, a schedule, a pause and a log of jobs.
func (p *Population) addGlobals(t *testing.T) {
	ctx := context.Background()
	_, err := modules.Of(p.C).Put(ctx, []byte("not really a module"), "alias")
	require.NoError(t, err)
	daily := schedule.Record{Name: "daily", Cron: "@daily", Spec: layout.Spec{Function: "go:f"}}
	_, _, err = schedule.Of(p.C).Put(ctx, daily, true)
	require.NoError(t, err)
	_, err = pauses.Of(p.C).Pause(ctx, pause.Queue, "idle", "nobody needs it")
	require.NoError(t, err)
	_, err = quota.Of(p.C).ReservePace(ctx, &layout.Pace{Key: "example.com", PerSecond: 1}, 1)
	require.NoError(t, err)
	_, _, err = joblog.Of(p.C).Append(ctx, joblog.Append{Queue: Jobs, Producer: "producer", Sequence: 1, Keep: true,
		Jobs: [][]byte{[]byte("one"), []byte("two"), nil, []byte("four")}})
	require.NoError(t, err)
	lease, _, err := joblog.Of(p.C).Take(ctx, JobsConsumer(), joblog.Take{})
	require.NoError(t, err)
	parked := []joblog.ParkedJob{{Index: 2, Value: []byte("two"), Attempts: 3, Error: "failed"}}
	require.NoError(t, lease.Commit(ctx, 0, 3, parked, joblog.Effects{}))
	require.NoError(t, lease.Release(ctx))
	require.NoError(t, joblog.Of(p.C).RetryParked(ctx, JobsConsumer(), 2))
	_, err = joblog.Of(p.C).Trim(ctx, Jobs, 2)
	require.NoError(t, err)
}
