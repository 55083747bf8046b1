package futures

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/reference"
)

// Then submits a function on the result of a future: it runs once that is
// realized, and fails with the kind upstream if that fails. It returns the errors
// of Client.Submit, and ErrBadSpec if f is nil or does not exist.
func Then[A, B any](ctx context.Context, c *Client, f *Typed[A], next Definition[A, B], options ...Option,
) (*Typed[B], error) {
	made, err := ThenEach(ctx, c, []*Typed[A]{f}, next, options...)
	if err != nil {
		return nil, err
	}
	return made[0], nil
}

// ThenEach submits a function on the result of each of many futures, as Then does
// for one. With an error it returns the futures that certainly exist: those of
// the first of fs.
func ThenEach[A, B any](ctx context.Context, c *Client, fs []*Typed[A], next Definition[A, B], options ...Option,
) ([]*Typed[B], error) {
	tasks := make([]Task, len(fs))
	for i, f := range fs {
		var err error
		if tasks[i], err = next.onResults(reference.Append(nil, f.ID()), options); err != nil {
			return nil, err
		}
	}
	made, err := c.SubmitMany(ctx, tasks)
	typed := make([]*Typed[B], len(made))
	for i := range made {
		typed[i] = next.Of(made[i])
	}
	return typed, err
}

// maxWidth is the widest that Reduce takes results together.
const maxWidth = 10_000

// Reduce submits a tree of futures that combine the results of fs, in their
// order, up to width of them at a time, and returns its root. combine gets two or
// more results, and must be associative. Of one future Reduce returns that one.
// It returns ErrBadSpec for no futures and for a width below 2 or above 10,000,
// and the errors of Client.SubmitMany; what was submitted before one exists.
func Reduce[T any](ctx context.Context, c *Client, fs []*Typed[T], combine Definition[[]T, T], width int,
	options ...Option,
) (*Typed[T], error) {
	if len(fs) == 0 || width < 2 || width > maxWidth {
		return nil, fmt.Errorf("%w: reduce %d futures, %d at a time: use one or more, and a width of 2 to %d",
			layout.ErrBadSpec, len(fs), width, maxWidth)
	}
	for len(fs) > 1 {
		var tasks []Task
		var level []*Typed[T]
		var at []int // where the futures of tasks are in level
		for len(fs) > 0 {
			part := fs[:min(len(fs), width)]
			if fs = fs[len(part):]; len(part) == 1 {
				level = append(level, part[0])
				continue
			}
			task, err := listOf(combine, part, options)
			if err != nil {
				return nil, err
			}
			at, tasks, level = append(at, len(level)), append(tasks, task), append(level, nil)
		}
		made, err := c.SubmitMany(ctx, tasks)
		if err != nil {
			return nil, err
		}
		for i, f := range made {
			level[at[i]] = combine.Of(f)
		}
		fs = level
	}
	return fs[0], nil
}

// listOf returns a task that runs a function on the results of futures.
func listOf[T any](combine Definition[[]T, T], fs []*Typed[T], options []Option) (Task, error) {
	args, err := encode(CodecMsgpack, All(fs))
	if err != nil {
		return Task{}, fmt.Errorf("arguments of %s: %w", combine.name, err)
	}
	return combine.onResults(args, options)
}
