package peerworker

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// A journal that can't be written is no reason to lose what was computed: the outcomes go to their
// heads from memory, and until it can be written again the worker takes no orders. What a restart
// finds in it then is older: items whose outcomes the heads have not taken run again.

// isFailing reports whether the journal can't be written.
func (j *journal) isFailing() bool { return j != nil && j.failing.Load() }

// fail says that it can't.
func (j *journal) fail(err error) {
	if j == nil {
		return
	}
	j.failing.Store(true)
	j.worker.rare.Warn("the journal can't be written: until it can, this worker takes no orders, and sends results from "+
		"memory; free some space if the disk is full", "directory", j.worker.options.State, "error", err)
}

// spill queues ends for their heads that are not written, and all that wait to be written.
func (j *journal) spill(ends []keptEnd) {
	j.failing.Store(true)
	j.mu.Lock()
	ends, j.ends = append(ends, j.ends...), nil
	j.mu.Unlock()
	for _, e := range ends {
		e.chunk.queueEnd(e.ended)
	}
}

// probe finds out whether a journal that fails can be written again.
func (j *journal) probe(ctx context.Context) error {
	if !j.isFailing() {
		return nil
	}
	err := j.worker.node.transact(ctx, func(tx kv.Attempt) error {
		tx.Clear(tuple.AppendString(tuple.AppendString(nil, recordSpace), "probe"))
		return nil
	})
	if err == nil {
		j.failing.Store(false)
		j.worker.log.Info("the journal can be written again; this worker takes orders")
	}
	return err
}
