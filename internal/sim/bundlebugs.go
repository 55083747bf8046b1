package sim

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Tags of transactions of workers.
const (
	tagGather = "futura-gather"
	tagBeat   = "futura-beat"
)

// bundleBugs are about bundles.
func bundleBugs() []plantedBug {
	return []plantedBug{
		{name: "member gathered twice", text: "two bundles can take one member", tags: []string{tagGather}, blind: true},
		{name: "member lost with its bundle", text: "what a bundle takes is on no list of its worker",
			tags: []string{tagGather}, write: drop(setKey, layout.WorkerClaims)},
		{name: "bundle too large", text: "a bundle takes more members than it may", tags: []string{tagGather},
			get: show(layout.KeyLaneKind, func(k *layout.LaneKind) { k.Most += 3 })},
		{name: "bundle too heavy", text: "a bundle takes more bytes than it may", tags: []string{tagGather},
			get: show(layout.KeyLaneKind, func(k *layout.LaneKind) { k.Bytes *= 20 })},
		{name: "bundles mix lanes", text: "a bundle takes members of another lane", tags: []string{tagGather},
			page: showOtherLine},
		{name: "bundle never taken", text: "a bundle that has its members keeps others from theirs",
			tags: []string{tagGather}, write: keepLane},
		{name: "pause overlooked by bundles", text: "a bundle takes members of a lane that is paused",
			tags: []string{tagGather}, get: show(layout.KeyLane, func(r *layout.LaneRecord) { r.Paused = false })},
	}
}

// showOtherLine shows the line of the lane a in place of that of b, and the other way round.
func showOtherLine(t *tx, items []kv.KeyValue) []kv.KeyValue {
	if len(items) == 0 || !isKind(items[0].Key, layout.PlaceLine) {
		return items
	}
	key := keyspace.Table().Parse(items[0].Key)
	other := layout.Lane{Kind: key.Text("kind"), Key: "a"}
	if key.Text("key") == "a" {
		other.Key = "b"
	}
	page, err := t.Tx.GetRange(kv.Prefix(t.keys().LineOf(other)), kv.RangeOptions{Limit: len(items)}).
		Wait(context.Background())
	if err != nil || len(page.Items) == 0 {
		return items
	}
	return page.Items
}
