package fdbmodel

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
)

// Bundle is what a bundle has gathered.
type Bundle struct {
	// Members are claimed by the worker, in their order in line. They end as other
	// claimed futures do, each by itself.
	Members []ClaimedFuture
	// Full is set if the next one in line does not fit, or has to run alone.
	Full bool
	// Settings are those of the kind of the lane.
	Settings layout.LaneKind
}

// Gather takes the first members in line for a bundle that the worker holds: up to most,
// and up to what the kind of the lane allows, in one transaction, with their arguments
// unless those are large. Several calls for one bundle take more each time. A future that gets in
// line meanwhile does not conflict with it. It takes none behind one that the bundle can't
// run: that has another function, queue, timeout or labels, or requires more. While the
// lane, its kind, the queue or the function is paused it takes none. Members of a kind that
// has no bundles any more are taken one by one.
//
// It returns ErrReaped if the worker was declared dead, and ErrTransition if it does not
// hold the bundle any more. If the commit is unknown, the worker's own list of claims
// shows what it took; after an error, the next Claim gives that back. Members that a
// newer version of Futura has written stay in line.
func (r *Registration) Gather(ctx context.Context, bundle *ClaimedFuture, most int) (Bundle, error) {
	token := r.nextToken()
	g := gathering{r: r, bundle: bundle, token: token, most: most}
	result, err := r.cluster.Transact(ctx, kv.Options{Tag: "futura-gather", NoSync: true}, func(tx kv.Attempt) error {
		g.got, g.then = Bundle{Settings: layout.LaneKind{Width: 1, Most: 1}}, postCommit{}
		return g.run(ctx, tx)
	})
	if err != nil {
		r.doubt(token)
		return Bundle{}, err
	}
	now := r.cluster.clock.Now()
	taken := make([]layout.ReadyEntry, len(g.got.Members))
	for i := range g.got.Members {
		f := &g.got.Members[i]
		f.version, f.at, taken[i].ID = result.Version, now, f.ID
		if bundle.gathered.members++; f.Spec != nil {
			bundle.gathered.bytes += f.Spec.ArgsSize
		}
	}
	if len(taken) > 0 {
		r.held.Hold(token.Sequence, taken)
		r.cluster.claims.Tell(len(taken), result.Version)
	}
	r.cluster.follow(ctx, result.Version, g.then)
	return g.got, nil
}

// gathered is what a bundle has taken.
type gathered struct {
	members int
	bytes   int64
}

// gathering is one call of Gather.
type gathering struct {
	r      *Registration
	bundle *ClaimedFuture
	token  layout.Token
	most   int
	got    Bundle
	then   postCommit
}

func (g *gathering) run(ctx context.Context, tx kv.Attempt) error {
	r, c, lane := g.r, g.r.cluster, g.bundle.Spec.Lane
	if err := seeClaims(ctx, tx, g.bundle.version, false); err != nil {
		return err
	}
	listKey, kindKey := c.keys.Claims(r.info.ID, g.token.Sequence), c.keys.LaneKind(lane.Kind)
	alive, kind, record := r.askAlive(tx), tx.Get(kindKey), tx.Get(c.keys.Lane(lane))
	own := read.Record(tx, c.keys, g.bundle.ID)
	list, err := tx.Get(listKey).Wait(ctx)
	if err != nil {
		return err
	}
	settings, err := kind.Wait(ctx)
	if err == nil && settings != nil {
		err = layout.DecodeLaneKind(kindKey, settings, &g.got.Settings)
	}
	if err != nil {
		return err
	}
	if k := &g.got.Settings; k.Bundle != g.bundle.Spec.Function {
		k.Most, k.Bytes, k.Linger = 1, 0, 0
	}
	if err := r.checkAlive(ctx, alive); err != nil {
		return err
	}
	if list != nil {
		return g.recover(ctx, tx, listKey, list)
	}
	row, _, err := own.Wait(ctx)
	if err != nil {
		return err
	}
	after, outcome := state.Next(row, state.Event{Kind: state.EventGather, Token: g.bundle.Token, Now: c.clock.Now()})
	if outcome != Applied {
		return fmt.Errorf("bundle %s: worker %s does not hold it any more: gather is %w", g.bundle.ID, r.info.ID,
			ErrTransition)
	}
	w := c.write(tx)
	paused, err := g.isPaused(ctx, record)
	if err != nil {
		return err
	}
	var ids []layout.ID
	if !paused {
		if ids, err = g.take(ctx, tx, w, lane); err != nil {
			return err
		}
	}
	if row.Attempts != after.Attempts {
		w.Apply(&row, &after)
	}
	if len(ids) > 0 {
		tx.Set(listKey, layout.EncodeClaims(ids))
	}
	if err := w.Flush(ctx); err != nil {
		return err
	}
	g.then = w.postCommit()
	return nil
}

// isPaused reports whether no members are to be taken at present.
func (g *gathering) isPaused(ctx context.Context, asked kv.Pending[[]byte]) (bool, error) {
	c, spec := g.r.cluster, g.bundle.Spec
	value, err := asked.Wait(ctx)
	var record layout.LaneRecord
	if err == nil && value != nil {
		err = layout.Decode(c.keys.Lane(spec.Lane), value, &record)
	}
	return record.Paused || g.got.Settings.Paused || c.paused.Queue(spec.Queue) || c.paused.Function(spec.Function), err
}

// runs reports whether the bundle can run a future in line.
func (g *gathering) runs(spec *layout.Spec) bool {
	own, needs, has := g.bundle.Spec, &spec.Requirements, &g.bundle.Spec.Requirements
	return spec.Member && spec.Function == own.Function && spec.Queue == own.Queue && spec.Timeout == own.Timeout &&
		needs.CPU <= has.CPU && needs.RAM <= has.RAM && needs.GPU <= has.GPU && maps.Equal(needs.Labels, has.Labels)
}

// take takes the first members in line. It goes on behind those that can't be read.
func (g *gathering) take(ctx context.Context, tx kv.Attempt, w *WriteSet, lane layout.Lane,
) (ids []layout.ID, err error) {
	limit := min(g.most, g.got.Settings.Most-g.bundle.gathered.members)
	if limit < 1 {
		g.got.Full = true
		return nil, nil
	}
	line := w.Keys.InLine(lane)
	for more := true; more && len(ids) == 0 && !g.got.Full; {
		page, err := tx.Snapshot().GetRange(line, kv.RangeOptions{Limit: limit}).Wait(ctx)
		if err != nil {
			return nil, err
		}
		if ids, err = g.takePage(ctx, tx, w, page); err != nil {
			return nil, err
		}
		if more = page.More; more {
			line.Begin = kv.After(page.Items[len(page.Items)-1].Key)
		}
	}
	return ids, nil
}

func (g *gathering) takePage(ctx context.Context, tx kv.Attempt, w *WriteSet, page kv.Page,
) (ids []layout.ID, err error) {
	keys := w.Keys
	var entries []kv.KeyValue
	var asked []layout.ID
	for _, item := range page.Items {
		var entry layout.LineEntry
		if layout.Decode(item.Key, item.Value, &entry) != nil {
			continue // an audit reports it
		}
		tx.AddReadConflictKey(item.Key)
		tx.AddReadConflictRange(keys.RecordRange(entry.ID))
		entries, asked = append(entries, item), append(asked, entry.ID)
	}
	size, more := g.bundle.gathered.bytes, g.bundle.gathered.members > 0
	for i, p := range read.Rows(tx.Snapshot(), keys, asked, keys.Row) {
		f := ClaimedFuture{ID: asked[i], Token: g.token}
		row, err := f.readRow(ctx, p)
		if err != nil {
			return nil, err
		}
		if f.Err != nil || row.Line == nil || !bytes.Equal(keys.Line(&row), entries[i].Key) {
			continue // of a newer version, or an audit reports it
		}
		if !g.runs(row.Spec) {
			g.got.Full = true
			break
		}
		// What workers died with runs alone, so that it is known what kills them.
		candidate := row.Attempts.Suspicion() > 0
		if size += row.Spec.ArgsSize; more && (candidate || size > g.got.Settings.Bytes) {
			g.got.Full = true
			break
		}
		after, outcome := state.Next(row, state.Event{Kind: state.EventTake, Token: g.token, Now: w.cluster.clock.Now()})
		if outcome != Applied {
			continue
		}
		w.Apply(&row, &after)
		f.Spec, f.Attempts = row.Spec, after.Attempts
		ids, g.got.Members, more = append(ids, f.ID), append(g.got.Members, f), true
		if candidate {
			g.got.Full = true
			break
		}
	}
	return ids, nil
}

// recover finds out what an attempt with an unknown result took.
func (g *gathering) recover(ctx context.Context, tx kv.Attempt, key, value []byte) error {
	ids, err := layout.DecodeClaims(key, value)
	if err != nil {
		return err
	}
	for i, p := range read.Rows(tx, g.r.cluster.keys, ids, g.r.cluster.keys.Row) {
		f := ClaimedFuture{ID: ids[i], Token: g.token}
		if err := f.read(ctx, p, true); err != nil {
			return err
		}
		g.got.Members = append(g.got.Members, f)
	}
	return nil
}
