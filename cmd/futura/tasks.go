package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

func (a *app) tasksCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "tasks", Short: "Tasks that run together with others of their target: submit, show, cancel",
		Long: "A handler is a Go function that runs tasks with the same target in one call (package batch/grouping), and a " +
			"kind of lanes of which each target is one. futura lane set NAME --bundle go:NAME --target /FIELD makes one. " +
			"These commands take tasks as JSON. A task is a future as well, and its id is that of the future.",
	}, a.tasksSubmitCommand(), a.tasksGetCommand(), a.tasksCancelCommand())
}

// taskFlags are what tasks submit takes beside the handler.
type taskFlags struct {
	submitFlags
	target string
}

func (a *app) tasksSubmitCommand() *cobra.Command {
	var f taskFlags
	cmd := &cobra.Command{
		Use: "submit HANDLER", Short: "Submit a task",
		Long: "submit creates a task of a handler and prints its id once it is durable. Its target is what the input has " +
			"where the handler says, and --target for a handler that does not. With --wait it prints the result instead, or " +
			"with --json the future as get does.",
		Example: "  futura tasks submit write --input '{\"table\": \"users\", \"value\": \"ada\"}'\n" +
			"  futura tasks submit write --input-file row.json --key row-17 --wait\n" +
			"  echo '[1, 2]' | futura tasks submit sum --input-file - --target all --retries 0",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.submitToHandler(cmd.Context(), args[0], &f, cmd.Flags())
		},
	}
	flags, t := cmd.Flags(), &f.task
	flags.StringVar(&f.args, "input", "", "what the handler takes for a task, as JSON")
	flags.StringVar(&f.argsFile, "input-file", "", "a file with it, - for standard input")
	flags.StringVar(&f.target, "target", "", "the target, if the handler does not say where the input has it")
	flags.StringVar(&t.Queue, "queue", "", `the queue (default "default")`)
	flags.Uint8Var(&t.Priority, "priority", 0, "0, the lowest, to 255: higher ones are earlier in line")
	addRetries(flags, &f.retries)
	flags.DurationVar(&t.Delay, "delay", 0, "how long it waits before it gets in line")
	f.addSubmit(flags, "task")
	return cmd
}

func (a *app) submitToHandler(ctx context.Context, handler string, f *taskFlags, flags *pflag.FlagSet) (err error) {
	if err := f.checkSubmit(flags, "task"); err != nil {
		return err
	}
	if isSet(flags, "input") == isSet(flags, "input-file") {
		return usageError{errors.New("use --input or --input-file, one of them")}
	}
	input := []byte(f.args)
	if f.argsFile != "" {
		if input, err = a.readInput(f.argsFile, layout.MaxArgs, ", the most that a task takes as input"); err != nil {
			return err
		}
	}
	return a.open(ctx, func(c *futures.Client) error {
		kind, err := c.LaneKind(ctx, handler)
		if errors.Is(err, futures.ErrNotFound) {
			err = fmt.Errorf("handler %.80q: %w: make it with futura lane set NAME --bundle go:NAME, or by Setup of "+
				"package grouping", handler, futures.ErrNotFound)
		}
		if err != nil {
			return err
		}
		task, err := kind.Task(input, f.target)
		if err != nil {
			return usageError{err}
		}
		t := &f.task
		t.Function, t.Codec, t.Args, t.Lane = task.Function, task.Codec, task.Args, task.Lane
		t.MaxRetries = &f.retries
		return a.submitTask(ctx, c, t, &f.submitFlags, map[string]any{"target": t.Lane.Key})
	})
}

func (a *app) tasksGetCommand() *cobra.Command {
	return a.onFutures(&cobra.Command{
		Use: "get ID...", Short: "Show tasks: their target, and what has become of them",
		Long: "get shows whether a task is created, in-progress, succeeded or failed, with its result or error. futura " +
			"await waits for its end, and futura explain says what it waits for.",
		Example: "  futura tasks get 01995b4e-6f3a-7c1e-9d2b-0123456789ab\n" +
			"  futura tasks get 01995b4e-6f3a-7c1e-9d2b-0123456789ab --json",
	}, func(ctx context.Context, c *futures.Client, ids []futures.ID) error {
		views := []httpapi.TaskView{}
		rows := [][]string{{"TASK", "HANDLER", "TARGET", "STATUS", "ATTEMPT", "NOTE"}}
		var failures []error
		for _, id := range ids {
			v, err := viewTask(ctx, c, id)
			if err != nil {
				failures = append(failures, err)
				continue
			}
			views, rows = append(views, v), append(rows, taskRow(&v))
		}
		return errors.Join(errors.Join(failures...), a.show(views, rows))
	})
}

// viewTask returns the view of a task. It returns ErrNotFound for another future.
func viewTask(ctx context.Context, c *futures.Client, id futures.ID) (httpapi.TaskView, error) {
	row, err := c.Cluster().Get(ctx, id)
	if err == nil && !row.Spec.Member {
		err = fmt.Errorf("task %s: %w: it is a future of no handler, see futura get", id, futures.ErrNotFound)
	}
	if err != nil {
		return httpapi.TaskView{}, err
	}
	f, err := httpapi.View(ctx, c.Cluster(), &row)
	return httpapi.TaskOf(&f), err
}

func taskRow(v *httpapi.TaskView) []string {
	note := ""
	switch {
	case v.Result != nil && v.Result.Value != nil && v.Result.Value.Encoding == "text":
		note = fmt.Sprintf("%.80s", v.Result.Value.Data)
	case v.Result != nil:
		note = fmt.Sprintf("%d bytes", v.Result.Size)
	case v.Failure != nil:
		note = fmt.Sprintf("%.80s", cmp.Or(v.Failure.Message, string(v.Failure.Kind)))
	case v.DueAt != nil:
		note = "due " + v.DueAt.Format(time.RFC3339)
	}
	return []string{v.ID.String(), v.Handler, v.Target, string(v.Status), fmt.Sprint(v.Attempt), note}
}

func (a *app) tasksCancelCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "cancel ID...", Short: "Cancel tasks, or have the call that runs them told",
		Long: "cancel ends tasks that wait. The call that has a task is told that it is not wanted any more: others of the " +
			"call go on, and a result that still arrives counts.",
		Example: "  futura tasks cancel 01995b4e-6f3a-7c1e-9d2b-0123456789ab --reason 'wrong table'",
		Args:    usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.each(cmd.Context(), args, func(c *futures.Client, id futures.ID) (changed, error) {
				if _, err := viewTask(cmd.Context(), c, id); err != nil {
					return changed{}, err
				}
				return cancelOne(cmd.Context(), c, id, reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, stored with the task")
	return cmd
}

// cancelOne cancels a future, and says what has become of it.
func cancelOne(ctx context.Context, c *futures.Client, id futures.ID, reason string) (changed, error) {
	outcome, state, err := c.Cluster().Cancel(ctx, id, reason)
	switch one := (changed{State: state.String()}); outcome {
	case fdbmodel.Applied:
		one.Outcome = "cancelled"
		return one, err
	case fdbmodel.Requested:
		one.Outcome, one.text = "requested", "asked to stop"
		return one, err
	default:
		one.Outcome, one.text = "over", "is already over: "+one.State
		return one, err
	}
}
