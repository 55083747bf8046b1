package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/console"
	"github.com/futura-run/futura/workers"
	"github.com/futura-run/futura/workers/wasm"
)

func (a *app) awaitCommand() *cobra.Command {
	var timeout time.Duration
	var progress bool
	cmd := a.onFutures(&cobra.Command{
		Use: "await ID...", Short: "Wait for futures and print their results",
		Long: "await prints the results in the order of the ids. With --json it prints an array of futures as get does, " +
			"including those that are not over when --timeout has passed. It exits with 1 if a future failed, and with " +
			"5 if one is not over. With --progress it prints what functions tell of theirs to standard error.",
		Example: "  futura await 01995b4e-6f3a-7c1e-9d2b-0123456789ab --timeout 1m\n" +
			"  futura await 01995b4e-6f3a-7c1e-9d2b-0123456789ab --progress",
	}, func(ctx context.Context, c *futures.Client, ids []futures.ID) error {
		return a.await(ctx, c, ids, timeout, progress, func(all []httpapi.Future) error { return a.printJSON(all) })
	})
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait at most (default: no limit)")
	cmd.Flags().BoolVar(&progress, "progress", false, "print how far the functions are, as they tell it")
	return cmd
}

func parseIDs(args []string) ([]futures.ID, error) {
	ids := make([]futures.ID, len(args))
	for i, text := range args {
		id, err := layout.ParseID(text)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}

// await prints what futures come to, with --json by show.
func (a *app) await(
	ctx context.Context, c *futures.Client, ids []futures.ID, timeout time.Duration, progress bool,
	show func([]httpapi.Future) error,
) error {
	stop, err := a.localWorker(ctx, c)
	if err != nil {
		return err
	}
	waiting := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	all := make([]httpapi.Future, 0, len(ids))
	var failures []error
	hint := time.NewTimer(patience)
	defer hint.Stop()
	for _, id := range ids {
		unpuzzle, quiet := a.explainMeanwhile(waiting, c, id, hint.C), func() {}
		if progress {
			quiet = a.showProgress(waiting, c, id)
		}
		result, err := outcome(ctx, waiting, c, id)
		unpuzzle()
		quiet()
		if err != nil {
			failures = append(failures, err)
		}
		if !a.json {
			if err := a.printResult(result, err); err != nil {
				return errors.Join(err, stop())
			}
			continue
		}
		var whole *futures.Result
		if err == nil {
			whole = &result
		}
		view, unseen := viewOf(ctx, c, id, whole)
		switch {
		case unseen == nil:
			all = append(all, view)
		case !errors.Is(err, futures.ErrNotFound): // which says it already
			failures = append(failures, unseen)
		}
	}
	if a.json {
		failures = append(failures, show(all))
	}
	return errors.Join(errors.Join(failures...), stop())
}

// patience is how long an await says nothing.
const patience = 5 * time.Second

// explainMeanwhile says why a future does not run, if it does not when after
// comes, until stop is called.
func (a *app) explainMeanwhile(ctx context.Context, c *futures.Client, id futures.ID, after <-chan time.Time,
) (stop func()) {
	return meanwhile(ctx, func(ctx context.Context) {
		select {
		case <-after:
		case <-ctx.Done():
			return
		}
		e, err := c.Explain(ctx, id)
		if err == nil && (e.Reason == inspect.ReasonUnreachable || !e.State.Terminal() && e.State != layout.Claimed) {
			fmt.Fprintf(a.err, "futura: still waiting: future %s is %s. %s\n", id, e.State, console.Printable(e.Text))
		}
	})
}

// meanwhile runs do until it returns, or stop is called, which waits for its end.
func meanwhile(ctx context.Context, do func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// printFirst prints the future that was submitted, if it is known.
func (a *app) printFirst(all []httpapi.Future) error {
	if len(all) == 0 {
		return nil
	}
	return a.printJSON(&all[0])
}

// outcome returns a future's result once it is over, and until waiting ends. What
// is over by then counts.
func outcome(ctx, waiting context.Context, c *futures.Client, id futures.ID) (futures.Result, error) {
	f := c.Future(id)
	r, err := f.Await(waiting)
	switch {
	case errors.Is(err, futures.ErrTooLarge):
		return r, fmt.Errorf("%w; write it to a file with futura get %s --output FILE", err, id)
	case err == nil || waiting.Err() == nil:
		return r, err
	case ctx.Err() != nil:
		return r, fmt.Errorf("interrupted: future %s goes on; wait for it again with futura await %s", id, id)
	}
	e, unexplained := c.Explain(ctx, id)
	switch {
	case unexplained != nil:
		return r, unexplained
	case e.State.Terminal():
		soon, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return f.Await(soon)
	default:
		return r, lateError{fmt.Sprintf("future %s is not over, but %s. %s Wait for it again with futura await %s",
			id, e.State, e.Text, id)}
	}
}

// lateError says that a future was not over in time.
type lateError struct{ text string }

// Error implements error.
func (e lateError) Error() string { return e.text }

// Unwrap makes the exit code that of a timeout.
func (e lateError) Unwrap() error { return context.DeadlineExceeded }

// printResult prints the streams of a future that is over.
func (a *app) printResult(r futures.Result, err error) error {
	var failed *futures.FailedError
	if errors.As(err, &failed) {
		_, _ = a.err.Write(failed.Stderr)
	}
	if err != nil {
		return nil
	}
	_, _ = a.err.Write(r.Stderr)
	if r.Codec == layout.CodecJSON {
		r.Value = append(r.Value, '\n')
	}
	_, err = a.out.Write(r.Value)
	return err
}

// viewOf returns a future as JSON has it, with the whole result, if that was read.
func viewOf(ctx context.Context, c *futures.Client, id futures.ID, r *futures.Result) (httpapi.Future, error) {
	row, err := c.Cluster().Get(ctx, id)
	if err != nil {
		return httpapi.Future{}, err
	}
	view, err := httpapi.View(ctx, c.Cluster(), &row)
	if view.Result != nil && r != nil {
		view.Result.SetValue(r.Value)
	}
	return view, err
}

// localWorker runs a worker here if no other process can reach the store. It returns when the worker is registered, or
// after patience: an await that ended before would say that there is no worker.
func (a *app) localWorker(ctx context.Context, c *futures.Client) (stop func() error, err error) {
	if !kv.TraitsOf(c.Cluster().Database()).Exclusive {
		return func() error { return nil }, nil
	}
	var config wasm.Config
	log := slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelError}))
	cacheModules(&config.CacheDir, log)
	w, err := startWorker(ctx, c.Cluster(), workers.Options{Logger: log, DrainTimeout: time.Second}, config)
	if err != nil {
		return nil, err
	}
	select {
	case <-w.Ready():
	case <-w.done:
	case <-ctx.Done():
	case <-time.After(patience):
	}
	return w.stop, nil
}
