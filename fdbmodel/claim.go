package fdbmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// MaxClaim is the maximum number of futures that one Claim takes.
const MaxClaim = 128

// ClaimRequest says which futures a worker wants.
type ClaimRequest struct {
	// Free is the worker's free resources. All futures of one claim together
	// fit into them, slots aside.
	Free layout.Resources
	// Max is the maximum number of futures to take, up to MaxClaim. It may
	// exceed the free slots: futures that wait for a slot are claimed ahead.
	Max int
	// Runs reports whether the worker can run a function. Defaults to what it
	// registered with.
	Runs func(function string) bool
	// Objects is the most futures to take whose results are to be objects; nil for
	// any number.
	Objects *int
	// Skip reports whether the worker declines an owner's futures for the
	// moment. Defaults to no.
	Skip func(owner string) bool
	// Last says that the worker is woken for a future after all others of its process
	// that can run it. Defaults to no.
	Last bool
	// Defers reports whether the worker leaves to better ones what others have rejected of a
	// function, for as long as those pass it over. It must not block. Defaults to no.
	Defers func(function string) bool
}

// noObjects reports whether no future is wanted whose result is to be an object.
func (q *ClaimRequest) noObjects() bool { return q.Objects != nil && *q.Objects <= 0 }

// ClaimedFuture is a future that a worker holds.
type ClaimedFuture struct {
	ID       layout.ID
	Token    layout.Token
	Spec     *layout.Spec
	Attempts layout.Attempts
	// Cancel is set if the future is to be cancelled.
	Cancel *layout.CancelRequest
	// Steps is set if the future had recorded steps when it was claimed: exactly if an earlier
	// claim has recorded one.
	Steps bool
	// Inline are the arguments unless Spec.ArgsRef is set.
	Inline []byte
	// Inputs are the futures whose results it takes, without their specs, if they are
	// few and all of them could be read.
	Inputs []layout.Row
	// Err is set if the future's records can't be read, and the claim could not
	// be undone. It goes back with Reject.
	Err error

	class    layout.Class
	owner    string
	version  kv.Version // of the claim
	at       time.Time  // of the claim
	begun    bool       // Begin recorded it
	gathered gathered   // by a bundle
	inRow    inRow      // of its lane
	// alone is set if at the version of the claim its records were the claim and those above.
	alone bool
}

// Requirements are what the future requires, with what attempts have made of it.
// It needs the spec.
func (c *ClaimedFuture) Requirements() layout.Requirements {
	return c.Spec.Needing(&c.Attempts).Requirements
}

// Attempt is the number of the attempt that the claim is for, from 1.
func (c *ClaimedFuture) Attempt() int { return c.Attempts.Failed + 1 }

// ClaimAnswer holds the futures that a Claim took.
type ClaimAnswer struct {
	Futures []ClaimedFuture
	// More is set when more futures fit than were taken.
	More bool
	// Conflicts is the number of times that other workers were faster.
	Conflicts int
	// Hinted is set if a hint of another process led to the claim.
	Hinted bool
}

// Claim takes ready futures for the worker, in one transaction whose cost does
// not depend on how many are pending. It reads a few of them in the same one, and
// more in another after it. It returns an empty answer if nothing fits, and ErrReaped if the worker was
// declared dead. If the commit is unknown, the worker's own list of claims
// shows what it took. Futures taken by a Claim that returned an error are given
// back by the next one, at the latest by Leave or a reaper. A Claim that takes
// something takes the worker out of the ring of idle workers.
func (r *Registration) Claim(ctx context.Context, req ClaimRequest) (ClaimAnswer, error) {
	req.Max = min(req.Max, MaxClaim)
	req.Runs = r.runs(req.Runs)
	if req.Max <= 0 {
		return ClaimAnswer{}, nil
	}
	if err := r.resolveClaims(ctx); err != nil {
		return ClaimAnswer{}, err
	}
	token := r.nextToken()
	r.claims++

	r.wakes.Claims()
	var took taking
	var answer ClaimAnswer
	o := kv.Options{Tag: "futura-claim", NoSync: true, Turns: true}
	result, err := r.cluster.Transact(ctx, o, func(tx kv.Attempt) error {
		var err error
		took, err = r.claimIn(ctx, tx, token, req)
		return err
	})
	taken := took.entries
	answer.More, answer.Conflicts, answer.Hinted = took.more, result.Conflicts, r.wakes.Claimed(len(taken) > 0)
	r.scan.RecordConflicts(result.Conflicts)
	r.endEntered(err == nil && result.Version != kv.NoVersion, result.Version)
	if err == nil && len(taken) > 0 {
		answer.Futures, err = r.readClaimed(ctx, token, took, result.Version)
	}
	if err == nil {
		answer.Futures, taken, err = r.refuse(ctx, token, answer.Futures, taken)
	}
	if err != nil {
		r.unresolved = append(r.unresolved, token.Sequence)
		return ClaimAnswer{Conflicts: answer.Conflicts}, err
	}
	if len(taken) > 0 {
		r.held.Hold(token.Sequence, taken)
		r.cluster.claims.Tell(len(taken), result.Version)
		r.wakes.Left()
	}
	return answer, nil
}

// nextToken returns the token of a new claim.
func (r *Registration) nextToken() layout.Token {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sequence++
	return layout.Token{Worker: r.info.ID, Sequence: r.sequence}
}

// doubt has the next Claim give back what a claim of members or of successors took, if it took something.
func (r *Registration) doubt(token layout.Token) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubted = append(r.doubted, token.Sequence)
}

// resolveClaims gives back the futures of claims that ended with an error. A
// commit of theirs that is still to be made conflicts with this one.
func (r *Registration) resolveClaims(ctx context.Context) error {
	r.mu.Lock()
	r.unresolved, r.doubted = append(r.unresolved, r.doubted...), nil
	r.mu.Unlock()
	for len(r.unresolved) > 0 {
		key := r.cluster.keys.Claims(r.info.ID, r.unresolved[0])
		_, err := r.cluster.Change(ctx, kv.Options{Tag: "futura-reap"}, func(_ kv.Attempt, w *WriteSet) error {
			return r.giveBackList(ctx, w, key)
		})
		if err != nil {
			return err
		}
		r.unresolved = r.unresolved[1:]
	}
	return nil
}

// giveBackList gives back the futures in a list of claims.
func (r *Registration) giveBackList(ctx context.Context, w *WriteSet, key []byte) error {
	alive := r.askAlive(w.Tx)
	list, err := w.Tx.Get(key).Wait(ctx)
	if err != nil {
		return err
	}
	if err := r.checkAlive(ctx, alive); err != nil {
		return err
	}
	if list == nil {
		w.Tx.Clear(key)
		return nil
	}
	event := state.Event{Kind: state.EventRelinquish, Token: layout.Token{Worker: r.info.ID}}
	_, err = w.endBatch(ctx, event, kv.KeyValue{Key: key, Value: list}, nil)
	return err
}

// taking is what one attempt of a claim takes.
type taking struct {
	entries []layout.ReadyEntry
	rows    []read.Pending // of the entries, before the claim; nil if it has not asked for them
	more    bool           // more futures fit
}

// claimIn takes futures. Its reads of their rows may not have been waited for.
func (r *Registration) claimIn(ctx context.Context, tx kv.Attempt, token layout.Token, req ClaimRequest,
) (taken taking, err error) {
	listKey := r.cluster.keys.Claims(r.info.ID, token.Sequence)
	r.endEntered(false, kv.NoVersion)
	alive := r.askAlive(tx)
	if tx.MaybeCommitted {
		list, err := tx.Get(listKey).Wait(ctx)
		if err != nil {
			return taken, err
		}
		if list != nil {
			taken.entries, err = r.recoverClaim(ctx, tx, listKey, list)
			taken.more = true
			return taken, err
		}
	}
	s, more, err := r.look(ctx, tx, &req)
	if err != nil {
		return taken, err
	}
	if err := r.checkAlive(ctx, alive); err != nil {
		return taken, err
	}
	// The late twin of an attempt with an unknown result can't commit beside
	// its retry, which writes the list in any case.
	tx.AddReadConflictKey(listKey)
	found := s.taken
	if len(found) == 0 {
		if tx.MaybeCommitted {
			tx.Clear(listKey)
		}
		return taken, nil
	}
	var rows []read.Pending
	if len(found) <= fewClaimed && tx.Number == 1 && !s.crowded {
		for i := range found { // one by one: what lies between them is not to conflict
			rows = append(rows, r.askRows(tx, found[i:i+1])...)
		}
	}
	w := r.cluster.write(tx)
	w.claim(found, token)
	tx.Set(listKey, layout.EncodeClaims(entryIDs(found)))
	if r.wakes.InRing() {
		r.wakes.LeaveRing(tx)
	}
	if err := w.Flush(ctx); err != nil {
		return taken, err
	}
	return taking{found, rows, more}, nil
}

func entryIDs(taken []layout.ReadyEntry) []layout.ID {
	ids := make([]layout.ID, len(taken))
	for i := range taken {
		ids[i] = taken[i].ID
	}
	return ids
}

// recoverClaim finds out what an attempt with an unknown result took.
func (r *Registration) recoverClaim(ctx context.Context, tx kv.Reader, key, value []byte) ([]layout.ReadyEntry, error) {
	ids, err := layout.DecodeClaims(key, value)
	if err != nil {
		return nil, err
	}
	pending := make([]read.Pending, len(ids))
	for i, id := range ids {
		pending[i] = read.Record(tx, r.cluster.keys, id)
	}
	taken := make([]layout.ReadyEntry, 0, len(ids))
	for i, id := range ids {
		row, _, err := pending[i].Wait(ctx)
		if err != nil && !errors.Is(err, layout.ErrNewerRecord) && !errors.Is(err, layout.ErrBadRecord) {
			return nil, err
		}
		e := layout.ReadyEntry{ID: id}
		if row.Spec != nil {
			e.Function, e.Class, e.Owner = row.Spec.Function, row.Needs().Class(), row.Spec.Owner
		}
		taken = append(taken, e)
	}
	return taken, nil
}

// endEntered ends what the last attempt entered in the claim cache of the process.
func (r *Registration) endEntered(committed bool, at kv.Version) {
	if committed {
		r.cluster.claimed.Commit(r.entered, at, r.cluster.clock.Now())
	} else {
		r.cluster.claimed.Release(r.entered)
	}
	clear(r.entered)
	r.entered = r.entered[:0]
}

// fewClaimed is how many futures a claim reads itself, with the conflicts of reads: what their rows have at its commit
// is then known. More are read after it, outside of the conflict window.
const fewClaimed = 4

func (r *Registration) askRows(tx kv.Reader, taken []layout.ReadyEntry) []read.Pending {
	return read.Rows(tx, r.cluster.keys, entryIDs(taken), r.cluster.keys.Row)
}

// readClaimed fetches the futures that were taken.
func (r *Registration) readClaimed(ctx context.Context, token layout.Token, took taking, at kv.Version,
) ([]ClaimedFuture, error) {
	now := r.cluster.clock.Now()
	futures := make([]ClaimedFuture, len(took.entries))
	collect := func(rows []read.Pending, claimed bool) error {
		for i, e := range took.entries {
			futures[i] = ClaimedFuture{ID: e.ID, Token: token, class: e.Class, owner: e.Owner, version: at, at: now}
			if err := futures[i].read(ctx, rows[i], claimed); err != nil {
				return err
			}
		}
		return nil
	}
	isRead := took.rows != nil && collect(took.rows, false) == nil
	if isRead && !slices.ContainsFunc(futures, ClaimedFuture.hasFewInputs) {
		return futures, nil
	}
	err := r.cluster.View(ctx, func(tx kv.Attempt) error {
		if tx.Number == 1 && at != kv.NoVersion {
			tx.SetReadVersion(at)
		}
		if !isRead {
			if err := collect(r.askRows(tx.Snapshot(), took.entries), true); err != nil {
				return err
			}
		}
		return r.readInputs(ctx, tx, futures)
	})
	return futures, err
}

// fewInputs is how many inputs of a future are read with the claim.
const fewInputs = 16

// readInputs fetches the inputs of claimed futures that have few.
func (r *Registration) readInputs(ctx context.Context, tx kv.Tx, futures []ClaimedFuture) error {
	var specs []*layout.Spec
	for _, f := range futures {
		if f.hasFewInputs() {
			specs = append(specs, f.Spec)
		}
	}
	inputs, err := read.Inputs(ctx, tx.Snapshot(), r.cluster.keys, specs)
	for i := range futures {
		if f := &futures[i]; err == nil && f.hasFewInputs() {
			f.Inputs, inputs = inputs[0], inputs[1:]
		}
	}
	return err
}

func (f ClaimedFuture) hasFewInputs() bool {
	return f.Err == nil && len(f.Spec.Inputs) > 0 && f.Spec.CountInputs() <= fewInputs
}

// read fills in a future, from its row, as it is claimed or was before the claim. Only the store's errors are
// returned; those of the future's records are kept in it.
func (f *ClaimedFuture) read(ctx context.Context, p read.Pending, claimed bool) error {
	row, err := f.readRow(ctx, p)
	if !claimed && row.Claim == nil {
		row.Claim = &layout.Claim{Token: f.Token}
	}
	f.Spec, f.Attempts, f.Cancel, f.Steps = row.Spec, row.Attempts, row.Cancel, row.Steps
	f.alone = err == nil && f.Err == nil && row.IsClaimAlone() && row.Claim.Token == f.Token
	return err
}

// row returns the records of a future whose claim is alone, as they were at the version of the claim.
func (f *ClaimedFuture) row() layout.Row {
	return layout.Row{ID: f.ID, Claim: &layout.Claim{Token: f.Token}, Attempts: f.Attempts, Cancel: f.Cancel,
		Steps: f.Steps}
}

// readRow is read for callers who need the whole row.
func (f *ClaimedFuture) readRow(ctx context.Context, p read.Pending) (layout.Row, error) {
	row := layout.Row{ID: f.ID}
	page, err := p.Pending.Wait(ctx)
	if err != nil {
		return row, err
	}
	skip := p.Keys.RowLength(f.ID)
	for _, item := range page.Items {
		rest := tuple.NewReader(item.Key[skip:])
		if first := rest; first.Text() == layout.RowArgs {
			f.Inline = item.Value
			continue
		}
		if err := row.Add(item, rest); err != nil {
			f.Err = err
		}
	}
	if f.Err == nil && row.Spec == nil {
		f.Err = fmt.Errorf("future %s: %w: it has no spec", f.ID, layout.ErrBadRecord)
	}
	if f.Err == nil && !row.Spec.ArgsKey {
		f.Inline = row.Spec.Args
	}
	return row, nil
}

// stubSpec replaces a spec that can't be read, with the fields that the index
// needs.
func (f *ClaimedFuture) stubSpec() *layout.Spec {
	if f.Spec != nil {
		return f.Spec
	}
	return &layout.Spec{Queue: f.class.Queue, Owner: f.owner}
}
