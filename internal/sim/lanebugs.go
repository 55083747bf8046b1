package sim

import (
	"context"
	"slices"

	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Tags of transactions that admit futures to lanes besides others.
const (
	tagLanes   = "futura-lanes"
	tagCancel  = "futura-cancel"
	tagPromote = "futura-promote"
)

// kindInLine is the kind of key of the record of a future in line.
const kindInLine = "in line"

// admits are the tags of all transactions that admit futures to lanes.
func admits() []string {
	return slices.Concat(ends, []string{tagSubmit, tagLanes, tagPromote, tagLose, tagUnschedulable, "futura-retry"})
}

// laneBugs are about lanes.
func laneBugs() []plantedBug {
	bugs := []plantedBug{
		{name: "overtaken in line", text: "a lane admits the last in line", page: showLastInLine,
			tags: append(admits(), tagGather)},
		{name: "retry without a slot", text: "a future that waits for its next attempt gives its slot to another",
			tags:  []string{tagSubmit},
			write: alter(layout.RowSpec, func(s *layout.Spec) { s.Aside = s.Aside || !s.Lane.IsZero() })},
		{name: "turn lost", text: "a lane that waits for its turn is in no queue", tags: admits(),
			write: drop(stampKey, layout.KeyLaneTurn)},
		{name: "never due", text: "nobody looks again at a lane that its rate holds back", tags: admits(),
			write: drop(setKey, layout.KeyLaneDue)},
		{name: "slot freed twice", text: "the end of a future frees two slots", tags: []string{tagFinish},
			write: alter(layout.KeyLane, func(r *layout.LaneRecord) { r.Open-- })},
		{name: "place in line kept", text: "a cancelled future keeps its place in line", tags: []string{tagCancel},
			write: drop(clearKey, layout.PlaceLine)},
		{name: "record of the line kept", text: "a cancelled future's record says that it is in line",
			tags: []string{tagCancel}, write: drop(clearKey, kindInLine)},
		{name: "line forgotten", text: "a lane does not know that futures are in line", tags: admits(),
			write: alter(layout.KeyLane, func(r *layout.LaneRecord) { r.Lined = false })},
		{name: "rate not used up", text: "an admission uses up no rate", tags: admits(),
			write: alter(layout.KeyLane, func(r *layout.LaneRecord) { r.Spent = 0 })},
		{name: "pause of a lane ended", text: "an end in a paused lane has it go on", tags: admits(),
			get: show(layout.KeyLane, func(r *layout.LaneRecord) { r.Paused = false })},
		{name: "width exceeded", text: "a lane admits one more than its width", tags: admits(),
			get: show(layout.KeyLaneKind, func(k *layout.LaneKind) { k.Width++ })},
		{name: "total width exceeded", text: "all lanes of a kind admit more than the total width", tags: admits(),
			get: show(layout.KeyLaneKind, func(k *layout.LaneKind) {
				if k.Total > 0 {
					k.Total += 3
				}
			})},
		{name: "slots without conflicts", text: "who admits futures does not see what changes meanwhile",
			tags: []string{tagSubmit, tagLanes, tagPromote, tagCancel}, blind: true},
	}
	for _, by := range []struct{ tag, text string }{
		{tagFinish, "an end by its worker"}, {tagCancel, "a cancel"}, {tagReap, "a reaper"},
	} {
		bugs = append(bugs, plantedBug{name: Bug("slot leaked by " + by.text), text: by.text + " does not free the slot",
			tags: []string{by.tag}, write: keepLane})
	}
	return bugs
}

// keepLane leaves out what changes the record of a lane.
func keepLane(_ *tx, m *mutation) {
	if !m.is(setKey, layout.KeyLane) && !m.is(clearKey, layout.KeyLane) {
		m.do()
	}
}

// showLastInLine shows the last futures in line in place of the first.
func showLastInLine(t *tx, items []kv.KeyValue) []kv.KeyValue {
	if len(items) == 0 || !isKind(items[0].Key, layout.PlaceLine) {
		return items
	}
	key := keyspace.Table().Parse(items[0].Key)
	line := t.keys().LineOf(layout.Lane{Kind: key.Text("kind"), Key: key.Text("key")})
	last := kv.RangeOptions{Limit: len(items), Reverse: true}
	page, err := t.Tx.GetRange(kv.Prefix(line), last).Wait(context.Background())
	if err != nil {
		return items
	}
	return page.Items
}
