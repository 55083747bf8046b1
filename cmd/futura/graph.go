package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/console"
	"github.com/futura-run/futura/internal/wording"
)

func (a *app) graphCommand() *cobra.Command {
	var o inspect.GraphOptions
	var format string
	cmd := a.onFutures(&cobra.Command{
		Use: "graph ID", Short: "Draw the futures that one depends on, and where it waits",
		Long: "graph draws a future with the futures whose results it takes, directly or through others: their states, the " +
			"sizes of their results, and where it waits. As text it is a tree in which a future that several use has its " +
			"inputs where it comes first. With --dependants it also draws the futures that depend on it and are not over.\n\n" +
			"Of large graphs it draws a part, within --limit, --depth and --fan, and says how much is left out. Of many " +
			"inputs it prefers those that the future waits for.",
		Example: "  futura graph 01995b4e-6f3a-7c1e-9d2b-0123456789ab\n" +
			"  futura graph 01995b4e-6f3a-7c1e-9d2b-0123456789ab --dependants\n" +
			"  futura graph 01995b4e-6f3a-7c1e-9d2b-0123456789ab --format dot | dot -Tpdf >graph.pdf",
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if a.json && cmd.Flags().Changed("format") {
				return usageError{errors.New("--json and --format exclude each other")}
			}
			if !slices.Contains([]string{"text", "dot"}, format) {
				return usageError{fmt.Errorf("--format %.40q: use text or dot", format)}
			}
			return nil
		},
	}, func(ctx context.Context, c *futures.Client, ids []futures.ID) error {
		return a.graph(ctx, c, ids[0], o, format)
	})
	flags := cmd.Flags()
	flags.StringVar(&format, "format", "text", "text, or dot (for Graphviz)")
	flags.IntVar(&o.Depth, "depth", 20, "up to how many futures away, at most 1000")
	flags.IntVar(&o.Limit, "limit", 100, "how many futures to draw, at most 1000")
	flags.IntVar(&o.Fan, "fan", 25, "how many inputs of one future to draw, at most 1000")
	flags.BoolVar(&o.Dependants, "dependants", false, "also those that depend on it and are not over")
	return cmd
}

func (a *app) graph(ctx context.Context, c *futures.Client, id futures.ID, o inspect.GraphOptions, format string,
) error {
	g, err := inspect.ReadGraph(ctx, c.Cluster(), id, o)
	if errors.Is(err, inspect.ErrBadGraph) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(httpapi.GraphOf(g))
	}
	functions := make([]string, len(g.Nodes))
	for i, n := range g.Nodes {
		functions[i] = n.Function
	}
	names, err := aliasesOf(ctx, c.Cluster(), functions)
	if err != nil {
		return err
	}
	d := newDrawing(g, names)
	text := d.text(min(a.width(), graphWidth))
	if format == "dot" {
		text = d.dot()
	}
	if _, err := fmt.Fprint(a.out, text); err != nil {
		return err
	}
	if g.Truncated {
		fmt.Fprintln(a.err, "futura: futures were left out: see more with --limit, --depth and --fan, at most 1000 each")
	}
	return nil
}

// drawing is a graph to draw.
type drawing struct {
	graph *inspect.Graph
	names map[string]string // aliases of modules
	nodes map[layout.ID]*inspect.Node
	users map[layout.ID][]layout.ID // the nodes that use each node
}

func newDrawing(g *inspect.Graph, names map[string]string) *drawing {
	d := &drawing{g, names, map[layout.ID]*inspect.Node{}, map[layout.ID][]layout.ID{}}
	for _, n := range g.Nodes {
		d.nodes[n.ID] = n
		for _, input := range n.Inputs {
			d.users[input] = append(d.users[input], n.ID)
		}
	}
	return d
}

// heading is what a node runs.
func (d *drawing) heading(n *inspect.Node) string {
	text := functionText(n.Function, d.names)
	if n.Label != "" {
		text += " " + n.Label
	}
	return oneLine(text)
}

// status is the state of a node, with what is known of it.
func (d *drawing) status(n *inspect.Node) string {
	if n.Unreadable {
		return "unreadable"
	}
	if n.State == 0 {
		return "gone"
	}
	parts := phrases{n.State.String()}
	add := func(format string, args ...any) { parts.add(true, format, args...) }
	switch n.State {
	case layout.Realized:
		add("%s", wording.Count(n.ResultSize, "byte"))
		add("%v", rounded(n.RunTime))
	case layout.Failed:
		add("%s", n.Failure)
	case layout.Blocked:
		if n.LeftOut() == 0 && n.Level <= 0 {
			add("waits for %d of %d", len(n.WaitsFor), n.InputCount)
		} else {
			add("%s", wording.Count(n.InputCount, "input"))
		}
	case layout.Claimed:
		add("by %s", n.Worker)
	case layout.Delayed:
		add("until %s", timeText(n.Due))
	default:
	}
	if n.Waited() {
		add("waits here")
	}
	return oneLine(parts.String())
}

// leftOut says what of a node's surroundings is not drawn.
func leftOut(n *inspect.Node) string {
	var parts phrases
	parts.add(n.LeftOut() > 0, "%s", wording.Count(n.LeftOut(), "more input"))
	parts.add(n.MoreDependants, "more dependants")
	return parts.String()
}

// rounded is a duration to three digits or so.
func rounded(d time.Duration) time.Duration {
	for unit := time.Hour; unit > 1; unit /= 10 {
		if d >= 1000*unit {
			return d.Round(unit)
		}
	}
	return d
}

// textTree is a drawing as a tree of lines.
type textTree struct {
	*drawing
	b        strings.Builder
	width    int
	children func(*inspect.Node) []layout.ID
	more     func(*inspect.Node) string
	drawn    map[layout.ID]bool
	later    []*inspect.Node
}

// graphWidth is the most columns of a drawing: deeper branches are not indented further.
const graphWidth = 120

// lineText is the width of a line's text, and so what indentation leaves to it.
const lineText = 70

func (d *drawing) text(width int) string {
	root := d.graph.Nodes[0]
	t := &textTree{drawing: d, width: width, drawn: map[layout.ID]bool{}}
	t.children = func(n *inspect.Node) []layout.ID { return n.Inputs }
	t.more = func(n *inspect.Node) string {
		if n.LeftOut() == 0 {
			return ""
		}
		return wording.Count(n.LeftOut(), "more input")
	}
	t.all(root)
	if !root.MoreDependants && len(d.users[root.ID]) == 0 {
		return t.b.String()
	}
	t.b.WriteString("\nused by\n")
	t.children = func(n *inspect.Node) []layout.ID { return d.users[n.ID] }
	t.more = func(n *inspect.Node) string {
		if !n.MoreDependants {
			return ""
		}
		return "more dependants"
	}
	t.drawn = map[layout.ID]bool{}
	t.below(root, "")
	t.rest()
	return t.b.String()
}

// all draws a node and what is below it.
func (t *textTree) all(n *inspect.Node) {
	t.line("", n, "")
	t.below(n, "")
	t.rest()
}

// rest draws what was too far to the right.
func (t *textTree) rest() {
	for len(t.later) > 0 {
		n := t.later[0]
		t.later = t.later[1:]
		t.b.WriteString("\n")
		t.line("", n, "")
		t.below(n, "")
	}
}

// line draws one node.
func (t *textTree) line(indent string, n *inspect.Node, note string) {
	text := indent + n.ID.String() + note + "  "
	if n.State != 0 {
		text += t.heading(n) + "  "
	}
	t.b.WriteString(console.Cut(text+t.status(n), t.width) + "\n")
}

// below draws the children of a node, each with what is below it unless that is
// drawn elsewhere.
func (t *textTree) below(n *inspect.Node, indent string) {
	t.drawn[n.ID] = true
	children, more := t.children(n), t.more(n)
	for i, id := range children {
		child, branch, next := t.nodes[id], "├─ ", "│  "
		if i == len(children)-1 && more == "" {
			branch, next = "└─ ", "   "
		}
		leaf := len(t.children(child)) == 0 && t.more(child) == ""
		switch {
		case leaf:
			t.line(indent+branch, child, "")
		case slices.Contains(t.later, child):
			t.line(indent+branch, child, " (below)")
		case t.drawn[id]:
			t.line(indent+branch, child, " (above)")
		case utf8.RuneCountInString(indent)+lineText > t.width && indent != "":
			t.line(indent+branch, child, " (below)")
			t.later = append(t.later, child)
		default:
			t.line(indent+branch, child, "")
			t.below(child, indent+next)
		}
	}
	if more != "" {
		t.b.WriteString(indent + "└─ … " + more + "\n")
	}
}
