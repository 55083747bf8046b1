package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers"
)

// runLog counts runs outside of the store, and how often a worker said that it
// would begin one of a poison candidate.
type runLog struct {
	counts   map[string]int
	failing  map[string][]int // the numbers of those that may have failed
	stopped  time.Time        // when a process was last stopped, or went on
	begun    map[layout.ID]int
	failures failures
	// failed counts what workers said to have failed, and late the attempts whose time
	// was over although their function had none to lose: before it ran, or after.
	failed map[layout.ID]int
	late   map[layout.ID]int
	// lateRuns are those claims of members.
	lateRuns map[runKey]bool
}

func newRunLog() *runLog {
	return &runLog{counts: map[string]int{}, failing: map[string][]int{}, begun: map[layout.ID]int{}, failures: failures{},
		failed: map[layout.ID]int{}, late: map[layout.ID]int{}, lateRuns: map[runKey]bool{}}
}

// failures are the last workers that failed futures, by their arguments.
type failures map[string]*workerProcess

// watch counts whether a future that failed runs on another worker now.
func (f failures) watch(p *workerProcess, args []byte, report *Report, run func() ([]byte, error)) ([]byte, error) {
	switch f[string(args)] {
	case nil:
	case p:
		report.Again++
	default:
		report.Elsewhere++
	}
	value, err := run()
	if err != nil {
		f[string(args)] = p
	}
	return value, err
}

func (l *runLog) ran(args []byte)      { l.counts[string(args)]++ }
func (l *runLog) runs(args []byte) int { return l.counts[string(args)] }

// mayHaveFailed returns how many attempts of a request may have failed behind a run: runs
// that are over or not, one whose input had failed by then, and one whose process
// was stopped for so long before it ran.
func (l *runLog) mayHaveFailed(r *request, row *layout.Row, behind int) (n int) {
	for _, run := range l.failing[string(r.name)] {
		if run > behind {
			n++
		}
	}
	if e := row.Exception; e != nil && e.Kind == layout.KindUpstream {
		n++
	}
	for run := range l.lateRuns {
		if run.id == row.ID {
			n++
		}
	}
	return n + l.late[row.ID]
}

// noteFailure keeps what a worker says about a failed attempt. The time of an attempt
// runs while its inputs are fetched and while its worker is stopped. So it may be over
// more often than runs took long.
func (t *tx) noteFailure(m *mutation) error {
	var e layout.Exception
	if err := layout.Decode(m.key.Raw, m.value, &e); err != nil {
		return err
	}
	w, id := t.process.world, m.key.ID
	r := w.client.byID[id]
	if r == nil {
		return nil // the attempts of items are not counted
	}
	w.log.failed[id]++
	late := e.Kind == layout.KindTimeout || strings.Contains(e.Message, "failed (timeout)")
	if run := (runKey{id, t.process.gathered[id]}); late && run.token.Worker != "" && w.objects.runs[run] == 0 {
		w.log.lateRuns[run] = true
		return nil
	}
	if late && w.log.failed[id] > len(w.log.failing[string(r.name)])+w.log.late[id] {
		w.log.late[id]++
	}
	return nil
}

// attempt does a run of a client's future or an item, and notes whether it failed:
// until it is over it may. What took long may have taken too long.
func (w *world) attempt(ctx context.Context, name []byte, number int, run func() ([]byte, error),
) (value []byte, err error) {
	began, key := w.clock.Now(), string(name)
	w.log.failing[key] = append(w.log.failing[key], number)
	value, err = run()
	now := w.clock.Now()
	if now.Sub(began) < timeout && now.Sub(w.log.stopped) >= longest && err == nil && ctx.Err() == nil {
		w.log.noFailure(name, number)
	}
	return value, err
}

// noFailure notes that a run did not fail.
func (l *runLog) noFailure(name []byte, number int) {
	l.failing[string(name)] = slices.DeleteFunc(l.failing[string(name)], func(n int) bool { return n == number })
}

// sameEnd fails if a future that had ended ended again in another way. A
// retried future may; the workload retries none that ended.
func sameEnd(a, b *layout.Notice) error {
	same := a.State == b.State
	if same && a.State == layout.Realized {
		same = a.Result.Token == b.Result.Token && bytes.Equal(a.Result.Value, b.Result.Value)
	}
	if !same {
		return fmt.Errorf("future %s ended as %v and then as %v", a.ID, a.State, b.State)
	}
	return nil
}

// check is what must hold at the end of a run.
func (w *world) check(ctx context.Context) error {
	problems := []error{w.checkInvariants(ctx)}
	for _, p := range w.workers {
		if s := p.worker.Stats(); s.Running == 0 && (s.Awaiting > 0 || s.Free.Slots != p.slots) {
			problems = append(problems, fmt.Errorf("a worker with %d slots that runs nothing: %+v", p.slots, s))
		}
	}
	problems = append(problems, w.checkBatchEnds(), w.checkPins(ctx))
	for _, r := range w.client.requests {
		if err := w.checkEnd(ctx, r); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// checkInvariants reads the whole cluster, while no faults happen. What was noted as broken
// is in its error from then on, which a caller that goes on notes in its place.
func (w *world) checkInvariants(ctx context.Context) error {
	defer w.calm()()
	report, err := audit.Check(ctx, w.reader, audit.Options{})
	problems := append([]error{err}, w.broken...)
	w.broken = nil
	for _, p := range report.Problems {
		problems = append(problems, fmt.Errorf("invariant %s of %v: %s", p.Invariant, p.Keys, p.Text))
	}
	return errors.Join(append(problems, w.checkCounts(ctx), w.checkBatches(ctx),
		w.checkUnique(ctx), w.checkLanes(ctx), w.checkJobs(ctx), w.checkPromises(ctx), w.checkActors(ctx),
		w.checkForks(ctx))...)
}

// checkCounts compares what futures count of their runs with the runs.
func (w *world) checkCounts(ctx context.Context) error {
	var ids []layout.ID
	for _, r := range w.client.requests {
		ids = append(ids, r.submission.ID)
	}
	var problems []error
	exists := map[layout.ID]bool{}
	for part := range slices.Chunk(ids, readTogether) {
		rows, err := w.reader.GetMany(ctx, part)
		if err != nil {
			return err
		}
		for i := range rows {
			id, n := rows[i].ID, rows[i].Attempts
			exists[id] = true
			r := w.client.byID[id]
			if n.Crashes > w.log.begun[id] {
				problems = append(problems, fmt.Errorf("future %s counts %d crashes, and was begun %d times as a poison candidate",
					id, n.Crashes, w.log.begun[id]))
			}
			if failed := w.log.mayHaveFailed(r, &rows[i], w.lastLost(r, n.Rebuilt)); n.Failed > failed {
				problems = append(problems, fmt.Errorf("future %s counts %d failed attempts of %d", id, n.Failed, failed))
			}
			problems = append(problems, w.checkLineage(r, &rows[i]), w.checkTold(&rows[i]),
				w.checkSteps(ctx, &rows[i]))
		}
	}
	return errors.Join(append(problems, w.checkKept(exists))...)
}

// readTogether is how many futures a checker reads at a time.
const readTogether = 200

// checkPace counts the start of a future on a worker: as many may have started as
// the fastest pace allows since the worker began.
func (w *world) checkPace(ctx context.Context, p *workerProcess) {
	info, _ := workers.InfoFrom(ctx)
	pace := w.client.byID[info.ID].submission.Spec.Pace
	if pace == nil {
		return
	}
	p.paced[pace.Key]++
	allowed := 1 + int(maxPace*w.clock.Now().Sub(p.began).Seconds())
	if n := p.paced[pace.Key]; n > allowed {
		w.broken = append(w.broken, fmt.Errorf("worker %s started %d futures of %s, its pace allows %d", info.Worker, n,
			pace.Key, allowed))
	}
}

// checkLabels requires that a future that a worker runs requires no label that the
// worker lacks.
func (w *world) checkLabels(info *workers.Info, p *workerProcess) {
	zone := w.client.byID[info.ID].submission.Spec.Requirements.Labels["zone"]
	if zone != "" && zone != p.zone {
		w.broken = append(w.broken, fmt.Errorf("worker %s of the zone %s runs future %s of the zone %s", info.Worker,
			p.zone, info.ID, zone))
	}
}

// checkEnd compares a future's end with the expected outcome of its function.
func (w *world) checkEnd(ctx context.Context, r *request) error {
	id := r.submission.ID
	row, err := w.reader.Get(ctx, id)
	missing := errors.Is(err, fdbmodel.ErrNotFound)
	switch {
	case r.abandoned && err == nil:
		return fmt.Errorf("future %s was refused and is %v", id, row.State())
	case (r.gone || r.missed) && err == nil:
		return fmt.Errorf("future %s was removed and is %v", id, row.State())
	case missing && (r.abandoned || r.missed):
		return nil
	case missing && (r.discarded || w.expires):
		w.report.Expired++
		row = layout.Row{ID: id, Spec: &r.submission.Spec, Result: r.ended.Result, Exception: r.ended.Exception}
		if row.Result == nil && row.Exception == nil {
			return nil // it was removed before the client read what was too long for a notice
		}
		if row.Result != nil {
			row.Claim = &layout.Claim{Token: row.Result.Token}
		}
	case err != nil:
		return err
	}
	if row.State() != r.ended.State {
		return fmt.Errorf("future %s was said to be %v and is %v", id, r.ended.State, row.State())
	}
	if row.Attempts.Crashes > 0 {
		w.report.Charged++
	}
	runs := w.log.runs(r.name)
	if r.submission.Spec.Requirements.CPU == tooMuch && runs > 0 {
		return fmt.Errorf("future %s ran, and no worker is large enough", id)
	}
	var failure *layout.Exception
	switch row.State() {
	case layout.Realized:
		w.report.Realized++
		err = w.checkRealized(ctx, r, &row, missing)
	case layout.Failed:
		w.report.Failed++
		failure = row.Exception
		err = w.checkFailed(r, &row, missing)
	default:
		err = fmt.Errorf("future %s has not ended: %v", id, row.State())
	}
	return errors.Join(err, w.checkInputs(r, failure, runs > 0))
}

// checkRealized checks a result. What is missing has only what its notice said, and
// an object that the client does not want may be lost.
func (w *world) checkRealized(ctx context.Context, r *request, row *layout.Row, missing bool) error {
	if !missing && (row.Result.Object == "" || r.wanted && !r.discarded) {
		value, err := results.Of(w.reader).Value(ctx, row.ID, row.Result)
		if err == nil {
			err = w.checkContent(r, row.Result, value)
		}
		if err != nil {
			return err
		}
	}
	function := strings.TrimPrefix(row.Spec.Function, "go:")
	switch {
	case r.isPut():
		return nil
	case w.log.runs(r.name) == 0:
		return fmt.Errorf("future %s was realized and never ran", row.ID)
	case function == fnBroken || function == fnPanic:
		return fmt.Errorf("future %s of the function %s was realized", row.ID, function)
	}
	return nil
}

// checkFailed checks a failure.
func (w *world) checkFailed(r *request, row *layout.Row, missing bool) error {
	id, spec := row.ID, row.Spec
	function := strings.TrimPrefix(spec.Function, "go:")
	kind := row.Exception.Kind
	if kind == layout.KindCancelled {
		w.report.Cancelled++
	}
	if kind == layout.KindLost && strings.Contains(row.Exception.Message, "cannot be rebuilt because") {
		return w.checkLost(row, missing)
	}
	if kind == layout.KindLost {
		w.report.Lost++
	}
	if kind == layout.KindInfeasible {
		w.report.Infeasible++
		return r.checkInfeasible(row, w.log.runs(r.name))
	}
	spent := missing || row.Attempts.Failed == spec.MaxRetries+1 || r.endsAnyTime(kind)
	switch {
	case kind == layout.KindCancelled && !r.cancelled:
		return fmt.Errorf("future %s was cancelled without a request", id)
	case kind == layout.KindTimeout && function != fnSlow && function != fnParent && !r.isMember() && w.report.Stops == 0:
		return fmt.Errorf("future %s of the function %s ran too long", id, function)
	case kind == layout.KindTimeout && function == fnSlow && spec.Timeout == 0:
		return fmt.Errorf("future %s ran too long and has no timeout", id)
	case (kind == layout.KindError || kind == layout.KindTimeout) && !spent:
		return fmt.Errorf("future %s failed after %d of %d attempts", id, row.Attempts.Failed, spec.MaxRetries+1)
	case kind == layout.KindError && function == fnUpper:
		return fmt.Errorf("future %s of a function that can't fail failed: %s", id, row.Exception.Message)
	case kind == layout.KindPanic && row.Exception.Message != "panic: simulated":
		return fmt.Errorf("future %s panicked, and its message is %q", id, row.Exception.Message)
	}
	return r.checkOver(row.Exception)
}

// checkInfeasible requires that nobody could run a future that ended so, and that
// it waited for it.
func (r *request) checkInfeasible(row *layout.Row, runs int) error {
	waited := time.Duration(row.Exception.At-row.Spec.SubmittedAt) * time.Millisecond
	switch {
	case row.Spec.Requirements.CPU != tooMuch && row.Spec.Requirements.Labels == nil &&
		(row.Spec.Function != "go:"+fnUnknown || runs > 0):
		return fmt.Errorf("future %s of %s ended as infeasible: %s", row.ID, row.Spec.Function, row.Exception.Message)
	case waited < infeasibleAfter:
		return fmt.Errorf("future %s ended as infeasible after %v", row.ID, waited)
	}
	return nil
}

// stuck explains the first futures that have not ended.
func (w *world) stuck(ctx context.Context) string {
	var texts []string
	for _, r := range w.client.requests {
		if r.open() && len(texts) < 3 {
			e, err := inspect.Explain(ctx, w.reader, r.submission.ID)
			texts = append(texts, fmt.Sprintf("%s: %s %v", r.submission.ID, e.Text, err))
		}
	}
	if n := len(w.turns.missing); n > 0 {
		texts = append(texts, fmt.Sprintf("what %d attempts sent is not applied, such as %s", n, w.turns.missing[0]))
	}
	if over, _ := w.ticksOver(ctx); over != nil {
		texts = append(texts, over.Error())
	}
	return strings.Join(texts, "; ")
}
