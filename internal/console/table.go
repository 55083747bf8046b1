package console

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// Aligned writes rows as they are. The further lines of a cell stay in its column, and the
// first cell is one line, so that a name or a message that comes from others can't pass for a row. No line
// ends with spaces.
func Aligned(w io.Writer, rows [][]string) error {
	var padded, lines strings.Builder // neither fails
	t := tabwriter.NewWriter(&padded, 0, 4, cellGap, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			next := "\n" + strings.Repeat("\t", i)
			if i == 0 && len(row) > 1 {
				next = " "
			}
			row[i] = strings.ReplaceAll(Printable(cell), "\n", next)
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush()
	for line := range strings.Lines(padded.String()) {
		lines.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	_, err := io.WriteString(w, lines.String())
	return err
}

// Table writes rows as the terminal behind w has room for. What is piped is whole.
func Table(w io.Writer, rows [][]string) error { return Aligned(w, fit(rows, Width(w), time.Now())) }

// Lines are rows as there is room for in a width, one line for each unless a cell has more.
func Lines(rows [][]string, width int) string {
	var b strings.Builder
	_ = Aligned(&b, fit(rows, width, time.Now())) // a builder does not fail
	return b.String()
}

// Unbounded is the width of what does not go to a terminal.
const Unbounded = math.MaxInt

// Width is how many columns of characters a writer has.
func Width(w io.Writer) int {
	f := Terminal(w)
	if f == nil {
		return Unbounded
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 20 {
		return width
	}
	return 80
}

const (
	cellGap = 2 // between two columns
	// LeastColumn is what is left of a column at least, before columns are left out.
	LeastColumn = 10
	// firstColumn is what is left of the first column at least, with room for an id.
	firstColumn = 40
)

// fit shortens the cells of a list of three columns or more, so that its rows fit into a
// width: first the times, then the widest columns. The first, which names the row, is cut only
// above half of the width: a long name must not push out what is said of all rows.
// Where that does not do, it leaves out columns from the right. Tables of names and values
// stay as they are: a terminal breaks their lines.
func fit(rows [][]string, width int, now time.Time) [][]string {
	if len(rows) == 0 || len(rows[0]) < 3 || totalWidth(columnWidths(rows)) <= width {
		return rows
	}
	rows = slices.Clone(rows)
	for i, row := range rows {
		rows[i] = slices.Clone(row)
		for n, cell := range row {
			rows[i][n] = briefTime(cell, now)
		}
	}
	widths := columnWidths(rows)
	widths[0] = min(widths[0], max(firstColumn, width/2))
	for len(widths) > 1 && leastWidth(widths) > width {
		widths = widths[:len(widths)-1]
	}
	for len(widths) > 1 && totalWidth(widths) > width {
		others := widths[1:]
		others[slices.Index(others, slices.Max(others))]--
	}
	for i, row := range rows {
		if len(row) < 2 {
			continue // a remark below the list
		}
		row = row[:min(len(row), len(widths))]
		for n := range row {
			row[n] = Cut(row[n], widths[n])
		}
		rows[i] = row
	}
	return rows
}

func columnWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		if len(row) < 2 {
			continue
		}
		for i, cell := range row[:min(len(row), len(widths))] {
			for line := range strings.Lines(cell) {
				widths[i] = max(widths[i], utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
			}
		}
	}
	return widths
}

// leastWidth is what columns take that are shortened as far as they may be.
func leastWidth(widths []int) int {
	total := widths[0]
	for _, w := range widths[1:] {
		total += cellGap + min(w, LeastColumn)
	}
	return total
}

func totalWidth(widths []int) int {
	total := cellGap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	return total
}

// briefTime is a time without its date if that is today's, else without its seconds. Other
// cells stay as they are.
func briefTime(cell string, now time.Time) string {
	at, err := time.Parse(time.RFC3339, cell)
	switch {
	case err != nil:
		return cell
	case at.UTC().Format(time.DateOnly) == now.UTC().Format(time.DateOnly):
		return at.UTC().Format("15:04:05Z")
	case at.Year() == now.Year():
		return at.UTC().Format("Jan _2 15:04Z")
	}
	return at.UTC().Format("2006-01-02")
}
