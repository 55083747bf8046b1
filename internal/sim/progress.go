package sim

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers"
)

// attemptOf is an attempt of a future.
type attemptOf struct {
	id    layout.ID
	token layout.Token
}

// tell has a function say how far it is: 1 at its begin, 2 at its end. The worker may
// write it at once, and everything may happen meanwhile.
func (w *world) tell(ctx context.Context, info *workers.Info, done int64) {
	if w.told == nil {
		w.told = map[attemptOf]int64{}
	}
	w.told[attemptOf{info.ID, info.Token}] = done
	before, unread := w.reader.Get(context.WithoutCancel(ctx), info.ID)
	if err := workers.Progress(ctx, done, 2, ""); err != nil {
		w.broken = append(w.broken, err)
	}
	after, err := w.reader.Get(context.WithoutCancel(ctx), info.ID)
	if unread == nil && err == nil && !holds(&before, info.Token) && !holds(&after, info.Token) &&
		after.Progress != nil && after.Progress.Token == info.Token && after.Progress.Done == done {
		w.broken = append(w.broken, fmt.Errorf("attempt %s of future %s had lost its claim, and wrote progress", info.Token,
			info.ID))
	}
}

func holds(r *layout.Row, token layout.Token) bool { return r.Claim != nil && r.Claim.Token == token }

// stopBeforeTheEnd stops a process now and then once a function has done its work, so
// that others may have run it by the time it says so.
func (w *world) stopBeforeTheEnd(ctx context.Context, p *workerProcess) {
	if len(w.told)%stopEvery == 0 {
		p.process.stop(ctx)
	}
}

// stopEvery is of how many attempts one stops so.
const stopEvery = 15

// checkTold compares the progress of a future with what its functions have told: it is
// that of one of its attempts, and of a realized one the last.
func (w *world) checkTold(row *layout.Row) error {
	if p := row.Progress; p != nil {
		told, found := w.told[attemptOf{row.ID, p.Token}]
		if !found || p.Done < 1 || p.Done > told || p.Total != 2 {
			return fmt.Errorf("future %s has the progress %+v, and %d was told", row.ID, *p, told)
		}
	}
	if row.State() != layout.Realized {
		return nil
	}
	told, found := w.told[attemptOf{row.ID, row.Result.Token}]
	if shown := row.Reported(); found && (shown == nil || shown.Done != told) {
		return fmt.Errorf("future %s is realized and shows the progress %+v; its last was %d", row.ID, shown, told)
	}
	return nil
}

// tagProgress is that of transactions that write progress.
const tagProgress = "futura-progress"

// progressBugs are about what functions tell of theirs.
func progressBugs() []plantedBug {
	return []plantedBug{
		{name: "progress unfenced", text: "a worker that lost its claim still writes progress", tags: []string{tagProgress},
			get: allAlive, blind: true},
		{name: "last progress lost", text: "progress is not written with the end of its attempt", tags: []string{tagFinish},
			write: drop(setKey, "progress")},
	}
}
