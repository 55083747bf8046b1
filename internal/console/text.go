// Package console is what commands print with: tables that fit a terminal, and text that a
// terminal shows and does not obey, since names and results come from others.
package console

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable replaces by spaces what a terminal would obey rather than show, apart
// from the ends of lines.
func Printable(s string) string { return strings.ReplaceAll(shown(s), "\t", " ") }

// shown is Printable and leaves tabs as they are.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// Cut shortens a text to a width of characters.
func Cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

// Folded breaks paragraphs into lines of 80 columns. Indented lines stay.
func Folded(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, " ") {
			lines[i] = Wrap(strings.Fields(line), 80, "")
		}
	}
	return strings.Join(lines, "\n")
}

// Wrap joins words into lines of a width.
func Wrap(words []string, width int, indent string) string {
	var b strings.Builder
	column := 0
	for i, word := range words {
		if i > 0 {
			word = " " + word
		}
		if column+len(word) > width {
			b.WriteString("\n" + indent)
			word, column = strings.TrimPrefix(word, " "), 0
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
