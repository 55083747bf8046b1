package fdbmodel

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Progress is how far the attempt of a claimed future is.
type Progress struct {
	Future *ClaimedFuture
	// Done and Total are not negative; Total is 0 if it is unknown.
	Done, Total int64
	// Text has at most layout.MaxProgressText bytes; a longer one is cut.
	Text string
	At   time.Time
}

func (p *Progress) record() *layout.ProgressRecord {
	return &layout.ProgressRecord{
		Token: p.Future.Token, Attempt: p.Future.Attempt(), Done: max(p.Done, 0), Total: max(p.Total, 0),
		Text: layout.Shorten(p.Text, layout.MaxProgressText), At: layout.Millis(p.At),
	}
}

// MaxReports bounds one WriteProgress.
const MaxReports = 500

// WriteProgress writes the progress of claimed futures, without reading them. It
// calls collect in each attempt of a transaction, after that has read the worker's
// own record: collect returns only futures whose claims the worker has not begun to
// end, and that makes the fence complete. A claim that ends meanwhile makes the
// transaction conflict, and a worker that was declared dead gets ErrReaped. Of more than MaxReports
// futures, only the first are written. It returns how many. Progress that is lost in
// a crash of the store breaks no promise: the commit does not wait for the disk. An
// unknown commit is retried; an attempt that commits late replaces nothing that was written
// since.
func (r *Registration) WriteProgress(ctx context.Context, collect func() []Progress) (written int, err error) {
	keys := r.cluster.keys
	_, err = r.cluster.Transact(ctx, kv.Options{Tag: "futura-progress", NoSync: true}, func(tx kv.Attempt) error {
		if err := r.checkAlive(ctx, r.askAlive(tx)); err != nil {
			return err
		}
		all := collect()
		all = all[:min(len(all), MaxReports)]
		for i := range all {
			id := all[i].Future.ID
			for _, key := range [][]byte{
				keys.State(id, layout.StateClaim), keys.State(id, layout.StateResult), keys.Progress(id),
			} {
				tx.AddReadConflictKey(key)
			}
		}
		for i := range all {
			tx.Set(keys.Progress(all[i].Future.ID), layout.Encode(all[i].record()))
		}
		written = len(all)
		return nil
	})
	return written, err
}

// reportLast writes what comes with the end of an attempt.
func (w *WriteSet) reportLast(c *Completion) {
	if p := c.Progress; p != nil && (c.Result != nil || c.Exception != nil) {
		w.Tx.Set(w.Keys.Progress(c.Future.ID), layout.Encode(p.record()))
	}
}
