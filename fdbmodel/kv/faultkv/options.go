package faultkv

import (
	"context"
	"time"
)

// Fault is one kind of failure.
type Fault uint8

const (
	// Conflict fails a commit with kv.ErrConflict. Nothing is written.
	Conflict Fault = iota
	// TooOld fails a read or a commit with kv.ErrTooOld, and everything that
	// the transaction does after it.
	TooOld
	// Unavailable fails a read or a commit with kv.ErrUnavailable. Nothing is
	// written.
	Unavailable
	// UnknownCommitted commits and answers kv.ErrUnknownResult.
	UnknownCommitted
	// UnknownLost answers kv.ErrUnknownResult and writes nothing, ever.
	UnknownLost
	// UnknownLate answers kv.ErrUnknownResult and commits later.
	UnknownLate

	faults = iota
)

// String returns the fault's name.
func (f Fault) String() string {
	return [faults]string{"conflict", "too-old", "unavailable", "unknown-committed", "unknown-lost", "unknown-late"}[f]
}

// Options of the faults. The zero value injects none.
type Options struct {
	// Seed starts the random choices. Defaults to 0.
	Seed uint64

	// Commit holds, by Fault, the probability that a commit meets it. Their sum
	// must not exceed 1. Defaults to none.
	Commit [faults]float64

	// Read holds, by Fault, the probability that a read meets it; only TooOld
	// and Unavailable count. Defaults to none.
	Read [faults]float64

	// LateAfter is the most operations until a late commit is made; each takes a
	// random number up to it. If it is negative, only Flush makes them. Defaults
	// to 16.
	LateAfter int

	// Latency is the longest that an operation is held up by Sleep, each for a
	// random part of it. Defaults to none.
	Latency time.Duration

	// Sleep waits; it returns ctx's error if that ends first. Defaults to not
	// waiting.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Everywhere returns options that let every fault happen to a commit with
// probability p, and to a read with a tenth of it.
func Everywhere(seed uint64, p float64) Options {
	o := Options{Seed: seed}
	for f := range o.Commit {
		o.Commit[f] = p
	}
	o.Read[TooOld], o.Read[Unavailable] = p/10, p/10
	return o
}

const defaultLateAfter = 16

func (o Options) withDefaults() Options {
	if o.LateAfter == 0 {
		o.LateAfter = defaultLateAfter
	}
	if o.Sleep == nil {
		o.Latency = 0
	}
	return o
}

// Counts says what was injected.
type Counts struct {
	// Injected counts faults by kind.
	Injected [faults]int
	// Committed and Died count the late commits that were written after all, and
	// those that were refused or dropped.
	Committed, Died int
	// Pending is the number of late commits that are yet to be made.
	Pending int
	// Recoveries counts calls of Recover.
	Recoveries int
}
