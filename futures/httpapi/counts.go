package httpapi

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

const (
	// maxQueues is the maximum number of queues that are counted one by one, and of
	// owners of futures.
	maxQueues = 100
	// otherQueues is the name of all other queues. No queue has this name.
	otherQueues = "(other)"
)

// counts are the counters of one reading.
type counts struct {
	// all are those of each queue and owner, queues those of each queue.
	all, queues []Count
}

// newCounts returns the counters of a cluster, for all who ask.
func newCounts(client *futures.Client) *shared[counts] {
	return &shared[counts]{from: func(ctx context.Context) (counts, error) {
		found, err := client.Counts(ctx)
		return countsOf(found), err
	}}
}

// countsOf returns the counters that are not 0, in a fixed order. All but the
// queues with the most futures are added up as one, and so are owners.
func countsOf(found layout.Counts) counts {
	byQueue := layout.Counts{}
	for k, n := range found {
		byQueue[layout.CountKey{Queue: k.Queue, State: k.State}] += n
	}
	return counts{all: largest(found), queues: largest(byQueue)}
}

// largest returns the counters of the queues and owners with the most futures.
func largest(found layout.Counts) []Count {
	type group struct{ queue, owner string }
	totals := map[group]int64{}
	for k, n := range found {
		totals[group{k.Queue, k.Owner}] += n
	}
	groups := make([]group, 0, len(totals))
	for g := range totals {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(totals[b], totals[a]), strings.Compare(a.queue, b.queue),
			strings.Compare(a.owner, b.owner))
	})
	shown := map[group]bool{}
	for _, g := range groups[:min(len(groups), maxQueues)] {
		shown[g] = true
	}
	sums := layout.Counts{}
	for k, n := range found {
		if !shown[group{k.Queue, k.Owner}] {
			k.Queue, k.Owner = otherQueues, ""
		}
		sums[k] += n
	}
	list := []Count{}
	for k, n := range sums {
		if n != 0 {
			list = append(list, Count{Queue: k.Queue, Owner: k.Owner, State: k.State.String(), Futures: n})
		}
	}
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.Owner, b.Owner), strings.Compare(a.State, b.State))
	})
	return list
}
