package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// uniqueKeys is how many unique keys the client uses.
const uniqueKeys = 3

// uniqueBugs are about futures that are the only ones with a key.
func uniqueBugs() []plantedBug {
	return []plantedBug{
		{name: "unique name kept", text: "the end of a future does not free its unique key",
			tags: slices.Concat(ends, []string{tagSubmit}), write: drop(clearKey, layout.KeyUnique)},
		{name: "unique name overlooked", text: "a submit does not see who has the unique key", tags: []string{tagSubmit},
			page: hide(layout.KeyUnique)},
		{name: "unique name not taken", text: "a unique future does not take its key", tags: []string{tagSubmit},
			write: drop(setKey, layout.KeyUnique)},
		{name: "unique name lost by a retry", text: "a unique future that is retried does not take its key again",
			tags: []string{"futura-retry"}, write: drop(setKey, layout.KeyUnique)},
		{name: "unique name never freed", text: "the key of a future that is over is kept for a period, and on",
			tags: ends, write: drop(setKey, layout.KeyUniqueDue)},
	}
}

// drawUnique makes a future unique, in one of the ways there are.
func (c *clientProcess) drawUnique(s *fdbmodel.Submission) {
	w := c.world
	s.Unique = &fdbmodel.Unique{Key: fmt.Sprint("unique-", w.random.IntN(uniqueKeys))}
	switch w.random.IntN(6) {
	case 0:
		s.Unique.Until = layout.UntilClaim
	case 1:
		s.Unique.For = time.Duration(1+w.random.IntN(10)) * time.Second
	}
	if w.random.IntN(3) == 0 {
		s.Unique.OnConflict = fdbmodel.ConflictReplace
	}
	if s.Spec.Function == "go:"+fnParent {
		s.Spec.Function = "go:" + fnUpper
	}
}

// submitUnique submits a future that may be refused, because another one has its key.
func (c *clientProcess) submitUnique(ctx context.Context, now time.Time) error {
	if r := c.failedUnique(); r != nil && c.world.random.IntN(2) == 0 {
		return c.retry(ctx, r)
	}
	s := c.draw(now)
	c.drawUnique(&s)
	r, err := c.add(s)
	if err != nil {
		return err
	}
	c.world.report.Unique++
	return c.refusable(r, c.submit(ctx, []*request{r}))
}

// failedUnique returns a unique future that has failed, nil for none.
func (c *clientProcess) failedUnique() *request {
	var failed []*request
	for _, r := range c.requests {
		if r.submission.Unique != nil && r.ended != nil && r.ended.State == layout.Failed && !r.discarded && !r.missed {
			failed = append(failed, r)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return failed[c.world.random.IntN(len(failed))]
}

// refusable notes that a request was refused for its key.
func (c *clientProcess) refusable(r *request, err error) error {
	if errors.Is(err, fdbmodel.ErrNotUnique) {
		c.world.report.Refused++
		r.abandoned, err = true, nil
	}
	return err
}

// mayReplace notes that a submit may cancel those that have its key.
func (c *clientProcess) mayReplace(r *request) {
	if u := r.submission.Unique; u == nil || u.OnConflict != fdbmodel.ConflictReplace {
		return
	}
	for _, other := range c.requests {
		if u := other.submission.Unique; u != nil && other != r && u.Key == r.submission.Unique.Key && other.open() {
			other.cancelled = true
		}
	}
}

// checkUnique requires that no two futures with one key are to end, but for those that
// gave it up when they were claimed, and those that run again because they were lost.
func (w *world) checkUnique(ctx context.Context) error {
	var ids []layout.ID
	for _, r := range w.client.requests {
		if u := r.submission.Unique; u != nil && u.Until == layout.UntilEnd && !r.abandoned {
			ids = append(ids, r.submission.ID)
		}
	}
	has := map[layout.UniqueName]layout.ID{}
	for part := range slices.Chunk(ids, readTogether) {
		rows, err := w.reader.GetMany(ctx, part)
		if err != nil {
			return err
		}
		for i := range rows {
			row := &rows[i]
			if row.State().Terminal() || row.Attempts.Rebuilt > 0 {
				continue
			}
			if other, taken := has[row.Spec.Unique.Name]; taken {
				return fmt.Errorf("futures %s and %s have the unique key %s", other, row.ID, row.Spec.Unique.Key)
			}
			has[row.Spec.Unique.Name] = row.ID
		}
	}
	return nil
}
