package workers

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/steps"
	"github.com/futura-run/futura/internal/taskcontext"
)

// moduleHost answers what a module asks in an attempt. Its calls come one after the other.
type moduleHost struct {
	job    *job
	failed error // by which the call has ended
	asked  int   // steps
	// name is that of the step that is to run, as the module has it, empty for none, and step the one by which it is
	// recorded.
	name, step string
	started    time.Time
	changed    bool // the state, since that step was asked for
}

// begin begins a call of the module.
func (h *moduleHost) begin() {
	h.failed, h.name, h.asked = nil, "", 0
	h.job.dropTurn()
}

// end ends a call that went well, and returns what is wrong with its turn.
func (h *moduleHost) end() error {
	h.failed = h.job.overTurn(nil)
	return h.failed
}

// answer implements ModuleHost.
func (h *moduleHost) answer(ctx context.Context, function, name string, value []byte) (answer []byte, found bool,
	err error,
) {
	switch function {
	case "step_get":
		answer, found, err = h.getStep(ctx, name)
	case "step_put":
		err = h.putStep(ctx, name, value)
	case "state_get":
		answer, found, err = h.getState(ctx)
	case "state_put", "state_delete":
		err = h.changeState(ctx, value, function == "state_put")
	default:
		err = Permanent(fmt.Errorf("workers: a module called %.80q, which this worker does not know: run a newer one",
			function))
	}
	h.failed = err
	return answer, found, err
}

// getStep asks for a step by its name: one that has the number of the next one of that name.
func (h *moduleHost) getStep(ctx context.Context, name string) (value []byte, found bool, err error) {
	if h.asked++; h.asked > steps.Max {
		return nil, false, Permanent(fmt.Errorf("a module asked for more than %d steps: submit a future for each part of "+
			"its work", steps.Max))
	}
	log := h.job.stepLog()
	step, recorded, err := log.Ask(ctx, name)
	switch {
	case err != nil:
		return nil, false, err
	case recorded == nil:
		h.name, h.step, h.started, h.changed = name, step, log.Now(), false
		return nil, false, nil
	case !recorded.Wake.IsZero():
		return nil, false, Permanent(fmt.Errorf("step %s was recorded in attempt %d and is a sleep: give the step another "+
			"name, or start the future over without its steps", step, recorded.Attempt))
	}
	h.name = ""
	return recorded.Value, true, nil
}

// putStep records the step that getStep has not found. A step in a step takes its place, so that the outer one is not
// recorded by the name of the inner one.
func (h *moduleHost) putStep(ctx context.Context, name string, value []byte) error {
	if name == "" || name != h.name {
		return Permanent(fmt.Errorf("a module recorded step %.80q, and the last one that it asked for and did not find is "+
			"%q: ask for each step, run it, and record it, before the next one", name, h.name))
	}
	if h.changed { // a step that failed is not recorded, and what follows may note that
		return Permanent(fmt.Errorf("a module changed the state of its actor in step %s, whose code does not run again: a "+
			"later attempt would lose the change; record the step first", h.step))
	}
	if len(value) > layout.MaxPut {
		return Permanent(fmt.Errorf("step %s of future %s has more than %d bytes: store the data elsewhere and record "+
			"where", h.step, h.job.future.ID, layout.MaxPut))
	}
	h.name = ""
	return h.job.stepLog().Record(ctx, h.step, taskcontext.RecordedStep{Codec: layout.CodecRaw, Value: bytes.Clone(value),
		Started: h.started})
}
