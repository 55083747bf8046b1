package fdbmodel

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/internal/claim"
	"github.com/futura-run/futura/fdbmodel/internal/edge"
	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
)

// Limits that tests exceed.
const (
	JanitorBatch  = janitorBatch
	RefusedForget = claim.ForgetUnreadable
)

// GiveBack is the first step of Leave.
func (r *Registration) GiveBack(ctx context.Context) error {
	_, _, err := r.cluster.endAllClaims(ctx, r.info.ID, state.EventRelinquish)
	return err
}

// ResolveEdgesOf resolves edges of one future that is marked.
func ResolveEdgesOf(ctx context.Context, c *Cluster, id layout.ID) error {
	_, _, _, err := c.edges.ResolveMarks(ctx, []index.Mark{{ID: id}})
	return err
}

// CheckAgain checks whether a future still waits for inputs after one has ended.
func CheckAgain(ctx context.Context, c *Cluster, id, input layout.ID) error {
	_, _, _, err := c.edges.ResolveMarks(ctx, []index.Mark{{ID: id, Input: input}})
	return err
}

// What one call resolves.
const (
	MaxNotified   = edge.MaxNotified
	ResolveRounds = edge.ResolveRounds
	MaxPiece      = edge.MaxPiece
)

// promoteNow makes a future ready that is due, as a janitor does.
func (c *Cluster) promoteNow(ctx context.Context, id layout.ID) (promoted bool, err error) {
	_, err = c.Change(ctx, kv.Options{Tag: "futura-promote"}, func(tx kv.Attempt, w *WriteSet) error {
		row, _, err := read.Record(tx, c.keys, id).Wait(ctx)
		if err != nil {
			return err
		}
		after, outcome := state.Next(row, state.Event{Kind: state.EventPromote, Now: c.clock.Now()})
		if promoted = outcome == Applied; promoted {
			w.Apply(&row, &after)
		}
		return nil
	})
	return promoted, err
}
