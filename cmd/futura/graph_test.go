package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures/httpapi"
)

func TestGraphFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	top := s.ok("submit", "go:top")
	left := s.ok("submit", "go:left", "--after", top)
	right := s.ok("submit", "go:right", "--after", top, "--delay", "1h")
	bottom := s.ok("submit", "go:bottom", "--after", left, "--after", right)
	user := s.ok("submit", "go:user", "--after", bottom)

	out, e := s.run(exitOK, "", "graph", bottom, "--dependants")
	require.Empty(t, e)
	require.Equal(t, strings.Join([]string{
		bottom + "  go:bottom  blocked, waits for 2 of 2",
		"├─ " + left + "  go:left  blocked, waits for 1 of 1",
		"│  └─ " + top + "  go:top  ready, waits here",
		"└─ " + right + "  go:right  blocked, waits for 1 of 1",
		"   └─ " + top + "  go:top  ready, waits here",
		"",
		"used by",
		"└─ " + user + "  go:user  blocked, 1 input", "",
	}, "\n"), out)

	var g httpapi.Graph
	require.NoError(t, json.Unmarshal([]byte(s.ok("graph", bottom, "--json")), &g))
	require.Len(t, g.Nodes, 4)
	out, e = s.run(exitOK, "", "graph", bottom, "--depth", "1")
	require.Contains(t, e, "futures were left out")
	require.Contains(t, out, "└─ … 1 more input")
	dot := s.ok("graph", bottom, "--format", "dot")
	require.Contains(t, dot, `"`+left+`" -> "`+bottom+`" [style=dashed];`)

	for _, args := range [][]string{
		{"--format", "svg"}, {"--format", "dot", "--json"}, {"--limit", "1001"}, {"--depth", "-1"}, {"--fan", "9999"},
	} {
		s.run(exitUsage, "", append([]string{"graph", bottom}, args...)...)
	}
	s.run(exitNotFound, "", "graph", "01995b4e-6f3a-7c1e-9d2b-0123456789ab")
}

// graphOf returns a graph of levels of nodes: each takes the two above it.
func graphOf(levels, width int, change func(*inspect.Node)) *inspect.Graph {
	g := &inspect.Graph{}
	id := func(level, i int) layout.ID { return layout.ID{0: byte(level), 1: byte(i), 6: 0x70, 8: 0x80} }
	for level := range levels {
		for i := range width {
			n := &inspect.Node{ID: id(level, i), Level: -level, State: layout.Realized, Function: "go:f", ResultSize: 7}
			if level+1 < levels {
				n.Inputs = []layout.ID{id(level+1, i), id(level+1, (i+1)%width)}
				n.InputCount = 2
			}
			change(n)
			g.Nodes = append(g.Nodes, n)
		}
	}
	return g
}

// TestDrawingsEscape draws names that would be markup.
func TestDrawingsEscape(t *testing.T) {
	t.Parallel()
	const bad = "<b>&\"'\\\x1b[31m]]>\n;\u202e"
	g := graphOf(3, 2, func(n *inspect.Node) { n.Label, n.Failure, n.Worker = bad, bad, bad })
	g.Nodes[0].State, g.Nodes[1].State, g.Nodes[2].State = layout.Failed, layout.Claimed, 0
	d := newDrawing(g, nil)
	for _, text := range []string{d.dot(), d.text(80)} {
		require.NotContains(t, text, "\x1b")
		require.NotContains(t, text, "\u202e")
	}
	// What is left of a line without its quoted parts has no quote.
	quoted := regexp.MustCompile(`"([^"\\]|\\.)*"`)
	for line := range strings.Lines(d.dot()) {
		require.NotContains(t, quoted.ReplaceAllString(line, ""), `"`, line)
	}
}

// TestDrawingsOfAllSizes draws deep and wide graphs, and one with a cycle.
func TestDrawingsOfAllSizes(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{1, 1}, {100, 1}, {2, 100}, {40, 25}, {250, 4}} {
		g := graphOf(size[0], size[1], func(*inspect.Node) {})
		// A graph has one root.
		for _, n := range g.Nodes[1:size[1]] {
			g.Nodes[0].Inputs = append(g.Nodes[0].Inputs, n.ID)
		}
		d := newDrawing(g, nil)
		text := d.text(100)
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 100)
		}
		for _, n := range g.Nodes {
			require.Contains(t, text, n.ID.String())
		}
		require.Less(t, strings.Count(text, "\n"), 6*len(g.Nodes)+2, "what is shared is drawn once")
	}
	g := graphOf(2, 2, func(*inspect.Node) {})
	g.Nodes[3].Inputs = []layout.ID{g.Nodes[0].ID}
	newDrawing(g, nil).text(100)
}
