package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/console"
)

// inspection is what futura inspect was asked for.
type inspection struct {
	subject     string // an id, a subspace or a kind of key
	key, prefix string
	after       string
	limit       int
	cli         bool
}

func (a *app) inspectCommand() *cobra.Command {
	var i inspection
	_, subspaces := keyspace.Table().Names()
	cmd := &cobra.Command{
		Use:   "inspect [ID | SUBSPACE]",
		Short: "Show the keys of a future, a subspace or a range, decoded",
		Long: "inspect shows every key of a future: its records, its place in the index, the worker that holds it, its " +
			"mail. For one of these subspaces it lists the keys, page by page:\n\n  " + console.Wrap(subspaces, 76, "  ") +
			"\n\nA kind of key, such as claim or heartbeat, also works (docs/reference/keyspace.md lists them). Keys are " +
			"given as fdbcli prints them, with bytes as \\xNN. With --json it prints one object per line.",
		Example: "  futura inspect 01995b4e-6f3a-7c1e-9d2b-0123456789ab\n  futura inspect ready --limit 20\n" +
			"  futura inspect --prefix '\\x02futura\\x00\\x02default\\x00' --json\n" +
			"  futura inspect --fdbcli 01995b4e-6f3a-7c1e-9d2b-0123456789ab | fdbcli",
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				i.subject = args[0]
			}
			return a.inspect(cmd.Context(), i)
		},
	}
	cmd.Flags().StringVar(&i.key, "key", "", "show this key")
	cmd.Flags().StringVar(&i.prefix, "prefix", "", "list the keys with this prefix")
	cmd.Flags().StringVar(&i.after, "after", "", "continue after this key, where an earlier list ended")
	addNumber(cmd, &i.limit, "limit", 100, inspect.MaxItems, "how many keys to list, at most 1000")
	cmd.Flags().BoolVar(&i.cli, "fdbcli", false, "print the fdbcli commands that show the future, to paste")
	return cmd
}

func (a *app) inspect(ctx context.Context, i inspection) error {
	given := 0
	for _, s := range []string{i.subject, i.key, i.prefix} {
		if s != "" {
			given++
		}
	}
	if i.cli && (i.subject == "" || given != 1) {
		return usageError{errors.New("--fdbcli shows a future: give its id, and neither --key nor --prefix")}
	}
	if given != 1 {
		return usageError{errors.New("give exactly one of an id, a subspace, --key and --prefix")}
	}
	key, err := layout.UnescapeKey(i.key + i.prefix)
	if err != nil {
		return err
	}
	after, err := layout.UnescapeKey(i.after)
	if err != nil {
		return err
	}
	id, notID := layout.ParseID(i.subject)
	if i.cli && notID != nil {
		return notID
	}
	return a.open(ctx, func(c *futures.Client) error {
		cluster := c.Cluster()
		var found []inspect.Item
		var next []byte
		var err error
		switch {
		case i.cli:
			return a.printCLI(ctx, cluster, id)
		case i.key != "":
			one, err := inspect.Key(ctx, cluster, key)
			if err != nil {
				return err
			}
			return a.printInspected([]inspect.Item{one}, true)
		case i.prefix != "":
			found, next, err = inspect.Prefix(ctx, cluster, key, after, i.limit)
		case notID == nil:
			return a.inspectFuture(ctx, cluster, id)
		default:
			found, next, err = inspect.Keys(ctx, cluster, i.subject, after, i.limit)
		}
		if err != nil {
			return err
		}
		if err := a.printInspected(found, false); err != nil {
			return err
		}
		if next != nil {
			fmt.Fprintf(a.err, "more: --after '%s'\n", layout.EscapeKey(next))
		}
		return nil
	})
}

func (a *app) inspectFuture(ctx context.Context, c *fdbmodel.Cluster, id layout.ID) error {
	state, found, err := inspect.Future(ctx, c, id)
	if err != nil {
		return err
	}
	if !a.json {
		fmt.Fprintf(a.out, "%s is %s\n", id, state)
	}
	return a.printInspected(found, true)
}

// printCLI prints commands on the standard output and what they show beside
// them, so that a pipe takes the commands alone.
func (a *app) printCLI(ctx context.Context, c *fdbmodel.Cluster, id layout.ID) error {
	commands, err := inspect.CLICommands(ctx, c, id)
	if err != nil {
		return err
	}
	for _, command := range commands {
		if a.json {
			if err := json.NewEncoder(a.out).Encode(command); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintln(a.err, "#", command.Shows)
		if _, err := fmt.Fprintln(a.out, command.Command); err != nil {
			return err
		}
	}
	return nil
}

// printInspected prints one JSON object per key, or blocks, or lines.
func (a *app) printInspected(found []inspect.Item, blocks bool) error {
	if a.json {
		e := json.NewEncoder(a.out)
		for i := range found {
			if err := e.Encode(&found[i]); err != nil {
				return err
			}
		}
		return nil
	}
	width := a.width()
	lines := [][]string{{"KIND", "SHARD", "KEY AND VALUE"}}
	for i := range found {
		f := &found[i]
		if blocks {
			fmt.Fprint(a.out, blockOf(f, width))
			continue
		}
		lines = append(lines, []string{kindOf(f), shardOf(f), keyText(f) + "  " + valueText(f)})
	}
	if blocks || len(found) == 0 {
		return nil
	}
	var b strings.Builder
	if err := console.Aligned(&b, lines); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(a.out, console.Cut(strings.TrimSuffix(line, "\n"), width)); err != nil {
			return err
		}
	}
	return nil
}

func kindOf(f *inspect.Item) string {
	if f.Kind == "" {
		return "?"
	}
	return f.Kind
}

func shardOf(f *inspect.Item) string {
	if f.Shard == nil {
		return "-"
	}
	return fmt.Sprint(*f.Shard)
}

func keyText(f *inspect.Item) string {
	if f.Kind == "" {
		return f.Text
	}
	parts := make([]string, 0, len(f.Parts))
	for _, p := range f.Parts {
		parts = append(parts, oneLine(fieldText(p.Name, p.Value)))
	}
	return strings.Join(parts, " ")
}

func valueText(f *inspect.Item) string {
	if f.Value.Problem != "" {
		return "(" + f.Value.Problem + ")"
	}
	var fields []string
	for _, name := range fieldOrder(f.Value.Fields) {
		fields = append(fields, name+"="+oneLine(fieldText(name, f.Value.Fields[name])))
	}
	return strings.Join(fields, " ")
}

func oneLine(s string) string { return strings.Join(strings.Fields(console.Printable(s)), " ") }

// blockOf prints a key and its fields, each on a line of its own.
func blockOf(f *inspect.Item, width int) string {
	var b strings.Builder
	head := kindOf(f)
	if f.Shard != nil {
		head += fmt.Sprintf("  (%s, shard %d)", f.Subspace, *f.Shard)
	}
	line := func(name, value string) {
		fmt.Fprintln(&b, console.Cut(fmt.Sprintf("    %-16s %s", name, oneLine(value)), width))
	}
	fmt.Fprintln(&b, head)
	if f.Problem != "" {
		line("key", f.Text)
		line("problem", f.Problem)
	}
	for _, p := range f.Parts {
		line(p.Name, fieldText(p.Name, p.Value))
	}
	if f.Value.Stamp != "" {
		line("stamp", f.Value.Stamp)
	}
	for _, name := range fieldOrder(f.Value.Fields) {
		line(name, fieldText(name, f.Value.Fields[name]))
	}
	if f.Value.Problem != "" {
		line("problem", f.Value.Problem)
		line("raw", f.Value.Raw)
	}
	return b.String()
}

// fieldOrder puts what people look for first.
func fieldOrder(fields map[string]any) []string {
	first := []string{"function", "worker", "sequence", "kind", "message", "value", "state"}
	rank := func(name string) int {
		if i := slices.Index(first, name); i >= 0 {
			return i
		}
		return len(first)
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int {
		if c := rank(x) - rank(y); c != 0 {
			return c
		}
		return strings.Compare(x, y)
	})
	return names
}

// fieldText prints a field by the unit that its name ends with.
func fieldText(name string, value any) string {
	switch v := value.(type) {
	case int64:
		return numberText(name, v)
	case uint64:
		if v > math.MaxInt64 {
			return fmt.Sprint(v)
		}
		return numberText(name, int64(v))
	case string:
		if v == "" {
			return `""`
		}
		return v
	case layout.ID:
		return v.String()
	case map[string]any:
		return groupText(v)
	case []string:
		return strings.Join(v, " ")
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = fieldText("", v[i])
		}
		return strings.Join(items, ", ")
	default:
		return fmt.Sprint(v)
	}
}

func numberText(name string, n int64) string {
	switch {
	case strings.HasSuffix(name, "_ns"):
		return time.Duration(n).String()
	case strings.HasSuffix(name, "_ms"):
		return time.UnixMilli(n).UTC().Format("2006-01-02T15:04:05.000Z")
	default:
		return fmt.Sprint(n)
	}
}

// groupText prints bytes as text or hexadecimal, and other objects field by
// field.
func groupText(v map[string]any) string {
	if n, ok := v["bytes"]; ok {
		if text, ok := v["text"].(string); ok {
			return fmt.Sprintf("%q (%v bytes)", text, n)
		}
		if hex, ok := v["hex"].(string); ok {
			return fmt.Sprintf("0x%s (%v bytes)", hex, n)
		}
	}
	var fields []string
	for _, name := range fieldOrder(v) {
		fields = append(fields, name+"="+fieldText(name, v[name]))
	}
	return "{" + strings.Join(fields, " ") + "}"
}
