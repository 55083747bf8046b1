package state

import (
	"fmt"
	"strings"
)

// TransitionTable returns the table of transitions as Markdown.
func TransitionTable() string {
	var b strings.Builder
	b.WriteString("| state | event | when | becomes | changes | outcome |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- |\n")
	for _, t := range transitions {
		fmt.Fprintf(&b, "| %v | %v | %s | %v | %s | %v |\n", t.from, t.event, t.when.text, t.to, t.then.text, t.outcome)
	}
	b.WriteString("\nAn event that fits no row changes nothing. Its outcome is that of the first row here, " +
		"else refused:\n\n")
	b.WriteString("| event | when | outcome |\n| --- | --- | --- |\n")
	for _, o := range otherwise {
		fmt.Fprintf(&b, "| %v | %s | %v |\n", o.event, o.when.text, o.outcome)
	}
	return b.String()
}
