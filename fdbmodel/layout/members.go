package layout

import (
	"fmt"
	"slices"
)

// CanRun returns ErrBadSpec if the worker can never run a future.
func (w *WorkerInfo) CanRun(spec *Spec) error {
	switch {
	case !slices.Contains(w.Queues, spec.Queue):
		return fmt.Errorf("%w: worker %s does not serve its queue %q", ErrBadSpec, w.ID, spec.Queue)
	case !w.Runs(spec.Function):
		return fmt.Errorf("%w: worker %s does not know its function %s", ErrBadSpec, w.ID, spec.Function)
	case !w.Capacity.Fit(spec.Requirements):
		return fmt.Errorf("%w: worker %s is too small for its requirements", ErrBadSpec, w.ID)
	default:
		return nil
	}
}

// IdleRecord is what an idle worker could take.
type IdleRecord struct {
	Resources `msgpack:",inline"` // that are free
	// Functions are what it runs, as in WorkerInfo; empty if they are many.
	Functions []string `msgpack:"f,omitempty" json:"functions,omitempty"`
}

// ClaimBatch is the record of one claim transaction: what it took.
type ClaimBatch struct {
	IDs IdList `msgpack:"i" json:"ids"`
}
