package top

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/console"
	"github.com/futura-run/futura/internal/wording"
)

// line is a line of the screen.
type line struct {
	text string
	look look
}

// row is a row of a table, about what key names.
type row struct {
	key   string
	cells []string
	look  look
}

// look is how a line is coloured. What it stands for is in the text as well.
type look int

const (
	plain look = iota
	strong
	alarm
	caution
	selected
)

// render returns a line that fits a width. What its text has of others is shown, not obeyed.
func (l line) render(width int) string {
	style := lipgloss.NewStyle()
	switch l.look {
	case strong:
		style = style.Bold(true)
	case alarm:
		style = style.Foreground(lipgloss.Red).Bold(true)
	case caution:
		style = style.Foreground(lipgloss.Yellow)
	case selected:
		style = style.Reverse(true)
	}
	return style.Render(ansi.Truncate(clean(l.text), width, "…"))
}

const (
	maxText = 4 << 10 // bytes of a text that are looked at
	maxCell = 200     // characters
)

// clean makes one line of printable characters of a text.
func clean(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return strings.ReplaceAll(console.Printable(s), "\n", " ")
}

// View implements tea.Model.
func (m *Model) View() tea.View {
	shown := []string{}
	for i, l := range m.screen() {
		if i < m.height {
			shown = append(shown, l.render(m.width))
		}
	}
	view := tea.NewView(strings.Join(shown, "\n"))
	view.AltScreen = true
	return view
}

// screen are the lines of a screen.
func (m *Model) screen() []line {
	head, tabs := "futura top", ""
	if s := m.snapshot; s != nil {
		head += fmt.Sprintf("  cluster %s  %s  every %v", s.Cluster, s.At.Format("15:04:05Z"), m.every)
	}
	if m.paused {
		head += "  [paused]"
	}
	for i, name := range []string{"overview", "workers", "functions", "futures"} {
		if i == m.view {
			name = "[" + name + "]"
		}
		tabs += fmt.Sprintf("%d %s  ", i+1, name)
	}
	if m.query.List && m.query.State != 0 {
		tabs += " only " + m.query.State.String()
	}
	room := max(1, m.height-5)
	body := m.body(room)
	body = append(body, make([]line, max(0, room-len(body)))...)
	return slices.Concat([]line{{head, strong}, {text: tabs}, {}}, body[:room], []line{m.status(),
		{text: "1-4 view  j/k move  enter more  / filter  s state  p pause  ? help  q quit"}})
}

func (m *Model) body(room int) (lines []line) {
	switch {
	case m.help:
		return linesOf(helpText)
	case m.detail != "":
		texts := []string{m.detail}
		for _, text := range m.lines {
			texts = append(texts, ansi.Wrap(clean(text), m.width, ""))
		}
		lines = linesOf(strings.Join(texts, "\n"))
		m.scroll = max(0, min(m.scroll, len(lines)-room))
		return lines[m.scroll:]
	case m.snapshot == nil:
		return linesOf("reading ...")
	case m.view == overview:
		return fit(sections(m.snapshot, m.width), room)
	}
	rows := m.rows()
	if len(rows) == 0 {
		return linesOf("nothing")
	}
	lines = aligned(append(m.table()[:1], rows...), m.width-2)
	for i := range lines {
		lines[i].text = "  " + lines[i].text
	}
	lines[m.at+1] = line{">" + lines[m.at+1].text[1:], selected}
	from := max(0, min(m.at+1-room/2, len(lines)-room))
	return append(lines[:1], lines[1+from:]...)
}

func linesOf(text string) (lines []line) {
	for part := range strings.SplitSeq(text, "\n") {
		lines = append(lines, line{text: part})
	}
	return lines
}

// aligned are the rows of a table, whose first is its heading, as lines of a width.
func aligned(rows []row, width int) []line {
	cells := make([][]string, len(rows))
	for i, r := range rows {
		for _, cell := range r.cells {
			cells[i] = append(cells[i], console.Cut(clean(cell), maxCell))
		}
	}
	lines := linesOf(console.Lines(cells, width))[:len(rows)]
	for i := range lines {
		lines[i].look = rows[i].look
	}
	return lines
}

// table is the table of the view, its heading first.
func (m *Model) table() []row {
	switch s := m.snapshot; {
	case s == nil:
		return nil
	case m.view == workerView:
		return workerTable(s, m.width)
	case m.view == functionView:
		return functionTable(s, m.width)
	case m.view == futureView:
		return futureTable(s.futures, s.At, m.width)
	}
	return nil
}

func workerTable(s *Snapshot, width int) []row {
	rows := []row{{cells: []string{"WORKER", "STATE", "SLOTS", "HEARTBEAT", "QUEUES", "FUNCTIONS"}, look: strong}}
	for i := range s.Workers {
		w := &s.Workers[i]
		look := map[string]look{"dead": alarm, "draining": caution}[w.State()]
		rows = append(rows, row{string(w.ID), []string{first(w.Called(), width), w.State(),
			fmt.Sprintf("%d of %d", w.Capacity.Slots-w.Free.Slots, w.Capacity.Slots), wording.Brief(s.At.Sub(w.BeatAt)) + " ago",
			strings.Join(w.Queues, ","), strings.Join(w.Functions, ",")}, look})
	}
	return rows
}

func functionTable(s *Snapshot, width int) []row {
	rows := []row{{look: strong,
		cells: []string{"FUNCTION", "QUEUE", "DONE", "ERRORS", "FAILED", "RUN", "99%", "WAIT", "99%"}}}
	for i := range s.Functions {
		f := &s.Functions[i]
		r := row{key: f.Function + " " + f.Queue, cells: append([]string{first(wording.Function(f.Function), width), f.Queue},
			numbers(f.Succeeded, f.FailedAttempts, f.Failed)...)}
		for _, ms := range []float64{f.RunP50MS, f.RunP99MS, f.WaitP50MS, f.WaitP99MS} {
			r.cells = append(r.cells, wording.Brief(time.Duration(ms*float64(time.Millisecond))))
		}
		switch {
		case f.Failed > 0:
			r.look = alarm
		case f.FailedAttempts > 0:
			r.look = caution
		}
		rows = append(rows, r)
	}
	return rows
}

// wide is the width of a terminal that has room for whole ids.
const wide = 120

func futureTable(list []httpapi.Future, now time.Time, width int) []row {
	rows := []row{{cells: []string{"FUTURE", "STATE", "TRY", "AGE", "FUNCTION", "ERROR"}, look: strong}}
	for i := range list {
		f := &list[i]
		key, text := f.ID.String(), ""
		if f.Failure != nil {
			text = string(f.Failure.Kind) + wording.Because(f.Failure.Message[:min(len(f.Failure.Message), 4*maxCell)])
		}
		r := row{key: key, cells: []string{key, string(f.State), strconv.Itoa(f.Attempt),
			wording.Brief(now.Sub(f.SubmittedAt)), wording.Function(f.Function), text}}
		if width < wide {
			r.cells[0] = "…" + key[len(key)-12:] // the end tells those of one moment apart
		}
		if string(f.State) == layout.Failed.String() {
			r.look = alarm
		}
		rows = append(rows, r)
	}
	return rows
}

// first is the cell of the first column, which would else leave the others no room.
func first(name string, width int) string { return console.Cut(clean(name), max(20, width-60)) }

func numbers(all ...int64) (texts []string) {
	for _, n := range all {
		texts = append(texts, strconv.FormatInt(n, 10))
	}
	return texts
}

// Text is the overview in plain lines, of which the last is empty.
func Text(s *Snapshot, width int) string {
	text := s.At.Format(time.RFC3339) + "  cluster " + s.Cluster + "\n"
	for _, l := range fit(sections(s, width), math.MaxInt) {
		text += clean(l.text) + "\n"
	}
	return text + "\n"
}

// sections are the parts of the overview, each with its heading.
func sections(s *Snapshot, width int) [][]line {
	ended := httpapi.ActivityEnds{}
	for i := range s.Functions {
		ended.Succeeded, ended.Failed = ended.Succeeded+s.Functions[i].Succeeded, ended.Failed+s.Functions[i].Failed
	}
	now := linesOf(fmt.Sprintf("waiting %d   running %d   later %d   blocked %d\n"+
		"workers %d   slots free %d of %d   last hour: done %d, failed %d", s.Total.Ready, s.Total.Claimed, s.Total.Delayed,
		s.Total.Blocked, s.Alive, s.Free, s.Slots, ended.Succeeded, ended.Failed))
	wrong := []line{{"What is wrong", strong}}
	for _, p := range s.Wrong {
		look := map[string]look{httpapi.Bad: alarm, httpapi.Warn: caution}[p.Severity]
		wrong = append(wrong, line{fmt.Sprintf("[%s] %s", p.Severity, p.Text), look})
	}
	if len(wrong) == 1 {
		wrong = append(wrong, line{text: "nothing"})
	}
	titles := []string{"QUEUE", "WAITING", "OLDEST", "RUNNING", "LATER", "BLOCKED", "DONE", "FAILED"}
	queues := []row{{cells: titles, look: strong}}
	for _, q := range s.Queues {
		oldest := ""
		if q.OldestReady != nil {
			oldest = wording.Brief(s.At.Sub(*q.OldestReady))
		}
		queues = append(queues, row{cells: append([]string{first(q.Queue, width), strconv.FormatInt(q.Ready, 10), oldest},
			numbers(q.Claimed, q.Delayed, q.Blocked, q.Realized, q.Failed)...)})
	}
	parts := [][]line{now, wrong, aligned(queues, width)}
	if len(s.Failed) > 0 {
		failed := aligned(futureTable(s.Failed, s.At, width), width)
		parts = append(parts, append([]line{{"Failed lately", strong}}, failed...))
	}
	return parts
}

// fit leaves out lines of the longest parts until all have room, and says how many it left out.
func fit(parts [][]line, room int) (lines []line) {
	left := make([]int, len(parts))
	for {
		lines = nil
		longest := 0
		for i, part := range parts {
			lines = append(lines, part...)
			if left[i] > 0 {
				lines = append(lines, line{text: fmt.Sprintf("(%d more)", left[i])})
			}
			// The first parts keep more lines.
			if lines = append(lines, line{}); len(part)+2*i >= len(parts[longest])+2*longest && len(part) > 2 {
				longest = i
			}
		}
		if len(lines)-1 <= room || len(parts[longest]) <= 2 {
			return lines[:len(lines)-1]
		}
		parts[longest] = parts[longest][:len(parts[longest])-1]
		left[longest]++
	}
}

const helpText = `1 2 3 4      overview, workers, functions of the last hour, newest futures
tab, arrows  the next view, the one before
j k, arrows  move; pgup, pgdn: a page
enter        why a future is not running, and its last error; esc goes back
/            only rows with a text; esc ends it
s            futures of one state, of the next one, of all
p            stop reading, go on
q, Ctrl-C    quit

[bad] is to be looked at, [warn] may be meant to be so. RUN and WAIT are how long
half of the attempts took at most, the columns behind them what 99 of 100 took.`
