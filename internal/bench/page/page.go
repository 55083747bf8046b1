// Package page writes docs/reference/performance.md and its plots from what futura-bench measured.
package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/futura-run/futura/internal/bench"
	"github.com/futura-run/futura/internal/wording"
)

// Kinds of stores, as Reports name them.
const (
	InProcess    = "embedded"
	Remote       = "remote"
	FoundationDB = "fdb"
)

// Kinds are the kinds of stores, in the order of columns.
func Kinds() []string { return []string{InProcess, Remote, FoundationDB} }

// name is a kind as people read it.
func name(kind string) string {
	return map[string]string{InProcess: "in process", Remote: "remote", FoundationDB: "FoundationDB"}[kind]
}

// Document is all that the page is made from.
type Document struct {
	Machine Machine       `json:"machine"`
	Reports []Measurement `json:"reports"`
}

// Measurement is what a scenario took on a kind of store.
type Measurement struct {
	bench.Report
	// Version is the commit that was measured, and the day.
	Version string `json:"version"`
}

// Machine says where and with what it was measured.
type Machine struct {
	CPU          string `json:"cpu"`
	Cores        int    `json:"cores"`
	MemoryBytes  int64  `json:"memory_bytes"`
	Disk         string `json:"disk"`
	System       string `json:"system"`
	Go           string `json:"go"`
	FoundationDB string `json:"foundationdb,omitempty"` // empty if it was not measured
	Commit       string `json:"commit"`
	Day          string `json:"day"`
	// Shared is set if the machine did other work meanwhile.
	Shared bool `json:"shared"`
}

func (m *Machine) version() string { return m.Commit + ", " + m.Day }

// File is a file of the page.
type File struct {
	Name    string
	Content []byte
}

// Read reads a document.
func Read(r io.Reader) (Document, error) {
	var d Document
	decoder := json.NewDecoder(r)
	decoder.DisallowUnknownFields()
	return d, decoder.Decode(&d)
}

// Put adds a report of the version that d names, or replaces the one of its scenario and store.
func (d *Document) Put(r bench.Report) {
	measured := Measurement{r, d.Machine.version()}
	if at := slices.IndexFunc(d.Reports, func(old Measurement) bool {
		return old.Scenario == r.Scenario && old.Store == r.Store
	}); at >= 0 {
		d.Reports[at] = measured
		return
	}
	d.Reports = append(d.Reports, measured)
}

// PutBetter is Put, unless the report that is there has a lower latency, or a higher rate where
// latency was not measured.
func (d *Document) PutBetter(r bench.Report) {
	if old := d.find(r.Scenario, r.Store); old != nil {
		isBetter := old.FuturesPerSecond > r.FuturesPerSecond
		if old.P50 > 0 && r.P50 > 0 {
			isBetter = old.P50 < r.P50
		}
		if isBetter {
			return
		}
	}
	d.Put(r)
}

// find returns the report of a scenario on a kind of store, nil if it was not measured.
func (d *Document) find(scenario, kind string) *bench.Report {
	for i := range d.Reports {
		if r := &d.Reports[i].Report; r.Scenario == scenario && r.Store == kind {
			return r
		}
	}
	return nil
}

// Files are the page, its plots and its JSON. Equal documents have equal files.
func (d *Document) Files() ([]File, error) {
	order := func(r Measurement) int {
		return 10*slices.Index(bench.Scenarios(), r.Scenario) + slices.Index(Kinds(), r.Store)
	}
	slices.SortStableFunc(d.Reports, func(a, b Measurement) int { return order(a) - order(b) })
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, err
	}
	files := []File{{"performance.json", append(text, '\n')}, {"performance.md", d.page()}}
	for _, c := range curves() {
		svg, err := d.plot(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.file, err)
		}
		files = append(files, File{c.file, svg})
	}
	return files, nil
}

const intro = `# What a future costs

<!-- written by make bench from performance.json: change internal/bench/page -->

What each scenario of futura-bench takes on three stores: **in process**, an embedded store on disk; **remote**, the
same store, owned by another process and reached through its Unix socket; **FoundationDB**, a server with one process on
this machine, with its storage engine "memory", whose log is on the same disk. Every commit is synced, and results are
kept. Client and workers are one process. A future has 100 bytes of arguments, and its function does nothing, unless a
scenario says otherwise.

Rates and latencies are those of one small machine on one day. Transactions, mutations, reads and bytes of a future are
nearly the same on every machine; reads of a worker that waits follow the time. Plan with these, and measure the rest
with ` + "`make bench`" + ` on yours.

`

func (d *Document) page() []byte {
	var b bytes.Buffer
	b.WriteString(intro)
	d.machine(&b)
	d.costs(&b)
	d.rates(&b)
	d.latencies(&b)
	for _, c := range curves() {
		d.curve(&b, c)
	}
	d.others(&b)
	d.scenarios(&b)
	return b.Bytes()
}

// table writes a table: a nil cell, or an empty one, was not measured.
func table(b *bytes.Buffer, head []string, rows [][]string) {
	line := func(cells []string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, row := range rows {
		for i := range row {
			if row[i] == "" {
				row[i] = "–"
			}
		}
		line(row)
	}
	b.WriteString("\n")
}

func (d *Document) machine(b *bytes.Buffer) {
	m := &d.Machine
	b.WriteString("## Where this was measured\n\n")
	rows := [][]string{
		{"processor", fmt.Sprintf("%s, %s", m.CPU, wording.Count(m.Cores, "core"))},
		{"memory", fmt.Sprintf("%.0f GiB", float64(m.MemoryBytes)/(1<<30))}, {"disk", d.disk()}, {"system", m.System},
		{"Go", m.Go}, {"FoundationDB", m.FoundationDB}, {"Futura", d.versions()},
	}
	if m.Shared {
		rows = append(rows, []string{"load", "the machine did other work meanwhile, and the best of some runs is shown: " +
			"compare columns, and not runs"})
	}
	table(b, []string{"", ""}, rows)
}

// versions says which version was measured, and on which kinds of store where there are several.
func (d *Document) versions() string {
	kinds := map[string][]string{}
	for _, r := range d.Reports {
		if of := kinds[r.Version]; !slices.Contains(of, name(r.Store)) {
			kinds[r.Version] = append(of, name(r.Store))
		}
	}
	all := slices.Sorted(maps.Keys(kinds))
	for i, version := range all {
		if len(all) > 1 {
			all[i] = fmt.Sprintf("%s (%s)", version, strings.Join(kinds[version], ", "))
		}
	}
	return strings.Join(all, "; ")
}

// disk says what the disk is and how long a sync takes there.
func (d *Document) disk() string {
	var syncs []float64
	for i := range d.Reports {
		if p50 := d.Reports[i].FsyncP50; p50 > 0 {
			syncs = append(syncs, p50)
		}
	}
	if len(syncs) == 0 {
		return d.Machine.Disk
	}
	slices.Sort(syncs)
	return fmt.Sprintf("%s; 4 KiB are synced in %s ms (median)", d.Machine.Disk, figure(syncs[len(syncs)/2]))
}

// figure writes a number with three digits that count.
func figure(v float64) string {
	text := fmt.Sprintf("%.3g", v)
	if v >= 1000 {
		text = fmt.Sprintf("%.0f", v)
		for at := len(text) - 3; at > 0; at -= 3 {
			text = text[:at] + "," + text[at:]
		}
	}
	return text
}

// rounded is a figure with at most three digits that count.
func rounded(v float64) string {
	unit := 1.0
	for v/unit >= 1000 {
		unit *= 10
	}
	return figure(float64(int64(v/unit+0.5)) * unit)
}
