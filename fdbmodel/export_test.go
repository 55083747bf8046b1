package fdbmodel

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/internal/shards"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Limits that tests exceed.
const (
	JanitorBatch  = janitorBatch
	MaxRefills    = shards.MaxRefills
	RefusedForget = refusedForget
	OrphanAge     = orphanAge
	MaxExpire     = maxExpire
)

// MetTransition is a row of the table of transitions, and how often it was met.
type MetTransition struct {
	From      layout.State
	Event     EventKind
	Condition string
	Outcome   Outcome
	Met       int
}

// CountTransitions counts in the table itself which rows are met, until restore
// is called.
func CountTransitions() (rows []MetTransition, restore func()) {
	rows = make([]MetTransition, len(transitions))
	applied := make([]func(*layout.Row, *Event), len(transitions))
	for i := range transitions {
		t := &transitions[i]
		rows[i] = MetTransition{From: t.from, Event: t.event, Condition: t.when.text, Outcome: t.outcome}
		apply := t.then.apply
		applied[i] = apply
		t.then.apply = func(r *layout.Row, e *Event) {
			rows[i].Met++
			apply(r, e)
		}
	}
	return rows, func() {
		for i := range transitions {
			transitions[i].then.apply = applied[i]
		}
	}
}

// GiveBack is the first step of Leave.
func (r *Registration) GiveBack(ctx context.Context) error {
	_, _, err := r.cluster.endAllClaims(ctx, r.info.ID, EventRelinquish)
	return err
}

// SettleEdgesOf settles edges of one future that is marked.
func (c *Cluster) SettleEdgesOf(ctx context.Context, id layout.ID) error {
	_, _, _, err := c.settle(ctx, []index.Mark{{ID: id}})
	return err
}

// LookAt looks whether a future still waits for inputs after one has ended.
func (c *Cluster) LookAt(ctx context.Context, id, input layout.ID) error {
	_, _, _, err := c.settle(ctx, []index.Mark{{ID: id, Input: input}})
	return err
}

// MaxToldAtOnce is how many users are told within the transaction that realizes
// their input.
const MaxToldAtOnce = maxToldAtOnce

// What one call settles.
const (
	SettleRounds = settleRounds
	MaxPiece     = maxPiece
)
