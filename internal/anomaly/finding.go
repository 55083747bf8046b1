package anomaly

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is one anomaly.
type Finding struct {
	// Name is one of the names above, those of cycles with Realtime or without.
	Name string
	// Txs are the transactions that show it, those of a cycle in its order.
	Txs []Tx
	// Why has a sentence for each edge of a cycle, or one for all.
	Why []string
}

// String returns the finding as people read it, on several lines.
func (f Finding) String() string {
	var text strings.Builder
	text.WriteString(f.Name + "\n")
	for _, why := range f.Why {
		fmt.Fprintf(&text, "  %s\n", why)
	}
	for _, t := range f.Txs {
		fmt.Fprintf(&text, "    %s\n", t)
	}
	return text.String()
}

// String returns the transaction on one line.
func (t Tx) String() string {
	end := fmt.Sprint(t.End)
	if t.Outcome == Unknown {
		end = "unknown"
	}
	text := fmt.Sprintf("T%d of process %d, %d to %s:", t.ID, t.Process, t.Begin, end)
	for i, op := range t.Ops {
		if i > 0 {
			text += ","
		}
		if op.isRead() {
			text += fmt.Sprintf(" read %s %s", op.Key, show(op.List))
		} else {
			text += fmt.Sprintf(" append %d to %s", op.Element, op.Key)
		}
	}
	return text
}

// Names returns the names of findings, sorted, each once.
func Names(findings []Finding) []string {
	var names []string
	for _, f := range findings {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// shown is how many elements of the end of a list are shown.
const shown = 6

func show(list []int) string {
	if n := len(list); n > shown {
		return "[… " + strings.TrimPrefix(fmt.Sprint(list[n-shown:]), "[")
	}
	return fmt.Sprint(list)
}

func (c *checker) name(tx int) string { return fmt.Sprint("T", c.txs[tx].ID) }

// report adds a finding about a key, unless it has one of that name.
func (c *checker) report(name, key, why string, txs ...int) {
	if c.reported[[2]string{name, key}] {
		return
	}
	c.reported[[2]string{name, key}] = true
	f := Finding{Name: name, Why: []string{why}}
	for _, i := range txs {
		f.Txs = append(f.Txs, c.txs[i])
	}
	c.findings = append(c.findings, f)
}
