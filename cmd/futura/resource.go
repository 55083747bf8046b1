package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/console"
)

// group is a command that has others below it.
func group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(below...)
	return needsCommand(cmd)
}

// onCluster has a command run with a cluster that is there.
func (a *app) onCluster(cmd *cobra.Command, do func(context.Context, *futures.Client, []string) error) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = argsOf(cmd.Use)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.open(cmd.Context(), func(c *futures.Client) error { return do(cmd.Context(), c, args) })
	}
	return cmd
}

// onFutures has a command run with a cluster that is there, and the futures that it names.
func (a *app) onFutures(cmd *cobra.Command, do func(context.Context, *futures.Client, []futures.ID) error,
) *cobra.Command {
	cmd.Args = argsOf(cmd.Use)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := parseIDs(args)
		if err != nil {
			return err
		}
		return a.open(cmd.Context(), func(c *futures.Client) error { return do(cmd.Context(), c, ids) })
	}
	return cmd
}

// argsOf are the arguments that a line of use names: KEY is one, [KEY] one or none, and after
// ... there may be more.
func argsOf(use string) cobra.PositionalArgs {
	least, most := 0, 0
	for _, word := range strings.Fields(use)[1:] {
		if most++; !strings.HasPrefix(word, "[") {
			least++
		}
	}
	switch {
	case strings.Contains(use, "..."):
		return usage(cobra.MinimumNArgs(least))
	case least == most:
		return exactly(least)
	case least == 0:
		return usage(cobra.MaximumNArgs(most))
	}
	return usage(cobra.RangeArgs(least, most))
}

// showAll prints a list: as HTTP has it, an object with an array of that name, or a row for each
// thing below the heading.
func showAll[T, V any](a *app, name string, all []T, form func(*T) V, heading []string, row func(*T) []string) error {
	forms, rows := make([]V, len(all)), make([][]string, 1, 1+len(all))
	rows[0] = heading
	for i := range all {
		forms[i] = form(&all[i])
		rows = append(rows, row(&all[i]))
	}
	return a.show(map[string]any{name: forms}, rows)
}

// afterFlags are those of a list that is printed in pages.
type afterFlags struct {
	after string
	limit int
}

// add adds them to a command that prints at most most things at a time, in the order of what.
func (p *afterFlags) add(cmd *cobra.Command, what string, most int) {
	cmd.Flags().StringVar(&p.after, "after", "", "continue after this "+what+", where an earlier list ended")
	addNumber(cmd, &p.limit, "limit", 100, most, fmt.Sprintf("how many to print, at most %d", most))
}

// addNumber adds a flag for a number from 1 to most, the only one of the command.
func addNumber(cmd *cobra.Command, to *int, name string, standard, most int, text string) {
	cmd.Flags().IntVar(to, name, standard, text)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *to < 1 || *to > most {
			return usageError{fmt.Errorf("--%s %d: use 1 to %d", name, *to, most)}
		}
		return nil
	}
}

// showPage is showAll for a page: next is what --after takes for the next one, empty at the end.
func showPage[T any](a *app, name string, all []T, next string, heading []string, row func(*T) []string) error {
	if a.json && next != "" {
		return a.printJSON(map[string]any{name: all, "next": next})
	}
	err := showAll(a, name, all, func(one *T) T { return *one }, heading, row)
	if err == nil && next != "" {
		fmt.Fprintf(a.err, "more: --after %s\n", console.Printable("'"+strings.ReplaceAll(next, "'", `'\''`)+"'"))
	}
	return err
}

// done says what has become of a thing that is named by pairs of a word and a name.
func (a *app) done(err error, outcome string, named ...string) error {
	if err != nil {
		return err
	}
	form, said := map[string]string{"outcome": outcome}, []any{outcome}
	for i := 0; i < len(named); i += 2 {
		form[named[i]] = named[i+1]
		if named[i+1] != "" {
			said = append(said, named[i+1])
		}
	}
	return a.say(form, said...)
}

// eachFlag calls the functions of the flags that are set, or of those that are not.
func eachFlag(flags *pflag.FlagSet, given bool, do map[string]func()) {
	for flag, fn := range do {
		if isSet(flags, flag) == given {
			fn()
		}
	}
}

// pairs are the rows of a table of names and values.
type pairs [][]string

// phrases are what is known of a thing, for a line.
type phrases []string

// add adds what is known.
func (p *phrases) add(known bool, format string, args ...any) {
	if known {
		*p = append(*p, fmt.Sprintf(format, args...))
	}
}

func (p *phrases) String() string { return strings.Join(*p, ", ") }

// add adds what is known.
func (p *pairs) add(known bool, name, format string, args ...any) {
	if known {
		*p = append(*p, []string{name, fmt.Sprintf(format, args...)})
	}
}
