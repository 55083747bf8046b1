package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/names"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

// uniqueFlags have a future be the only one of its kind.
type uniqueFlags struct {
	key, until, conflict string
	by                   []string
	period               time.Duration
}

func (u *uniqueFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&u.key, "unique", "", "be the only one with this key, until it is over")
	flags.StringSliceVar(&u.by, "unique-by", nil,
		"be the only one with the same function,queue,arguments, or some of them; with --unique, of those with the key")
	flags.StringVar(&u.until, "unique-until", "", "until it is over (end), a worker claims it (claim), or for ever (ever)")
	flags.DurationVar(&u.period, "unique-for", 0, "for this long after the submit at least, even if it is over before")
	flags.StringVar(&u.conflict, "on-conflict", "",
		"while there is another one: refuse (the default), return the other, or replace it if no worker has claimed it")
}

// apply makes a task unique, if that is asked for.
func (u *uniqueFlags) apply(t *futures.Task, flags *pflag.FlagSet) error {
	if u.key == "" && len(u.by) == 0 {
		asked := []string{"unique", "unique-by", "unique-until", "unique-for", "on-conflict"}
		if slices.ContainsFunc(asked, flags.Changed) {
			return usageError{errors.New("say by what it is unique: --unique KEY, or --unique-by function,queue,arguments")}
		}
		return nil
	}
	unique := httpapi.ParseUnique(u.key, u.by, u.until, u.period, u.conflict)
	t.Unique = &unique
	return nil
}

// sayExisted says that a submit returned a future that existed, or cancelled one.
func sayExisted(to io.Writer, f *futures.Future, t *futures.Task) {
	switch {
	case !f.Replaced().IsZero():
		fmt.Fprintf(to, "futura: it replaces future %s, which was cancelled\n", f.Replaced())
	case f.Differs() != "" && (t.Unique == nil || t.Key != ""):
		fmt.Fprintf(to, "futura: a future with this key and content exists, and is this one; as in its first submit, and "+
			"not as in this one: %s\n", f.Differs())
	case f.Differs() != "":
		fmt.Fprintf(to, "futura: another future is unique in this way, and is the answer; what differs: %s\n", f.Differs())
	case f.Existed() && t.Unique != nil && t.Key == "":
		fmt.Fprintln(to, "futura: another future is unique in this way, and is the answer")
	case f.Existed():
		fmt.Fprintln(to, "futura: a future with this key and content exists, and is this one")
	}
}

func (a *app) uniqueCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "unique", Short: "See and release the keys of unique futures",
		Long: "A unique future keeps others from being submitted: until it is over, until a worker claims it, for a period " +
			"or for ever (futura submit --unique). A key that is kept by one that is over can be released.",
	},
		a.uniqueActionCommand("show", "Print the future that has a unique key", "show exits with 3 if no future has the key.",
			"  futura unique show nightly-report\n  futura unique show --name 42d9f8b63022a2b1a4f0869d68680ebb --json",
			(*names.Names).Holder),
		a.uniqueActionCommand("release", "Free a unique key that is kept by a future that is over",
			"release has the future that has the key give it up. It refuses one that is not over: cancel that first.",
			"  futura unique release invoice-2026-11\n  futura unique release --name 42d9f8b63022a2b1a4f0869d68680ebb",
			(*names.Names).Release))
}

// uniqueAction does something with a name, and returns the future that had it.
type uniqueAction func(*names.Names, context.Context, layout.UniqueName) (*futures.NotUniqueError, error)

func (a *app) uniqueActionCommand(use, short, long, example string, do uniqueAction) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: use + " [KEY]", Short: short, Example: example, Args: usage(cobra.MaximumNArgs(1)),
		Long: long + " For a future that is unique by its function or arguments, --name is the name that futura get " +
			"--json and a refused submit show.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (name == "") {
				return usageError{errors.New("say KEY or --name, one of them")}
			}
			of := layout.UniqueName(name)
			if name == "" {
				of = fdbmodel.UniqueNameOf(&fdbmodel.Submission{Unique: &futures.Unique{Key: args[0]}})
			}
			return a.open(cmd.Context(), func(c *futures.Client) error {
				holder, err := do(names.Of(c.Cluster()), cmd.Context(), of)
				if errors.Is(err, futures.ErrNotFound) && name == "" {
					err = fmt.Errorf("key %.80q: %w: no future has it", args[0], futures.ErrNotFound)
				}
				if err != nil {
					return err
				}
				return a.showHolder(httpapi.HolderOf(holder))
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the name that stands for what makes a future unique")
	return cmd
}

func (a *app) showHolder(h httpapi.Holder) error {
	rows := pairs{{"future", h.ID.String()}, {"state", h.State}, {"until", h.Until}, {"name", string(h.Name)}}
	if h.State == "" {
		rows[1][1] = "removed"
	}
	rows.add(h.Key != "", "key", "%s", h.Key)
	if h.FreeAt != nil {
		rows.add(true, "not free before", "%s", h.FreeAt.Format(time.RFC3339))
	}
	return a.show(h, rows)
}
