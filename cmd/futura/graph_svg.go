package main

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/console"
)

// Sizes of an SVG, in pixels.
const (
	boxWidth, boxHeight = 260, 58
	columnGap, rowGap   = 90, 16
	margin              = 20
	boxText             = 34 // characters in a line of a box
)

// maxTracks is the maximum number of columns that edges are led through. Beyond
// that they go straight, behind the boxes.
const maxTracks = 20_000

// box is a place in a column: of a node, or where edges from one pass a column.
type box struct {
	node   *inspect.Node // nil where edges pass
	column int
	// row is the place in the column, counted from its middle.
	row         float64
	x, y        int
	left, right []*box
}

func (b *box) height() int {
	if b.node == nil {
		return 0
	}
	return boxHeight
}

// svg is the drawing as an image: inputs are left of the futures that use them.
func (d *drawing) svg() string {
	columns, edges := d.columns()
	tallest := 0
	for _, column := range columns {
		tallest = max(tallest, heightOf(column))
	}
	for i, column := range columns {
		y := margin + (tallest-heightOf(column))/2
		for _, one := range column {
			one.x, one.y = margin+i*(boxWidth+columnGap), y
			y += one.height() + rowGap
		}
	}
	width, height := 2*margin+len(columns)*(boxWidth+columnGap)-columnGap, 2*margin+tallest
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "+
		"role=\"img\" font-family=\"monospace\" font-size=\"12\">\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>The graph of future %s</title>\n", d.graph.Nodes[0].ID)
	b.WriteString("<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" " +
		"markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#555555\"/></marker></defs>\n" +
		"<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n")
	for _, e := range edges {
		e.draw(&b)
	}
	for _, column := range columns {
		for _, one := range column {
			if one.node != nil {
				d.drawBox(&b, one)
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func heightOf(column []*box) (height int) {
	for _, one := range column {
		height += one.height() + rowGap
	}
	return height - rowGap
}

// edge is a line from one box to another, or a part of one.
type edge struct {
	from, to *box
	waits    bool
}

func (e *edge) draw(b *strings.Builder) {
	from, to := e.from, e.to
	more := ` marker-end="url(#arrow)"`
	x1, y1, x2, y2 := from.x+boxWidth, from.y+from.height()/2, to.x, to.y+to.height()/2
	through := ""
	if to.node == nil {
		more, through = "", fmt.Sprintf("H%d", x2+boxWidth)
	}
	if e.waits {
		more += ` stroke-dasharray="5 3"`
	}
	bend := max(columnGap/2, (x2-x1)/3)
	fmt.Fprintf(b, "<path d=\"M%d %dC%d %d %d %d %d %d%s\" fill=\"none\" stroke=\"#555555\"%s/>\n",
		x1, y1, x1+bend, y1, x2-bend, y2, x2, y2, through, more)
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
			line = console.Cut(line, boxText)
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

// columns places each node left of those that use it, as near as that allows,
// leads edges through the columns between them, and orders each column so that few
// edges cross.
func (d *drawing) columns() (columns [][]*box, edges []edge) {
	places := d.rank()
	last := 0
	for _, one := range places {
		last = max(last, one.column)
	}
	columns = make([][]*box, last+1)
	for _, n := range d.graph.Nodes {
		one := places[n.ID]
		one.column = last - one.column
		columns[one.column] = append(columns[one.column], one)
	}
	edges = d.lead(places, columns)
	for _, column := range columns {
		settle(column, nil)
	}
	for range 4 {
		for i := len(columns) - 2; i >= 0; i-- {
			settle(columns[i], func(one *box) []*box { return one.right })
		}
		for i := 1; i < len(columns); i++ {
			settle(columns[i], func(one *box) []*box { return one.left })
		}
	}
	return columns, edges
}

// lead makes the edges, in parts from column to column. Those from one node share
// their way.
func (d *drawing) lead(places map[layout.ID]*box, columns [][]*box) (edges []edge) {
	ways := map[layout.ID][]*box{} // by the node where they begin
	connect := func(from, to *box, waits bool) {
		from.right, to.left = append(from.right, to), append(to.left, from)
		edges = append(edges, edge{from, to, waits})
	}
	tracks := 0
	for _, n := range d.graph.Nodes {
		for _, input := range n.Inputs {
			from, to, waits := places[input], places[n.ID], slices.Contains(n.WaitsFor, input)
			between := to.column - from.column - 1
			if more := between - len(ways[input]); more > 0 {
				if tracks += more; tracks > maxTracks {
					connect(from, to, waits)
					continue
				}
			}
			for len(ways[input]) < between {
				before := from
				if n := len(ways[input]); n > 0 {
					before = ways[input][n-1]
				}
				track := &box{column: before.column + 1}
				columns[track.column] = append(columns[track.column], track)
				connect(before, track, waits)
				ways[input] = append(ways[input], track)
			}
			if between > 0 {
				from = ways[input][between-1]
			}
			connect(from, to, waits)
		}
	}
	return edges
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

// settle sorts a column by the mean row of the boxes that each of its own is
// beside. Without these they stay as they are.
func settle(column []*box, beside func(*box) []*box) {
	wishes := make(map[*box]float64, len(column))
	for _, one := range column {
		wishes[one] = one.row
		if beside == nil || len(beside(one)) == 0 {
			continue
		}
		sum := 0.0
		for _, other := range beside(one) {
			sum += other.row
		}
		wishes[one] = sum / float64(len(beside(one)))
	}
	slices.SortStableFunc(column, func(x, y *box) int { return cmp.Compare(wishes[x], wishes[y]) })
	for i, one := range column {
		one.row = float64(i) - float64(len(column)-1)/2
	}
}
