package head

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Workers that come while a batch runs, or are done with their part of it, get items that
// others have been given and have not begun: as many workers have some at a time as the batch
// asks for.

// Bounds of moving items.
const (
	// movePiece is how many items one worker is given at a time at most.
	movePiece = 2000
	// moveTakers is how many workers are given items in one step.
	moveTakers = 16
	// lookForRoom is how many of Options.MoveAfter pass until workers with room are looked for
	// again. While there are items to move that costs one roll call.
	lookForRoom = 5
	// lookForItems is the same for a worker all of whose items have begun: it doubles as long
	// as nothing is found.
	lookForItems, lookForItemsMax = 5, 80
)

// balance is what is known of how a batch's items are spread.
type balance struct {
	// at is when workers with room are looked for next: zero before the items were seen.
	at time.Time
	// busy are the workers that have items, and done those that had some since the last look.
	busy, done []string
	// begun are workers of which nothing could be moved.
	begun map[string]begun
}

// begun says until when a worker is not asked for items again, and how long that was.
type begun struct {
	until time.Time
	wait  time.Duration
}

// balance moves items from workers that have not begun them to others that have room, if the
// batch may have more workers than have items now. It reads nothing where it may not, and
// where all items have begun for all that it knows. It returns when to look again at the
// latest, the zero time if that depends on others.
func (d *driver) balance(ctx context.Context, mover batch.Mover, b *batch.Batch, loads []batch.Load,
) (next time.Time, err error) {
	m, now, patience := &d.moves, d.head.now(), d.head.options.MoveAfter
	if patience < 0 {
		return time.Time{}, nil
	}
	m.see(loads, now, patience)
	room := roomFor(b, len(loads))
	from := slices.DeleteFunc(slices.Clone(loads), func(l batch.Load) bool { return now.Before(m.begun[l.Worker].until) })
	if room == 0 || len(from) == 0 {
		return time.Time{}, nil
	}
	if now.Before(m.at) {
		return m.at, nil
	}
	m.at = now.Add(lookForRoom * patience)
	workers, err := d.head.options.Dispatcher.RollCall(ctx, &b.Template)
	if err != nil {
		return m.at, err
	}
	done := m.done
	m.done = nil
	d.head.ledger.rank(workers, d.id)
	workers = slices.DeleteFunc(workers, func(w Candidate) bool {
		// The heartbeat of one that is done may say so only later.
		return slices.Contains(m.busy, w.Worker) || w.Free < 1 && !slices.Contains(done, w.Worker)
	})
	for _, w := range workers[:min(len(workers), room, moveTakers)] {
		n, err := d.moveTo(ctx, mover, b, w, from)
		if n > 0 {
			m.at = now.Add(patience)
		}
		switch {
		case errors.Is(err, batch.ErrNotFound), errors.Is(err, layout.ErrUnfit): // it has gone
		case errors.Is(err, batch.ErrState): // the batch is over
			return m.at, nil
		case err != nil || n == 0:
			return m.at, err
		}
	}
	return m.at, nil
}

// see notes the workers that have items now. Some time passes before any are moved, in which many a short
// item ends by itself.
func (m *balance) see(loads []batch.Load, now time.Time, patience time.Duration) {
	busy := make([]string, len(loads))
	for i, load := range loads {
		busy[i] = load.Worker
	}
	done := slices.DeleteFunc(m.busy, func(w string) bool { return slices.Contains(busy, w) })
	m.done = slices.DeleteFunc(m.done, func(w string) bool { return slices.Contains(done, w) })
	m.busy, m.done = busy, append(m.done, done...)
	switch soon := now.Add(patience / 4); {
	case m.at.IsZero():
		m.at = now.Add(patience)
	case len(done) > 0 && soon.Before(m.at):
		m.at = soon
	}
}

// roomFor is how many workers more may have items of a batch.
func roomFor(b *batch.Batch, busy int) int {
	if b.Template.Config.Nodes < 0 {
		return moveTakers
	}
	return max(max(b.Template.Config.Nodes, 1)-busy, 0)
}

// moveTo moves items to a worker, of those that have most of them, and returns how many.
func (d *driver) moveTo(ctx context.Context, mover batch.Mover, b *batch.Batch, w Candidate, from []batch.Load,
) (int, error) {
	o, m, now := &d.head.options, &d.moves, d.head.now()
	chunk := batch.Chunk{
		ID: d.head.newID(), Batch: b.ID, Worker: w.Worker, Peer: w.Peer, Status: batch.InProgress,
		CreatedAt: now.UTC().Truncate(time.Millisecond),
	}
	slices.SortFunc(from, func(a, b batch.Load) int {
		return cmp.Or(cmp.Compare(b.Items, a.Items), cmp.Compare(a.Worker, b.Worker))
	})
	for i := range from {
		load := &from[i]
		if load.Items < 1 || now.Before(m.begun[load.Worker].until) {
			continue
		}
		n, err := mover.Move(ctx, load.Worker, &chunk, movePiece)
		if load.Items -= n; n > 0 {
			delete(m.begun, load.Worker)
			d.moved(w.Worker, slotsOf(&b.Template, n))
			o.Logger.Info("items that a worker has not begun go to another", "batch", b.ID, "from", load.Worker,
				"to", w.Worker, "chunk", chunk.ID, "items", n)
		}
		if n > 0 || err != nil {
			return n, err
		}
		m.rest(load.Worker, now, o.MoveAfter)
	}
	return 0, nil
}

// rest notes that nothing can be moved from a worker.
func (m *balance) rest(worker string, now time.Time, patience time.Duration) {
	if m.begun == nil {
		m.begun = map[string]begun{}
	}
	wait := min(max(2*m.begun[worker].wait, lookForItems*patience), lookForItemsMax*patience)
	m.begun[worker] = begun{until: now.Add(wait), wait: wait}
}
