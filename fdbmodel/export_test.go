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
