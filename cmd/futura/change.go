package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/workers/wasm"
)

// changed is what became of a future, in words that do not change, and as text.
type changed struct {
	ID      futures.ID `json:"id"`
	Outcome string     `json:"outcome"`
	State   string     `json:"state,omitempty"`
	text    string
}

// each calls fn for each id on the command line and prints what it says.
func (a *app) each(ctx context.Context, args []string, fn func(*futures.Client, futures.ID) (changed, error)) error {
	ids, err := parseIDs(args)
	if err != nil {
		return err
	}
	return a.open(ctx, func(c *futures.Client) error {
		all := make([]changed, 0, len(ids))
		var failures []error
		for _, id := range ids {
			one, err := fn(c, id)
			if err != nil {
				failures = append(failures, err)
				continue
			}
			one.ID = id
			all = append(all, one)
			if !a.json {
				fmt.Fprintln(a.out, id, cmp.Or(one.text, one.Outcome))
			}
		}
		if a.json {
			failures = append(failures, a.printJSON(all))
		}
		return errors.Join(failures...)
	})
}

func (a *app) cancelCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "cancel ID...", Short: "Cancel futures, or ask those that run to stop",
		Example: "  futura cancel 01995b4e-6f3a-7c1e-9d2b-0123456789ab --reason 'wrong input'",
		Args:    usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.each(cmd.Context(), args, func(c *futures.Client, id futures.ID) (changed, error) {
				outcome, state, err := c.Cancel(cmd.Context(), id, reason)
				switch one := (changed{State: state.String()}); outcome {
				case fdbmodel.Applied:
					one.Outcome = "cancelled"
					return one, err
				case fdbmodel.Requested:
					one.Outcome, one.text = "requested", "asked to stop"
					return one, err
				default:
					one.Outcome, one.text = "over", "is over already: "+one.State
					return one, err
				}
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever looks at it later")
	return cmd
}

func (a *app) retryCommand() *cobra.Command {
	var failed bool
	var filter fdbmodel.Filter
	cmd := &cobra.Command{
		Use: "retry ID... | --failed", Short: "Run failed futures again, with all their attempts",
		Long: "retry runs failed futures again, with all their attempts, and delayed ones at once. With --failed it takes\n" +
			"all that have failed, but for those that were cancelled, which are retried by their ids, and for items of\n" +
			"batches, for which there is futura batch retry.",
		Example: "  futura retry 01995b4e-6f3a-7c1e-9d2b-0123456789ab\n" +
			"  futura retry --failed --function wasm:count",
		RunE: func(cmd *cobra.Command, args []string) error {
			if failed == (len(args) > 0) {
				return usageError{errors.New("name futures, or use --failed")}
			}
			if !failed && filter != (fdbmodel.Filter{}) {
				return usageError{errors.New("--function and --queue go with --failed")}
			}
			if failed {
				return a.open(cmd.Context(), func(c *futures.Client) error { return a.retryFailed(cmd.Context(), c, filter) })
			}
			return a.each(cmd.Context(), args, func(c *futures.Client, id futures.ID) (changed, error) {
				return changed{Outcome: "ready"}, c.Retry(cmd.Context(), id)
			})
		},
	}
	cmd.Flags().BoolVar(&failed, "failed", false, "all that have failed")
	cmd.Flags().StringVar(&filter.Queue, "queue", "", "with --failed: of this queue")
	cmd.Flags().StringVar(&filter.Function, "function", "", "with --failed: of this function")
	return cmd
}

// retried is what became of all that had failed.
type retried struct {
	Retried   int `json:"retried"`
	Cancelled int `json:"cancelled"`
	OfBatches int `json:"of_batches"`
}

func (a *app) retryFailed(ctx context.Context, c *futures.Client, filter fdbmodel.Filter) (err error) {
	filter.State = fdbmodel.Failed
	if filter.Function != "" {
		if filter.Function, err = c.Cluster().ResolveFunction(ctx, filter.Function); err != nil {
			return err
		}
	}
	var n retried
	var cursor []byte
	for more := true; more; more = len(cursor) > 0 {
		var rows []fdbmodel.Row
		if rows, cursor, err = c.List(ctx, filter, cursor, fdbmodel.MaxList); err != nil {
			return err
		}
		var ids []futures.ID
		for i := range rows {
			switch {
			case rows[i].Spec.Held:
				n.OfBatches++
			case rows[i].Exception.Kind == fdbmodel.KindCancelled:
				n.Cancelled++
			default:
				ids = append(ids, rows[i].ID)
			}
		}
		outcomes, err := c.Cluster().RetryMany(ctx, ids)
		for _, outcome := range outcomes {
			if outcome == fdbmodel.Applied {
				n.Retried++
			}
		}
		if err != nil {
			return fmt.Errorf("%d were retried before: %w", n.Retried, err)
		}
	}
	if a.json {
		return a.printJSON(&n)
	}
	if n.Cancelled > 0 {
		fmt.Fprintf(a.err, "%d were cancelled and stay: retry them by their ids\n", n.Cancelled)
	}
	if n.OfBatches > 0 {
		fmt.Fprintf(a.err, "%d are items of batches: use futura batch retry\n", n.OfBatches)
	}
	_, err = fmt.Fprintln(a.out, n.Retried, "retried")
	return err
}

func (a *app) deleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete ID...", Short: "Remove futures that are over, with their results",
		Example: "  futura delete 01995b4e-6f3a-7c1e-9d2b-0123456789ab", Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.each(cmd.Context(), args, func(c *futures.Client, id futures.ID) (changed, error) {
				return changed{Outcome: "deleted"}, c.Discard(cmd.Context(), id)
			})
		},
	}
}

func (a *app) functionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "function", Short: "Store and list WASM functions"}
	cmd.AddCommand(a.functionPutCommand(), a.functionListCommand())
	return needsCommand(cmd)
}

func (a *app) functionPutCommand() *cobra.Command {
	var alias string
	cmd := &cobra.Command{
		Use: "put FILE", Short: "Store a WASM module under its content id",
		Long: "put checks that the module can run (WASI preview 1, no files, no network), stores it, and prints the name\n" +
			"of its function. With --alias the name wasm:ALIAS stands for it from now on.",
		Example: "  futura function put count.wasm --alias count", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.putFunction(cmd.Context(), args[0], alias) },
	}
	cmd.Flags().StringVar(&alias, "alias", "", "a name that stands for the module")
	return cmd
}

func (a *app) putFunction(ctx context.Context, file, alias string) (err error) {
	info, err := os.Stat(file)
	if err != nil {
		return usageError{err}
	}
	if info.Size() > fdbmodel.MaxModule {
		return fmt.Errorf("%w: %s has %d bytes, a module at most %d",
			fdbmodel.ErrTooLarge, file, info.Size(), fdbmodel.MaxModule)
	}
	module, err := os.ReadFile(file)
	if err != nil {
		return usageError{err}
	}
	cid, err := fdbmodel.ModuleCID(module)
	if err != nil {
		return err
	}
	config := wasm.Config{PoolSize: 1}
	if storeExists(a.store) == nil {
		if err := a.cacheModules(&config.CacheDir); err != nil {
			return err
		}
	}
	executor, err := wasm.New(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, executor.Close(context.WithoutCancel(ctx))) }()
	if err := executor.Check(ctx, cid, module); err != nil {
		return usageError{fmt.Errorf("%s: %w", file, err)}
	}
	return a.openOrMake(ctx, func(c *futures.Client) error {
		stored, err := c.Cluster().PutModule(ctx, module, alias)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(httpapi.FunctionOf(&stored))
		}
		_, err = fmt.Fprintln(a.out, "wasm:"+stored.CID)
		return err
	})
}

func (a *app) functionListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the WASM modules that are stored", Example: "  futura function list", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.open(cmd.Context(), func(c *futures.Client) error {
				stored, err := c.Cluster().Modules(cmd.Context())
				if err != nil {
					return err
				}
				if a.json {
					views := make([]httpapi.Function, len(stored))
					for i := range stored {
						views[i] = httpapi.FunctionOf(&stored[i])
					}
					return a.printJSON(views)
				}
				for _, m := range stored {
					fmt.Fprintf(a.out, "wasm:%s  %d bytes  %v\n", m.CID, m.Size, m.Aliases)
				}
				return nil
			})
		},
	}
}
