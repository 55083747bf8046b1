package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers"
)

// noteGather keeps the claims that a bundle wrote for its members.
func (t *tx) noteGather(m *mutation) error {
	if !m.is(stampValue, layout.StateClaim) {
		return nil
	}
	var claim layout.Claim
	if _, err := layout.DecodeStamped(m.key.Raw, m.value, &claim); err != nil {
		return err
	}
	t.process.gathered[m.key.ID] = claim.Token
	t.process.world.bundles.gathered[m.key.ID]++
	if r := t.process.world.client.byID[m.key.ID]; r != nil {
		t.taken = append(t.taken, r.submission.Spec.Lane)
	}
	return nil
}

// takesPaused reports whether a transaction takes members of a lane, a kind, or of a
// function that is paused: its worker has had a heartbeat since then. If it does, it must
// not commit.
func (t *tx) takesPaused() bool {
	if len(t.taken) == 0 {
		return false
	}
	l, b, lane := t.process.world.lanes, t.process.world.bundles, t.taken[0]
	isPaused := func(name string) bool { return l.sure[name] && l.paused[name] }
	known := b.sure && !b.pausedAt.IsZero() && t.process.beat.After(b.pausedAt)
	return isPaused(lane.Kind) || isPaused(lane.String()) || known
}

// enterBundle checks the members of a bundle that begins, and notes that it runs until
// the function is called that it returns.
func (w *world) enterBundle(ctx context.Context, bundle *workers.Info, key string, members []member) (leave func()) {
	if len(members) == 0 {
		return func() {}
	}
	w.report.Bundles++
	w.report.InBundles += len(members)
	if len(members) > 1 {
		w.report.Together += len(members)
	}
	lane := members[0].submission.Spec.Lane
	if lane.Key != key && members[0].info.ID != bundle.ID {
		w.flaw("bundle %s of the key %q has members of lane %s", bundle.ID, key, lane)
	}
	if p := w.workerOf(bundle.Worker); p != nil {
		for _, m := range members {
			w.checkLabels(&m.info, p)
		}
	}
	w.checkMembers(ctx, bundle, lane, members)
	for _, m := range members {
		w.checkNoRun(m.info.ID)
		w.checkStart(ctx, &m.info)
		if err := w.checkTurn(ctx, m.request); err != nil {
			w.broken = append(w.broken, err)
		}
	}
	return w.enter(ctx, lane, runKey{bundle.ID, bundle.Token})
}

// checkMembers requires that the members of a bundle are all of its lane, each once, as
// many and as large as the lane allows, that those run alone that workers died with, and
// that the time of none was over when it began.
func (w *world) checkMembers(ctx context.Context, bundle *workers.Info, lane layout.Lane, members []member) {
	settings := w.bundleSettings(ctx, lane.Kind)
	most, size := 1, int64(0)
	bytes := int64(0)
	for _, k := range settings {
		most, bytes = max(most, k.Most), max(bytes, k.Bytes)
	}
	seen := map[layout.ID]bool{}
	var ids []layout.ID
	for _, m := range members {
		if m.submission.Spec.Lane != lane {
			w.flaw("bundle %s has members of lanes %s and %s", bundle.ID, lane, m.submission.Spec.Lane)
		}
		if seen[m.info.ID] {
			w.flaw("bundle %s has the member %s twice", bundle.ID, m.info.ID)
		}
		seen[m.info.ID] = true
		ids = append(ids, m.info.ID)
		size += int64(len(m.submission.Args))
	}
	if len(members) > most || len(members) > 1 && size > bytes {
		w.flaw("bundle %s of lane %s has %d members of %d bytes: at most %d of %d may be", bundle.ID, lane, len(members),
			size, most, bytes)
	}
	defer w.calm()()
	rows, err := w.reader.GetMany(context.WithoutCancel(ctx), ids)
	if err != nil {
		w.broken = append(w.broken, err)
		return
	}
	now := layout.Millis(w.clock.Now())
	for i := range rows {
		row := &rows[i]
		at := slices.IndexFunc(members, func(m member) bool { return m.info.ID == row.ID })
		if !holds(row, members[at].info.Token) {
			continue // it was taken for dead
		}
		if row.Attempts.Suspicion() > 0 {
			if w.report.Alone++; len(members) > 1 {
				w.flaw("bundle %s has %d members, and workers died with %s", bundle.ID, len(members), row.ID)
			}
		}
		if limit, kind := row.Limit(); limit != 0 && now > limit+int64(slack/time.Millisecond) {
			w.flaw("future %s of lane %s begins at %d, and ended by its %s at %d", row.ID, lane, now, kind, limit)
		}
	}
}

// slack is how much a check may come behind what it checks.
const slack = time.Millisecond

func (w *world) flaw(format string, args ...any) {
	w.broken = append(w.broken, fmt.Errorf(format, args...))
}

// bundleSettings returns those that a kind may have had since the last look.
func (w *world) bundleSettings(ctx context.Context, kind string) []layout.LaneKind {
	defer w.calm()()
	settings := slices.Concat(w.lanes.tried[kind], w.lanes.doubtful[kind])
	kinds, err := lanes.Of(w.reader).Kinds(context.WithoutCancel(ctx))
	if err != nil {
		w.broken = append(w.broken, err)
	}
	settings = append(settings, kinds[kind])
	for i := range settings {
		settings[i] = settings[i].WithDefaults()
	}
	return settings
}

// endsAnyTime reports whether a member may end without having used up its attempts.
func (r *request) endsAnyTime(kind layout.FailureKind) bool {
	return r.isMember() && kind == layout.KindError && r.behaviour() == memberPermanent
}

// checkOver requires that a future that ended because its time was over had one, and that
// it was over.
func (r *request) checkOver(e *layout.Exception) error {
	at, kind := r.submission.Spec.LimitAt()
	if (e.Kind == layout.KindExpired || e.Kind == layout.KindDeadline) && (at == 0 || e.At < at || e.Kind != kind) {
		return fmt.Errorf("future %s ended as %s at %d, and its time was over at %d", r.submission.ID, e.Kind, e.At, at)
	}
	return nil
}
