package main

import (
	"context"
	"errors"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/futura-run/futura/futures"
)

func (a *app) cloneCommand() *cobra.Command {
	return a.copyCommand("clone", "Copy a result to another worker",
		"clone has another worker take a copy of a result that workers hold as an object, so that it survives the death of "+
			"one of them.", (*futures.Client).Clone)
}

func (a *app) transferCommand() *cobra.Command {
	return a.copyCommand("transfer", "Move a result to another worker",
		"transfer has another worker take a result that workers hold as an object; those that had it drop it.",
		(*futures.Client).Transfer)
}

func (a *app) copyCommand(use, short, long string,
	take func(*futures.Client, context.Context, futures.ID, futures.CopyOptions) (futures.WorkerID, error),
) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: use + " ID...", Short: short,
		Long: long + " It prints the worker that has it now, once that counts.",
		Example: "  futura " + use + " 01995b4e-6f3a-7c1e-9d2b-0123456789ab\n" +
			"  futura " + use + " 01995b4e-6f3a-7c1e-9d2b-0123456789ab --to 0123456789abcdef",
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.each(cmd.Context(), args, func(c *futures.Client, id futures.ID) (changed, error) {
				bar := transfers{app: a, what: use}
				defer bar.clear()
				worker, err := take(c, cmd.Context(), id, futures.CopyOptions{To: futures.WorkerID(to), Progress: bar.show})
				if errors.Is(err, futures.ErrUnknownWorker) {
					err = usageError{err}
				}
				return changed{Outcome: string(worker)}, err
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the id of the worker (default: the one with most room that does not have it)")
	return cmd
}

// transfers shows how much of a result has arrived elsewhere.
type transfers struct {
	app  *app
	what string
	bar  *progressbar.ProgressBar
}

func (t *transfers) show(arrived, size int64) {
	if t.bar == nil {
		t.bar = t.app.transferBar(t.what, size)
	}
	if t.bar != nil {
		_ = t.bar.Set64(arrived)
	}
}

func (t *transfers) clear() {
	if t.bar != nil {
		_ = t.bar.Clear()
	}
}

func (a *app) pinCommand() *cobra.Command {
	return a.holderCommand("pin", "Keep futures from being removed",
		"pin keeps futures from being removed, by their retention as by delete, until unpin is called with the same name. A "+
			"future can have up to 64 pins; pinning again changes nothing.", "pinned", (*futures.Client).Pin)
}

func (a *app) unpinCommand() *cobra.Command {
	return a.holderCommand("unpin", "End what pin began",
		"unpin ends the pin of a name. A future whose retention has passed is removed within another one.", "unpinned",
		(*futures.Client).Unpin)
}

func (a *app) holderCommand(use, short, long, outcome string,
	change func(*futures.Client, context.Context, futures.ID, string) error,
) *cobra.Command {
	var holder string
	cmd := &cobra.Command{
		Use: use + " ID... --as NAME", Short: short, Long: long,
		Example: "  futura " + use + " 01995b4e-6f3a-7c1e-9d2b-0123456789ab --as report",
		Args:    usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if holder == "" {
				return usageError{errors.New("--as names who pins: give it 1 to 64 bytes")}
			}
			return a.each(cmd.Context(), args, func(c *futures.Client, id futures.ID) (changed, error) {
				return changed{Outcome: outcome}, change(c, cmd.Context(), id, holder)
			})
		},
	}
	cmd.Flags().StringVar(&holder, "as", "", "the name under which they are kept")
	return cmd
}
