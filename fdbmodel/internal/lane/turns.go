package lane

import (
	"context"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Lanes of a kind with a total width take turns: each that has room and a future in
// line waits in one queue, admits one future when it is first, and gets in again at the
// end. All admissions of such a kind conflict.

// readTotal reads what is admitted over all lanes of a kind with a total width.
func (a *admission) readTotal(ctx context.Context, k *Kind) error {
	if k.Settings.Total > 0 {
		key := a.Keys.LaneTotal(k.name)
		value, err := a.Tx.Get(key).Wait(ctx)
		if err == nil && value != nil {
			err = layout.Decode(key, value, &k.total)
		}
		if err != nil {
			return err
		}
		k.was, k.unread = k.total, k.total.Lined
	}
	a.ordered = append(a.ordered, k)
	return nil
}

// takeTurns admits one future of each lane whose turn it is, until the total width is
// used up, no lane waits, or maxAdmit turns were had of what was in line before: however far the
// total width was raised, and however many lanes pause, the transaction can commit.
func (a *admission) takeTurns(ctx context.Context, k *Kind) error {
	if k.Settings.Total == 0 {
		return nil
	}
	for turns := 0; k.total.Open < k.Settings.Total; {
		if a.shared && k.unread || turns == maxAdmit {
			a.lookAgain(k)
			break
		}
		l, err := a.nextTurn(ctx, k)
		if err != nil {
			return err
		}
		if l == nil {
			break
		}
		if l.turn != nil {
			a.Tx.Clear(l.turn)
			l.turn, l.record.Turn = nil, false
		}
		// What can't be read, or is gone, takes no turn.
		joining := len(l.joining)
		for more, admitted := true, false; more && !admitted; {
			if more, admitted, err = a.admit(ctx, l); err != nil {
				return err
			}
		}
		if len(l.joining) == joining {
			turns++
		}
		if l.quota > 0 && (len(l.line)+len(l.joining) > 0 || l.more) {
			k.back = append(k.back, l)
		}
	}
	for _, l := range k.back {
		a.stampKey(tuple.AppendInt(a.Keys.LaneTurnsOf(k.name), a.Model.Incarnation()), []byte(l.lane.Key))
		l.record.Turn = true
	}
	k.total.Lined = k.unread || k.passed || len(k.front)+len(k.back) > 0
	switch key := a.Keys.LaneTotal(k.name); {
	case k.total == k.was:
	case k.total == layout.LaneTotal{}:
		a.Tx.Clear(key)
	default:
		a.Tx.Set(key, layout.Encode(&k.total))
	}
	return nil
}

// lookAgain has a janitor look at a lane of a kind, and so at those that wait for their
// turn.
func (a *admission) lookAgain(k *Kind) {
	at := slices.IndexFunc(a.lanes, func(l *state) bool { return l.kind == k })
	a.lanes[at].again = true
}

// nextTurn returns the lane whose turn is next, nil if none waits.
func (a *admission) nextTurn(ctx context.Context, k *Kind) (*state, error) {
	for len(k.front) == 0 && k.unread {
		if err := a.readTurns(ctx, k); err != nil {
			return nil, err
		}
	}
	from := &k.front
	if len(k.front) == 0 {
		from = &k.back
	}
	if len(*from) == 0 {
		return nil, nil
	}
	l := (*from)[0]
	*from = (*from)[1:]
	return l, nil
}

// maxTurns is how many lanes are read at once whose turns are next.
const maxTurns = 16

func (a *admission) readTurns(ctx context.Context, k *Kind) error {
	turns := kv.Prefix(a.Keys.LaneTurnsOf(k.name))
	if k.next != nil {
		turns.Begin = k.next
	}
	limit := min(maxTurns, k.Settings.Total-k.total.Open)
	page, err := a.Tx.GetRange(turns, kv.RangeOptions{Limit: limit}).Wait(ctx)
	if err != nil {
		return err
	}
	k.unread = page.More
	records := make([]asked, len(page.Items))
	for i, item := range page.Items {
		k.next = kv.After(item.Key)
		records[i] = a.ask(layout.Lane{Kind: k.name, Key: string(item.Value)})
	}
	for i, item := range page.Items {
		lane := layout.Lane{Kind: k.name, Key: string(item.Value)}
		l := a.byLane[lane]
		if l == nil {
			l, err = a.readLane(ctx, &Change{lane: lane}, k, records[i])
			if layout.IsUnreadable(err) {
				k.passed = true // its turn stays until it can be read
				continue
			}
			if err != nil {
				return err
			}
		}
		if l.record.Turn && l.turn == nil {
			l.turn = item.Key
			k.front = append(k.front, l)
			continue
		}
		a.Tx.Clear(item.Key) // of a lane that has had its turn
	}
	return nil
}
