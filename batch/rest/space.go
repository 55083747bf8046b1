package rest

import "io"

// longSpace is how much space between two tokens of JSON is let through.
const longSpace = 4096

// spaceReader leaves out what is more than longSpace of space between the tokens
// of JSON: a decoder looks at all of it again with each read.
type spaceReader struct {
	from    io.Reader
	inText  bool
	escaped bool
	run     int
}

// Read implements io.Reader.
func (s *spaceReader) Read(p []byte) (int, error) {
	for {
		n, err := s.from.Read(p)
		kept := 0
		for _, c := range p[:n] {
			if s.keep(c) {
				p[kept] = c
				kept++
			}
		}
		if kept > 0 || err != nil || len(p) == 0 {
			return kept, err
		}
	}
}

func (s *spaceReader) keep(c byte) bool {
	switch {
	case s.escaped:
		s.escaped = false
	case s.inText && c == '\\':
		s.escaped = true
	case c == '"':
		s.inText = !s.inText
	case !s.inText && (c == ' ' || c == '\n' || c == '\t' || c == '\r'):
		s.run++
		return s.run <= longSpace
	}
	s.run = 0
	return true
}
