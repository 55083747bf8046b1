package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/console"
)

// forkFlags are what fork takes.
type forkFlags struct {
	selection
	from, where string
	set         []string
	limit       int
	yes         bool
	options     futures.ForkOptions
}

func (a *app) forkCommand() *cobra.Command {
	var f forkFlags
	cmd := &cobra.Command{
		Use: "fork ID | --where | --function | --error ...", Short: "Run futures that are over anew, from one of their steps",
		Long: "fork makes a new future from one that is over: with the same arguments and settings, on today's code, and " +
			"with the steps that were recorded before --from, which do not run again. The old one stays as it is, and " +
			"may be removed.\n\n" +
			"--from failed, the default, keeps all recorded steps: it goes on with what failed. If the future has not " +
			"failed, or has recorded no step, nothing is forked and the command says so. --from NAME runs that step and " +
			"those behind it again, --from start all of it; a step with the name start or failed is step:start, " +
			"step:failed. --set gives a step a value, JSON: one that is kept, or one that is not to run.\n\n" +
			"A deadline that is over is dropped. futura retry runs the future itself again.\n\n" +
			"--where and the other flags select all that have failed, or are in --state, and match all of them, apart " +
			"from items of batches, those that were cancelled, and forks of the same --name. First that is a preview; " +
			"--yes forks them. Under its name each is forked once: repeat an interrupted command, and it forks what is " +
			"missing; with a higher --limit, it goes on. Forks have the name as their label: futura list --label NAME. " +
			"Futures that can't be forked so are counted, with reasons; if there are any, the exit code is 1.",
		Example: "  futura fork 01995b4e-6f3a-7c1e-9d2b-0123456789ab\n" +
			"  futura fork 01995b4e-6f3a-7c1e-9d2b-0123456789ab --from charge --set 'reserve={\"seat\": 7}'\n" +
			"  futura fork --where 'function=order error~timeout'\n" +
			"  futura fork --where 'function=order error~\"no such card\"' --limit 10 --name cards --yes\n" +
			"  futura list --label cards",
	}
	f.selection.add(cmd, true)
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "failed", "where to go on: the name of a recorded step, failed or start")
	flags.StringArrayVar(&f.set, "set", nil, "STEP=JSON: the value of a step; may be repeated")
	onceVar(flags, &f.where, "where",
		`the selection in one text: the names of these flags, as in 'function=order tag=eu error~"no card"'`)
	flags.IntVar(&f.limit, "limit", 0,
		"of a selection: how many at most, with those forked before under this name; 0 for all")
	flags.StringVar(&f.options.Name, "name", "", "the name, and label, of the forks (of a selection: drawn, and printed)")
	flags.BoolVar(&f.yes, "yes", false, "of a selection: fork them, instead of showing what would be")
	flags.BoolVar(&f.options.WaitForRoom, "wait-for-room", false, "wait while a limit of the cluster is exceeded")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		some, err := f.parse(cmd, args)
		if err != nil {
			return err
		}
		return a.open(cmd.Context(), func(c *futures.Client) error {
			if some {
				return a.forkMany(cmd.Context(), c, &f)
			}
			return a.forkOne(cmd.Context(), c, &f, args[0])
		})
	}
	return cmd
}

// parse reads the flags, and reports whether they select futures.
func (f *forkFlags) parse(cmd *cobra.Command, args []string) (some bool, err error) {
	if f.where != "" {
		if err := f.readWhere(cmd); err != nil {
			return false, usageError{err}
		}
	}
	if some, err = f.instead(args); err != nil {
		return some, err
	}
	switch {
	case len(args) > 1:
		return some, usageError{errors.New("fork takes one ID: select several, such as with --where")}
	case !some && (cmd.Flags().Changed("limit") || cmd.Flags().Changed("yes")):
		return some, usageError{errors.New("--limit and --yes go with a selection, such as --where")}
	case f.limit < 0:
		return some, usageError{fmt.Errorf("--limit %d: use 1 or more, or 0 for all", f.limit)}
	}
	if f.options.From, err = futures.ParseForkPoint(f.from); err != nil {
		return some, err
	}
	f.options.Set = map[string]any{}
	for _, text := range f.set {
		step, value, found := strings.Cut(text, "=")
		if !found || !json.Valid([]byte(value)) {
			return some, usageError{fmt.Errorf(`--set %.80q: use STEP=JSON, with a text in quotes, as 'charge="paid"'`, text)}
		}
		if _, twice := f.options.Set[step]; twice {
			return some, usageError{fmt.Errorf("--set: step %.80s has two values", step)}
		}
		f.options.Set[step] = json.RawMessage(value)
	}
	return some, nil
}

// readWhere sets the flags that --where names.
func (f *forkFlags) readWhere(cmd *cobra.Command) error {
	terms, err := splitTerms(f.where)
	if err != nil {
		return err
	}
	for _, term := range terms {
		at := strings.IndexAny(term, "=~")
		if at < 1 {
			return fmt.Errorf("--where: %.80q: use NAME=VALUE, or error~TEXT", term)
		}
		name, value := term[:at], term[at+1:]
		switch {
		case !isSelecting(name):
			return fmt.Errorf("--where: %.40q: use state, queue, function, tag, error, lane, worker, since or until", name)
		case (term[at] == '~') != (name == "error"):
			return fmt.Errorf("--where: %.80q: use error~TEXT, and = for the others", term)
		case value == "":
			return fmt.Errorf("--where: %s has no value", name)
		case cmd.Flags().Changed(name):
			return fmt.Errorf("--where: %s is given twice", name)
		}
		if name == "function" && !strings.Contains(value, ":") {
			value = "go:" + value
		}
		if err := cmd.Flags().Set(name, value); err != nil {
			return fmt.Errorf("--where: %s: %w", name, err)
		}
	}
	return nil
}

func isSelecting(name string) bool {
	return strings.Contains(" state queue function tag error lane worker since until ", " "+name+" ")
}

// splitTerms splits a text at spaces outside of double quotes, and drops these.
func splitTerms(text string) (terms []string, err error) {
	var term strings.Builder
	quoted, begun := false, false
	for _, r := range text {
		switch {
		case r == '"':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				terms = append(terms, term.String())
			}
			term.Reset()
			begun = false
		default:
			term.WriteRune(r)
			begun = true
		}
	}
	if quoted {
		return nil, errors.New("--where: a quote is not closed")
	}
	if begun {
		terms = append(terms, term.String())
	}
	if len(terms) == 0 {
		return nil, errors.New("--where is empty: it would select all")
	}
	return terms, nil
}

func (a *app) forkOne(ctx context.Context, c *futures.Client, f *forkFlags, text string) error {
	id, err := futures.ParseID(text)
	if err != nil {
		return err
	}
	made, err := c.Fork(ctx, id, f.options)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(made)
	}
	existed := ""
	if made.Existed {
		existed = "; it was made before"
	}
	fmt.Fprintf(a.err, "fork of %s %s%s\n", made.Source, made.From, existed)
	_, err = fmt.Fprintln(a.out, made.ID)
	return err
}

// forkedMany is a JSON object with what became of a selection.
type forkedMany struct {
	futures.ForkedMany
	Preview bool `json:"preview"`
}

func (a *app) forkMany(ctx context.Context, c *futures.Client, f *forkFlags) error {
	if f.options.Name == "" {
		f.options.Name = "fork-" + time.Now().UTC().Format("20060102-150405.000")
		if f.yes {
			fmt.Fprintf(a.err, "name: %s; if this is interrupted, repeat it with --name %s\n", f.options.Name, f.options.Name)
		}
	}
	f.filter.State = cmp.Or(f.filter.State, layout.Failed)
	if err := f.filter.ResolveFunction(ctx, c.Cluster()); err != nil {
		return err
	}
	query := futures.ForkQuery{Filter: f.filter, Limit: f.limit, Preview: !f.yes}
	if bar := console.Progress(a.err, "futures"); bar != nil {
		counts, err := c.Counts(ctx)
		if err != nil {
			return err
		}
		all := int(counts.Total(f.filter.State))
		if f.limit > 0 {
			all = min(all, f.limit)
		}
		query.Progress = func(d *futures.ForkedMany) { bar(min(d.Matched+d.Refused, all), all) }
	}
	done, err := c.ForkMany(ctx, query, f.options)
	if err == nil && done.Refused > 0 {
		err = fmt.Errorf("%w: %d can't be forked so, for such reasons", errRefused, done.Refused)
	}
	return errors.Join(a.printForks(&forkedMany{done, !f.yes}), err)
}

// errRefused is returned when some futures of a selection are not forked.
var errRefused = errors.New("not all were forked")

func (a *app) printForks(d *forkedMany) error {
	if a.json {
		return a.printJSON(d)
	}
	if len(d.First) > 0 {
		lines := [][]string{{"FUTURE", "GOES ON", "FORK"}}
		for i := range d.First {
			lines = append(lines, []string{d.First[i].Source.String(), d.First[i].From, d.First[i].ID.String()})
		}
		for i := range lines {
			if d.Preview {
				lines[i] = lines[i][:2]
			}
		}
		if err := a.table(lines); err != nil {
			return err
		}
	}
	for _, r := range d.Refusals {
		fmt.Fprintln(a.err, "not forked:", console.Printable(r.Reason))
	}
	for _, left := range []struct {
		n    int
		what string
	}{{d.Refused - len(d.Refusals), "not forked either, for such reasons"},
		{d.OfBatches, "left alone, as items of batches"}, {d.Cancelled, "left alone, as cancelled"},
		{d.OfName, "left alone, as forks of this name"}} {
		if left.n > 0 {
			fmt.Fprintf(a.err, "%s: %d\n", left.what, left.n)
		}
	}
	outcome := []any{d.Forked, "forked"}
	if d.Preview {
		outcome = []any{d.Forked, "would be forked"}
	}
	if d.Existed > 0 {
		outcome = append(outcome, "and", d.Existed, "were before")
	}
	if _, err := fmt.Fprintln(a.out, outcome...); err != nil {
		return err
	}
	if d.Preview && d.Forked > 0 {
		fmt.Fprintln(a.err, "this is a preview: --yes forks them")
	}
	return nil
}

func (a *app) forksCommand() *cobra.Command {
	var page afterFlags
	cmd := a.onFutures(&cobra.Command{
		Use: "forks ID", Short: "List the forks of a future",
		Long: "forks lists the futures that were made from a future with futura fork, in the order of their ids.",
		Example: "  futura forks 01995b4e-6f3a-7c1e-9d2b-0123456789ab\n" +
			"  futura forks 01995b4e-6f3a-7c1e-9d2b-0123456789ab --json",
	}, func(ctx context.Context, c *futures.Client, ids []futures.ID) (err error) {
		var last futures.ID
		if page.after != "" {
			if last, err = futures.ParseID(page.after); err != nil {
				return err
			}
		}
		all, last, err := c.Forks(ctx, ids[0], last, page.limit)
		if err != nil {
			return err
		}
		next := ""
		if !last.IsZero() {
			next = last.String()
		}
		return showPage(a, "forks", all, next, []string{"FORK", "STATE", "SUBMITTED", "GOES ON", "NAME"}, forkRow)
	})
	page.add(cmd, "fork", 1000)
	return cmd
}

func forkRow(f *futures.Forked) []string {
	return []string{f.ID.String(), f.State, timeText(f.SubmittedAt.UnixMilli()), f.From, f.Name}
}
