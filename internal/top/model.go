package top

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

// Views, in the order of their keys.
const (
	overview = iota
	workerView
	functionView
	futureView
	views
)

const maxFilter = 100 // bytes

// Model is the state of the terminal. Its Update and View don't block: what is read is read by
// commands, which end with ctx.
type Model struct {
	ctx   context.Context
	cmds  gate
	read  func(context.Context, Query) (*Snapshot, error)
	tell  func(context.Context, futures.ID) ([]string, error)
	notes *Notes
	every time.Duration

	width, height int
	view          int
	at            [views]int    // the row that is selected,
	key           [views]string // and what it is about
	filter        string
	typing        bool
	state         layout.State // of the futures that are listed, 0 for all
	paused, help  bool
	detail        *detail

	snapshot       *Snapshot // nil before the first
	err            error     // of the last reading
	note           string
	reading, again bool // again: what is being read is not what is wanted any more
	turn           int  // numbers the wait for the next reading
}

// detail is shown over a view.
type detail struct {
	key   string
	lines []string
	top   int
}

type (
	snapshotMsg struct {
		query    Query
		snapshot *Snapshot
		err      error
		took     time.Duration
	}
	futureMsg struct {
		key   string
		lines []string
		err   error
	}
	turnMsg int
	noteMsg string
)

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return tea.Batch(m.look(), m.listen()) }

// gate counts what runs, and lets nothing begin once it is closed.
type gate struct {
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running.Add(1)
	return true
}

// close waits for what runs.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}

// background is a command that reads.
func (m *Model) background(fn func() tea.Msg) tea.Cmd {
	return func() tea.Msg {
		if !m.cmds.enter() {
			return nil
		}
		defer m.cmds.running.Done()
		return fn()
	}
}

func (m *Model) query() Query { return Query{m.view == futureView, m.state} }

// look reads a snapshot, unless one is being read.
func (m *Model) look() tea.Cmd {
	m.turn++
	if m.reading {
		m.again = true
		return nil
	}
	m.reading = true
	query := m.query()
	return m.background(func() tea.Msg {
		start := time.Now()
		s, err := m.read(m.ctx, query)
		return snapshotMsg{query, s, err, time.Since(start)}
	})
}

func (m *Model) listen() tea.Cmd {
	return m.background(func() tea.Msg {
		select {
		case line := <-m.notes.to:
			return noteMsg(line)
		case <-m.ctx.Done():
			return nil
		}
	})
}

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case snapshotMsg:
		return m, m.got(&msg)
	case futureMsg:
		if m.detail != nil && m.detail.key == msg.key {
			if m.detail.lines = msg.lines; msg.err != nil {
				m.detail.lines = []string{msg.err.Error()}
			}
		}
	case turnMsg:
		if int(msg) == m.turn && !m.paused {
			return m, m.look()
		}
	case noteMsg:
		m.note = string(msg)
		return m, m.listen()
	case tea.KeyPressMsg:
		return m, m.press(msg.String(), msg.Text)
	}
	return m, nil
}

// got takes a snapshot over, and has the next one read after a while: reading takes at most a
// fifth of the time.
func (m *Model) got(msg *snapshotMsg) tea.Cmd {
	m.reading = false
	if m.err = msg.err; msg.err == nil {
		if m.snapshot != nil && (!msg.query.List || msg.query.State != m.state) {
			msg.snapshot.futures = m.snapshot.futures
		}
		m.snapshot, m.note = msg.snapshot, ""
		m.follow()
	}
	if m.again {
		m.again = false
		return m.look()
	}
	return m.wait(max(m.every, 4*msg.took))
}

func (m *Model) wait(d time.Duration) tea.Cmd {
	turn := m.turn
	return tea.Tick(d, func(time.Time) tea.Msg { return turnMsg(turn) })
}

// follow has the selection stay with what it is about.
func (m *Model) follow() {
	rows := m.table().rows
	if i := slices.IndexFunc(rows, func(r row) bool { return r.key == m.key[m.view] }); i >= 0 {
		m.at[m.view] = i
	}
	m.move(0)
}

// move moves the selection, or what is shown of a detail.
func (m *Model) move(by int) {
	if m.detail != nil {
		m.detail.top = max(0, m.detail.top+by) // View bounds it
		return
	}
	rows := m.table().rows
	at := max(0, min(m.at[m.view]+by, len(rows)-1))
	if m.at[m.view] = at; at < len(rows) {
		m.key[m.view] = rows[at].key
	}
}

// press does what a key says.
func (m *Model) press(key, text string) tea.Cmd {
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case key == "ctrl+z":
		return tea.Suspend
	case m.typing:
		m.typed(key, text)
		return nil
	case m.help:
		m.help = false
		return nil
	}
	switch key {
	case "q":
		return tea.Quit
	case "?":
		m.help = true
	case "p":
		if m.paused = !m.paused; !m.paused {
			return m.look()
		}
	case "esc", "backspace":
		if m.detail == nil {
			m.filter = ""
		}
		m.detail = nil
	case "enter":
		return m.open()
	case "/":
		if m.view != overview {
			m.typing, m.detail = true, nil
		}
	case "s":
		if m.view == futureView {
			m.state, m.detail = (m.state+1)%layout.State(len(layout.States())+1), nil
			if m.snapshot != nil {
				m.snapshot.futures = nil
			}
			return m.look()
		}
	default:
		return m.steer(key)
	}
	return nil
}

// steer moves within a view, or to another one.
func (m *Model) steer(key string) tea.Cmd {
	page := max(1, m.height-6)
	switch key {
	case "j", "down":
		m.move(1)
	case "k", "up":
		m.move(-1)
	case "pgdown", "space":
		m.move(page)
	case "pgup":
		m.move(-page)
	case "g", "home":
		m.move(-1 << 20)
	case "G", "end":
		m.move(1 << 20)
	case "1", "2", "3", "4":
		return m.show(int(key[0] - '1'))
	case "tab", "right", "l":
		return m.show((m.view + 1) % views)
	case "shift+tab", "left", "h":
		return m.show((m.view + views - 1) % views)
	}
	return nil
}

// show changes the view.
func (m *Model) show(view int) tea.Cmd {
	m.view, m.detail, m.filter = view, nil, ""
	m.follow()
	if view == futureView {
		return m.look()
	}
	return nil
}

// typed takes a key of a filter.
func (m *Model) typed(key, text string) {
	switch {
	case key == "enter":
		m.typing = false
	case key == "esc":
		m.typing, m.filter = false, ""
	case key == "backspace":
		_, n := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-n]
	case len(m.filter)+len(text) <= maxFilter:
		m.filter += text
	}
	m.follow()
}

// open shows more of what is selected.
func (m *Model) open() tea.Cmd {
	if m.snapshot == nil || m.detail != nil {
		return nil
	}
	if m.view == overview {
		m.detail = &detail{lines: problemLines(m.snapshot)}
		return nil
	}
	rows := m.table().rows
	if m.at[m.view] >= len(rows) {
		return nil
	}
	r := &rows[m.at[m.view]]
	m.detail = &detail{key: r.key, lines: r.more}
	if m.view != futureView {
		return nil
	}
	m.detail.lines = []string{"reading ..."}
	id, err := futures.ParseID(r.key)
	return m.background(func() tea.Msg {
		if err != nil {
			return futureMsg{key: r.key, err: err}
		}
		lines, err := m.tell(m.ctx, id)
		return futureMsg{r.key, lines, err}
	})
}

// matches reports whether a row has the text of the filter.
func (m *Model) matches(r *row) bool {
	return m.filter == "" || strings.Contains(strings.ToLower(strings.Join(r.cells, " ")+" "+r.key), strings.ToLower(m.filter))
}

// status is the last line but one: what can't be read, or what goes on.
func (m *Model) status() string {
	switch {
	case m.err != nil && m.snapshot != nil:
		return fmt.Sprintf("[error] nothing new since %s: %v", m.snapshot.At.Format(time.TimeOnly), m.err)
	case m.err != nil:
		return fmt.Sprintf("[error] %v", m.err)
	case m.note != "":
		return "[note] " + m.note
	case m.typing:
		return "filter: " + m.filter + "_"
	case m.filter != "":
		return "filter: " + m.filter + " (esc ends it)"
	}
	return ""
}
