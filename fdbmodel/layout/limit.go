package layout

import "github.com/futura-run/futura/fdbmodel/tuple"

// subLimits is the subspace of futures that must not wait for ever.
const subLimits = "deadlines"

// KeyLimit is the kind of key that leads to such a future.
const KeyLimit = "deadline"

// LimitsOf returns the prefix of a shard's futures that must not wait for ever, in the
// order of when they end.
func (k Keyspace) LimitsOf(shard int) []byte { return k.Shard(shard, subLimits) }

// Limit returns a future's key among them.
func (k Keyspace) Limit(id ID, at int64) []byte {
	return tuple.AppendUUID(tuple.AppendInt(k.LimitsOf(id.Shard(k.Shards)), at), id)
}

// LimitAt returns when the future ends unless it is over or runs, in milliseconds,
// and as what kind of failure; 0 for never.
func (s *Spec) LimitAt() (at int64, kind FailureKind) {
	if s.Deadline != 0 && (s.ExpiresAt == 0 || s.Deadline < s.ExpiresAt) {
		return s.Deadline, KindDeadline
	}
	return s.ExpiresAt, KindExpired
}

// Limit is LimitAt of a future that was not asked for again since: 0 for one that
// was, or whose spec was left out.
func (r *Row) Limit() (at int64, kind FailureKind) {
	if r.Spec == nil || r.Attempts.Lifted {
		return 0, ""
	}
	return r.Spec.LimitAt()
}

// WaitsUntil is Limit of a future that waits, and 0 for others.
func (r *Row) WaitsUntil() int64 {
	at, _ := r.Limit()
	if s := r.State(); at == 0 || s == Claimed || s.Terminal() {
		return 0
	}
	return at
}
