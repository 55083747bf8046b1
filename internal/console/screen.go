package console

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

// Guard returns a writer to a terminal that shows what it is given, and any other writer as
// it is.
func Guard(w io.Writer) io.Writer {
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

// Output remembers the first error of a write: a command that printed half of its results did
// not succeed.
type Output struct {
	io.Writer
	Err error
}

// Write implements io.Writer.
func (o *Output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err != nil && o.Err == nil {
		o.Err = err
	}
	return n, err
}

// Terminal returns the terminal that a writer of Guard writes to, also behind an Output, or nil.
func Terminal(w io.Writer) *os.File {
	if o, ok := w.(*Output); ok {
		w = o.Writer
	}
	if s, ok := w.(*screen); ok {
		return s.file
	}
	return nil
}

// Interactive returns the terminal that a command reads keys from, and the one that it draws on.
// Both are nil unless there are both, and TERM does not say that it can't draw.
func Interactive(in io.Reader, out io.Writer) (keys, screen *os.File) {
	keys, ok := in.(*os.File)
	screen = Terminal(out)
	kind := os.Getenv("TERM")
	if !ok || screen == nil || kind == "" || kind == "dumb" || !term.IsTerminal(int(keys.Fd())) {
		return nil, nil
	}
	return keys, screen
}
