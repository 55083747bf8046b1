package layout

import (
	"fmt"
	"slices"
)

// CanRun returns ErrUnfit if the worker can never run a future.
func (w *WorkerInfo) CanRun(spec *Spec) error {
	switch {
	case !slices.Contains(w.Queues, spec.Queue):
		return fmt.Errorf("%w: worker %s does not serve its queue %q", ErrUnfit, w.ID, spec.Queue)
	case !w.Runs(spec.Function):
		return fmt.Errorf("%w: worker %s does not know its function %s", ErrUnfit, w.ID, spec.Function)
	case !w.LabelSet().Have(LabelText(spec.Requirements.Labels)):
		return fmt.Errorf("%w: worker %s lacks some of the labels that it requires, %s", ErrUnfit, w.ID,
			LabelText(spec.Requirements.Labels))
	case !w.Capacity.Fit(spec.Requirements):
		return fmt.Errorf("%w: worker %s is too small for its requirements", ErrUnfit, w.ID)
	default:
		return nil
	}
}

// CheckQueues returns ErrBadName for an invalid queue. A queue that is named twice is served once, and the default one
// if none is named.
func (w *WorkerInfo) CheckQueues() error {
	var queues []string
	for _, q := range w.Queues {
		if err := CheckQueueName(q); err != nil {
			return err
		}
		if !slices.Contains(queues, q) {
			queues = append(queues, q)
		}
	}
	if w.Queues = queues; len(queues) == 0 {
		w.Queues = []string{DefaultQueue}
	}
	return nil
}

// IdleRecord describes the futures that an idle worker could take.
type IdleRecord struct {
	Resources `msgpack:",inline"` // free slots
	// Functions are those that it runs, as in WorkerInfo; empty if there are
	// too many to list.
	Functions []string `msgpack:"f,omitempty" json:"functions,omitempty"`
	// Labels are those that it has.
	Labels map[string]string `msgpack:"l,omitempty" json:"labels,omitempty"`
	// NoRoom says that it takes none whose results are to be objects.
	NoRoom bool `msgpack:"x,omitempty" json:"no_object_room,omitempty"`
}

// ClaimBatch is the record of one claim transaction: the futures that it took.
type ClaimBatch struct {
	IDs IDList `msgpack:"i" json:"ids"`
}

// EncodeClaims encodes a ClaimBatch of futures.
func EncodeClaims(ids []ID) []byte { return Encode(&ClaimBatch{IDs: PackIDs(ids)}) }

// DecodeClaims returns the futures of a ClaimBatch. It returns ErrNewerRecord and ErrBadRecord.
func DecodeClaims(key, value []byte) ([]ID, error) {
	var batch ClaimBatch
	if err := Decode(key, value, &batch); err != nil {
		return nil, err
	}
	return UnpackIDs(batch.IDs), nil
}

// JanitorRecord names the worker that is the janitor. Connection is the one through which it reaches the store, and
// Opening that of the store which its process has open itself; both are empty where they don't matter.
type JanitorRecord struct {
	Worker  WorkerID `msgpack:"w"`
	Count   int64    `msgpack:"n"`
	Opening string   `msgpack:"o,omitempty"`

	Connection string `msgpack:"c,omitempty"`
}
