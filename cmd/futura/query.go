package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/console"
	"github.com/futura-run/futura/internal/wording"
)

// lastLine returns the last line of a stream that says something, cut to what a
// terminal shows.
func lastLine(stream []byte) string {
	lines := strings.Split(strings.TrimSpace(console.Printable(string(stream))), "\n")
	return console.Cut(lines[len(lines)-1], 81)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// listFlags are what list takes.
type listFlags struct {
	filterFlags
	cursor, countBy string
	limit           int
	oldest, items   bool
}

func (a *app) listCommand() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use: "list", Short: "List futures, the newest first",
		Long: "list prints the newest futures first. Items of batches are left out and counted, unless --batch or --items " +
			"asks for them: then, without --tag, it goes from shard to shard. The rest is on the next page: continue with " +
			"the --cursor that is printed at the end.\n\nBy --tag, and by a --state that is failed, claimed, ready or " +
			"delayed, it reads what it lists and little else. Otherwise it reads the futures back in time, from --until to " +
			"--since, and a page may be short where few of them match.",
		Example: "  futura list --state failed --since 24h --limit 20\n  futura list --tag customer:acme\n" +
			"  futura list --state ready --queue mail --count-by tag\n" +
			"  futura list --function wasm:count --json\n" +
			"  futura list --batch 01995b4e-6f3a-7c1e-9d2b-0123456789ab", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, flag := range []string{"cursor", "limit", "oldest"} {
				if f.countBy != "" && cmd.Flags().Changed(flag) {
					return usageError{fmt.Errorf("--count-by and --%s exclude each other: it counts the newest, up to 20,000",
						flag)}
				}
			}
			return a.list(cmd.Context(), &f)
		},
	}
	flags := cmd.Flags()
	f.add(flags, "only those", layout.States())
	onceVar(flags, &f.filter.Label, "label", "only those with this label")
	onceVar(flags, &f.filter.Owner, "batch", "only the items of this batch")
	flags.BoolVar(&f.items, "items", false, "with the items of batches")
	flags.BoolVar(&f.oldest, "oldest", false, "the oldest first")
	flags.StringVar(&f.cursor, "cursor", "", "continue where an earlier list ended, with the same flags")
	flags.StringVar(&f.countBy, "count-by", "", "count up to 20,000 of them instead, by "+
		strings.Join(inspect.Breakdowns(), ", "))
	f.addLimit(cmd)
	return cmd
}

func (f *listFlags) addLimit(cmd *cobra.Command) {
	addNumber(cmd, &f.limit, "limit", 100, inspect.MaxList, "how many to print, at most 1000")
}

func (a *app) list(ctx context.Context, f *listFlags) (err error) {
	if err := f.parse(layout.States()); err != nil {
		return err
	}
	from, err := hex.DecodeString(f.cursor)
	if err != nil {
		return usageError{fmt.Errorf("--cursor %q is invalid: use one that an earlier list printed", f.cursor)}
	}
	f.filter.Newest = !f.oldest
	if !f.items && f.filter.Owner == "" && f.countBy != "batch" {
		f.filter.LeftOut = new(int)
	}
	return a.open(ctx, func(c *futures.Client) error {
		if err := f.filter.ResolveFunction(ctx, c.Cluster()); err != nil {
			return err
		}
		if f.countBy != "" {
			return a.countBy(ctx, c, f)
		}
		rows, next, err := inspect.List(ctx, c.Cluster(), f.filter, from, f.limit)
		if err != nil {
			return err
		}
		if a.json {
			return a.printListed(rows, next, f.filter.LeftOut)
		}
		names, err := aliasesOf(ctx, c.Cluster(), functionsOf(rows))
		if err != nil {
			return err
		}
		if err := a.table(listLines(rows, names, a.width())); err != nil {
			return err
		}
		if left := f.filter.LeftOut; left != nil && *left > 0 {
			fmt.Fprintf(a.err, "left out: %s of batches; show them with --items or --batch ID\n", wording.Count(*left, "item"))
		}
		if len(next) > 0 {
			fmt.Fprintf(a.err, "more: --cursor %x\n", next)
		}
		return nil
	})
}

// countBy prints how many futures have what in common.
func (a *app) countBy(ctx context.Context, c *futures.Client, f *listFlags) error {
	found, err := inspect.Breakdown(ctx, c.Cluster(), f.filter, f.countBy)
	if err != nil {
		return mistaken(err)
	}
	if a.json {
		return a.printJSON(httpapi.BreakdownOf(f.countBy, &found))
	}
	lines := [][]string{{strings.ToUpper(f.countBy), "FUTURES", "BYTES", "OLDEST", "NEWEST"}}
	for _, g := range found.Groups {
		lines = append(lines, []string{cmp.Or(g.Value, "(none)"), fmt.Sprint(g.Futures), fmt.Sprint(g.Bytes),
			timeText(g.Oldest.UnixMilli()), timeText(g.Newest.UnixMilli())})
	}
	if found.Others > 0 {
		lines = append(lines, []string{"(other)", fmt.Sprint(found.Others), "", "", ""})
	}
	if err := a.table(lines); err != nil {
		return err
	}
	if !found.Complete {
		fmt.Fprintf(a.err, "counted: %s; there are more\n", wording.Count(found.Futures, "future"))
	}
	return nil
}

// printListed prints a list as JSON.
func (a *app) printListed(rows []layout.Row, next []byte, leftOut *int) error {
	views := make([]httpapi.Future, len(rows))
	for i := range rows {
		views[i] = httpapi.ListView(&rows[i])
	}
	list := map[string]any{"futures": views}
	if len(next) > 0 {
		list["cursor"] = hex.EncodeToString(next)
	}
	if leftOut != nil {
		list["items_left_out"] = *leftOut
	}
	return a.printJSON(list)
}

// listLines are the rows of a list. If some failed, they have the kind and the first line of
// the error. A terminal shows of failures alone what tells them apart.
func listLines(rows []layout.Row, names map[string]string, width int) [][]string {
	failed := 0
	for i := range rows {
		if rows[i].State() == layout.Failed {
			failed++
		}
	}
	heading := []string{"ID", "STATE", "FUNCTION", "TRY", "SUBMITTED", "QUEUE"}
	brief := failed > 0 && failed == len(rows) && width < console.Unbounded
	if brief {
		heading = []string{"ID", "FUNCTION"}
	}
	if failed > 0 {
		heading = append(heading, "KIND", "ERROR")
	}
	lines := [][]string{heading}
	for i := range rows {
		r := &rows[i]
		line := []string{
			r.ID.String(), r.State().String(), functionText(r.Spec.Function, names), fmt.Sprint(r.Attempt()),
			timeText(r.Spec.SubmittedAt), r.Spec.Queue,
		}
		if brief {
			line = []string{line[0], line[2]}
		}
		if failed > 0 {
			line = append(line, failureCells(r)...)
		}
		lines = append(lines, line)
	}
	return lines
}

// failureCells are the kind and the first line of the error of a future that failed.
func failureCells(r *layout.Row) []string {
	e := r.Ending().Failure
	if r.State() != layout.Failed || e == nil {
		return []string{"", ""}
	}
	return []string{string(e.Kind), firstLine(e.Message)}
}

// aliasesOf returns the aliases of the modules among functions, by their content
// ids.
func aliasesOf(ctx context.Context, c *fdbmodel.Cluster, functions []string) (map[string]string, error) {
	isModule := func(function string) bool { return strings.HasPrefix(function, wasmPrefix) }
	if !slices.ContainsFunc(functions, isModule) {
		return nil, nil
	}
	modules, err := modules.Of(c).List(ctx)
	names := map[string]string{}
	for i := range modules {
		names[modules[i].CID] = strings.Join(modules[i].Aliases, ",")
	}
	return names, err
}

func functionsOf(rows []layout.Row) []string {
	functions := make([]string, len(rows))
	for i := range rows {
		functions[i] = rows[i].Spec.Function
	}
	return functions
}

// shortFunction is how many characters of a function's name a table shows.
const shortFunction = 24

// functionText is a function with the present aliases of its module, and of a
// content id the beginning and the end.
func functionText(function string, aliases map[string]string) string {
	short := function
	if name := []rune(function); len(name) > shortFunction {
		short = string(name[:12]) + "…" + string(name[len(name)-10:])
	}
	id, method, ok := layout.SplitWasm(function)
	if alias := aliases[id]; ok && alias != "" {
		if method != "" {
			alias += "/" + method
		}
		return console.Cut(alias, 2*shortFunction) + " (" + short + ")"
	}
	return short
}

// timeText is a time of the store as it is shown: a dash for one that is not known.
func timeText(millis int64) string {
	if millis == 0 {
		return "-"
	}
	return time.UnixMilli(millis).UTC().Format(time.RFC3339)
}

func (a *app) explainCommand() *cobra.Command {
	return a.onFutures(&cobra.Command{
		Use: "explain ID", Short: "Say why a future is not running",
		Example: "  futura explain 01995b4e-6f3a-7c1e-9d2b-0123456789ab",
	}, func(ctx context.Context, c *futures.Client, ids []futures.ID) error {
		e, err := c.Explain(ctx, ids[0])
		if err != nil {
			return err
		}
		heading := e.State.String()
		if string(e.Reason) != heading {
			heading += fmt.Sprintf(" (%s)", e.Reason)
		}
		return a.say(httpapi.ExplanationOf(&e), heading+": "+e.Text)
	})
}

func (a *app) workersCommand() *cobra.Command {
	return a.onCluster(&cobra.Command{
		Use: "workers", Short: "List workers", Example: "  futura workers --json",
		Long: "workers prints the registered workers. A worker that died is shown as alive until another one notices, " +
			"after the dead-after time; the age of its last heartbeat, by its own clock, shows it sooner. RUNNING and the " +
			"rest are of that heartbeat. Of its running functions, those that await other futures take no slot. STORED is " +
			"the bytes of results that it keeps as objects, ROOM those of more that it could keep.",
	}, func(ctx context.Context, c *futures.Client, _ []string) error {
		members, err := c.Cluster().Workers(ctx)
		if err != nil {
			return err
		}
		now := c.Cluster().Now()
		return showAll(a, "workers", members, httpapi.WorkerOf, []string{
			"WORKER", "NAME", "STATE", "HEARTBEAT", "RUNNING", "AWAITING", "FREE SLOTS", "STORED", "ROOM", "QUEUES",
		}, func(m *fdbmodel.Member) []string {
			h := &m.Heartbeat
			return []string{
				string(m.ID), m.Name, workerState(m), m.Silence(now).Round(time.Second).String() + " ago", fmt.Sprint(h.Running),
				fmt.Sprint(h.Awaiting), fmt.Sprintf("%d/%d", h.Free.Slots, m.Capacity.Slots), fmt.Sprint(h.Stored),
				fmt.Sprint(h.Room), strings.Join(m.Queues, ","),
			}
		})
	})
}

// workerState says whether a worker claims futures.
func workerState(m *fdbmodel.Member) string {
	switch {
	case !m.Alive:
		return "dead"
	case m.Heartbeat.Draining:
		return "draining"
	}
	return "alive"
}
