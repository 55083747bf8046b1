package main

import (
	"cmp"
	"encoding/xml"
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

// Sizes of an SVG, in pixels.
const (
	boxWidth, boxHeight = 260, 58
	columnGap, rowGap   = 90, 16
	margin              = 20
	boxText             = 34 // characters in a line of a box
)

// box is where a node is drawn.
type box struct {
	node   *inspect.Node
	column int
	row    float64 // its place in the column, by which the column is sorted
	x, y   int
}

// svg is the drawing as an image: inputs are left of the futures that use them.
func (d *drawing) svg() string {
	columns := d.columns()
	tallest := 0
	for _, column := range columns {
		tallest = max(tallest, len(column))
	}
	places := map[layout.ID]*box{}
	for x, column := range columns {
		top := margin + (tallest-len(column))*(boxHeight+rowGap)/2
		for y, one := range column {
			one.x, one.y = margin+x*(boxWidth+columnGap), top+y*(boxHeight+rowGap)
			places[one.node.ID] = one
		}
	}
	width := 2*margin + len(columns)*(boxWidth+columnGap) - columnGap
	height := 2*margin + tallest*(boxHeight+rowGap) - rowGap
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "+
		"role=\"img\" font-family=\"monospace\" font-size=\"12\">\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>The graph of future %s</title>\n", d.graph.Nodes[0].ID)
	b.WriteString("<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" " +
		"markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#555555\"/></marker></defs>\n" +
		"<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n")
	for _, n := range d.graph.Nodes {
		for _, input := range n.Inputs {
			drawEdge(&b, places[input], places[n.ID], slices.Contains(n.WaitsFor, input))
		}
	}
	for _, n := range d.graph.Nodes {
		d.drawBox(&b, places[n.ID])
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func drawEdge(b *strings.Builder, from, to *box, waits bool) {
	dashes := ""
	if waits {
		dashes = ` stroke-dasharray="5 3"`
	}
	x1, y1, x2, y2 := from.x+boxWidth, from.y+boxHeight/2, to.x, to.y+boxHeight/2
	bend := max(columnGap/2, (x2-x1)/3)
	fmt.Fprintf(b, "<path d=\"M%d %dC%d %d %d %d %d %d\" fill=\"none\" stroke=\"#555555\" "+
		"marker-end=\"url(#arrow)\"%s/>\n", x1, y1, x1+bend, y1, x2-bend, y2, x2, y2, dashes)
}

func (d *drawing) drawBox(b *strings.Builder, at *box) {
	lines, width := d.boxLines(at.node), 1
	if at.node.Waited() {
		width = 3
	}
	fmt.Fprintf(b, "<g><title>%s</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"%s\" "+
		"stroke=\"#333333\" stroke-width=\"%d\"/>", xmlText(strings.Join(lines, "; ")), at.x, at.y, boxWidth, boxHeight,
		colourOf(at.node), width)
	for i, line := range lines {
		size := ""
		if i == len(lines)-1 {
			size = ` font-size="11" fill="#555555"`
		} else {
			line = cut(line, boxText)
		}
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\"%s>%s</text>", at.x+8, at.y+17+17*i, size, xmlText(line))
	}
	b.WriteString("</g>\n")
}

func xmlText(s string) string {
	var b strings.Builder
	// A Builder returns no errors.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// columns places each node left of those that use it, as near as that allows, and
// orders each column so that few edges cross.
func (d *drawing) columns() [][]*box {
	places := d.rank()
	last := 0
	for _, one := range places {
		last = max(last, one.column)
	}
	columns := make([][]*box, last+1)
	for _, n := range d.graph.Nodes {
		one := places[n.ID]
		one.column = last - one.column
		columns[one.column] = append(columns[one.column], one)
	}
	for i, column := range columns {
		settle(columns[i], func(one *box) float64 { return float64(slices.Index(column, one)) })
	}
	mean := func(ids []layout.ID, otherwise float64) float64 {
		sum := 0.0
		for _, id := range ids {
			sum += places[id].row
		}
		if len(ids) == 0 {
			return otherwise
		}
		return sum / float64(len(ids))
	}
	for range 4 {
		for i := len(columns) - 2; i >= 0; i-- {
			settle(columns[i], func(one *box) float64 { return mean(d.users[one.node.ID], one.row) })
		}
		for i := 1; i < len(columns); i++ {
			settle(columns[i], func(one *box) float64 { return mean(one.node.Inputs, one.row) })
		}
	}
	return columns
}

// rank returns the nodes with the length of the longest way to a node that none
// uses as their column. A cycle, which only a damaged store has, is cut.
func (d *drawing) rank() map[layout.ID]*box {
	places, left := map[layout.ID]*box{}, map[layout.ID]int{}
	var free []*inspect.Node
	for _, n := range d.graph.Nodes {
		places[n.ID] = &box{node: n}
		if left[n.ID] = len(d.users[n.ID]); left[n.ID] == 0 {
			free = append(free, n)
		}
	}
	for len(free) > 0 {
		n := free[0]
		free = free[1:]
		for _, input := range n.Inputs {
			places[input].column = max(places[input].column, places[n.ID].column+1)
			if left[input]--; left[input] == 0 {
				free = append(free, d.nodes[input])
			}
		}
	}
	return places
}

// settle sorts a column by the wishes of its boxes. Rows are relative to the
// middle, as columns are drawn.
func settle(column []*box, wish func(*box) float64) {
	wishes := make(map[*box]float64, len(column))
	for _, one := range column {
		wishes[one] = wish(one)
	}
	slices.SortStableFunc(column, func(x, y *box) int { return cmp.Compare(wishes[x], wishes[y]) })
	for i, one := range column {
		one.row = float64(i) - float64(len(column)-1)/2
	}
}
