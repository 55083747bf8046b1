package fdbmodel

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/serial"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Under runs write in a transaction that reads the claims of futures and commits only if they
// stay as they are: it is how a room writes under the fence of claims. futures is called in each
// attempt and returns what write is for, in the same order each time; nil stands for a future whose
// claim the worker has begun to end, and that makes the fence complete. write is told which claims
// are held. fresh has it read at a new version, for what others may have written since the claims. The
// commit waits for the disk unless o says otherwise. It returns the version of the commit, and
// what Transact returns; an unknown commit is retried, with claims that may have ended since.
func (r *Registration) Under(ctx context.Context, o kv.Options, fresh bool, futures func() []*ClaimedFuture,
	write func(ctx context.Context, tx kv.Attempt, held []bool) error,
) (kv.Version, error) {
	keys := r.cluster.keys
	result, err := Patient{r.cluster}.Transact(ctx, o, func(tx kv.Attempt) error {
		all := futures()
		claimed, recent := lastClaim(len(all), func(i int) *ClaimedFuture { return all[i] }, r.cluster.clock.Now())
		if err := seeClaims(ctx, tx, claimed, recent && !fresh); err != nil {
			return err
		}
		asked := make([]askedClaim, len(all))
		for i, f := range all {
			if f != nil {
				asked[i] = askClaim(tx, keys, f)
			}
		}
		held := make([]bool, len(all))
		for i, f := range all {
			if f == nil {
				continue
			}
			var err error
			if held[i], err = asked[i].holds(ctx, f); err != nil {
				return err
			}
		}
		return write(ctx, tx, held)
	})
	return result.Version, err
}

// askedClaim is a read of what says whether a claim is held: a result leaves it in place.
type askedClaim struct {
	key           []byte
	claim, result kv.Pending[[]byte]
}

func askClaim(tx kv.Tx, keys layout.Keyspace, f *ClaimedFuture) askedClaim {
	key := keys.State(f.ID, layout.StateClaim)
	return askedClaim{key, tx.Get(key), tx.Get(keys.State(f.ID, layout.StateResult))}
}

func (a askedClaim) holds(ctx context.Context, f *ClaimedFuture) (bool, error) {
	value, err := a.claim.Wait(ctx)
	if err != nil {
		return false, err
	}
	result, err := a.result.Wait(ctx)
	if err != nil || value == nil || result != nil {
		return false, err
	}
	var claim layout.Claim
	_, err = layout.DecodeStamped(a.key, value, &claim)
	return err == nil && claim.Token == f.Token, nil
}

// View is View of the cluster, for reads that see all that was written before the claim, and up to the version
// since: kv.NoVersion if the claim alone counts.
func (r *Registration) View(ctx context.Context, f *ClaimedFuture, since kv.Version, fn func(kv.Attempt) error) error {
	return r.cluster.View(ctx, func(tx kv.Attempt) error {
		recent := r.cluster.clock.Now().Sub(f.at) < recentClaim
		if err := seeClaims(ctx, tx, max(f.version, since), recent); err != nil {
			return err
		}
		return fn(tx)
	})
}

// recentClaim is how long after a claim its version is certain to be readable.
const recentClaim = serial.Recent

// lastClaim returns the highest version at which one of n futures was claimed, and whether all were
// claimed at it or before, and it a short while ago. It passes over those that are nil. The version of
// a claim whose commit was unknown is not known, and may be a higher one.
func lastClaim(n int, future func(i int) *ClaimedFuture, now time.Time) (version kv.Version, recent bool) {
	version = kv.NoVersion
	known := true
	for i := range n {
		f := future(i)
		if f == nil {
			continue
		}
		if f.version > version {
			version, recent = f.version, now.Sub(f.at) < recentClaim
		}
		known = known && f.version != kv.NoVersion
	}
	return version, recent && known
}

// seeClaims makes a transaction read at a version that includes the claims: a
// store may show a commit with NoSync to others later than it acknowledges it.
func seeClaims(ctx context.Context, tx kv.Attempt, claimed kv.Version, recent bool) error {
	if claimed == kv.NoVersion {
		return nil
	}
	if recent && tx.Number == 1 {
		tx.SetReadVersion(claimed)
		return nil
	}
	version, err := tx.ReadVersion(ctx)
	if err == nil && version < claimed {
		err = fmt.Errorf("%w: the claim is not visible yet", kv.ErrFutureVersion)
	}
	return err
}
