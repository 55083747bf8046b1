package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/futura-run/futura/futures/httpapi"
)

// table is rows of cells. Columns whose names begin with > are aligned to the right.
type table struct {
	head []string
	rows []row
}

// row is a row of a table, about what key names. more is what there is to say of it.
type row struct {
	key   string
	cells []string
	look  look
	more  []string
}

func (t *table) add(r row) {
	for i := range r.cells {
		r.cells[i] = clean(r.cells[i])
	}
	t.rows = append(t.rows, r)
}

const (
	columnGap   = 2
	leastColumn = 8
)

// align returns the head and the rows as texts of a width: it shortens the widest columns, and
// leaves out columns from the right where that does not do.
func (t *table) align(width int) []string {
	head := make([]string, len(t.head))
	widths := make([]int, len(t.head))
	for i, name := range t.head {
		head[i] = strings.TrimPrefix(name, ">")
		widths[i] = len(head[i])
		for _, r := range t.rows {
			widths[i] = max(widths[i], ansi.StringWidth(r.cells[i]))
		}
	}
	total := func() int {
		sum := columnGap * (len(widths) - 1)
		for _, w := range widths {
			sum += w
		}
		return sum
	}
	for total() > width && len(widths) > 1 {
		widest := 0
		for i, w := range widths {
			if w >= widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= leastColumn {
			widths = widths[:len(widths)-1]
			continue
		}
		widths[widest]--
	}
	texts := []string{t.text(head, widths)}
	for _, r := range t.rows {
		texts = append(texts, t.text(r.cells, widths))
	}
	return texts
}

func (t *table) text(cells []string, widths []int) string {
	var b strings.Builder
	for i, w := range widths {
		cell := ansi.Truncate(cells[i], w, "…")
		pad := strings.Repeat(" ", w-ansi.StringWidth(cell))
		if strings.HasPrefix(t.head[i], ">") {
			cell = pad + cell
		} else if i < len(widths)-1 {
			cell += pad
		}
		if i > 0 {
			b.WriteString(strings.Repeat(" ", columnGap))
		}
		b.WriteString(cell)
	}
	return b.String()
}

// section is a part of the overview.
type section struct {
	heading string
	lines   []line
}

// fit leaves out lines of the longest sections until all have room, and says how many.
func fit(sections []section, room int) (lines []line) {
	shown := make([]int, len(sections))
	total := 0
	for i := range sections {
		shown[i] = len(sections[i].lines)
		total += shown[i] + 2 // the heading, and a line between two sections
	}
	for total--; total > room && slices.Max(shown) > 1; total-- {
		shown[slices.Index(shown, slices.Max(shown))]--
	}
	for i, s := range sections {
		if i > 0 {
			lines = append(lines, line{})
		}
		heading := s.heading
		if left := len(s.lines) - shown[i]; left > 0 {
			heading += fmt.Sprintf(" (%d more)", left)
		}
		lines = append(append(lines, line{heading, strong}), s.lines[:shown[i]]...)
	}
	return lines
}

// tableSection is a section with a table.
func tableSection(heading, none string, t table, width int) section {
	if len(t.rows) == 0 {
		return section{heading, []line{{none, faint}}}
	}
	s := section{heading: heading}
	for i, text := range t.align(width) {
		look := faint
		if i > 0 {
			look = t.rows[i-1].look
		}
		s.lines = append(s.lines, line{text, look})
	}
	return s
}

// overviewSections are the parts of the overview, the width of a terminal or more wide.
func overviewSections(s *Snapshot, width int) []section {
	alive, hour := 0, httpapi.ActivityEnds{}
	for i := range s.Workers {
		if s.Workers[i].Alive {
			alive++
		}
	}
	for i := range s.Functions {
		hour.Succeeded, hour.Failed = hour.Succeeded+s.Functions[i].Succeeded, hour.Failed+s.Functions[i].Failed
	}
	tiles := []line{
		{text: fmt.Sprintf("waiting %d   running %d   later %d   blocked %d", s.Total.Ready, s.Total.Claimed,
			s.Total.Delayed, s.Total.Blocked)},
		{text: fmt.Sprintf("workers %d   slots free %d of %d   last hour: done %d, failed %d", alive, s.Free, s.Slots,
			hour.Succeeded, hour.Failed)},
	}
	queues := table{head: []string{"QUEUE", ">WAITING", ">RUNNING", ">LATER", ">BLOCKED", ">DONE", ">FAILED"}}
	for i := range s.Queues {
		q := &s.Queues[i]
		r := row{cells: []string{q.Queue}}
		for _, n := range []int64{q.Ready, q.Claimed, q.Delayed, q.Blocked, q.Realized, q.States.Failed} {
			r.cells = append(r.cells, strconv.FormatInt(n, 10))
		}
		queues.add(r)
	}
	failed := futureTable(s.Failed, s.At, width)
	return []section{
		{"Now", tiles}, {"What is wrong", wrongLines(s)},
		tableSection("Queues", "There are no futures.", queues, width),
		tableSection("Failed lately", "No future has failed.", failed, width),
	}
}

func wrongLines(s *Snapshot) (lines []line) {
	for _, p := range s.Wrong {
		look := caution
		if p.Severity == bad {
			look = alarm
		}
		lines = append(lines, line{fmt.Sprintf("[%s] %s", p.Severity, p.Text), look})
	}
	if lines == nil {
		lines = []line{{text: "Nothing."}}
	}
	return lines
}

func problemLines(s *Snapshot) (lines []string) {
	for _, l := range wrongLines(s) {
		lines = append(lines, l.text)
	}
	return lines
}
