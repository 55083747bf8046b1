// Package summary counts what a Go source file consists of.
package summary

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Summary is what a source file consists of.
type Summary struct {
	Bytes     int    `json:"bytes"`
	Lines     int    `json:"lines"`
	Blank     int    `json:"blank"`     // lines of white space only, outside of raw strings
	Comments  int    `json:"comments"`  // lines that hold a comment and nothing else
	Words     int    `json:"words"`     // runs of anything but white space
	Functions int    `json:"functions"` // declarations at the beginning of a line
	SHA256    string `json:"sha256"`    // of all bytes, in hex
}

// Of summarizes a source file. The same bytes give the same summary everywhere.
// Input that is not Go is counted as well as it goes.
func Of(source []byte) Summary {
	digest := sha256.Sum256(source)
	s := Summary{
		Bytes:  len(source),
		Words:  len(bytes.Fields(source)),
		SHA256: hex.EncodeToString(digest[:]),
	}
	in := code
	for rest := source; len(rest) > 0; {
		line := rest
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			line = rest[:end]
			rest = rest[end+1:]
		} else {
			rest = nil
		}
		s.Lines++
		if in == code && bytes.HasPrefix(line, []byte("func ")) {
			s.Functions++
		}
		var seen contents
		seen, in = scan(line, in)
		switch seen {
		case nothing:
			s.Blank++
		case comment:
			s.Comments++
		}
	}
	return s
}

// JSON returns the summary as one line of JSON without the end of the line.
func (s Summary) JSON() []byte {
	out := []byte("{")
	for i, field := range []struct {
		name  string
		value int
	}{
		{"bytes", s.Bytes}, {"lines", s.Lines}, {"blank", s.Blank}, {"comments", s.Comments},
		{"words", s.Words}, {"functions", s.Functions},
	} {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendQuote(out, field.name)
		out = append(out, ':')
		out = strconv.AppendInt(out, int64(field.value), 10)
	}
	out = append(out, `,"sha256":`...)
	out = strconv.AppendQuote(out, s.SHA256)
	return append(out, '}')
}

// state is what the beginning of a line is part of.
type state int

const (
	code state = iota
	blockComment
	rawString
)

// contents is what a line holds.
type contents int

const (
	nothing contents = iota
	comment
	other
)

// scan looks through one line that begins within in, and returns what the next
// line begins within.
func scan(line []byte, in state) (seen contents, next state) {
	if in == rawString {
		seen = other
	}
	for i := 0; i < len(line); i++ {
		switch rest := line[i:]; {
		case in == blockComment:
			end := bytes.Index(rest, []byte("*/"))
			if len(bytes.TrimSpace(rest)) > 0 {
				seen = max(seen, comment)
			}
			if end < 0 {
				return seen, blockComment
			}
			in, i = code, i+end+1
		case in == rawString:
			end := bytes.IndexByte(rest, '`')
			if end < 0 {
				return other, rawString
			}
			in, i = code, i+end
		case bytes.HasPrefix(rest, []byte("//")):
			return max(seen, comment), code
		case bytes.HasPrefix(rest, []byte("/*")):
			seen, in, i = max(seen, comment), blockComment, i+1
		case rest[0] == '`':
			seen, in = other, rawString
		case rest[0] == '"' || rest[0] == '\'':
			seen, i = other, i+quoted(rest)
		case rest[0] != ' ' && rest[0] != '\t' && rest[0] != '\r':
			seen = other
		}
	}
	return seen, in
}

// quoted returns the index of the quote that ends the literal at the start of
// rest, or the last index if there is none.
func quoted(rest []byte) int {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			return i
		}
	}
	return len(rest) - 1
}
