package audit

import (
	"context"
	"errors"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// checkedRow is a future on its way through a check.
type checkedRow struct {
	layout.Row
	key      []byte // the prefix of all of its keys
	args     []byte
	hasArgs  bool
	readable bool

	place  *layout.Place // nil if it waits nowhere
	waits  kv.Pending[[]byte]
	claims kv.Pending[[]byte]
}

// lookRows checks the futures of a shard, with their places and claims.
func (k *checker) lookRows(shard int) look {
	skip := len(k.keys.FuturesOf(shard))
	return func(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
		f.counted, f.opened, f.terminals = map[layout.ShardCount]int64{}, map[layout.OpenKey]int64{}, map[layout.ID]int64{}
		var rows []*checkedRow
		err := eachEntity(items, skip, 1, func(entity []kv.KeyValue) error {
			if row := k.readRow(shard, skip, entity, f); row != nil {
				rows = append(rows, row)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.place = layout.PlaceOf(&r.Row); r.place != nil {
				r.waits = tx.Get(r.place.Key(k.keys, &r.Row))
			}
			if r.Claim != nil {
				r.claims = tx.Get(k.keys.Claims(r.Claim.Worker, r.Claim.Sequence))
			}
		}
		for _, r := range rows {
			if err := k.checkPlace(ctx, r, f); err != nil {
				return err
			}
			if err := k.checkClaim(ctx, r, f); err != nil {
				return err
			}
			k.checkEnd(r, f)
			k.checkArgs(r, f)
			k.noteRow(shard, r, f)
		}
		return nil
	}
}

// readRow assembles a future. It returns nil if it can't be checked any
// further.
func (k *checker) readRow(shard, skip int, entity []kv.KeyValue, f *findings) *checkedRow {
	rest := tuple.NewReader(entity[0].Key[skip:])
	id := layout.ID(rest.UUID())
	if rest.Err() != nil || id.Shard(k.keys.Shards) != shard {
		for _, item := range entity {
			f.broken(InvariantKey, item.Key, "no future has this key")
		}
		return nil
	}
	f.futures++
	r := &checkedRow{Row: layout.Row{ID: id}, key: k.keys.Row(id), readable: true}
	for _, item := range entity {
		part := tuple.NewReader(item.Key[len(r.key):])
		if first := part; first.Text() == layout.RowArgs && first.Done() == nil {
			r.args, r.hasArgs = item.Value, true
			continue
		}
		err := r.Add(item, part)
		if errors.Is(err, layout.ErrUnknownPart) {
			f.broken(InvariantKey, item.Key, "unknown part of a future")
			continue
		}
		if !f.decoded(item.Key, err) {
			r.readable = false
		}
	}
	if r.readable && r.Spec == nil {
		f.broken(InvariantSpec, k.keys.Spec(id), "future %s has no spec", id)
		r.readable = false
	}
	if !r.readable {
		f.unreadable = true
		return nil
	}
	return r
}

// checkClaim looks for a claimed future in the list by which a reaper finds it.
func (k *checker) checkClaim(ctx context.Context, r *checkedRow, f *findings) error {
	if r.Claim == nil {
		return nil
	}
	key := k.keys.Claims(r.Claim.Worker, r.Claim.Sequence)
	value, err := r.claims.Wait(ctx)
	if err != nil || r.State() != layout.Claimed {
		return err
	}
	if value == nil {
		f.broken(InvariantClaim, key, "future %s is claimed by %s, which has no such list", r.ID, r.Claim.Token)
		return nil
	}
	var batch layout.ClaimBatch
	// An unreadable list is reported by the check of the lists.
	if layout.Decode(key, value, &batch) == nil && !slices.Contains(layout.UnpackIDs(batch.IDs), r.ID) {
		f.broken(InvariantClaim, key, "future %s is claimed by %s and not in its list", r.ID, r.Claim.Token)
	}
	return nil
}

// checkEnd compares the attempts, the result and the exception with the state.
func (k *checker) checkEnd(r *checkedRow, f *findings) {
	state, a := r.State(), r.Attempts
	most := r.Spec.MaxRetries
	if state == layout.Failed {
		most++
	}
	key := k.keys.State(r.ID, layout.StateAttempts)
	switch {
	case a.Failed < 0 || a.Crashes < 0 || a.PutBack < 0 || a.Due < 0:
		f.broken(InvariantAttempts, key, "future %s counts below 0: %+v", r.ID, a)
	case a.Failed > most || a.Crashes > fdbmodel.MaxCrashes:
		f.broken(InvariantAttempts, key, "future %s is %v after %d of %d attempts and %d crashes",
			r.ID, state, a.Failed, r.Spec.MaxRetries+1, a.Crashes)
	case a.Due != 0 && state != layout.Delayed:
		f.broken(InvariantAttempts, key, "future %s is %v and has a due time", r.ID, state)
	case a.Failed > 0 && r.Exception == nil:
		f.broken(InvariantAttempts, key, "future %s counts %d failed attempts and has no exception", r.ID, a.Failed)
	}
	if r.Cancel != nil && state != layout.Claimed {
		f.broken(InvariantCancel, k.keys.State(r.ID, layout.StateCancel), "future %s is %v and was asked to stop", r.ID,
			state)
	}
	key = k.keys.State(r.ID, layout.StateResult)
	switch {
	case r.Result != nil && state != layout.Realized && state != layout.Claimed:
		f.broken(InvariantResult, key, "future %s is %v and has a result", r.ID, state)
	case state == layout.Realized && r.Result.Attempt != a.Failed+1:
		f.broken(InvariantResult, key, "future %s was realized in attempt %d after %d failed ones",
			r.ID, r.Result.Attempt, a.Failed)
	}
	k.checkException(r, f)
}

func (k *checker) checkException(r *checkedRow, f *findings) {
	key, e := k.keys.State(r.ID, layout.StateException), r.Exception
	switch {
	case e == nil || !e.Final:
	case r.State() != layout.Failed:
		f.broken(InvariantException, key, "future %s is %v and its exception is final", r.ID, r.State())
	case e.Kind.Retryable() && !e.Permanent && r.Attempts.Failed <= r.Spec.MaxRetries:
		f.broken(InvariantException, key, "future %s has failed (%s) after %d of %d attempts",
			r.ID, e.Kind, r.Attempts.Failed, r.Spec.MaxRetries+1)
	case e.Kind == layout.KindLost && r.Attempts.Crashes < fdbmodel.MaxCrashes:
		f.broken(InvariantException, key, "future %s was lost after %d of %d crashes", r.ID, r.Attempts.Crashes,
			fdbmodel.MaxCrashes)
	}
}

func (k *checker) checkArgs(r *checkedRow, f *findings) {
	s := r.Spec
	size := int64(len(s.Args))
	switch {
	case s.ArgsRef != nil:
		size = s.ArgsRef.Size
	case s.ArgsKey:
		size = int64(len(r.args))
	}
	switch {
	case s.ArgsKey && !r.hasArgs:
		f.broken(InvariantArgs, k.keys.Args(r.ID), "future %s lacks its arguments", r.ID)
	case !s.ArgsKey && r.hasArgs:
		f.broken(InvariantArgs, k.keys.Args(r.ID), "future %s has arguments that its spec does not know", r.ID)
	case s.ArgsRef != nil && (s.ArgsKey || s.Args != nil), s.ArgsKey && s.Args != nil:
		f.broken(InvariantArgs, k.keys.Spec(r.ID), "future %s has arguments in more than one place", r.ID)
	case size != s.ArgsSize:
		f.broken(InvariantArgs, k.keys.Spec(r.ID), "future %s has %d bytes of arguments, not %d", r.ID, size, s.ArgsSize)
	}
}

// noteRow records the facts that are compared later.
func (k *checker) noteRow(shard int, r *checkedRow, f *findings) {
	state := r.State()
	f.counted[layout.CountOf(shard, r.Spec, state)]++
	if r.Open() {
		f.opened[layout.OpenKey{Owner: r.Spec.Owner, Why: r.Attempts.Why}]++
	}
	if state.Terminal() && !r.Spec.Held() {
		f.terminals[r.ID] = r.FinishedAt()
	}
	for _, ref := range r.Refs() {
		f.refs = append(f.refs, heldRef{id: r.ID, ref: *ref})
	}
}
