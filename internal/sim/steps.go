package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/steps"
	"github.com/futura-run/futura/internal/taskcontext"
	"github.com/futura-run/futura/workers"
)

// stepOf is a step of a future.
type stepOf struct {
	id   layout.ID
	name string
}

// stepRuns are what the steps of functions did.
type stepRuns struct {
	// returned is what each run of a step returned, and recorded what a worker said to be recorded.
	returned map[stepOf][]string
	recorded map[stepOf]string
}

// hasSteps reports whether a function of the workload has steps.
func hasSteps(name string) bool { return name == fnFlaky || name == fnBroken || name == fnSlow }

// inSteps runs a function between two steps.
func (w *world) inSteps(ctx context.Context, info *workers.Info, fn func() ([]byte, error)) ([]byte, error) {
	if err := w.recordStep(ctx, info, "before"); err != nil {
		return nil, err
	}
	value, err := fn()
	if err == nil {
		err = w.recordStep(ctx, info, "after")
	}
	return value, err
}

// recordStep runs a step that nobody has recorded. Everything may happen while it is recorded.
func (w *world) recordStep(ctx context.Context, info *workers.Info, name string) error {
	log := ctx.Value(taskcontext.StepsKey{}).(taskcontext.Steps)
	full, recorded, err := log.Ask(ctx, name)
	if err != nil {
		return err
	}
	if w.stepRuns.returned == nil {
		w.stepRuns = stepRuns{map[stepOf][]string{}, map[stepOf]string{}}
	}
	runs, of := &w.stepRuns, stepOf{info.ID, name}
	// An id that follows from a key may be that of another future by now.
	once := !info.ID.Time().IsZero()
	known, acknowledged := runs.recorded[of]
	before, unread := w.reader.Get(context.WithoutCancel(ctx), info.ID)
	held := unread == nil && holds(&before, info.Token)
	switch {
	case recorded != nil && once && !slices.Contains(runs.returned[of], string(recorded.Value)):
		w.broken = append(w.broken, fmt.Errorf("step %s of future %s has returned %q, and %q is recorded", name, info.ID,
			runs.returned[of], recorded.Value))
	case recorded != nil && once && acknowledged && string(recorded.Value) != known:
		w.broken = append(w.broken, fmt.Errorf("step %s of future %s was recorded as %q, and is %q", name, info.ID, known,
			recorded.Value))
	case recorded == nil && once && acknowledged && held: // another attempt has recorded it since, if not
		w.broken = append(w.broken, fmt.Errorf("step %s of future %s was recorded as %q, and runs again", name, info.ID,
			known))
	}
	if recorded != nil {
		return nil
	}
	value := fmt.Sprintf("%s by %s, run %d", name, info.Token, len(runs.returned[of]))
	runs.returned[of] = append(runs.returned[of], value)
	record := taskcontext.RecordedStep{Codec: layout.CodecRaw, Value: []byte(value), Started: log.Now()}
	if w.hasRow(name) {
		err = w.recordWithRow(ctx, log, of, full, record)
	} else {
		err = log.Record(ctx, full, record)
	}
	if err != nil {
		return err
	}
	if unread == nil && !held {
		w.broken = append(w.broken, fmt.Errorf("attempt %s of future %s had lost its claim, and recorded a step", info.Token,
			info.ID))
	}
	runs.recorded[of] = value
	return nil
}

// checkSteps compares the steps of a future with those that were recorded.
func (w *world) checkSteps(ctx context.Context, row *layout.Row) error {
	if row.ID.Time().IsZero() {
		return nil
	}
	all, err := steps.Of(w.reader).List(ctx, row.ID)
	if err != nil {
		return err
	}
	found := map[string]string{}
	for i := range all {
		found[all[i].Name] = string(all[i].Value)
	}
	for _, name := range []string{"before", "after"} {
		of := stepOf{row.ID, name}
		known, acknowledged := w.stepRuns.recorded[of]
		value, exists := found[name]
		if acknowledged && value != known || exists && !slices.Contains(w.stepRuns.returned[of], value) {
			return fmt.Errorf("step %s of future %s is %q, recorded was %q", name, row.ID, value, known)
		}
		if err := w.checkRow(ctx, of, value); err != nil {
			return err
		}
	}
	return nil
}

// tagStep is that of transactions that record steps.
const tagStep = "futura-step"

// stepBugs are about what functions record.
func stepBugs() []plantedBug {
	return []plantedBug{
		{name: "step unfenced", text: "a worker that lost its claim still records steps", tags: []string{tagStep},
			get: ownClaim, blind: true},
		{name: "steps without conflicts", text: "a claim may end while a step is recorded", tags: []string{tagStep},
			blind: true},
		{name: "step forgotten", text: "a step is said to be recorded, and is not", tags: []string{tagStep},
			write: drop(setKey, steps.Key)},
		{name: "steps without a mark", text: "a later attempt does not look for steps", tags: []string{tagStep},
			write: drop(setKey, "has steps")},
		{name: "steps read too early", text: "a later attempt does not see the last step", tags: []string{tagRead},
			page: hideLastStep},
		{name: "step number taken twice", text: "a later attempt counts its steps from the first one",
			tags: []string{tagRead}, page: showAll(steps.Key, func(r *steps.Record) { r.Number = 0 })},
		{name: "step mistaken", text: "the value of a step is another one", tags: []string{tagStep},
			write: swapStep()},
	}
}

// ownClaim shows a worker the claim that it once wrote.
func ownClaim(t *tx, key, value []byte) []byte {
	if !isKind(key, layout.StateClaim) {
		return value
	}
	if own := t.process.claims[keyspace.Table().Parse(key).ID]; own != nil {
		return own
	}
	return value
}

// hideLastStep leaves out the last step that a read of several finds.
func hideLastStep(_ *tx, items []kv.KeyValue) []kv.KeyValue {
	if n := len(items); n > 0 && isKind(items[n-1].Key, steps.Key) {
		return items[:n-1]
	}
	return items
}

// swapStep records another value.
func swapStep() func(*tx, *mutation) {
	return alter(steps.Key, func(r *steps.Record) { r.Value = []byte("another") })
}
