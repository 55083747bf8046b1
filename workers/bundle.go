package workers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// Member is a future that runs with others of its lane.
type Member struct {
	ID layout.ID
	// Args are its arguments, in the encoding that Codec names.
	Args  []byte
	Codec string
	// Attempt counts its attempts from 1, of Attempts at most.
	Attempt, Attempts int
	// Trace is the context of the trace that the future is part of, as in Info.
	Trace map[string]string

	ctx context.Context
}

// MemberEnd is how one member of a bundle ended: with a result, or with an error. Errors
// are taken as those of a Function: Permanent and RetryAfter count for this member alone,
// and one that is tried again gets in line for a later bundle.
type MemberEnd struct {
	Value []byte
	Err   error
}

// BundleFunction runs the members of a bundle, all of the lane with this key, in one call.
// It returns one end for each, in their order. With an error, a panic or another number of
// ends all members fail, each by its own retries. The context ends as that of a Function,
// and with the cause ErrCancelled once all members are cancelled; that of one member is
// Member.Context.
type BundleFunction func(ctx context.Context, key string, members []Member) ([]MemberEnd, error)

// RegisterBundle registers a function that runs the futures of lanes whose kind names
// go:NAME for bundles. A future with this function and without a lane is a bundle of
// one, with an empty key. It returns the errors of Register.
func (w *Worker) RegisterBundle(name string, fn BundleFunction) error {
	if fn == nil {
		return errNil(name)
	}
	err := w.register(name, func(ctx context.Context, args []byte) ([]byte, error) {
		info, _ := InfoFrom(ctx)
		ends, err := fn(ctx, "", []Member{{ID: info.ID, Args: args, Codec: info.Codec, Attempt: info.Attempt,
			Attempts: info.Attempts, Trace: info.Trace, ctx: ctx}})
		if err == nil && len(ends) != 1 {
			err = wrongEnds(len(ends), 1)
		}
		if err != nil {
			return nil, err
		}
		return ends[0].Value, ends[0].Err
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bundles["go:"+name] = fn
	return nil
}

func wrongEnds(got, want int) error {
	return fmt.Errorf("the function returned %d ends for %d members: return one for each", got, want)
}

// bundleResult is the result of a bundle, as JSON.
type bundleResult struct {
	Lane     string      `json:"lane"`
	Members  []layout.ID `json:"members"`
	Realized int         `json:"realized"`
}

// executeBundle gathers the members of a bundle, runs them in one call, and ends them.
func (w *Worker) executeBundle(j *job) fdbmodel.Completion {
	f := &j.future
	w.mu.Lock()
	fn := w.bundles[f.Spec.Function]
	w.mu.Unlock()
	if fn == nil {
		return fdbmodel.Completion{Future: f, Reject: true}
	}
	members, err := w.gather(j)
	if err != nil {
		w.rare.Warn("a bundle can't gather its members; giving it back", "bundle", f.ID, "error", err)
		relinquishAll(members)
		return fdbmodel.Completion{Future: f, Relinquish: true}
	}
	members, unwanted := w.slots.beginCall(j, members)
	relinquishAll(unwanted)
	over := context.Cause(j.ctx) != nil && !j.unwanted.Load()
	if over || len(members) == 1 && !w.recordBegin(members[0]) {
		relinquishAll(members)
		return fdbmodel.Completion{Future: f, Relinquish: true}
	}
	result := bundleResult{Lane: f.Spec.Lane.String(), Members: []layout.ID{}}
	if len(members) > 0 {
		w.countBundle(members)
		result.Members, result.Realized = w.runMembers(j, fn, members)
		members[0].awaitEnd()
	}
	if context.Cause(j.ctx) != nil && !j.unwanted.Load() {
		relinquishAll(members)
		return fdbmodel.Completion{Future: f, Relinquish: true}
	}
	value, _ := json.Marshal(&result) // it has no field that could not be encoded
	return w.success(j, layout.Result{Codec: layout.CodecJSON, Value: value})
}

// gather takes members. If there is more than one, it waits for others until the bundle is
// full, as long as the lane says at most.
func (w *Worker) gather(j *job) (members []*job, err error) {
	var until time.Time
	for look := 0; ; look++ {
		g := w.slots.beginGather()
		got, err := j.membership.reg.Gather(j.membership.store, &j.future, layout.MaxMembers)
		members = w.slots.endGather(g, j, members, got.Members)
		if err != nil {
			return members, err
		}
		most, now := max(1, got.Settings.Most), w.cluster.Now()
		if until.IsZero() {
			until = now.Add(got.Settings.Linger)
		}
		if got.Full || len(members) < 2 || len(members) >= most || look > looks || !now.Before(until) {
			return members, nil
		}
		next := now.Add(lookAgain(members, most, now, got.Settings.Linger))
		if next.After(until) {
			next = until
		}
		if w.linger(j, next) != nil {
			return members, nil
		}
	}
}

// looks is how often a call that lingers looks for more members at most.
const looks = 8

// lookAgain is how long a bundle waits before it looks for more members: until it would be
// full if they came as those before did.
func lookAgain(members []*job, most int, now time.Time, linger time.Duration) time.Duration {
	oldest := now
	for _, m := range members {
		if at := time.UnixMilli(m.future.Spec.SubmittedAt); at.Before(oldest) {
			oldest = at
		}
	}
	each := now.Sub(oldest) / time.Duration(len(members))
	return max(each*time.Duration(most-len(members)), linger/looks)
}

// linger waits for more members.
func (w *Worker) linger(j *job, until time.Time) error {
	if !w.manual() {
		return clock.Wait(j.ctx, w.cluster.Clock(), until)
	}
	if w.options.Seam.Linger == nil {
		return nil
	}
	return w.options.Seam.Linger(j.ctx, until)
}

// countBundle counts a call with members, and how long they waited for it.
func (w *Worker) countBundle(members []*job) {
	w.stats.bundles.Add(1)
	w.stats.members.Add(int64(len(members)))
	w.sizes.Observe(float64(len(members)))
	for _, m := range members {
		w.waits.Observe(m.claimed.Sub(time.UnixMilli(m.future.Spec.SubmittedAt)).Seconds())
	}
}

// runMembers runs the members in one call, and ends each. It returns them, and how many
// are realized.
func (w *Worker) runMembers(j *job, fn BundleFunction, all []*job) (ids []layout.ID, realized int) {
	for _, m := range all {
		m.shares.Store(true)
	}
	defer w.boundMembers(j, all)()
	var members []Member
	var jobs []*job
	for _, m := range all {
		ids = append(ids, m.future.ID)
		if late := m.startedLate(w.cluster.Now()); late != nil {
			m.settle(*late)
			continue
		}
		args := m.future.Inline
		if m.future.Spec.ArgsRef != nil {
			var err error
			if args, err = w.cluster.Args(j.ctx, m.future.ID, m.future.Spec); err != nil {
				m.settle(w.withoutArgs(m, err))
				continue
			}
		}
		members = append(members, Member{ID: m.future.ID, Args: args, Codec: m.codec(), Attempt: m.future.Attempt(),
			Attempts: m.future.Spec.MaxRetries + 1, Trace: m.future.Spec.Trace, ctx: m.ctx})
		jobs = append(jobs, m)
	}
	if len(members) == 0 {
		return ids, 0
	}
	ends, err := callBundle(jobContext{j.ctx, j}, fn, j.future.Spec.Lane.Key, members)
	if err == nil && len(ends) != len(members) {
		err = wrongEnds(len(ends), len(members))
	}
	for i, m := range jobs {
		end := MemberEnd{Err: err}
		if err == nil {
			end = ends[i]
		}
		c := w.endMember(m, end)
		if m.settle(c) && c.Result != nil {
			realized++
		}
	}
	return ids, realized
}

// endMember says how the claim of a member ends.
func (w *Worker) endMember(m *job, end MemberEnd) fdbmodel.Completion {
	if end.Err != nil {
		return m.failure(end.Err)
	}
	codec := m.codec()
	if codec == layout.CodecArgv {
		codec = layout.CodecRaw
	}
	return w.success(m, layout.Result{Codec: codec, Value: end.Value})
}

// callBundle calls a function, and turns a panic into an error.
func callBundle(ctx context.Context, fn BundleFunction, key string, members []Member) (ends []MemberEnd, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	return fn(ctx, key, members)
}

// endMembers ends what members of a bundle have not ended: they fail as it does, as when
// its time has passed, or go back.
func (j *job) endMembers(failure *layout.Exception) {
	members := j.bundled.Load()
	switch {
	case members == nil:
	case failure == nil:
		relinquishAll(*members)
	default:
		for _, m := range *members {
			m.settle(fdbmodel.Completion{Future: &m.future, Exception: failure})
		}
	}
}

// relinquishAll gives back members that have not ended.
func relinquishAll(members []*job) {
	for _, m := range members {
		m.relinquish()
	}
}
