package top

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
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

// Model is the state of the terminal. Update and View don't block: commands read, until ctx ends.
type Model struct {
	ctx   context.Context
	read  func(context.Context, Query) (*Snapshot, error)
	tell  func(context.Context, futures.ID) ([]string, error)
	every time.Duration

	width, height int
	query         Query
	view, at      int    // the row that is selected,
	key           string // and what it is about
	filter        string
	typing        bool
	paused, help  bool
	detail        string   // the future that is shown over the view, empty for none
	lines         []string // what is said of it
	scroll        int
	asking        bool

	snapshot       *Snapshot // nil before the first
	err            error     // of the last reading
	reading, again bool      // again: something else is wanted than what is being read
	turn           int       // numbers the waits for the next reading
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
	}
	turnMsg int
)

// Run shows a cluster on a terminal until q or Ctrl-C is pressed there or ctx ends, and returns nil
// then. It reads again every so often.
func Run(ctx context.Context, in, out *os.File, r *Reader, every time.Duration) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	m := &Model{ctx: reading, read: r.Read, tell: r.Future, every: every}
	program := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	// A program that is quit waits for its reader of the terminal; one whose context ends closes it meanwhile.
	quit := context.AfterFunc(ctx, program.Quit)
	defer quit()
	_, err := program.Run()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return m.look() }

// look reads a snapshot, now or after what is being read.
func (m *Model) look() tea.Cmd {
	m.turn++
	if m.again = m.reading; m.reading {
		return nil
	}
	m.reading = true
	query := m.query
	return func() tea.Msg {
		start := time.Now()
		s, err := m.read(m.ctx, query)
		return snapshotMsg{query, s, err, time.Since(start)}
	}
}

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case snapshotMsg:
		return m, m.got(&msg)
	case futureMsg:
		m.asking = false
		if m.detail == msg.key {
			m.lines = msg.lines
		}
	case turnMsg:
		if int(msg) == m.turn && !m.paused {
			return m, m.look()
		}
	case tea.KeyPressMsg:
		return m, m.press(msg.String(), msg.Text)
	}
	return m, nil
}

// got takes a snapshot over, and waits for the next one: reading takes a fifth of the time at most.
func (m *Model) got(msg *snapshotMsg) tea.Cmd {
	m.reading = false
	wait := m.every
	if m.err = msg.err; m.err == nil {
		wait = max(wait, 4*msg.took)
		if m.snapshot != nil && msg.query != m.query {
			msg.snapshot.futures = m.snapshot.futures
		}
		m.snapshot = msg.snapshot
		m.follow()
	}
	if m.again {
		return m.look()
	}
	turn := m.turn
	next := tea.Tick(wait, func(time.Time) tea.Msg { return turnMsg(turn) })
	if m.detail != "" && !m.asking {
		return tea.Batch(next, m.ask())
	}
	return next
}

// follow has the selection stay with what it is about.
func (m *Model) follow() {
	if i := slices.IndexFunc(m.rows(), func(r row) bool { return r.key == m.key }); i >= 0 {
		m.at = i
	}
	m.move(0)
}

// move moves the selection, or what is shown of a future.
func (m *Model) move(by int) {
	if m.detail != "" {
		m.scroll = max(0, m.scroll+by) // View bounds it
		return
	}
	rows := m.rows()
	if m.at = max(0, min(m.at+by, len(rows)-1)); m.at < len(rows) {
		m.key = rows[m.at].key
	}
}

// press does what a key says.
func (m *Model) press(key, text string) tea.Cmd {
	page := max(1, m.height-6)
	switch {
	case key == "ctrl+c" || key == "q" && !m.typing:
		return tea.Quit
	case key == "ctrl+z":
		return tea.Suspend
	case m.typing:
		m.typed(key, text)
		return nil
	case m.help || key == "?":
		m.help = !m.help
		return nil
	}
	switch key {
	case "j", "down":
		m.move(1)
	case "k", "up":
		m.move(-1)
	case "pgdown", "space":
		m.move(page)
	case "pgup":
		m.move(-page)
	case "1", "2", "3", "4":
		return m.show(int(key[0]-'1'), m.query.State)
	case "tab", "right":
		return m.show((m.view+1)%views, m.query.State)
	case "shift+tab", "left":
		return m.show((m.view+views-1)%views, m.query.State)
	case "s":
		return m.show(futureView, (m.query.State+1)%layout.State(len(layout.States())+1))
	case "p":
		if m.paused = !m.paused; !m.paused {
			return m.look()
		}
	case "esc":
		if m.detail == "" {
			m.filter = ""
		}
		m.detail = ""
		m.follow()
	case "/":
		m.typing, m.detail = m.view != overview, ""
		m.follow() // the list went on below
	case "enter":
		return m.open()
	}
	return nil
}

// show shows a view, that of futures with those of a state.
func (m *Model) show(view int, state layout.State) tea.Cmd {
	if m.snapshot != nil && state != m.query.State {
		m.snapshot.futures = nil
	}
	if view != m.view {
		m.at, m.key, m.filter = 0, "", ""
	}
	m.view, m.detail, m.query = view, "", Query{view == futureView, state}
	m.follow()
	if m.query.List {
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

// open shows more of the future that is selected.
func (m *Model) open() tea.Cmd {
	rows := m.rows()
	if m.view != futureView || m.detail != "" || m.at >= len(rows) {
		return nil
	}
	m.detail, m.lines, m.scroll = rows[m.at].key, []string{"reading ..."}, 0
	return m.ask()
}

// ask asks what there is to say of the future that is shown.
func (m *Model) ask() tea.Cmd {
	key := m.detail
	m.asking = true
	return func() tea.Msg {
		id, err := futures.ParseID(key)
		var lines []string
		if err == nil {
			lines, err = m.tell(m.ctx, id)
		}
		if err != nil {
			lines = []string{"[error] " + err.Error()}
		}
		return futureMsg{key, lines}
	}
}

// rows are those of the view that have the text of the filter.
func (m *Model) rows() []row {
	table := m.table()
	return slices.DeleteFunc(table[min(1, len(table)):], func(r row) bool {
		text := r.key + " " + strings.Join(r.cells, " ")
		return m.filter != "" && !strings.Contains(strings.ToLower(text), strings.ToLower(m.filter))
	})
}

// status is what can't be read, or what filters.
func (m *Model) status() line {
	switch {
	case m.err != nil && m.snapshot != nil:
		return line{fmt.Sprintf("[error] nothing new since %s: %v", m.snapshot.At.Format(time.TimeOnly), m.err), alarm}
	case m.err != nil:
		return line{"[error] " + m.err.Error(), alarm}
	case m.typing:
		return line{"filter: " + m.filter + "_", strong}
	case m.filter != "":
		return line{"filter: " + m.filter + "   (esc ends it)", strong}
	}
	return line{}
}
