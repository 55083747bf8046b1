package sim

import (
	"slices"

	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// copyBugs are about copies of results that are objects.
func copyBugs() []plantedBug {
	return []plantedBug{
		{name: "stale copy served", text: "a worker serves the first result that a future had", stale: true},
		{name: "copies left behind", text: "who removes a future leaves the copies of its result",
			tags: []string{tagDiscard, tagExpire}, write: keepCopies},
		{name: "object of a dead worker", text: "a worker that was declared dead records what it has",
			tags: []string{tagFinish, tagClone}, get: allAlive},
		{name: "copy of a dead worker believed", text: "a dead worker counts as one that has its copy",
			tags: []string{tagLose}, get: allAlive},
		{name: "loss of one copy", text: "only the last copy of several counts", tags: []string{tagRead, tagLose},
			page: showOneCopy},
	}
}

// lineageBugs are about futures that run again because their results were lost.
func lineageBugs() []plantedBug {
	return []plantedBug{
		{name: "newer result lost", text: "a loss that is reported of an earlier result removes the present one",
			tags: []string{tagLose}, page: showReported},
		{name: "rebuild not counted", text: "a rebuild counts as none", tags: []string{tagLose},
			write: alter(layout.StateAttempts, func(a *layout.Attempts) { a.Rebuilt-- })},
		{name: "rebuild charged", text: "a rebuild counts as a failed attempt as well", tags: []string{tagLose},
			write: alter(layout.StateAttempts, func(a *layout.Attempts) { a.Failed++ })},
		{name: "wrong counter reset", text: "a rebuild resets the count of rebuilds", tags: []string{tagLose},
			write: alter(layout.StateAttempts, func(a *layout.Attempts) { a.Rebuilt = 1 })},
		{name: "forbidden rebuild", text: "a future that may not run again is rebuilt", tags: []string{tagLose},
			page: showAll(layout.RowSpec, func(s *layout.Spec) { s.AllowReconstruction = true })},
		{name: "rebuilds without conflicts", text: "who reports a loss does not see what changes meanwhile",
			tags: []string{tagLose}, blind: true},
		{name: "block without edges", text: "a run that is given back for a lost input is linked to none",
			tags: []string{tagFinish}, write: forgetBlock},
		{name: "lineage removed", text: "a future whose result is an object no longer uses its inputs",
			tags: []string{tagFinish}, write: releaseLineage},
	}
}

// keepCopies leaves out the removal of copies.
func keepCopies(_ *tx, m *mutation) {
	if m.verb != clearRange || m.key.Subspace != layout.SubResults {
		m.do()
	}
}

// allAlive makes each worker a member.
func allAlive(_ *tx, key, value []byte) []byte {
	if k := keyspace.Table().Parse(key); value == nil && isKind(key, layout.WorkerAlive) {
		worker := layout.WorkerID(k.Text("worker"))
		return layout.Encode(&layout.WorkerInfo{ID: worker})
	}
	return value
}

// showOneCopy shows the last copy of several.
func showOneCopy(_ *tx, items []kv.KeyValue) []kv.KeyValue {
	if len(items) > 1 && isKind(items[0].Key, layout.KeyCopy) {
		return items[:1]
	}
	return items
}

// showReported shows a process the result that it has tried to read.
func showReported(t *tx, items []kv.KeyValue) []kv.KeyValue {
	reading := t.process.reading
	for i, item := range items {
		key := keyspace.Table().Parse(item.Key)
		var result layout.Result
		var claim layout.Claim
		switch {
		case reading.id.IsZero() || key.ID != reading.id:
		case isKind(item.Key, layout.StateResult) && decodeStamped(item, &result):
			result.Token, result.Object = reading.token, "an earlier one"
			items[i].Value = layout.EncodeStamped(&result)
		case isKind(item.Key, layout.StateClaim) && decodeStamped(item, &claim):
			claim.Token = reading.token
			items[i].Value = layout.EncodeStamped(&claim)
		}
	}
	return items
}

func decodeStamped(item kv.KeyValue, record layout.Record) bool {
	_, err := layout.DecodeStamped(item.Key, item.Value, record)
	return err == nil
}

// forgetBlock leaves out the mark of a future that is blocked again.
func forgetBlock(t *tx, m *mutation) {
	if m.is(setKey, layout.PlaceBlocked) {
		t.blocked = append(t.blocked, m.key.ID)
	}
	if !m.is(setKey, layout.KeyResolve) || !slices.Contains(t.blocked, m.key.ID) {
		m.do()
	}
}

// releaseLineage ends the use of the inputs of a future whose result is an object.
func releaseLineage(t *tx, m *mutation) {
	m.do()
	r := t.process.world.client.byID[m.key.ID]
	if m.is(stampValue, layout.StateResult) && r != nil {
		for _, input := range r.submission.Inputs {
			t.Tx.Clear(t.keys().Dependant(input, m.key.ID))
		}
	}
}
