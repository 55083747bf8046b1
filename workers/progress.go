package workers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/signal"
)

// progressEvery is the shortest time between two writes of progress by a worker.
const progressEvery = time.Second

// Progress says how far the calling function is: done of total, with a text for
// people of at most 256 bytes, of which more is cut. total is 0 if it is unknown.
// Whoever reads the future sees it, until a later attempt tells its own.
//
// It does not wait for the store. A worker writes what its functions have told at
// most once a second, all of it in one transaction, and only the last of each
// function; what is not written when the attempt ends is written with its end. So it
// may be called in a tight loop. What can't be written is in the log, and changes
// nothing for the function.
//
// It returns an error for a context that is not a function's, and for negative
// numbers. After the end of the attempt, by a timeout for instance, it does nothing.
func Progress(ctx context.Context, done, total int64, text string) error {
	j, ok := ctx.Value(jobKey{}).(*job)
	if !ok {
		return errors.New("workers: this is not the context of a function")
	}
	if done < 0 || total < 0 {
		return fmt.Errorf("workers: progress %d of %d: neither may be negative", done, total)
	}
	if j.sourced {
		return nil
	}
	if len(text) > layout.MaxProgressText {
		text = text[:layout.MaxProgressText+1] // the rest would stay in memory
	}
	j.membership.progress.tell(j, fdbmodel.Progress{
		Future: &j.future, Done: done, Total: total, Text: text, At: j.membership.worker.cluster.Now(),
	})
	return nil
}

// reports are what the functions of a membership have told of their progress and the store
// does not know yet.
type reports struct {
	membership *membership

	mu      sync.Mutex
	news    map[*job]fdbmodel.Progress
	wake    chan struct{}
	begin   sync.Once // of the loop, for a member of a fleet
	written time.Time // when the last write began
}

func newReports(m *membership) *reports {
	return &reports{membership: m, news: map[*job]fdbmodel.Progress{}, wake: make(chan struct{}, 1)}
}

// tell notes the progress of a job that has not ended. A manual worker writes it in
// the caller, if the time has come.
func (r *reports) tell(j *job, p fdbmodel.Progress) {
	r.mu.Lock()
	if !j.settled.Load() {
		r.news[j] = p
	}
	r.mu.Unlock()
	w := r.membership.worker
	if !w.manual() {
		if w.options.Fleet != nil {
			r.begin.Do(func() { r.membership.others.start(func() { r.loop(r.membership.store) }) })
		}
		signal.Send(r.wake)
	} else if !w.cluster.Now().Before(r.next()) {
		r.write(r.membership.store)
	}
}

// take returns what a job that ends has told and is not written, nil if there is
// none. Nothing of it is written by others from now on.
func (r *reports) take(j *job) *fdbmodel.Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, found := r.news[j]
	if !found {
		return nil
	}
	delete(r.news, j)
	return &p
}

// next is when the next write may begin.
func (r *reports) next() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written.Add(progressEvery)
}

// loop writes what is told, until ctx ends.
func (r *reports) loop(ctx context.Context) {
	clk := r.membership.worker.cluster.Clock()
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return
		}
		if clock.Wait(ctx, clk, r.next()) != nil || r.membership.worker.freeze.wait(ctx) != nil {
			return
		}
		if r.write(ctx) {
			signal.Send(r.wake)
		}
	}
}

// write writes what was told, and reports whether there is more.
func (r *reports) write(ctx context.Context) (more bool) {
	var batch map[*job]fdbmodel.Progress
	collect := func() []fdbmodel.Progress {
		var all []fdbmodel.Progress
		r.mu.Lock()
		defer r.mu.Unlock()
		batch = map[*job]fdbmodel.Progress{}
		for j, p := range r.news {
			if len(all) == fdbmodel.MaxReports {
				break
			}
			batch[j], all = p, append(all, p)
		}
		// The same run makes the same transactions.
		slices.SortFunc(all, func(a, b fdbmodel.Progress) int {
			return bytes.Compare(a.Future.ID[:], b.Future.ID[:])
		})
		return all
	}
	r.mu.Lock()
	r.written = r.membership.worker.cluster.Now()
	r.mu.Unlock()
	_, err := r.membership.reg.WriteProgress(ctx, collect)
	r.mu.Lock()
	defer r.mu.Unlock()
	for j, p := range batch {
		if err == nil && r.news[j] == p {
			delete(r.news, j)
		}
	}
	if err != nil && !errors.Is(err, fdbmodel.ErrReaped) && ctx.Err() == nil {
		r.membership.worker.options.Logger.Warn("progress could not be written; retrying", "error", err)
	}
	return len(r.news) > 0 && !errors.Is(err, fdbmodel.ErrReaped)
}
