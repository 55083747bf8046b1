package sim

import (
	"slices"

	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/promises"
)

// promiseTags are those of transactions that complete promises.
var promiseTags = []string{"futura-fulfill", "futura-decline"}

// promiseBugs are about promises. They need runs that have some: Options.Promises.
func promiseBugs() []plantedBug {
	return []plantedBug{
		{name: "promise resolved twice", text: "a promise that is over is shown as one that waits", tags: promiseTags,
			page: showWaiting},
		{name: "promises without conflicts", text: "who completes a promise does not see what others do meanwhile",
			tags: append([]string{"futura-cancel"}, promiseTags...), blind: true},
		{name: "former token kept", text: "a new token does not replace the former one", tags: []string{"futura-token"},
			write: drop(setKey, promises.KeyPromise)},
		{name: "promise without a token", text: "the token of a new promise is not stored", tags: []string{"futura-promise"},
			write: drop(setKey, promises.KeyPromise)},
		{name: "promise still waits", text: "a promise that is resolved stays where it waited", tags: promiseTags,
			write: drop(clearKey, layout.PlaceBlocked)},
		{name: "promise never expires", text: "the end of a promise is in no done list", tags: promiseTags,
			write: drop(stampKey, "done")},
		{name: "promise counted twice", text: "the end of a promise is counted twice", tags: promiseTags,
			write: twice(change, layout.KeyCount)},
		{name: "rejection lost", text: "a rejection leaves no failure", tags: []string{"futura-decline"},
			write: drop(setKey, layout.StateException)},
	}
}

// showWaiting shows promises that have a result as if they had none.
func showWaiting(t *tx, items []kv.KeyValue) []kv.KeyValue {
	at := slices.IndexFunc(items, func(item kv.KeyValue) bool { return isKind(item.Key, layout.StateClaim) })
	if at < 0 {
		return items
	}
	items = slices.DeleteFunc(items, func(item kv.KeyValue) bool {
		return isKind(item.Key, layout.StateClaim) || isKind(item.Key, layout.StateResult)
	})
	spec := slices.IndexFunc(items, func(item kv.KeyValue) bool { return isKind(item.Key, layout.RowSpec) })
	if spec < 0 {
		return items
	}
	id := keyspace.Table().Parse(items[spec].Key).ID
	blocked := kv.KeyValue{Key: t.keys().State(id, layout.StateBlocked), Value: layout.Encode(&layout.BlockedRecord{})}
	return slices.Insert(items, spec+1, blocked)
}
