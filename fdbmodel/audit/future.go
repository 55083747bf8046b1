package audit

import (
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/promises"
)

// checkFuture checks the keys of a future, with its place and its claim.
func (p *page) checkFuture(items []item) {
	p.futures++
	r := &layout.Row{ID: items[0].ID}
	var args, promise *item
	for i := range items {
		it := &items[i]
		switch {
		case it.err != nil && it.Kind.Record != nil:
			p.damaged[it.Shard] = true
			return
		case it.Kind.Name == layout.RowArgs:
			args = it
		case it.Kind.Name == promises.KeyPromise:
			promise = it
		default:
			r.Put(&it.Key, &it.Value)
		}
	}
	if r.Spec == nil {
		p.broken(InvariantSpec, p.keys.Spec(r.ID), "future %s has no spec", r.ID)
		p.damaged[items[0].Shard] = true
		return
	}
	if !p.checkPromise(r, promise) {
		p.noteFuture(items[0].Shard, r)
		return
	}
	p.checkRecords(r)
	p.checkPlace(r)
	p.checkClaim(r)
	p.checkArgs(r, args)
	p.checkListed(r)
	p.checkEdges(r)
	p.checkInLine(r)
	p.checkName(r)
	p.checkLimit(r)
	p.checkHasSteps(r)
	p.checkFork(r)
	p.noteFuture(items[0].Shard, r)
}

// checkRecords compares the records of a future with each other.
func (p *page) checkRecords(r *layout.Row) {
	p.checkAttempts(r)
	p.checkResult(r)
	p.checkException(r)
	p.checkPins(r)
	p.checkLife(r)
	p.checkBlockedRecord(r)
	p.checkLaneRecords(r)
}

// checkClaim looks for a claimed future in the list by which a reaper finds it.
func (p *page) checkClaim(r *layout.Row) {
	if r.State() != layout.Claimed {
		return
	}
	key := p.keys.Claims(r.Claim.Worker, r.Claim.Sequence)
	p.get(key, func(value []byte) {
		var batch layout.ClaimBatch
		switch {
		case value == nil:
			p.broken(InvariantClaim, key, "future %s is claimed by %s, which has no such list", r.ID, r.Claim.Token).
				by(p.follow(r, list(key, &batch, r.ID))...)
		case layout.Decode(key, value, &batch) != nil:
			// An unreadable list is reported with its key.
		case !slices.Contains(layout.UnpackIDs(batch.IDs), r.ID):
			p.broken(InvariantClaim, key, "future %s is claimed by %s and not in its list", r.ID, r.Claim.Token).
				by(p.follow(r, list(key, &batch, r.ID))...)
		}
	})
}

// list returns the change that adds a future to those of a claim.
func list(key []byte, batch *layout.ClaimBatch, id layout.ID) change {
	batch.IDs = layout.PackIDs(append(layout.UnpackIDs(batch.IDs), id))
	return set(key, layout.Encode(batch))
}

// checkAttempts compares the attempts and the cancel request with the state.
func (p *page) checkAttempts(r *layout.Row) {
	state, a := r.State(), r.Attempts
	most := r.Spec.MaxRetries
	if state == layout.Failed {
		most++
	}
	key := p.keys.State(r.ID, layout.StateAttempts)
	switch {
	case a.Failed < 0 || a.Crashes < 0 || a.Rejected < 0 || a.Due < 0 || a.Rebuilt < 0:
		p.broken(InvariantAttempts, key, "future %s counts below 0: %+v", r.ID, a)
	case a.Failed > most || a.Crashes > fdbmodel.MaxCrashes || a.Rebuilt > fdbmodel.MaxRebuilds:
		p.broken(InvariantAttempts, key, "future %s is %v after %d of %d attempts, %d crashes and %d rebuilds",
			r.ID, state, a.Failed, r.Spec.MaxRetries+1, a.Crashes, a.Rebuilt)
	case a.Crashes != crashesOf(&a.Deaths):
		p.broken(InvariantAttempts, key, "future %s counts %d crashes, and of the deaths on record %d are some", r.ID,
			a.Crashes, crashesOf(&a.Deaths))
	case a.RAM != 0 && (r.Spec.Growth == nil || a.RAM <= r.Spec.Requirements.RAM || a.RAM > r.Spec.Growth.Max):
		p.broken(InvariantAttempts, key, "future %s requires %d bytes of memory by now, and began with %d", r.ID, a.RAM,
			r.Spec.Requirements.RAM)
	case (a.Near == "") != (a.NearWait == 0), a.Unplaceable && !r.Spec.MustBeNear:
		p.broken(InvariantAttempts, key, "future %s is left to worker %q for %v, unplaceable %t", r.ID, a.Near, a.NearWait,
			a.Unplaceable)
	case a.Due != 0 && state != layout.Delayed && state != layout.Blocked:
		p.broken(InvariantAttempts, key, "future %s is %v and has a due time", r.ID, state)
	case a.Rejected < a.Refused.Len():
		p.broken(InvariantAttempts, key, "future %s counts %d rejections and has %d on record", r.ID, a.Rejected,
			a.Refused.Len())
	case a.Failed > 0 && r.Exception == nil:
		p.broken(InvariantAttempts, key, "future %s counts %d failed attempts and has no exception", r.ID, a.Failed)
	}
	if r.Cancel != nil && state != layout.Claimed {
		p.broken(InvariantCancel, p.keys.State(r.ID, layout.StateCancel), "future %s is %v and was asked to stop", r.ID,
			state)
	}
}

func crashesOf(d *layout.Deaths) int {
	n := 0
	for _, death := range d {
		if death.Crash {
			n++
		}
	}
	return n
}

// checkResult compares the result with the state and the attempts.
func (p *page) checkResult(r *layout.Row) {
	key, state := p.keys.State(r.ID, layout.StateResult), r.State()
	switch {
	case r.Spec.IsPut() && state != layout.Realized && state != layout.Failed:
		p.broken(InvariantResult, p.keys.Spec(r.ID), "future %s was put and is %v", r.ID, state)
	case r.Result != nil && state != layout.Realized && state != layout.Claimed:
		p.broken(InvariantResult, key, "future %s is %v and has a result", r.ID, state)
	case state == layout.Realized && r.Result.Attempt != r.Attempts.Failed+1:
		p.broken(InvariantResult, key, "future %s was realized in attempt %d after %d failed ones",
			r.ID, r.Result.Attempt, r.Attempts.Failed)
	}
}

// checkException compares the last failure with the state and the attempts.
func (p *page) checkException(r *layout.Row) {
	key, e := p.keys.State(r.ID, layout.StateException), r.Exception
	switch {
	case e == nil || !e.Final:
	case r.State() != layout.Failed:
		p.broken(InvariantException, key, "future %s is %v and its exception is final", r.ID, r.State())
	case e.Kind.Retryable() && !e.Permanent && r.Attempts.Failed <= r.Spec.MaxRetries:
		p.broken(InvariantException, key, "future %s has failed (%s) after %d of %d attempts",
			r.ID, e.Kind, r.Attempts.Failed, r.Spec.MaxRetries+1)
	case e.Kind == layout.KindLost && r.Attempts.Crashes < fdbmodel.MaxCrashes && !r.Spec.AsObject:
		p.broken(InvariantException, key, "future %s was lost after %d of %d crashes", r.ID, r.Attempts.Crashes,
			fdbmodel.MaxCrashes)
	}
}

// checkPins checks the names that keep the future.
func (p *page) checkPins(r *layout.Row) {
	if r.Pins == nil {
		return
	}
	n := len(r.Pins.Holders)
	sound := n > 0 && n <= layout.MaxPins && n == len(r.Pins.Sessions) && slices.IsSorted(r.Pins.Holders) &&
		len(slices.Compact(slices.Clone(r.Pins.Holders))) == n && !r.Spec.Held()
	for _, holder := range r.Pins.Holders {
		sound = sound && layout.CheckHolder(holder) == nil
	}
	if !sound {
		p.broken(InvariantPins, p.keys.State(r.ID, layout.StatePins), "future %s has wrong pins: %q of sessions %q", r.ID,
			r.Pins.Holders, r.Pins.Sessions)
	}
}

// checkArgs compares the arguments with the spec; args is their own key, if they
// have one.
func (p *page) checkArgs(r *layout.Row, args *item) {
	s := r.Spec
	size := int64(len(s.Args))
	switch {
	case s.ArgsRef != nil:
		size = s.ArgsRef.Size
	case s.ArgsKey && args != nil:
		size = int64(len(args.stored))
	}
	switch {
	case s.ArgsKey && args == nil:
		p.broken(InvariantArgs, p.keys.Args(r.ID), "future %s lacks its arguments", r.ID)
	case !s.ArgsKey && args != nil:
		p.broken(InvariantArgs, p.keys.Args(r.ID), "future %s has arguments that its spec does not know", r.ID)
	case s.ArgsRef != nil && (s.ArgsKey || s.Args != nil), s.ArgsKey && s.Args != nil:
		p.broken(InvariantArgs, p.keys.Spec(r.ID), "future %s has arguments in more than one place", r.ID)
	case size != s.ArgsSize:
		p.broken(InvariantArgs, p.keys.Spec(r.ID), "future %s has %d bytes of arguments, not %d", r.ID, size, s.ArgsSize)
	}
}

// noteFuture records the facts that are compared later.
func (p *page) noteFuture(shard int, r *layout.Row) {
	state := r.State()
	p.counted[layout.CountOf(shard, r.Spec, state)]++
	if r.Open() {
		p.opened[layout.OpenKey{Owner: r.Spec.Owner, Reason: r.Attempts.Reason}]++
	}
	if state.Terminal() && !r.Spec.IsKept() {
		p.terminals[r.ID] = r.FinishedAt()
	}
	for _, ref := range r.Refs() {
		p.large = append(p.large, largeValue{r.ID, *ref})
	}
}
