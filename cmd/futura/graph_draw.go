package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// stateColours fill the boxes of nodes. A state without one is white.
var stateColours = map[layout.State]string{
	layout.Realized: "#d5f0d5", layout.Failed: "#f6cfcf", layout.Claimed: "#fff1b8", layout.Ready: "#d6e6fb",
	layout.Delayed: "#e6dcf5", layout.Blocked: "#e8e8e8",
}

func colourOf(n *inspect.Node) string { return cmp.Or(stateColours[n.State], "#ffffff") }

// boxLines are the lines of text in the box of a node.
func (d *drawing) boxLines(n *inspect.Node) []string {
	return []string{d.heading(n), strings.Join(slices.DeleteFunc([]string{d.status(n), leftOut(n)},
		func(s string) bool { return s == "" }), ", "), n.ID.String()}
}

// dot is the drawing in the language of Graphviz.
func (d *drawing) dot() string {
	var b strings.Builder
	b.WriteString("digraph futures {\n  rankdir=LR;\n  node [shape=box, style=filled, fontname=\"monospace\"];\n")
	for _, n := range d.graph.Nodes {
		width := 1
		if n.Waited() {
			width = 3
		}
		fmt.Fprintf(&b, "  %s [label=%s, fillcolor=%q, penwidth=%d];\n", dotText(n.ID.String()),
			dotText(d.boxLines(n)...), colourOf(n), width)
	}
	for _, n := range d.graph.Nodes {
		for _, input := range n.Inputs {
			style := "solid"
			if slices.Contains(n.WaitsFor, input) {
				style = "dashed"
			}
			fmt.Fprintf(&b, "  %s -> %s [style=%s];\n", dotText(input.String()), dotText(n.ID.String()), style)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// dotText quotes lines of text.
func dotText(lines ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	quoted := make([]string, len(lines))
	for i, line := range lines {
		quoted[i] = escape.Replace(oneLine(line))
	}
	return `"` + strings.Join(quoted, `\n`) + `"`
}
