package sim

import (
	"bytes"
	"slices"

	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Bug names a bug that a run plants between the processes and their store. Bugs
// lists all.
type Bug string

// plantedBug changes what transactions with certain tags read and write.
type plantedBug struct {
	name Bug
	text string
	tags []string
	// write is called in place of a write, if it is set.
	write func(*tx, *mutation)
	// page changes what a read of a range finds, if it is set.
	page func(*tx, []kv.KeyValue) []kv.KeyValue
	// get changes what a read of a key finds, if it is set.
	get func(t *tx, key, value []byte) []byte
	// stale makes workers serve the first object that a future had.
	stale bool
	// blind makes reads leave no conflicts.
	blind bool
	// deaf makes workers say that they took over an object, and not do it.
	deaf bool
}

// Bugs returns all bugs that a run can plant, and what each does.
func Bugs() (names []Bug, texts map[Bug]string) {
	texts = map[Bug]string{}
	for _, b := range plantedBugs() {
		names = append(names, b.name)
		texts[b.name] = b.text
	}
	return names, texts
}

// planted returns the bug with that name, nil for none.
func (b Bug) planted() *plantedBug {
	for _, bug := range slices.Concat(plantedBugs(), promiseBugs(), actorBugs(), forkBugs()) {
		if bug.name == b {
			return &bug
		}
	}
	return nil
}

// Tags of transactions.
const (
	tagBegin         = "futura-begin"
	tagClaim         = "futura-claim"
	tagFinish        = "futura-finish"
	tagReap          = "futura-reap"
	tagResolve       = "futura-resolve"
	tagSubmit        = "futura-submit"
	tagAssign        = "futura-assign"
	tagDiscard       = "futura-discard"
	tagExpire        = "futura-expire"
	tagLose          = "futura-lose"
	tagClone         = "futura-clone"
	tagRead          = "futura-read"
	tagPut           = "futura-put"
	tagPin           = "futura-pin"
	tagUnschedulable = "futura-nofit"
)

// ends are the tags of transactions that end futures.
var ends = []string{tagFinish, tagReap, "futura-cancel", tagResolve}

func plantedBugs() []plantedBug {
	return slices.Concat(edgeBugs(), claimBugs(), endingBugs(), batchBugs(), copyBugs(), lineageBugs(),
		putBugs(), placeBugs(), progressBugs(), uniqueBugs(), timeBugs(), laneBugs(), bundleBugs(), jobBugs(),
		stepBugs())
}

// edgeBugs are about futures that take the results of others.
func edgeBugs() []plantedBug {
	return []plantedBug{
		{name: "wake-up lost", text: "an input stays on the list of those that a future waits for",
			tags: []string{tagFinish, tagResolve}, write: drop(clearKey, layout.KeyInput)},
		{name: "edge lost", text: "of several inputs, a future waits for the first only",
			tags: []string{tagSubmit, tagResolve}, write: dropFurtherInputs},
		{name: "list linked in part", text: "of a long list of inputs, only the first is linked", tags: []string{tagResolve},
			write: linkInPart},
		{name: "resolution lost", text: "nobody is told that a future ended", tags: ends,
			write: drop(setKey, layout.KeyResolve)},
		{name: "use lost", text: "an input does not know who uses it", tags: []string{tagSubmit, tagResolve},
			write: drop(setKey, layout.KeyDependant)},
		{name: "use released early", text: "the end of a future's input ends its use",
			tags: []string{tagFinish, tagResolve}, write: releaseEarly},
		{name: "used input removed", text: "a discard and an expiry don't see who uses the result",
			tags: []string{tagDiscard, tagExpire}, page: hide(layout.KeyDependant)},
		{name: "still blocked", text: "a future without open inputs stays blocked",
			tags: []string{tagFinish, tagResolve}, write: drop(clearKey, layout.PlaceBlocked)},
		{name: "failed input counts", text: "a failed input counts as a realized one", tags: []string{tagResolve},
			page: realizeFailed},
		{name: "end overlooked", text: "who looks what a future waits for does not see that its inputs have results",
			tags: []string{tagResolve}, page: hide(layout.StateResult)},
		{name: "running input counts", text: "a claimed input counts as a realized one", tags: []string{tagResolve},
			page: realizeClaimed},
		{name: "edges without conflicts", text: "what resolves dependencies does not see what changes meanwhile",
			tags: []string{tagResolve, tagSubmit}, blind: true},
	}
}

// claimBugs are about who may run a future.
func claimBugs() []plantedBug {
	return []plantedBug{
		{name: "claimed and ready", text: "a claim leaves the future in the index", tags: []string{tagClaim},
			write: drop(clearKey, layout.PlaceReady)},
		{name: "delayed and ready", text: "a future that is due stays among the delayed", tags: []string{"futura-promote"},
			write: drop(clearKey, layout.PlaceDelayed)},
		{name: "claims without conflicts", text: "two workers can claim one future", tags: []string{tagClaim}, blind: true},
		{name: "fence open", text: "a worker that lost its claim still ends the future", tags: []string{tagFinish},
			page: showOwnClaim},
		{name: "result missed", text: "a reaper does not see that the future is realized", tags: []string{tagReap},
			page: hide(layout.StateResult)},
		{name: "all charged", text: "a crash is charged to all that the worker had claimed", tags: []string{tagReap},
			page: chargeAll},
		{name: "claim list lost", text: "a claim is on no list of its worker", tags: []string{tagClaim},
			write: drop(setKey, layout.WorkerClaims)},
	}
}

// endingBugs are about what a future's end leaves.
func endingBugs() []plantedBug {
	return []plantedBug{
		{name: "attempt counted twice", text: "a failed attempt counts as two", tags: []string{tagFinish},
			write: alter(layout.StateAttempts, func(a *layout.Attempts) {
				if a.Failed > 0 {
					a.Failed++
				}
			})},
		{name: "counter off", text: "a change of state is counted twice", tags: []string{tagFinish},
			write: twice(change, layout.KeyCount)},
		{name: "never expires", text: "an end is in no done list", tags: ends, write: drop(stampKey, "done")},
		{name: "mail lost", text: "an end is in no mailbox", tags: ends, write: drop(stampKey, layout.KeyMail)},
		{name: "subscriber lost", text: "who subscribes is not told", tags: []string{"futura-subscribe"},
			write: drop(setKey, "subscriber")},
		{name: "result torn", text: "the first piece of a large result is missing", tags: []string{"futura-chunk"},
			write: tearResult},
		{name: "finish without conflicts", text: "what ends futures does not see what changes meanwhile",
			tags: []string{tagFinish}, blind: true},
	}
}

// batchBugs are about items of batches.
func batchBugs() []plantedBug {
	return []plantedBug{
		{name: "item held and assigned", text: "an item with a worker still waits for one", tags: []string{tagAssign},
			write: drop(clearKey, layout.PlaceHeld)},
		{name: "item given twice", text: "two heads can give out one item", tags: []string{tagAssign}, blind: true},
		{name: "item lost with its worker", text: "an item of a dead worker waits for no other", tags: []string{tagReap},
			write: drop(setKey, layout.PlaceHeld)},
		{name: "item still out", text: "an item that ends is still counted as one with a worker", tags: []string{tagFinish},
			write: drop(change, layout.KeyOwnerOpen)},
	}
}

// drop leaves out a write.
func drop(v verb, kind string) func(*tx, *mutation) {
	return func(_ *tx, m *mutation) {
		if !m.is(v, kind) {
			m.do()
		}
	}
}

// twice does a write twice.
func twice(v verb, kind string) func(*tx, *mutation) {
	return func(_ *tx, m *mutation) {
		if m.do(); m.is(v, kind) {
			m.do()
		}
	}
}

// record is a pointer to a record.
type record[T any] interface {
	*T
	layout.Record
}

// altered is a record with a change, or the value as it is if it is not one of that kind.
func altered[T any, R record[T]](key, value []byte, kind string, change func(R)) []byte {
	r := R(new(T))
	if value == nil || !isKind(key, kind) || layout.Decode(key, value, r) != nil {
		return value
	}
	change(r)
	return layout.Encode(r)
}

// alter writes other records of a kind.
func alter[T any, R record[T]](kind string, change func(R)) func(*tx, *mutation) {
	return func(t *tx, m *mutation) {
		if !m.is(setKey, kind) {
			m.do()
			return
		}
		t.Tx.Set(m.key.Raw, altered(m.key.Raw, m.value, kind, change))
	}
}

// show has reads of a key find other records of a kind.
func show[T any, R record[T]](kind string, change func(R)) func(*tx, []byte, []byte) []byte {
	return func(_ *tx, key, value []byte) []byte { return altered(key, value, kind, change) }
}

// showAll has reads of a range find other records of a kind.
func showAll[T any, R record[T]](kind string, change func(R)) func(*tx, []kv.KeyValue) []kv.KeyValue {
	return func(_ *tx, items []kv.KeyValue) []kv.KeyValue {
		for i := range items {
			items[i].Value = altered(items[i].Key, items[i].Value, kind, change)
		}
		return items
	}
}

// hide leaves out what a read of a range finds.
func hide(kind string) func(*tx, []kv.KeyValue) []kv.KeyValue {
	return func(_ *tx, items []kv.KeyValue) []kv.KeyValue {
		return slices.DeleteFunc(items, func(item kv.KeyValue) bool { return isKind(item.Key, kind) })
	}
}

func isKind(key []byte, kind string) bool {
	k := keyspace.Table().Parse(key)
	return k.Kind != nil && k.Kind.Name == kind
}

func dropFurtherInputs(t *tx, m *mutation) {
	if m.is(setKey, layout.KeyInput) {
		if _, linked := t.linked[m.key.ID]; linked {
			return
		}
		t.link(m.key.ID, m.key.Future("input"))
	}
	m.do()
}

// linkInPart leaves out both ends of all edges of a future but one.
func linkInPart(t *tx, m *mutation) {
	if m.is(setKey, layout.KeyInput) || m.is(setKey, layout.KeyDependant) {
		input := m.key.Future("input")
		if first, linked := t.linked[m.key.ID]; linked && first != input {
			return
		}
		t.link(m.key.ID, input)
	}
	m.do()
}

func releaseEarly(t *tx, m *mutation) {
	if m.do(); m.is(clearKey, layout.KeyInput) {
		t.Tx.Clear(t.keys().Dependant(m.key.Future("input"), m.key.ID))
	}
}

// realizeFailed replaces the failure of each future by a result.
func realizeFailed(t *tx, items []kv.KeyValue) []kv.KeyValue {
	for i, item := range items {
		key := keyspace.Table().Parse(item.Key)
		var failure layout.Exception
		if !isKind(item.Key, layout.StateException) || layout.Decode(item.Key, item.Value, &failure) != nil {
			continue
		}
		if !failure.Final {
			return items
		}
		token := layout.Token{Worker: "nobody", Sequence: 1}
		return slices.Concat(items[:i], []kv.KeyValue{
			{Key: t.keys().State(key.ID, layout.StateClaim), Value: layout.EncodeStamped(&layout.Claim{Token: token})},
			{Key: t.keys().State(key.ID, layout.StateResult), Value: layout.EncodeStamped(&layout.Result{Token: token})},
		}, items[i+1:])
	}
	return items
}

// realizeClaimed gives each claimed future the result of its claim.
func realizeClaimed(t *tx, items []kv.KeyValue) []kv.KeyValue {
	var results []kv.KeyValue
	for _, item := range items {
		var claim layout.Claim
		if !isKind(item.Key, layout.StateClaim) {
			continue
		}
		if _, err := layout.DecodeStamped(item.Key, item.Value, &claim); err == nil {
			key := t.keys().State(keyspace.Table().Parse(item.Key).ID, layout.StateResult)
			results = append(results, kv.KeyValue{Key: key, Value: layout.EncodeStamped(&layout.Result{Token: claim.Token})})
		}
	}
	byKey := func(a, b kv.KeyValue) int { return bytes.Compare(a.Key, b.Key) }
	items = slices.Concat(items, results)
	slices.SortStableFunc(items, byKey)
	return slices.CompactFunc(items, func(a, b kv.KeyValue) bool { return byKey(a, b) == 0 })
}

// showOwnClaim shows a worker the claim that it once wrote.
func showOwnClaim(t *tx, items []kv.KeyValue) []kv.KeyValue {
	for i, item := range items {
		key := keyspace.Table().Parse(item.Key)
		own := t.process.claims[key.ID]
		switch {
		case own == nil:
		case isKind(item.Key, layout.StateClaim):
			items[i].Value = own
			return items
		case isKind(item.Key, "attempts"):
			claim := kv.KeyValue{Key: t.keys().State(key.ID, layout.StateClaim), Value: own}
			if !slices.ContainsFunc(items, func(item kv.KeyValue) bool { return isKind(item.Key, layout.StateClaim) }) {
				return slices.Insert(items, i+1, claim)
			}
		}
	}
	return items
}

// chargeAll makes a worker that began one poison candidate have begun all of its futures.
func chargeAll(t *tx, items []kv.KeyValue) []kv.KeyValue {
	if len(items) == 0 || !isKind(items[0].Key, layout.WorkerSuspect) {
		return items
	}
	key := keyspace.Table().Parse(items[0].Key)
	var first layout.SuspectRecord
	if layout.Decode(items[0].Key, items[0].Value, &first) != nil {
		return items
	}
	worker := layout.WorkerID(key.Text("worker"))
	var all []kv.KeyValue
	for id, sequence := range t.process.world.claimed[worker] {
		all = append(all, kv.KeyValue{
			Key:   t.keys().Suspect(worker, id),
			Value: layout.Encode(&layout.SuspectRecord{Sequence: sequence, Deaths: first.Deaths}),
		})
	}
	slices.SortFunc(all, func(a, b kv.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	return all
}

func tearResult(_ *tx, m *mutation) {
	first := m.is(setKey, layout.KeyChunk) && m.key.Text("kind") == layout.ChunkResult && m.key.Int("piece") == 0
	if !first {
		m.do()
	}
}
