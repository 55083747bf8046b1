package audit

import (
	"bytes"
	"context"

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
	p.turns[lane.Kind] += 0
	if r.Turn {
		p.turns[lane.Kind]++
	}
	if r.Open < 0 {
		p.broken(InvariantLane, it.Raw, "lane %s has admitted %d futures", lane, r.Open)
	}
	if r.Due != 0 {
		due := p.keys.LaneDue(lane, r.Due)
		p.require(due, func() {
			p.broken(InvariantLane, due, "lane %s is held back until %d, and no key says so", lane, r.Due)
		})
	}
	kind := p.keys.LaneKind(lane.Kind)
	line := p.tx.GetRange(kv.Prefix(p.keys.LineOf(lane)), kv.RangeOptions{Limit: 1})
	settings := layout.LaneKind{Width: 1}
	p.get(kind, func(value []byte) {
		if value != nil && layout.DecodeLaneKind(kind, value, &settings) != nil {
			settings.Paused = true // it is reported with its key; nothing is known of its lanes
		}
	})
	p.judges = append(p.judges, func(ctx context.Context) error {
		page, err := line.Wait(ctx)
		if err != nil {
			return err
		}
		inLine := len(page.Items) > 0
		held := r.Due != 0 || r.Turn || r.Paused || settings.Paused || settings.Sweep != 0
		switch {
		case inLine && !r.Lined:
			p.broken(InvariantLane, it.Raw, "lane %s has futures in line and does not know", lane)
		case inLine && r.Open < settings.Width && !held && r.Called == 0:
			p.broken(InvariantLane, it.Raw, "lane %s has admitted %d of %d futures, and others are in line", lane, r.Open,
				settings.Width)
		}
		return nil
	})
}

// checkLine compares a place in line with the record of the lane.
func (p *page) checkLine(it *item) {
	lane := layout.Lane{Kind: it.Text("kind"), Key: it.Text("key")}
	if key := p.keys.Lane(lane); p.first(key) {
		p.require(key, func() {
			p.broken(InvariantLane, it.Raw, "futures are in line for lane %s, of which nothing is known", lane)
		})
	}
}

// checkLaneDue compares a key of a lane that is held back with its record.
func (p *page) checkLaneDue(it *item) {
	lane := layout.Lane{Kind: it.Text("kind"), Key: it.Text("key")}
	p.lane(lane, func(r *layout.LaneRecord) {
		if r.Due != it.Int("due_ms") {
			p.broken(InvariantLane, it.Raw, "lane %s is held back until %d, not until then", lane, r.Due)
		}
	})
}

// checkLaneTurn compares a turn with the record of its lane.
func (p *page) checkLaneTurn(it *item) {
	lane := layout.Lane{Kind: it.Text("kind"), Key: string(it.stored)}
	p.turns[lane.Kind]--
	p.lane(lane, func(r *layout.LaneRecord) {
		if !r.Turn {
			p.note(InvariantLane, it.Raw, "lane %s has a turn that it does not wait for", lane)
		}
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
		what: "lanes", met: k.met.slots, counters: k.readSlots, futures: k.countSlots,
		broken: func(f *findings, lane layout.Lane, futures, counter int64) {
			f.broken(InvariantLane, k.keys.Lane(lane), "%d futures have slots of lane %s, which counts %d; %d of them are "+
				"bundles that have yet to take their members, it counts %d", futures%aCall, lane, counter%aCall, futures/aCall,
				counter/aCall)
		},
	}.settle(ctx, k)
	if err != nil {
		return err
	}
	return comparison[string]{
		what: "total widths of lanes", met: nil, counters: k.readTotals, futures: k.countTotals,
		broken: func(f *findings, kind string, lanes, counter int64) {
			f.broken(InvariantLane, k.keys.LaneTotal(kind), "all lanes of kind %s have admitted %d futures, and their total "+
				"counts %d", kind, lanes, counter)
		},
	}.settle(ctx, k)
}

func (k *checker) readSlots(ctx context.Context, tx kv.Reader) (map[layout.Lane]int64, error) {
	slots := map[layout.Lane]int64{}
	for shard := range k.keys.Shards {
		err := k.each(ctx, tx, shard, layout.SubLanes, func(it *item) {
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
		if kind, is := it.Record.(*layout.LaneKind); err == nil && is {
			counted[it.Text("kind")] = kind.Total > 0
		}
	}
	totals := map[string]int64{}
	slots, err := k.readSlots(ctx, tx)
	for lane, n := range slots {
		if counted[lane.Kind] {
			totals[lane.Kind] += n % aCall
		}
	}
	return totals, err
}

// checkTurns compares how many lanes wait for their turn with the turns that there are.
func (k *checker) checkTurns(ctx context.Context) error {
	for kind, n := range k.met.turns {
		if n == 0 {
			continue
		}
		var waiting, turns int
		settled, err := k.atOneVersion(ctx, "turns of lanes", func(tx kv.Reader) error {
			waiting, turns = 0, 0
			for shard := range k.keys.Shards {
				err := k.each(ctx, tx, shard, layout.SubLanes, func(it *item) {
					if it.Text("kind") == kind && it.Record.(*layout.LaneRecord).Turn {
						waiting++
					}
				})
				if err != nil {
					return err
				}
			}
			page, err := tx.GetRange(kv.Prefix(k.keys.LaneTurnsOf(kind)), kv.RangeOptions{}).Wait(ctx)
			turns = len(page.Items)
			return err
		})
		if err != nil {
			return err
		}
		if settled && waiting > turns {
			var f findings
			f.broken(InvariantLane, k.keys.LaneTurnsOf(kind), "%d lanes of kind %s wait for their turn, and there are %d",
				waiting, kind, turns)
			k.take(&f)
		}
	}
	return nil
}

// checkInLine compares the place in line of a future with its lane.
func (p *page) checkInLine(r *layout.Row) {
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
	if n := slotsOf(r); n != 0 {
		p.slots[r.Spec.Lane] += n
	}
	if place := layout.PlaceOf(r); place != nil && place.Kind == layout.PlaceLine {
		at := place.Key(p.keys, r)
		p.get(at, func(value []byte) {
			if value != nil && !bytes.Equal(value, place.Value(r)) {
				p.broken(InvariantLane, at, "future %s is in line here, and another future has the place", r.ID)
			}
		})
	}
}
