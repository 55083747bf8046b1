package fdbmodel

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Under runs write in a transaction that reads the claims of futures and commits only if they
// stay as they are: it is how a room writes under the fence of claims. futures is called in each
// attempt and returns what write is for, in the same order each time; nil stands for a future whose
// claim the worker has begun to end, and that makes the fence complete. write is told which claims
// are held. The commit waits for the disk unless o says otherwise. It returns what Transact
// returns; an unknown commit is retried, with claims that may have ended since.
func (r *Registration) Under(ctx context.Context, o kv.Options, futures func() []*ClaimedFuture,
	write func(ctx context.Context, tx kv.Attempt, held []bool) error,
) error {
	keys := r.cluster.keys
	_, err := r.cluster.Transact(ctx, o, func(tx kv.Attempt) error {
		all := futures()
		claimed, recent := r.lastOf(all)
		if err := seeClaims(ctx, tx, claimed, recent); err != nil {
			return err
		}
		asked := make([]kv.Pending[[]byte], len(all))
		for i, f := range all {
			if f != nil {
				asked[i] = tx.Get(keys.State(f.ID, layout.StateClaim))
				tx.AddReadConflictKey(keys.State(f.ID, layout.StateResult))
			}
		}
		held := make([]bool, len(all))
		for i, f := range all {
			if f == nil {
				continue
			}
			value, err := asked[i].Wait(ctx)
			if err != nil {
				return err
			}
			var claim layout.Claim
			if value != nil {
				_, err := layout.DecodeStamped(keys.State(f.ID, layout.StateClaim), value, &claim)
				held[i] = err == nil && claim.Token == f.Token
			}
		}
		return write(ctx, tx, held)
	})
	return err
}

func (r *Registration) lastOf(futures []*ClaimedFuture) (version kv.Version, recent bool) {
	version = kv.NoVersion
	for _, f := range futures {
		if f != nil && f.version > version {
			version, recent = f.version, r.cluster.clock.Now().Sub(f.at) < recentClaim
		}
	}
	return version, recent
}

// View is View of the cluster, for reads that see all that was written before the claim.
func (r *Registration) View(ctx context.Context, f *ClaimedFuture, fn func(kv.Attempt) error) error {
	return r.cluster.View(ctx, func(tx kv.Attempt) error {
		version, recent := r.lastOf([]*ClaimedFuture{f})
		if err := seeClaims(ctx, tx, version, recent); err != nil {
			return err
		}
		return fn(tx)
	})
}
