package fdbmodel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/edge"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// maxHolders is how many futures with one name a transaction looks at: there is one,
// and those that have given it up since.
const maxHolders = 16

// uniqueHolder is a future that has a name.
type uniqueHolder struct {
	id     layout.ID
	record layout.UniqueRecord
	row    *layout.Row // nil if it was removed, even if another one has its id now
}

// refusal is the error for who wants the name of the holder.
func (h *uniqueHolder) refusal(name layout.UniqueName) *NotUniqueError {
	e := &NotUniqueError{ID: h.id, Name: name, Key: h.record.Key, Until: h.record.Until}
	if h.record.FreeAt > 0 {
		e.FreeAt = time.UnixMilli(h.record.FreeAt)
	}
	if h.row != nil {
		e.State = h.row.State()
	}
	return e
}

// holds reports whether the future has not given up its name.
func (h *uniqueHolder) holds(now int64) bool {
	switch {
	case h.record.Until == layout.UntilEver || h.record.FreeAt > now:
		return true
	case h.row == nil || h.row.State().Terminal():
		return false
	default:
		return h.record.Until != layout.UntilClaim || h.row.State() != layout.Claimed
	}
}

// askNamed requests the futures that have a name. The transaction conflicts with
// whoever takes the name, or gives it up, meanwhile.
func askNamed(tx kv.Reader, keys layout.Keyspace, name layout.UniqueName) kv.Pending[kv.Page] {
	return tx.GetRange(kv.Prefix(keys.UniqueNamed(name)), kv.RangeOptions{Limit: maxHolders})
}

// findHolder returns the future other than self that has a name, nil for none, and
// those that have a key for it and have given it up.
func findHolder(ctx context.Context, tx kv.Reader, keys layout.Keyspace, asked kv.Pending[kv.Page], self layout.ID,
	now int64,
) (holder *uniqueHolder, former []uniqueHolder, err error) {
	page, err := asked.Wait(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, item := range page.Items {
		key := layout.ParseKey(item.Key)
		h := uniqueHolder{id: key.ID}
		if h.id == self {
			continue
		}
		if err := layout.Decode(item.Key, item.Value, &h.record); err != nil {
			return nil, nil, err
		}
		row, _, err := read.Record(tx, keys, h.id).Wait(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("future %s, which has the unique key %.80q: %w", h.id, h.record.Key, err)
		}
		if h.record.IsOf(&row, layout.UniqueName(key.Text("name"))) {
			h.row = &row
		}
		if h.holds(now) {
			return &h, former, nil
		}
		former = append(former, h)
	}
	return nil, former, nil
}

// holderOf is findHolder for who takes the name: the keys of those that have given it
// up are cleared.
func (w *WriteSet) holderOf(ctx context.Context, name layout.UniqueName, self layout.ID, asked kv.Pending[kv.Page],
) (*uniqueHolder, error) {
	holder, former, err := findHolder(ctx, w.Tx, w.Keys, asked, self, w.Now)
	for i := range former {
		w.names.Clear(name, former[i].record.FreeAt, former[i].id)
	}
	return holder, err
}

// names are those of the unique submissions of one transaction.
type names struct {
	asked map[layout.UniqueName]kv.Pending[kv.Page]
	taken map[layout.UniqueName]int // by an earlier submission, whose index it is
}

func (n *names) ask(tx kv.Reader, keys layout.Keyspace, s *Submission) {
	if s.Unique == nil {
		return
	}
	if n.asked == nil {
		n.asked, n.taken = map[layout.UniqueName]kv.Pending[kv.Page]{}, map[layout.UniqueName]int{}
	}
	name := s.Spec.Unique.Name
	if _, asked := n.asked[name]; !asked {
		n.asked[name] = askNamed(tx, keys, name)
	}
}

// resolveName finds out whether a unique submission may have its name. It returns true if
// another future is the answer. On ConflictReplace it cancels the other one.
func (c *Cluster) resolveName(ctx context.Context, w *WriteSet, asked *askedSubmitted, subs []Submission,
	answers []Submitted, i int,
) (bool, error) {
	s, answer := &subs[i], &answers[i]
	if s.Unique == nil {
		return false, nil
	}
	name := s.Spec.Unique.Name
	if first, taken := asked.names.taken[name]; taken && keepsName(&subs[first].Spec, answers[first].State, w.Now) {
		return resolveTwice(s, &subs[first], &answers[first], answer)
	} else if taken {
		asked.names.taken[name] = i
		return false, nil
	}
	// The submission's own id may have the name too: of a future that was removed.
	other, err := w.holderOf(ctx, name, layout.ID{}, asked.names.asked[name])
	if err != nil {
		return false, err
	}
	if other == nil {
		asked.names.taken[name] = i
		return false, nil
	}
	refusal := other.refusal(name)
	if other.row != nil {
		if refusal.Differs, err = c.otherThan(ctx, w.Tx, other.row, s); err != nil {
			return false, err
		}
	}
	switch {
	case s.Unique.OnConflict == ConflictReturn:
		answer.ID, answer.State, answer.Existed, answer.Differs = other.id, refusal.State, true, refusal.Differs
		answer.place = nil
		return true, nil
	case s.Unique.OnConflict == ConflictReplace && isWaiting(other.row):
		asked.names.taken[name] = i
		answer.Replaced = other.id
		err = w.replace(asked.inputs, other.row, s.ID, c.clock.Now())
		w.names.Clear(name, other.record.FreeAt, other.id)
		answer.mail = w.mail.Notices
		return false, err
	}
	refusal.replace = s.Unique.OnConflict == ConflictReplace
	return false, refusal
}

// keepsName reports whether a future that the transaction has made still has its name:
// it may have ended at once.
func keepsName(s *layout.Spec, state layout.State, now int64) bool {
	return !state.Terminal() || s.Unique.Until == layout.UntilEver || s.FreeAt() > now
}

// resolveTwice resolves a name that an earlier submission of the same transaction has.
func resolveTwice(s, first *Submission, earlier, answer *Submitted) (bool, error) {
	differs := otherWork(&first.Spec, &s.Spec)
	if s.Unique.OnConflict != ConflictReturn {
		holder := uniqueHolder{id: first.ID, record: *layout.UniqueOf(&first.Spec)}
		refusal := holder.refusal(s.Spec.Unique.Name)
		refusal.State, refusal.Differs = earlier.State, differs
		return false, refusal
	}
	answer.ID, answer.State, answer.Existed, answer.Differs = first.ID, earlier.State, true, differs
	answer.place = nil
	return true, nil
}

func isWaiting(row *layout.Row) bool {
	return row != nil && slices.Contains([]layout.State{layout.Blocked, layout.Ready, layout.Delayed}, row.State())
}

// replace cancels a future that waits, because a new one takes its name.
func (w *WriteSet) replace(inputs *edge.Inputs, row *layout.Row, by layout.ID, now time.Time) error {
	// Others that the transaction submits may take its result: they are told too.
	row.Dependants = true
	request := &layout.CancelRequest{Reason: fmt.Sprintf("replaced by future %s", by), At: layout.Millis(now)}
	after, outcome := Next(*row, Event{Kind: EventCancel, Cancel: request, Now: now})
	if outcome != Applied {
		return fmt.Errorf("future %s is %v: replace is %w", row.ID, row.State(), ErrTransition)
	}
	w.Apply(row, &after)
	inputs.Made(&after)
	return nil
}

// requireName returns a NotUniqueError if a unique future that is over can't start
// again, because another one has its name.
func (w *WriteSet) requireName(ctx context.Context, before, after *layout.Row) error {
	if before.Spec.Unique == nil || !before.State().Terminal() || after.State().Terminal() {
		return nil
	}
	name := before.Spec.Unique.Name
	other, err := w.holderOf(ctx, name, before.ID, askNamed(w.Tx, w.Keys, name))
	if err != nil || other == nil {
		return err
	}
	refusal := other.refusal(name)
	if other.row != nil {
		refusal.Differs = otherWork(other.row.Spec, before.Spec)
	}
	return fmt.Errorf("retry of future %s: %w", before.ID, refusal)
}
