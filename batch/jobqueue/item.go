package jobqueue

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/joblog"
)

// item is a job of a stage. One of a log comes with its bytes, and with an error if
// these can't be decoded: that job fails, and doesn't hold up the reading of others.
type item[J any] struct {
	value J
	raw   []byte
	err   error
}

// items returns what a stage takes its jobs from.
func (s *Stage[J]) items() Jobs[item[J]] {
	switch many, ok := s.source.(JobRange[J]); {
	case s.log != nil:
		return logItems[J]{s.log}
	case ok:
		return itemRange[J]{itemsOf[J]{s.source, s.asked}, many}
	}
	return itemsOf[J]{s.source, s.asked}
}

// asked has those that ask for jobs from elsewhere do so one at a time, as Jobs says.
type asked chan struct{}

// take waits until nobody else asks. The caller calls give unless ctx has ended.
func (a asked) take(ctx context.Context) error {
	select {
	case a <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a asked) give() { <-a }

// logItems are the jobs of a log.
type logItems[J any] struct{ *Log[J] }

// AtIndex implements Jobs.
func (l logItems[J]) AtIndex(ctx context.Context, index uint64) (item[J], error) {
	items, err := l.Range(ctx, index, 1)
	if err != nil || len(items) == 0 {
		return item[J]{}, noJob(err)
	}
	return items[0], nil
}

func noJob(err error) error {
	if err == nil {
		err = ErrNoJob
	}
	return err
}

// Range implements JobRange.
func (l logItems[J]) Range(ctx context.Context, from uint64, limit int) ([]item[J], error) {
	stored, err := joblog.Of(l.cluster).Read(ctx, l.name, int64(from), limit)
	if err != nil {
		return nil, err
	}
	items := make([]item[J], len(stored))
	for i := range stored {
		items[i] = l.decode(stored[i].Value)
	}
	return items, nil
}

func (l *Log[J]) decode(raw []byte) item[J] {
	value, err := l.options.Codec.Decode(raw)
	if err != nil {
		err = Permanent(fmt.Errorf("decode a job of log %s: %w", l.name, err))
	}
	return item[J]{value, raw, err}
}

// itemsOf are jobs from elsewhere.
type itemsOf[J any] struct {
	jobs  Jobs[J]
	asked asked
}

// AtIndex implements Jobs.
func (i itemsOf[J]) AtIndex(ctx context.Context, index uint64) (item[J], error) {
	if err := i.asked.take(ctx); err != nil {
		return item[J]{}, err
	}
	defer i.asked.give()
	value, err := i.jobs.AtIndex(ctx, index)
	return item[J]{value: value}, err
}

// Head implements Jobs.
func (i itemsOf[J]) Head(ctx context.Context) (uint64, error) {
	if err := i.asked.take(ctx); err != nil {
		return 0, err
	}
	defer i.asked.give()
	return i.jobs.Head(ctx)
}

// itemRange are jobs from elsewhere that are found many at once.
type itemRange[J any] struct {
	itemsOf[J]
	many JobRange[J]
}

// Range implements JobRange.
func (i itemRange[J]) Range(ctx context.Context, from uint64, limit int) ([]item[J], error) {
	if err := i.asked.take(ctx); err != nil {
		return nil, err
	}
	defer i.asked.give()
	jobs, err := i.many.Range(ctx, from, limit)
	items := make([]item[J], len(jobs))
	for n := range jobs {
		items[n].value = jobs[n]
	}
	return items, err
}
