package peerhead

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/batches"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerworker"
)

// check looks at everything at one moment, and returns how many futures have not ended.
func (w *simWorld) check() (open int) {
	synctest.Wait()
	w.faults.Flush()
	ctx := context.Background()
	report, err := audit.Check(ctx, w.client, audit.Options{Problems: 5})
	if err != nil || len(report.Problems) > 0 {
		w.flaw("audit: %v %+v", err, report.Problems)
	}
	ids := make([]layout.ID, len(w.futures))
	for i, f := range w.futures {
		ids[i] = f.id
	}
	for part := range slices.Chunk(ids, 100) {
		rows, err := w.client.GetMany(ctx, part)
		if err != nil {
			w.flaw("%v", err)
		}
		for i := range rows {
			if !w.checkFuture(w.byID[rows[i].ID], &rows[i]) {
				open++
			}
		}
		for _, id := range part {
			f := w.byID[id]
			if there := slices.ContainsFunc(rows, func(r layout.Row) bool { return r.ID == id }); there == f.discarded {
				w.flaw("future %d is there: %t, and was discarded: %t", f.n, there, f.discarded)
			}
		}
	}
	for _, b := range w.batches {
		open += w.checkBatch(ctx, b)
	}
	return open
}

// checkFuture compares a future with what it was asked for, and with how it ended before.
// It reports whether it has ended.
func (w *simWorld) checkFuture(f *simFuture, row *layout.Row) bool {
	now := ""
	if row.State().Terminal() {
		now = endOfRow(row)
		if f.ended == "" {
			w.logf("future %d (%s) has ended: %s", f.n, f.kind, now)
			if text := w.wrong(f, row); text != "" {
				w.flaw("future %d (%s %s): %s: %s, %+v", f.n, f.kind, f.id, text, now, row.Attempts)
			}
		}
	}
	if f.ended != "" && now != f.ended {
		w.flaw("future %d (%s) ended by %s, and then by %s", f.n, f.kind, f.ended, now)
	}
	f.ended = now
	return now != ""
}

// endOfRow says how a future ended, and by which claim.
func endOfRow(row *layout.Row) string {
	if row.Result != nil {
		size := len(row.Result.Value)
		if row.Result.ValueRef != nil {
			size = int(row.Result.ValueRef.Size)
		}
		return fmt.Sprintf("result %v %.20q %d", row.Result.Token, row.Result.Value, size)
	}
	return fmt.Sprintf("failure %s %d %.100q", row.Exception.Kind, row.Exception.At, row.Exception.Message)
}

// wrong says why a future can't have ended so.
func (w *simWorld) wrong(f *simFuture, row *layout.Row) string {
	w.mu.Lock()
	runs := w.runs[fmt.Sprint(f.n)]
	w.mu.Unlock()
	if row.Exception != nil && row.Exception.Kind == layout.KindDeadline {
		runs++ // it was under way
	}
	for _, a := range row.EndedAttempts() {
		if a.Kind == layout.KindCancelled && !f.stopped {
			return "an attempt was cancelled, and nobody did"
		}
	}
	if !f.inputs && row.Attempts.Failed > runs {
		return fmt.Sprintf("it counts more failures than its %d runs", runs)
	}
	fails := slices.Contains([]string{simBroken, simFatal, simPanic, simSlow, simDeaf, simExit}, f.kind)
	if row.State() == layout.Realized {
		want := valueOf(f.n, f.kind)
		if f.inputs {
			want = []byte("joined")
		}
		ending := row.Ending()
		if err := results.Of(w.client).LoadUpTo(context.Background(), &ending, simLargeSize+100); err != nil {
			return err.Error()
		}
		if fails || string(ending.Result.Value) != string(want) {
			return fmt.Sprintf("that is not its result, %.20q", want)
		}
		return ""
	}
	used := row.Attempts.Failed == row.Spec.MaxRetries+1 || f.tries > 0
	fits := false
	switch row.Exception.Kind {
	case layout.KindCancelled:
		fits = f.cancelled
	case layout.KindExpired:
		fits = f.spec.ExpiresAt > 0
	case layout.KindDeadline:
		fits = f.spec.Deadline > 0
	case layout.KindUpstream:
		fits = f.inputs
	case layout.KindLost:
		fits = row.Attempts.Crashes == fdbmodel.MaxCrashes
	case layout.KindError:
		fits = f.kind == simFatal || used && (fails || f.kind == simFlaky || f.kind == simLater) ||
			used && w.options.Verify.on()
	case layout.KindPanic:
		fits = used && f.kind == simPanic
	case layout.KindTimeout:
		fits = used && (f.kind == simSlow || f.kind == simDeaf)
	case layout.KindExit:
		fits = used && f.kind == simExit
	}
	if !fits {
		return "it can't end so"
	}
	return ""
}

// checkBatch returns how many items have not ended.
func (w *simWorld) checkBatch(ctx context.Context, b *simBatch) (open int) {
	if b.id == "" {
		return len(b.request.Arguments)
	}
	rows, err := batches.Of(w.client).Items(ctx, b.id, 0, len(b.request.Arguments))
	if err != nil || len(rows) != len(b.request.Arguments) {
		w.flaw("batch %s has %d of %d items: %v", b.id, len(rows), len(b.request.Arguments), err)
		return 1
	}
	for i := range rows {
		row, n := &rows[i], b.first+i
		if !row.State().Terminal() {
			open++
			continue
		}
		now := endOfRow(row)
		before, ended := w.items[row.ID]
		switch {
		case ended && before != now:
			w.flaw("item %d ended by %s, and then by %s", n, before, now)
		case row.State() == layout.Realized && string(row.Result.Value) != fmt.Sprintf("=%d", n):
			w.flaw("item %d: that is not its result: %s", n, now)
		case row.State() == layout.Failed && row.Exception.Kind != layout.KindError && row.Exception.Kind != layout.KindLost:
			w.flaw("item %d can't end so: %s", n, now)
		}
		w.items[row.ID] = now
	}
	return open
}

// expectAnswer returns a check of the answer to a message: results of a present order that a
// head acknowledges are stored. Those of earlier memberships it keeps.
func (w *simWorld) expectAnswer(r *simHeadRun, from string, message []byte) (check func(answer []byte)) {
	m, err := protocol.Decode(message)
	results, ok := m.(*protocol.WorkOrderBatchResponse)
	p := r.head.peer(PeerID(from))
	if err != nil || !ok || p == nil || w.options.Verify.on() {
		return func([]byte) {}
	}
	now, o := p.membership(), (*order)(nil)
	if now != nil {
		o = now.order(results.ChunkID)
	}
	if o == nil {
		return func([]byte) { w.count(&w.report.Late) }
	}
	return func(answer []byte) {
		reply, err := protocol.Decode(answer)
		ack, ok := reply.(*protocol.Ack)
		if err != nil || !ok || ack.Code != protocol.CodeOK {
			return
		}
		w.count(&w.report.Acknowledged)
		rows, err := w.client.GetMany(context.Background(), o.wanted(results))
		if err != nil {
			w.flaw("%v", err)
		}
		for i := range rows {
			row := &rows[i]
			late := row.Spec.Deadline > 0 && row.Spec.Deadline <= time.Now().UnixMilli() // its end is on its way
			if row.State() == layout.Claimed && row.Claim.Worker == now.worker.ID() && !late {
				w.flaw("head %s acknowledged the result of future %s (%s), which is claimed for %s: %+v", r.id, row.ID,
					row.Spec.Function, from, row.Attempts)
			}
		}
	}
}

// wanted are the futures with results in a message that were handed on to somebody who
// waits for them.
func (o *order) wanted(r *protocol.WorkOrderBatchResponse) (ids []layout.ID) {
	for i := range r.Outcomes {
		if x := &r.Outcomes[i]; x.OK() && x.Index >= 0 && x.Index < len(o.calls) {
			unacked, _ := o.ackOf(x.Index)
			if c := o.calls[x.Index]; unacked != nil && !c.isWithdrawn() {
				ids = append(ids, c.ID)
			}
		}
	}
	return ids
}

// checkStore requires that nothing is left in the store of a peer.
func (w *simWorld) checkStore(p *simPeer) {
	ctx := context.Background()
	local, err := fdbmodel.Open(ctx, p.memory, "peer", fdbmodel.Options{Existing: true})
	if err != nil {
		w.flaw("the store of peer %s: %v", p.id, err)
		return
	}
	counts, err := local.Counts(ctx)
	if err != nil {
		w.flaw("the store of peer %s: %v", p.id, err)
	}
	for key, n := range counts {
		if n != 0 {
			w.flaw("the store of peer %s has %d of %+v", p.id, n, key)
		}
	}
	err = local.EachKey(ctx, kv.Prefix(tuple.AppendString(nil, "futura-peerworker")), func(found kv.KeyValue) error {
		w.flaw("the store of peer %s has %q", p.id, found.Key)
		return nil
	})
	if err != nil {
		w.flaw("the store of peer %s: %v", p.id, err)
	}
	if report, err := audit.Check(ctx, local, audit.Options{}); err != nil || len(report.Problems) > 0 {
		w.flaw("the store of peer %s: %v %+v", p.id, err, report.Problems)
	}
}

// leaks says what heads and peers have although all has ended.
func (w *simWorld) leaks() (found []string) {
	for _, h := range w.heads {
		if h.run == nil {
			continue
		}
		for _, p := range h.run.head.all() {
			m := p.membership()
			if m == nil {
				continue
			}
			m.mu.Lock()
			orders, unacked := len(m.orders), len(m.unacked)
			m.mu.Unlock()
			if orders+unacked+len(m.window) > 0 {
				found = append(found, fmt.Sprintf(
					"head %s has of peer %s: %d orders, %d unacknowledged ends, %d places in its window", h.id, p.id, orders, unacked,
					len(m.window)))
			}
		}
		cache := h.run.head.cache
		cache.mu.Lock()
		if len(cache.by)+len(cache.ofPeer) > 0 || cache.size != 0 {
			found = append(found, fmt.Sprintf("head %s caches %d results of %d peers: %d bytes", h.id, len(cache.by),
				len(cache.ofPeer), cache.size))
		}
		cache.mu.Unlock()
	}
	for _, p := range w.peers {
		if p.run == nil {
			continue
		}
		if s := p.run.worker.Stats(); s.Chunks+s.Items+s.Running > 0 || s.Bytes != 0 {
			found = append(found, fmt.Sprintf("peer %s has %+v", p.id, peerworker.Stats{Chunks: s.Chunks, Items: s.Items,
				Bytes: s.Bytes, Running: s.Running}))
		}
	}
	return found
}
