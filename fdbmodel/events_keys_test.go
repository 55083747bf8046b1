package fdbmodel

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/internal/lane"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// keysBeside are the kinds of keys that the functions of an event write themselves, beside what
// its change writes.
var keysBeside = map[state.EventKind][]string{
	state.EventClaim: {"claims"}, state.EventTake: {"claims"}, state.EventGather: {"claims"},
	state.EventRealize: {"claims", "suspect"}, state.EventFail: {"claims", "suspect"},
	state.EventReject: {"claims", "suspect"},
	state.EventBlock:  {"claims", "suspect"}, state.EventSnooze: {"claims", "suspect"},
	state.EventRelinquish: {"claims", "suspect"}, state.EventExpire: {"claims", "suspect"},
	state.EventReap: {"claims"}, state.EventCancel: {"cancelled"},
	state.EventUnblock:  {layout.KeyInput, layout.KeyResolve, layout.KeyPendingCheck},
	state.EventUpstream: {layout.KeyResolve, layout.KeyPendingCheck},
	state.EventLose:     {layout.KeyCopy},
	state.EventAdmit:    {layout.KeyLane, layout.KeyLaneDue, layout.KeyLaneTurn, "lane total"},
}

var (
	sampleNow   = time.UnixMilli(1_000_000)
	sampleToken = layout.Token{Worker: "a", Sequence: 1}
)

// sampleName is that of the unique samples.
const sampleName = "0123456789abcdef0123456789abcdef"

// samples are a store with lanes that have futures in line.
type samples struct {
	cluster *Cluster
	db      kv.Database
}

// sampleClock stands at the time of the sample events.
type sampleClock struct{ clock.Clock }

func (sampleClock) Now() time.Time { return sampleNow }

func sampleKinds() map[string]layout.LaneKind {
	return map[string]layout.LaneKind{
		"plain": {Width: 2}, "rated": {Width: 2, Rate: 2, Every: time.Minute},
		"total": {Width: 2, Total: 2}, "roomy": {Width: 2, Total: 20},
		"bundle": {Width: 2, Bundle: "go:f", Most: 2, Bytes: 1 << 20},
	}
}

func newSamples(t *testing.T) *samples {
	ctx, db := context.Background(), storetest.New(t)
	c, err := Open(ctx, db, "events", Options{Clock: sampleClock{clock.Real{}}})
	require.NoError(t, err)
	_, err = c.Transact(ctx, kv.Options{}, func(tx kv.Attempt) error {
		for name, kind := range sampleKinds() {
			tx.Set(c.keys.LaneKind(name), layout.Encode(&kind))
		}
		tx.Set(c.keys.BatchChunk("owner", "chunk"), layout.Encode(&layout.BatchChunk{ID: "chunk", Worker: "a"}))
		return nil
	})
	require.NoError(t, err)
	var subs []Submission
	for name := range sampleKinds() {
		for _, key := range []string{"full", "full", "full", "other", "other", "other", "free"} {
			subs = append(subs, Submission{Spec: layout.Spec{Function: "go:f", Lane: layout.Lane{Kind: name, Key: key}}})
		}
	}
	_, err = c.Submit(ctx, subs)
	require.NoError(t, err)
	return &samples{c, db}
}

// keysOf returns the kinds of keys, beside those of the future, that an event writes.
func (s *samples) keysOf(t *testing.T, kind state.EventKind) []string {
	known, _ := modelTable().Names()
	kinds := map[string]bool{}
	for _, name := range keysBeside[kind] {
		require.Contains(t, known, name)
		kinds[name] = true
	}
	rows, applied := sampleRows(), 0
	for i := range rows {
		for _, e := range sampleEvents(kind) {
			if kind == state.EventAssign && !rows[i].Spec.Lane.IsZero() || kind == state.EventPromote && rows[i].Spec.Held() {
				continue // assigning is refused, and who is held waits for its owner
			}
			after, outcome := state.Next(rows[i], e)
			if outcome != Applied && outcome != Requested {
				continue
			}
			applied++
			_, err := kv.Transact(context.Background(), s.db, kv.Retry{}, func(tx kv.Attempt) error {
				w := newWriteSet(s.cluster.keys, &kindsTx{Tx: tx, kinds: kinds}, layout.Millis(e.Now), new(lane.Known))
				w.cluster, w.owners.Losing = s.cluster, kind == state.EventReap
				w.Apply(&rows[i], &after)
				return cmp.Or(w.Flush(context.Background()), errNotCommitted)
			})
			require.ErrorIs(t, err, errNotCommitted)
		}
	}
	require.NotZero(t, applied, "no sample future takes the event %v", kind)
	return slices.Sorted(maps.Keys(kinds))
}

var errNotCommitted = errors.New("it is not to be committed")

var modelTable = sync.OnceValue(func() *layout.Table { return layout.NewTable(Kinds()) })

// kindsTx notes the kinds of keys that are written.
type kindsTx struct {
	kv.Tx
	kinds map[string]bool
}

func (k *kindsTx) note(key []byte) {
	if kind := modelTable().Parse(key).Kind; kind != nil && kind.Subspace != layout.SubFutures {
		k.kinds[kind.Name] = true
	}
}

// noteRange notes the kinds of a range that is cleared, whose begin is no key.
func (k *kindsTx) noteRange(r kv.Range) {
	subspace := modelTable().Parse(r.Begin).Subspace
	for _, kind := range modelTable().Kinds() {
		if kind.Subspace == subspace && subspace != layout.SubFutures {
			k.kinds[kind.Name] = true
		}
	}
}

func (k *kindsTx) Set(key, value []byte)                    { k.note(key); k.Tx.Set(key, value) }
func (k *kindsTx) Clear(key []byte)                         { k.note(key); k.Tx.Clear(key) }
func (k *kindsTx) ClearRange(r kv.Range)                    { k.noteRange(r); k.Tx.ClearRange(r) }
func (k *kindsTx) Atomic(op kv.AtomicOp, key, param []byte) { k.note(key); k.Tx.Atomic(op, key, param) }
func (k *kindsTx) SetVersionstampedKey(key []byte, at int, v []byte) {
	k.note(key)
	k.Tx.SetVersionstampedKey(key, at, v)
}
func (k *kindsTx) SetVersionstampedValue(key, v []byte, at int) {
	k.note(key)
	k.Tx.SetVersionstampedValue(key, v, at)
}

// sampleSpecs are futures of each kind that indexes tell apart, each with and without what
// others follow.
func sampleSpecs() (specs []layout.Spec) {
	lane := func(kind, key string) layout.Lane { return layout.Lane{Kind: kind, Key: key} }
	for _, spec := range []layout.Spec{
		{}, {Owner: "owner"}, {MustBeNear: true, Near: layout.ID{1}},
		{Lane: lane("plain", "full")}, {Lane: lane("rated", "full")}, {Lane: lane("total", "full")},
		{Lane: lane("rated", "free")}, {Lane: lane("roomy", "free")}, {Lane: lane("total", "new")},
		{Lane: lane("plain", "full"), Aside: true},
		{Lane: lane("bundle", "full"), Member: true}, {Lane: lane("bundle", "full"), Bundle: true},
	} {
		spec.Function, spec.Queue, spec.MaxRetries = "go:f", layout.DefaultQueue, 1
		specs = append(specs, spec)
		if spec.Lane.IsZero() && !spec.Held() && !spec.MustBeNear {
			specs = append(specs, samplePromises(spec)...)
		}
		spec.AsObject, spec.AllowReconstruction = true, true
		specs = append(specs, spec)
		spec.Session, spec.Tags, spec.Unique = "session", []string{"tag"}, &layout.Unique{Name: sampleName}
		spec.Inputs = layout.PackIDs([]layout.ID{{1}, {2}, {3}, {4}})
		specs = append(specs, spec)
		spec.AllowReconstruction = false
		specs = append(specs, spec)
		spec.ExpiresAt = 1
		specs = append(specs, spec)
		spec.Inputs, spec.InputsRef = nil, &layout.ChunkRef{Kind: layout.ChunkInputs, Count: 1}
		spec.Unique = &layout.Unique{Name: sampleName, For: time.Hour}
		specs = append(specs, spec)
	}
	return specs
}

// samplePromises are promises with and without what others follow.
func samplePromises(spec layout.Spec) []layout.Spec {
	spec.Function, spec.MaxRetries = layout.FunctionPromise, 0
	followed := spec
	followed.Session, followed.Tags, followed.Unique = "session", []string{"tag"}, &layout.Unique{Name: sampleName}
	followed.ExpiresAt = layout.Millis(sampleNow) + 1
	return []layout.Spec{spec, followed}
}

// sampleRows are futures of all states.
func sampleRows() (rows []layout.Row) {
	claimed := func(r *layout.Row) { r.Claim = &layout.Claim{Token: sampleToken} }
	assigned := func(r *layout.Row) { r.Attempts.Assigned, r.Attempts.Reason = "a", "chunk" }
	for _, spec := range sampleSpecs() {
		for _, change := range []func(*layout.Row){
			func(r *layout.Row) { r.Blocked = &layout.BlockedRecord{Linked: 1} },
			func(*layout.Row) {},
			assigned,
			func(r *layout.Row) { r.Attempts.Due = layout.Millis(sampleNow) },
			func(r *layout.Row) { r.Attempts.Due, r.Attempts.Slot = layout.Millis(sampleNow), true },
			func(r *layout.Row) { r.Attempts.Due = layout.Millis(sampleNow) + 1 },
			func(r *layout.Row) { r.Line = &layout.LineRecord{Stamp: kv.Stamp{1}, Order: 1} },
			func(r *layout.Row) { r.Attempts.Unplaceable = true },
			func(r *layout.Row) { r.Attempts.Deaths[0].Worker = sampleToken.Worker },
			claimed,
			func(r *layout.Row) { claimed(r); assigned(r) },
			func(r *layout.Row) { claimed(r); r.Cancel = &layout.CancelRequest{Reason: "r"} },
			func(r *layout.Row) { claimed(r); r.Attempts.Crashes = MaxCrashes - 1 },
			func(r *layout.Row) { claimed(r); r.Attempts.Failed = 1 },
			func(r *layout.Row) {
				claimed(r)
				if r.Result = (&layout.Result{Token: sampleToken}); r.Spec.AsObject {
					r.Result.Object = "x"
				}
			},
			func(r *layout.Row) {
				r.Exception = &layout.Exception{Kind: layout.KindError, Final: true}
				r.Attempts.Failed = 2
			},
		} {
			own := spec
			row := layout.Row{ID: layout.ID{9}, Spec: &own}
			if change(&row); !isPossible(&row) {
				continue
			}
			rows = append(rows, row)
			row.Dependants = true
			rows = append(rows, row)
		}
	}
	return rows
}

// isPossible reports whether there may be such a future.
func isPossible(r *layout.Row) bool {
	inLane, state := !r.Spec.Lane.IsZero(), r.State()
	switch {
	case r.Spec.IsPromise() && state != layout.Blocked && !state.Terminal():
		return false
	case inLane && (r.Attempts.Assigned != "" || r.Attempts.Unplaceable):
		return false
	case r.Attempts.Unplaceable && !r.Spec.MustBeNear, r.Line != nil && (!inLane || r.Spec.Bundle):
		return false
	case r.Attempts.Slot && (!inLane || r.Spec.Aside || r.Spec.Member):
		return false
	case r.Spec.Member && state == layout.Ready && r.Line == nil:
		return false
	}
	return true
}

// sampleEvents are an event with what it may carry.
func sampleEvents(kind state.EventKind) []state.Event {
	at := time.Duration(0)
	e := state.Event{Kind: kind, Token: sampleToken, Result: &layout.Result{Token: sampleToken},
		Exception: &layout.Exception{Kind: layout.KindError}, Cancel: &layout.CancelRequest{Reason: "r"}, Now: sampleNow}
	other := e
	switch kind {
	case state.EventSnooze:
		e.RetryIn, other.RetryIn = &at, &at
	case state.EventFail:
		again := e
		again.RetryIn, other.Permanent = &at, true
		return []state.Event{e, again, other}
	case state.EventRealize:
		other.Result = &layout.Result{Token: sampleToken, Object: "x"}
	case state.EventUnblock:
		other.Near = sampleToken.Worker
	case state.EventReap:
		other.Crash = true
	case state.EventReject:
		other.Crowded = true
	case state.EventExpire:
		other.Token = layout.Token{} // a janitor
	default:
		return []state.Event{e}
	}
	return []state.Event{e, other}
}
