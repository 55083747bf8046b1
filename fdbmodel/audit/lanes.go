package audit

import (
	"bytes"
	"context"
	"maps"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// checkLaneKind reports settings that lanes can't obey. Others that can't be read are
// reported as all records are.
func (p *page) checkLaneKind(it *item) {
	var settings layout.LaneKind
	if err := layout.DecodeLaneKind(it.Raw, it.stored, &settings); it.err == nil && err != nil {
		p.broken(InvariantLane, it.Raw, "%v", err)
	}
}

// checkLane compares the record of a lane with its line and its settings.
func (p *page) checkLane(it *item) {
	r, readable := it.Record.(*layout.LaneRecord)
	if !readable || it.err != nil {
		return
	}
	lane := layout.Lane{Kind: it.Text("kind"), Key: it.Text("key")}
	if r.Turn {
		p.turns[lane.Kind]++
	}
	if r.Open < 0 {
		p.broken(InvariantLane, it.Raw, "lane %s has admitted %d futures", lane, r.Open)
	}
	if r.Due != 0 {
		due := p.keys.LaneDue(lane, r.Due)
		p.require(due, func() {
			p.broken(InvariantLane, due, "lane %s is held back until %d, and no key says so", lane, r.Due).by(set(due, nil))
		})
	}
	kind := p.keys.LaneKind(lane.Kind)
	line := p.tx.GetRange(p.keys.InLine(lane), kv.RangeOptions{Limit: 1})
	settings := layout.LaneKind{Width: 1}
	p.get(kind, func(value []byte) {
		if value != nil && layout.DecodeLaneKind(kind, value, &settings) != nil {
			settings.Paused = true // it is reported with its key; nothing is known of its lanes
		}
	})
	p.later(func(ctx context.Context) error {
		page, err := line.Wait(ctx)
		if err != nil {
			return err
		}
		inLine := len(page.Items) > 0
		held := r.Due != 0 || r.Turn || r.Paused || settings.Paused || settings.Sweep != 0
		switch {
		case inLine && !r.Lined:
			p.broken(InvariantLane, it.Raw, "lane %s has futures in line and does not know", lane).by(p.look(lane, *r)...)
		case inLine && r.Open < settings.Width && !held && r.Called == 0:
			p.broken(InvariantLane, it.Raw, "lane %s has admitted %d of %d futures, and others are in line", lane, r.Open,
				settings.Width).by(p.look(lane, *r)...)
		}
		return nil
	})
}

// look returns the changes by which a janitor looks at a lane, and admits futures if it has
// room: nothing while it may count too few.
func (p *page) look(lane layout.Lane, r layout.LaneRecord) []change {
	if !p.mayAdmit {
		return nil
	}
	return lookAt(p.keys, lane, r, layout.Millis(p.cluster.Now()))
}

func lookAt(keys layout.Keyspace, lane layout.Lane, r layout.LaneRecord, now int64) []change {
	var changes []change
	if r.Lined = true; r.Due == 0 {
		r.Due = now
		changes = append(changes, set(keys.LaneDue(lane, now), nil))
	}
	return append(changes, set(keys.Lane(lane), layout.Encode(&r)))
}

// checkLine compares a place in line with the record of the lane.
func (p *page) checkLine(it *item) {
	lane := layout.Lane{Kind: it.Text("kind"), Key: it.Text("key")}
	if key := p.keys.Lane(lane); p.first(key) {
		p.require(key, func() {
			p.broken(InvariantLane, it.Raw, "futures are in line for lane %s, of which nothing is known", lane).
				by(p.look(lane, layout.LaneRecord{})...)
		})
	}
}

// checkLaneDue compares a key of a lane that is held back with its record.
func (p *page) checkLaneDue(it *item) {
	lane := layout.Lane{Kind: it.Text("kind"), Key: it.Text("key")}
	p.lane(lane, func(r *layout.LaneRecord) {
		if r.Due != it.Int("due_ms") {
			p.broken(InvariantLane, it.Raw, "lane %s is held back until %d, not until then", lane, r.Due).by(drop(it.Raw))
		}
	})
}

// checkLaneTurn compares a turn with the record of its lane.
func (p *page) checkLaneTurn(it *item) {
	lane := layout.Lane{Kind: it.Text("kind"), Key: string(it.stored)}
	p.lane(lane, func(r *layout.LaneRecord) {
		if !r.Turn {
			p.note(InvariantLane, it.Raw, "lane %s has a turn that it does not wait for", lane)
			return
		}
		p.turns[lane.Kind]--
	})
}

// lane requests the record of a lane, and has it judged if it can be read.
func (p *page) lane(lane layout.Lane, judge func(*layout.LaneRecord)) {
	key := p.keys.Lane(lane)
	p.get(key, func(value []byte) {
		var r layout.LaneRecord
		if value == nil || layout.Decode(key, value, &r) == nil {
			judge(&r)
		}
	})
}

// aCall is what a bundle counts that has yet to take its members, beside the 1 that a slot
// counts: the two are compared as one number.
const aCall = 1 << 32

// slotsOf returns what a future counts among those that its lane has admitted.
func slotsOf(r *layout.Row) (n int64) {
	if r.HasSlot() {
		n = 1
	}
	if r.IsCalled() {
		n += aCall
	}
	return n
}

// checkLanes compares what lanes have admitted with the futures.
func (k *checker) checkLanes(ctx context.Context) error {
	if len(k.met.damaged) > 0 {
		return nil
	}
	err := comparison[layout.Lane]{
		of: InvariantLane, what: "lanes", met: k.met.slots, counters: k.readSlots, futures: k.countSlots, mend: k.mendLane,
		known: func(ctx context.Context, tx kv.Reader, lane layout.Lane) (bool, error) {
			return k.readRecord(ctx, tx, k.keys.Lane(lane), new(layout.LaneRecord))
		},
		broken: func(f *findings, lane layout.Lane, futures, counter int64) *found {
			return f.broken(InvariantLane, k.keys.Lane(lane),
				"%d futures have slots of lane %s, which counts %d; %d of them are bundles that have yet to take their members, "+
					"it counts %d", futures%aCall, lane, counter%aCall, futures/aCall, counter/aCall)
		},
	}.settle(ctx, k)
	if err != nil {
		return err
	}
	return comparison[string]{
		of: InvariantLane, what: "total widths of lanes", met: nil, counters: k.readTotals, futures: k.countTotals,
		mend: k.mendTotal, known: k.knowsKind,
		broken: func(f *findings, kind string, lanes, counter int64) *found {
			return f.broken(InvariantLane, k.keys.LaneTotal(kind),
				"all lanes of kind %s have admitted %d futures, and their total counts %d", kind, lanes, counter)
		},
	}.settle(ctx, k)
}

func (k *checker) readSlots(ctx context.Context, tx kv.Reader) (map[layout.Lane]int64, error) {
	slots := map[layout.Lane]int64{}
	for shard := range k.keys.Shards {
		err := k.each(ctx, tx, k.keys.Shard(shard, layout.SubLanes), func(it *item) {
			if r := it.Record.(*layout.LaneRecord); r.Open != 0 || r.Called != 0 {
				slots[layout.Lane{Kind: it.Text("kind"), Key: it.Text("key")}] = int64(r.Open) + aCall*int64(r.Called)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return slots, nil
}

func (k *checker) countSlots(ctx context.Context, tx kv.Reader) (map[layout.Lane]int64, error) {
	slots := map[layout.Lane]int64{}
	for shard := range k.keys.Shards {
		err := k.eachFuture(ctx, tx, shard, func(row *layout.Row) {
			if n := slotsOf(row); n != 0 {
				slots[row.Spec.Lane] += n
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return slots, nil
}

// knowsKind reports whether the settings of a kind, its total and its lanes can all be read.
func (k *checker) knowsKind(ctx context.Context, tx kv.Reader, kind string) (bool, error) {
	settings, err := k.readRecord(ctx, tx, k.keys.LaneKind(kind), new(layout.LaneKind))
	if err != nil {
		return false, err
	}
	total, err := k.readRecord(ctx, tx, k.keys.LaneTotal(kind), new(layout.LaneTotal))
	return settings && total && !k.unread[kind], err
}

// readTotals returns the totals of the kinds that have a total width.
func (k *checker) readTotals(ctx context.Context, tx kv.Reader) (map[string]int64, error) {
	totals := map[string]int64{}
	page, err := tx.GetRange(kv.Prefix(k.keys.Global(layout.SubLaneTotals)), kv.RangeOptions{}).Wait(ctx)
	if err != nil {
		return nil, err
	}
	for _, stored := range page.Items {
		it, err := newItem(k.keys, stored)
		if total, is := it.Record.(*layout.LaneTotal); err == nil && is && total.Open != 0 {
			totals[it.Text("kind")] = int64(total.Open)
		}
	}
	return totals, nil
}

func (k *checker) countTotals(ctx context.Context, tx kv.Reader) (map[string]int64, error) {
	page, err := tx.GetRange(kv.Prefix(k.keys.LaneKinds()), kv.RangeOptions{}).Wait(ctx)
	if err != nil {
		return nil, err
	}
	counted := map[string]bool{}
	for _, stored := range page.Items {
		it, err := newItem(k.keys, stored)
		if kind, is := it.Record.(*layout.LaneKind); err == nil && is && kind.Total > 0 {
			counted[it.Text("kind")] = true
		}
	}
	totals := map[string]int64{}
	if len(counted) == 0 {
		return totals, nil
	}
	slots, err := k.readSlots(ctx, tx)
	for lane, n := range slots {
		if counted[lane.Kind] {
			totals[lane.Kind] += n % aCall
		}
	}
	return totals, err
}

// checkTurns looks for lanes that wait for their turn, and have none.
func (k *checker) checkTurns(ctx context.Context) error {
	even := func(_ string, n int64) bool { return n == 0 }
	if maps.DeleteFunc(k.met.turns, even); k.repairs == nil && len(k.met.turns) == 0 {
		return nil
	}
	var lost map[layout.Lane]layout.LaneRecord
	settled, err := k.atOneVersion(ctx, "turns of lanes", func(tx kv.Tx) (err error) {
		if lost, err = k.lostTurns(ctx, tx.Snapshot()); err == nil && k.repairs != nil {
			err = k.mendTurns(ctx, tx, lost)
		}
		return err
	})
	if err != nil || !settled {
		return err
	}
	if k.repairs != nil {
		k.repairs.done(InvariantLane, len(lost))
		return nil
	}
	lanes := map[string]int{}
	for lane := range lost {
		lanes[lane.Kind]++
	}
	var f findings
	for kind, n := range lanes {
		f.broken(InvariantLane, k.keys.LaneTurnsOf(kind), "%d lanes of kind %s wait for their turn, and have none", n, kind).
			apart("let them wait again")
	}
	k.take(&f)
	return nil
}

func (k *checker) lostTurns(ctx context.Context, tx kv.Reader) (map[layout.Lane]layout.LaneRecord, error) {
	lost := map[layout.Lane]layout.LaneRecord{}
	for shard := range k.keys.Shards {
		err := k.each(ctx, tx, k.keys.Shard(shard, layout.SubLanes), func(it *item) {
			if r := it.Record.(*layout.LaneRecord); r.Turn {
				lost[layout.Lane{Kind: it.Text("kind"), Key: it.Text("key")}] = *r
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return lost, k.each(ctx, tx, k.keys.Global(layout.SubLaneTurns), func(it *item) {
		delete(lost, layout.Lane{Kind: it.Text("kind"), Key: string(it.stored)})
	})
}

// checkLaneRecords compares what the records of a future say of its lane with each other.
func (p *page) checkLaneRecords(r *layout.Row) {
	key := p.keys.State(r.ID, layout.StateLine)
	switch {
	case r.Line != nil && (r.Spec.Lane.IsZero() || r.State() != layout.Ready):
		p.broken(InvariantLane, key, "future %s is %v, in lane %q, and in line", r.ID, r.State(), r.Spec.Lane)
	case r.Attempts.Taken && (!r.Spec.Bundle || r.State() != layout.Claimed):
		p.broken(InvariantLane, p.keys.State(r.ID, layout.StateAttempts),
			"future %s is %v, a bundle %t, and has taken members", r.ID, r.State(), r.Spec.Bundle)
	case r.Attempts.Slot && (r.Spec.Lane.IsZero() || !r.HasSlot()):
		p.broken(InvariantLane, p.keys.State(r.ID, layout.StateAttempts), "future %s is %v, in lane %q, and keeps a slot",
			r.ID, r.State(), r.Spec.Lane)
	}
}

// checkInLine counts the slots of a future, and looks for another one at its place in line.
func (p *page) checkInLine(r *layout.Row) {
	if n := slotsOf(r); n != 0 {
		p.slots[r.Spec.Lane] += n
	}
	if place := layout.PlaceOf(r); place != nil && place.Kind == layout.PlaceLine {
		at := place.Key(p.keys, r)
		p.get(at, func(value []byte) {
			if value != nil && !bytes.Equal(value, place.Value(r)) {
				of := p.broken(InvariantLane, at, "future %s is in line here, and another future has the place", r.ID)
				p.checkOther(r, at, value, of.by(p.follow(r, set(at, place.Value(r)))...))
			}
		})
	}
}

// checkOther leaves a place in line alone that is another future's as well, by its records.
func (p *page) checkOther(r *layout.Row, at, value []byte, of *found) {
	var entry layout.LineEntry
	if layout.Decode(at, value, &entry) != nil {
		of.by()
		return
	}
	p.row(entry.ID, func(other *layout.Row) {
		if other.Spec == nil || other.ID == r.ID {
			return
		}
		place := layout.PlaceOf(other)
		if place != nil && place.Kind == layout.PlaceLine && bytes.Equal(place.Key(p.keys, other), at) {
			of.by()
		}
	})
}
