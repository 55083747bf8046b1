package fdbmodel

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/internal/member"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
)

// Begin records that the worker is about to run a future. Call it, and wait for
// it, before a run of a poison candidate: a future whose Attempts.Suspicion is not 0.
// If the worker dies during the run, the death counts as a crash of the candidate,
// and of no future that is less suspicious. Begin returns ErrReaped if the worker
// was declared dead; then the future is not to be run. Finish, Absolve and Trust remove the record.
// An unknown commit is retried and harmless.
func (r *Registration) Begin(ctx context.Context, f *ClaimedFuture) error {
	if !f.begun { // others may read it by the time of a second Begin
		f.begun = true
	}
	value := layout.Encode(&layout.SuspectRecord{Sequence: f.Token.Sequence, Deaths: f.Attempts.Suspicion()})
	return r.suspect(ctx, f, func(tx kv.Tx, key []byte) error {
		// The late twin of an attempt with an unknown result can't commit once the
		// record has been written or removed.
		tx.AddReadConflictKey(key)
		tx.Set(key, value)
		return nil
	})
}

// Absolve removes what Begin has recorded, while the function does nothing that could end its process: a death
// of the worker does not count as a crash of the future until the next Begin. What is recorded under a later claim
// stays. It returns what Begin returns. An unknown commit is retried and harmless.
func (r *Registration) Absolve(ctx context.Context, f *ClaimedFuture) error {
	return r.suspect(ctx, f, func(tx kv.Tx, key []byte) error { return member.Absolve(ctx, tx, key, f.Token.Sequence) })
}

func (r *Registration) suspect(ctx context.Context, f *ClaimedFuture, write func(tx kv.Tx, key []byte) error) error {
	key := r.cluster.keys.Suspect(r.info.ID, f.ID)
	_, err := Patient{r.cluster}.Transact(ctx, kv.Options{Tag: "futura-begin"}, func(tx kv.Attempt) error {
		if err := r.checkAlive(ctx, r.askAlive(tx)); err != nil {
			return err
		}
		return write(tx, key)
	})
	return err
}

// Trust is Absolve in a transaction that keeps what a run has done so far, under the fence of its claim: who gets
// further each time is not what ends its workers.
func (r *Registration) Trust(tx kv.Tx, f *ClaimedFuture) {
	if f.begun {
		tx.Clear(r.cluster.keys.Suspect(r.info.ID, f.ID))
	}
}

// noteLost keeps the futures whose claims were gone when they ended.
func (r *Registration) noteLost(completions []Completion, outcomes []Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, o := range outcomes {
		if o == Lost {
			r.lost = append(r.lost, completions[i].Future.ID)
		}
	}
}

// reappear has the futures that the worker held, as far as it knows, forget that
// it died. It is called when none of them is the worker's any more. An unknown
// commit is retried and harmless, and so is a call after one that failed.
func (r *Registration) reappear(ctx context.Context) error {
	r.mu.Lock()
	ids := append(r.held.All(), r.lost...)
	r.mu.Unlock()
	for len(ids) > 0 {
		n := min(len(ids), MaxFinish)
		if err := r.forgetDeath(ctx, ids[:n]); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// forgetDeath has futures forget that the worker died. Unreadable ones keep the
// death.
func (r *Registration) forgetDeath(ctx context.Context, ids []layout.ID) error {
	c := r.cluster
	event := state.Event{Kind: state.EventReappear, Token: layout.Token{Worker: r.info.ID}, Now: c.clock.Now()}
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-reap"}, func(tx kv.Attempt) error {
		pending := read.Records(tx, c.keys, ids)
		w := c.write(tx)
		for _, p := range pending {
			row, found, err := p.Wait(ctx)
			switch {
			case layout.IsUnreadable(err):
				continue
			case err != nil:
				return err
			case !found || row.Spec == nil:
				continue
			}
			if after, outcome := state.Next(row, event); outcome == Applied {
				w.Apply(&row, &after)
			}
		}
		return w.Flush(ctx)
	})
	return err
}
