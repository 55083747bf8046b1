package main

import (
	"io"
	"os"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen shows what is written to a terminal, which would else obey it: results
// and names come from others. It replaces by spaces what is neither text nor the
// end of a line nor a tab.
type screen struct {
	to   io.Writer
	file *os.File

	mu   sync.Mutex
	rest []byte // the beginning of a character whose end is still to come
}

// guarded returns a screen for a terminal, and any other writer as it is.
func guarded(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &screen{to: f, file: f}
	}
	return w
}

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := append(s.rest, p...)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				whole = at
			}
			break
		}
	}
	s.rest = append([]byte(nil), text[whole:]...)
	_, err := io.WriteString(s.to, shown(string(text[:whole])))
	return len(p), err
}
