package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/console"
)

// line is a line of the screen. Its text is shown, not obeyed: clean makes it so.
type line struct {
	text string
	look look
}

// look is how a line is coloured. What it stands for is in the text as well.
type look int

const (
	plain look = iota
	strong
	faint
	alarm
	caution
	selected
)

func (l look) style() lipgloss.Style {
	style := lipgloss.NewStyle()
	switch l {
	case strong:
		return style.Bold(true)
	case faint:
		return style.Faint(true)
	case alarm:
		return style.Foreground(lipgloss.Red).Bold(true)
	case caution:
		return style.Foreground(lipgloss.Yellow)
	case selected:
		return style.Reverse(true)
	default:
		return style
	}
}

const maxText = 4 << 10 // bytes of a text that are looked at

// clean makes one line of printable characters of a text that comes from others.
func clean(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return strings.ReplaceAll(console.Printable(s), "\n", " ")
}

// View implements tea.Model.
func (m *Model) View() tea.View {
	view := tea.NewView("")
	view.AltScreen = true
	if m.width <= 0 || m.height <= 0 {
		return view
	}
	shown := make([]string, 0, m.height)
	for _, l := range m.screen() {
		shown = append(shown, l.look.style().Render(ansi.Truncate(clean(l.text), m.width, "…")))
	}
	view.Content = strings.Join(shown[:min(len(shown), m.height)], "\n")
	return view
}

// screen are as many lines as the terminal has, or fewer.
func (m *Model) screen() []line {
	head := "futura top"
	if s := m.snapshot; s != nil {
		head = fmt.Sprintf("futura top  cluster %s  %s  every %v", s.Cluster, s.At.Format("15:04:05Z"), m.every)
	}
	if m.paused {
		head += "  [paused]"
	}
	lines := []line{{head, strong}, {m.tabs(), plain}, {}}
	room := max(1, m.height-len(lines)-2)
	body := m.body(room)
	body = body[:min(len(body), room)]
	lines = append(lines, body...)
	for range room - len(body) {
		lines = append(lines, line{})
	}
	look := caution
	if m.err != nil {
		look = alarm
	}
	return append(lines, line{m.status(), look},
		line{"1-4 view  j/k move  enter more  / filter  s state  p pause  ? help  q quit", faint})
}

func (m *Model) tabs() string {
	text := ""
	for i, name := range []string{"overview", "workers", "functions", "futures"} {
		if i == m.view {
			name = "[" + name + "]"
		}
		text += fmt.Sprintf("%d %s  ", i+1, name)
	}
	if m.view == futureView && m.state != 0 {
		text += " only " + m.state.String()
	}
	return text
}

func (m *Model) body(room int) []line {
	switch {
	case m.help:
		return helpLines()
	case m.detail != nil:
		return m.detailLines(room)
	case m.snapshot == nil:
		return []line{{"reading ...", faint}}
	case m.view == overview:
		return fit(overviewSections(m.snapshot, m.width), room)
	}
	return m.tableLines(room)
}

func (m *Model) detailLines(room int) []line {
	var all []line
	for _, text := range m.detail.lines {
		for part := range strings.SplitSeq(ansi.Wrap(clean(text), m.width, ""), "\n") {
			all = append(all, line{text: part})
		}
	}
	all = append([]line{{m.detail.key, strong}}, all...)
	m.detail.top = max(0, min(m.detail.top, len(all)-room))
	return all[m.detail.top:]
}

func (m *Model) tableLines(room int) []line {
	t := m.table()
	if len(t.rows) == 0 {
		return []line{{"nothing", faint}}
	}
	texts := t.align(m.width - 2)
	lines := []line{{"  " + texts[0], strong}}
	at := min(m.at[m.view], len(t.rows)-1)
	from := max(0, min(at-room/2, len(t.rows)-room+1))
	for i := from; i < len(t.rows) && len(lines) < room; i++ {
		if i == at {
			lines = append(lines, line{"> " + texts[i+1], selected})
			continue
		}
		lines = append(lines, line{"  " + texts[i+1], t.rows[i].look})
	}
	return lines
}

// table is the table of the view.
func (m *Model) table() table {
	s, t := m.snapshot, table{}
	if s == nil {
		return t
	}
	switch m.view {
	case workerView:
		t = workerTable(s)
	case functionView:
		t = functionTable(s.Functions)
	case futureView:
		t = futureTable(s.futures, s.At, m.width)
	}
	kept := t.rows[:0:0]
	for i := range t.rows {
		if m.matches(&t.rows[i]) {
			kept = append(kept, t.rows[i])
		}
	}
	t.rows = kept
	return t
}

func workerTable(s *Snapshot) table {
	t := table{head: []string{"STATE", "WORKER", ">SLOTS", ">HEARTBEAT", "QUEUES", "FUNCTIONS"}}
	for i := range s.Workers {
		w := &s.Workers[i]
		queues, functions := strings.Join(w.Queues, ","), strings.Join(w.Functions, ",")
		beat, running := brief(s.At.Sub(w.BeatAt))+" ago", fmt.Sprintf("%d of %d", w.Capacity.Slots-w.Free.Slots, w.Capacity.Slots)
		t.add(row{key: string(w.ID), look: map[string]look{"dead": alarm, "draining": caution}[stateOf(w)],
			cells: []string{stateOf(w), nameOf(w), running, beat, queues, functions},
			more: []string{"worker    " + nameOf(w), "state     " + stateOf(w), "slots     " + running + " in use",
				fmt.Sprintf("running   %d, of which %d await other futures", w.Running, w.Awaiting), "heartbeat " + beat,
				"started   " + w.StartedAt.Format(time.RFC3339), "version   " + w.Version, "queues    " + queues,
				"functions " + functions}})
	}
	return t
}

func functionTable(functions []httpapi.ActivityFunction) table {
	t := table{head: []string{"FUNCTION", "QUEUE", ">DONE", ">ERRORS", ">FAILED", ">RUN", ">99%", ">WAIT", ">99%"}}
	for i := range functions {
		f := &functions[i]
		r := row{key: f.Function + " " + f.Queue, cells: []string{short(f.Function), f.Queue}}
		for _, n := range []int64{f.Succeeded, f.FailedAttempts, f.Failed} {
			r.cells = append(r.cells, fmt.Sprint(n))
		}
		for _, ms := range []float64{f.RunP50MS, f.RunP99MS, f.WaitP50MS, f.WaitP99MS} {
			text := "-"
			if ms > 0 {
				text = brief(time.Duration(ms * float64(time.Millisecond)))
			}
			r.cells = append(r.cells, text)
		}
		if f.Failed > 0 {
			r.look = alarm
		} else if f.FailedAttempts > 0 {
			r.look = caution
		}
		r.more = []string{"function  " + f.Function, "queue     " + f.Queue, "", "in the last hour:",
			fmt.Sprintf("done %d, failed attempts %d, failed for good %d", f.Succeeded, f.FailedAttempts, f.Failed),
			fmt.Sprintf("half of the attempts ran %s or less, 99 %% %s", r.cells[5], r.cells[6]),
			fmt.Sprintf("half of them had waited %s or less, 99 %% %s", r.cells[7], r.cells[8])}
		t.add(r)
	}
	return t
}

// wide is the width of a terminal that has room for whole ids.
const wide = 120

func futureTable(list []httpapi.Future, now time.Time, width int) table {
	t := table{head: []string{"STATE", "FUTURE", ">TRY", ">AGE", "FUNCTION", "ERROR"}}
	for i := range list {
		f := &list[i]
		id := f.ID.String()
		if width < wide {
			id = "…" + id[len(id)-12:] // the end tells those of one moment apart
		}
		r := row{key: f.ID.String(), cells: []string{string(f.State), id, fmt.Sprint(f.Attempt),
			brief(now.Sub(f.SubmittedAt)), short(f.Function), errorOf(f)}}
		if f.State == httpapi.State(layout.Failed.String()) {
			r.look = alarm
		}
		t.add(r)
	}
	return t
}

func errorOf(f *httpapi.Future) string {
	if f.Failure == nil {
		return ""
	}
	return string(f.Failure.Kind) + after(f.Failure.Message)
}

func helpLines() (lines []line) {
	for text := range strings.SplitSeq(`1 2 3 4        overview, workers, functions of the last hour, newest futures
tab, h l, < >  the next view, the one before
j k, arrows    move; pgup pgdn, g G: a page, to the ends
enter          more of what is selected: why a future is not running, its error
esc            back; ends a filter
/              show only rows with a text
s              futures: those of one state, of the next one, of all
p              pause reading, go on
q, Ctrl-C      quit

[bad] is to be looked at, [warn] may be meant to be so. RUN and WAIT are how long
half of the attempts took at most, the column behind each what 99 of 100 took.`, "\n") {
		lines = append(lines, line{text: text})
	}
	return lines
}
