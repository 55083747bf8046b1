package claim

import (
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Batches are the futures that claims of one worker took and that have not ended, by the number of the claim: each
// has a record, which the end of the last of them clears. Its methods may be called from many goroutines. The zero
// value holds none.
type Batches struct {
	mu      sync.Mutex
	held    map[int64][]layout.ID
	emptied []int64 // whose records still exist
}

// Ended is a future that ends, and the number of the claim.
type Ended struct {
	ID       layout.ID
	Sequence int64
}

// Hold adds a claim and what it took.
func (b *Batches) Hold(sequence int64, taken []layout.ReadyEntry) {
	ids := make([]layout.ID, len(taken))
	for i := range taken {
		ids[i] = taken[i].ID
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == nil {
		b.held = map[int64][]layout.ID{}
	}
	b.held[sequence] = ids
}

// All returns the futures of all claims.
func (b *Batches) All() (ids []layout.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, held := range b.held {
		ids = append(ids, held...)
	}
	return ids
}

// Exhausted returns the claims that are empty once some futures have ended, and those that are
// empty already, in order.
func (b *Batches) Exhausted(ended []Ended) []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	sequences := slices.Clone(b.emptied)
	for sequence := range sequencesOf(ended) {
		ids, known := b.held[sequence]
		if known && len(ids) <= len(ended) && len(without(ids, sequence, ended)) == 0 {
			sequences = append(sequences, sequence)
		}
	}
	slices.Sort(sequences)
	return sequences
}

// Release records that futures have ended and that cleared claims no longer have a record. A claim whose last
// futures ended in several concurrent transactions was exhausted in none of them: the next one clears it.
func (b *Batches) Release(ended []Ended, cleared []int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for sequence := range sequencesOf(ended) {
		ids, known := b.held[sequence]
		if !known {
			continue
		}
		if left := without(ids, sequence, ended); len(left) > 0 {
			b.held[sequence] = left
			continue
		}
		delete(b.held, sequence)
		b.emptied = append(b.emptied, sequence)
	}
	b.emptied = slices.DeleteFunc(b.emptied, func(sequence int64) bool { return slices.Contains(cleared, sequence) })
}

func sequencesOf(ended []Ended) map[int64]struct{} {
	sequences := map[int64]struct{}{}
	for _, e := range ended {
		sequences[e.Sequence] = struct{}{}
	}
	return sequences
}

// without returns ids without those of a claim that have ended, in a new slice. It is quick where
// both are in the same order.
func without(ids []layout.ID, sequence int64, ended []Ended) []layout.ID {
	var left []layout.ID
	at := 0
	for _, id := range ids {
		n := 0
		for n < len(ended) && ended[(at+n)%len(ended)] != (Ended{id, sequence}) {
			n++
		}
		if n == len(ended) {
			left = append(left, id)
		}
		at = (at + n + 1) % len(ended)
	}
	return left
}
