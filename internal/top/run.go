// Package top shows a cluster in a terminal, live: what it does and what is wrong with it. What it
// shows comes from others; no control character of it reaches the terminal.
package top

import (
	"context"
	"math"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Run shows what a reader reads on a terminal until q or Ctrl-C is pressed there or ctx ends, and
// returns nil then. It reads again every so often. Lines that are written to notes are shown.
func Run(ctx context.Context, in, out *os.File, r *Reader, notes *Notes, every time.Duration) error {
	reading, stop := context.WithCancel(ctx)
	m := &Model{ctx: reading, read: r.Read, tell: r.Future, notes: notes, every: every}
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithoutSignalHandler()).Run()
	stop()
	m.cmds.close()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Text is what the overview shows, in plain lines that end with an empty one.
func Text(s *Snapshot, width int) string {
	text := s.At.Format(time.RFC3339) + "  cluster " + clean(s.Cluster) + "\n"
	for _, l := range fit(overviewSections(s, width), math.MaxInt) {
		text += clean(l.text) + "\n"
	}
	return text + "\n"
}
