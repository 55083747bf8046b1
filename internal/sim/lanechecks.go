package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers"
)

// oldestAttempt is how long before its commit a transaction may have looked at the
// clock.
const oldestAttempt = 5 * time.Second

// inLanes returns the records of the requests in lanes that pass.
func (w *world) inLanes(ctx context.Context, pass func(*request) bool) (rows []layout.Row, err error) {
	var ids []layout.ID
	for _, r := range w.client.requests {
		if !r.submission.Spec.Lane.IsZero() && pass(r) {
			ids = append(ids, r.submission.ID)
		}
	}
	for part := range slices.Chunk(ids, readTogether) {
		read, err := w.reader.GetMany(context.WithoutCancel(ctx), part)
		if err != nil {
			return nil, err
		}
		rows = append(rows, read...)
	}
	return rows, nil
}

// checkLanes requires that no lane has admitted more than its settings allow, or allowed
// when it did, nor all of a kind together, that what is paused stays so, and that a retry
// keeps its slot.
func (w *world) checkLanes(ctx context.Context) error {
	kinds, err := lanes.Of(w.reader).Kinds(ctx)
	if err != nil {
		return err
	}
	problems := []error{w.checkRates(ctx)}
	for _, k := range w.laneKinds() {
		now, l := kinds[k.name], w.lanes
		if l.sure[k.name] && now.Paused != l.paused[k.name] {
			problems = append(problems, fmt.Errorf("lanes of kind %s are to be paused: %t, and are: %t", k.name,
				l.paused[k.name], now.Paused))
		}
		all, err := lanes.Of(w.reader).List(ctx, k.name, "", 100)
		if err != nil {
			return err
		}
		l.tried[k.name] = append(l.tried[k.name], now)
		total := 0
		for i := range all {
			total += all[i].Open
			problems = append(problems, l.checkWidth(all[i].Lane, all[i].Open))
		}
		for i := range k.keys {
			name := layout.Lane{Kind: k.name, Key: string(rune('a' + i))}
			at := slices.IndexFunc(all, func(v lanes.View) bool { return v.Lane == name })
			problems = append(problems, l.checkPause(name, at >= 0 && all[at].Paused))
			l.open[name.String()] = 0
			if at >= 0 {
				l.open[name.String()] = all[at].Open
			}
		}
		if most := l.most(k.name, k.name, func(k *layout.LaneKind) int { return k.Total }); now.Total > 0 && total > most {
			problems = append(problems, fmt.Errorf("all lanes of kind %s have admitted %d futures, at most %d may be", k.name,
				total, most))
		}
		l.open[k.name], l.tried[k.name] = total, []layout.LaneKind{now}
	}
	return errors.Join(append(problems, w.checkSlots(ctx))...)
}

// most returns the largest number that settings of a kind may have had since the last
// look, or that there was then.
func (l *laneLog) most(kind, name string, of func(*layout.LaneKind) int) int {
	most := l.open[name]
	for _, k := range slices.Concat(l.tried[kind], l.doubtful[kind]) {
		most = max(most, of(&k))
	}
	return most
}

func (l *laneLog) width(lane layout.Lane) int {
	return l.most(lane.Kind, lane.String(), func(k *layout.LaneKind) int { return k.Width })
}

// checkWidth requires of a lane that has admitted some futures that it may have.
func (l *laneLog) checkWidth(lane layout.Lane, n int) error {
	if most := l.width(lane); n > most {
		return fmt.Errorf("lane %s has admitted %d futures, at most %d may be", lane, n, most)
	}
	return nil
}

// checkPause requires that a lane is paused if it is to be.
func (l *laneLog) checkPause(lane layout.Lane, paused bool) error {
	if name := lane.String(); l.sure[name] && l.paused[name] != paused {
		return fmt.Errorf("lane %s is to be paused: %t, and is: %t", lane, l.paused[name], paused)
	}
	return nil
}

// checkSlots requires that what waits for its next attempt has its slot, but for what
// steps aside, and what had to wait for a lost input.
func (w *world) checkSlots(ctx context.Context) error {
	rows, err := w.inLanes(ctx, func(r *request) bool {
		return r.submission.Spec.Lane.Kind != laneAside && r.open() && r.retried == 0 && len(r.submission.Inputs) == 0
	})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.InLine() {
			w.report.InLine++
		}
		if row.State() == layout.Delayed && row.Attempts.Failed > 0 && !row.HasSlot() && !row.Spec.Member {
			return fmt.Errorf("future %s of lane %s waits for its next attempt without a slot", row.ID, row.Spec.Lane)
		}
	}
	return nil
}

// checkRates requires that lanes with a rate have admitted no more in any time between
// two looks than it allows.
func (w *world) checkRates(ctx context.Context) error {
	l, more := w.lanes, map[layout.Lane]int{}
	rows, err := w.inLanes(ctx, func(r *request) bool {
		return r.submission.Spec.Lane.Kind == laneRated && !l.admitted[r.submission.ID]
	})
	if err != nil {
		return err
	}
	for i := range rows {
		r := w.client.byID[rows[i].ID]
		if rows[i].HasSlot() || w.log.runs(r.name) > 0 {
			l.admitted[rows[i].ID] = true
			more[r.submission.Spec.Lane]++
		}
	}
	now := w.clock.Now()
	for lane, n := range more {
		l.looks[lane] = append(l.looks[lane], look{now, n})
		sum := 0
		for i := len(l.looks[lane]) - 1; i >= 0; i-- {
			// Those of a look were admitted after the one before.
			sum += l.looks[lane][i].n
			since := epoch
			if i > 0 {
				since = l.looks[lane][i-1].at
			}
			if most := 1 + int((now.Sub(since)+oldestAttempt)/fastest); sum > most {
				return fmt.Errorf("lane %s has admitted %d futures within %v, at most %d may be", lane, sum, now.Sub(since), most)
			}
		}
	}
	return nil
}

// enterLane checks that a future of a lane may start, and notes that it runs until the
// function is called that it returns.
func (w *world) enterLane(ctx context.Context, info *workers.Info) (leave func()) {
	r := w.client.byID[info.ID]
	if r == nil || r.submission.Spec.Lane.IsZero() {
		return func() {}
	}
	w.report.InLanes++
	if err := w.checkTurn(ctx, r); err != nil {
		w.broken = append(w.broken, err)
	}
	return w.enter(ctx, r.submission.Spec.Lane, runKey{info.ID, info.Token})
}

// enter notes that a future of a lane, or a bundle, runs until the function is called
// that it returns.
func (w *world) enter(ctx context.Context, lane layout.Lane, run runKey) (leave func()) {
	w.lanes.running[lane] = append(w.lanes.running[lane], run)
	if err := w.checkRunning(ctx, lane); err != nil {
		w.broken = append(w.broken, err)
	}
	return func() {
		w.lanes.running[lane] = slices.DeleteFunc(w.lanes.running[lane], func(other runKey) bool { return other == run })
	}
}

// checkRunning requires that of the runs of a lane's futures no more have their claims
// than the lane may admit.
func (w *world) checkRunning(ctx context.Context, lane layout.Lane) error {
	defer w.calm()()
	runs := w.lanes.running[lane]
	var ids []layout.ID
	for _, run := range runs {
		if !slices.Contains(ids, run.id) {
			ids = append(ids, run.id)
		}
	}
	rows, err := w.reader.GetMany(context.WithoutCancel(ctx), ids)
	if err != nil {
		return err
	}
	n := 0
	for i := range rows {
		claimed := rows[i].State() == layout.Claimed
		if claimed && slices.Contains(runs, runKey{rows[i].ID, rows[i].Claim.Token}) {
			n++
		}
	}
	kinds, err := lanes.Of(w.reader).Kinds(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	if most := max(w.lanes.width(lane), kinds[lane.Kind].Width); n > most {
		return fmt.Errorf("%d futures of lane %s run at once, at most %d may", n, lane, most)
	}
	return nil
}

// checkTurn requires of a future that runs for the first time that nobody is still in
// line who had got in line before it was submitted, and is as urgent; and of a strict
// lane that those have run, or will not.
func (w *world) checkTurn(ctx context.Context, r *request) error {
	spec, l := &r.submission.Spec, w.lanes
	if spec.Lane.Kind == laneAside || w.log.runs(r.name) > 1 || r.retried > 0 || l.asked[r.submission.ID] == 0 {
		return nil
	}
	defer w.calm()()
	rows, err := w.inLanes(ctx, func(other *request) bool {
		s := &other.submission
		acknowledged := l.acknowledged[s.ID]
		return s.Spec.Lane == spec.Lane && s.Spec.Priority >= spec.Priority && acknowledged > 0 &&
			acknowledged < l.asked[r.submission.ID] && s.NotBefore.IsZero() && len(s.Inputs) == 0 && other.retried == 0 &&
			w.log.runs(other.name) == 0 && w.bundles.gathered[s.ID] == 0
	})
	if err != nil {
		return err
	}
	for i := range rows {
		row := &rows[i]
		if waits := row.Spec != nil && !row.State().Terminal(); waits && (row.InLine() || spec.Lane.Kind == laneStrict) {
			return fmt.Errorf("future %s of lane %s runs before %s, which was ahead of it and is %v", r.submission.ID,
				spec.Lane, row.ID, row.State())
		}
	}
	return nil
}

// lanesEnd is how long after the end of all futures something of lanes may be left.
const lanesEnd = 2 * time.Minute

// lanesAreOver reports whether nothing is left of lanes, and requires it in time.
func (w *world) lanesAreOver(ctx context.Context) (bool, error) {
	now := w.clock.Now()
	if w.lanes.ended.IsZero() {
		w.lanes.ended = now
	}
	empty, err := w.lanesAreEmpty(ctx)
	if err == nil && !empty && now.Sub(w.lanes.ended) > lanesEnd {
		err = fmt.Errorf("something of lanes is left %v after the end of all futures", lanesEnd)
	}
	return empty, err
}

// lanesAreEmpty reports whether nothing is left of lanes but the settings of kinds.
func (w *world) lanesAreEmpty(ctx context.Context) (bool, error) {
	keys, empty := w.reader.Keys(), false
	err := w.reader.View(ctx, func(tx kv.Attempt) error {
		empty = true
		ranges := [][]byte{keys.Global(layout.SubLaneTotals), keys.Global(layout.SubLaneTurns)}
		for shard := range keys.Shards {
			ranges = append(ranges, keys.Shard(shard, layout.SubLanes), keys.LanesDueOf(shard),
				keys.Shard(shard, layout.SubLine))
		}
		for _, prefix := range ranges {
			page, err := tx.GetRange(kv.Prefix(prefix), kv.RangeOptions{Limit: 1}).Wait(ctx)
			if err != nil {
				return err
			}
			empty = empty && len(page.Items) == 0
		}
		return nil
	})
	return empty, err
}
