package page

import (
	"bytes"
	"fmt"

	"github.com/futura-run/futura/internal/bench"
)

// scenario is one that the tables have, as people read it.
type scenario struct{ id, what string }

// plain are the scenarios that tell what a future costs.
func plain() []scenario {
	return []scenario{
		{"burndown", "submitted by hundreds, then run"},
		{"stream", "submitted one by one by 16, run meanwhile"},
		{"latency", "one at a time: submit, run, await"},
		{"load", "64 clients, each one at a time"},
		{"batch", "an item of a batch"},
		{"graph", "with two inputs"},
		{"steps", "of ten steps"},
		{"actors", "a call of one actor that is warm"},
	}
}

// perStore has a cell for each kind of store.
func (d *Document) perStore(first []string, id string, cell func(r *bench.Report) string) []string {
	for _, kind := range Kinds() {
		text := ""
		if r := d.find(id, kind); r != nil {
			text = cell(r)
		}
		first = append(first, text)
	}
	return first
}

// head is that of a table with a column for each kind of store.
func head(first ...string) []string {
	for _, kind := range Kinds() {
		first = append(first, name(kind))
	}
	return first
}

func (d *Document) costs(b *bytes.Buffer) {
	b.WriteString("## Costs of a future\n\n" +
		"From its submit to the result that its client has. Processor time is that of this\n" +
		"process, in user and system mode; that of the process with the store comes on top, in remote and FoundationDB.\n" +
		"Conflicts are the part of transactions that are run again.\n\n")
	var rows [][]string
	for _, s := range plain() {
		for _, kind := range Kinds() {
			r := d.find(s.id, kind)
			if r == nil || r.ConflictsPerCommit == nil || r.PerFuture == nil {
				continue
			}
			rows = append(rows, []string{s.what, name(kind), figure(r.TransactionsPerFuture), figure(r.MutationsPerFuture),
				figure(r.ReadsPerFuture), fmt.Sprintf("%.1f %%", 100**r.ConflictsPerCommit),
				fmt.Sprintf("%.0f + %.0f µs", r.PerFuture.UserMicroseconds, r.PerFuture.SystemMicroseconds),
				rounded(r.PerFuture.AllocatedBytes)})
		}
	}
	table(b, []string{"futures", "store", "transactions", "mutations", "reads", "conflicts", "processor",
		"allocated bytes"}, rows)
	if r := d.find("burndown", InProcess); r != nil {
		fmt.Fprintf(b, "A pending future takes %s bytes of memory in process (%s of them were pending).\n\n",
			rounded(r.ResidentBytesPerFuture), figure(float64(r.Futures)))
	}
}

func (d *Document) rates(b *bytes.Buffer) {
	b.WriteString("## Rates\n\nFutures in a second, with two workers; in brackets the part of the rate in process.\n\n")
	var rows [][]string
	of := func(what, id string, rate func(r *bench.Report) float64) {
		whole := 0.0
		if r := d.find(id, InProcess); r != nil {
			whole = rate(r)
		}
		rows = append(rows, d.perStore([]string{what}, id, func(r *bench.Report) string {
			if r.Store == InProcess || whole == 0 {
				return rounded(rate(r))
			}
			return fmt.Sprintf("%s (%.2f)", rounded(rate(r)), rate(r)/whole)
		}))
	}
	done := func(r *bench.Report) float64 { return r.FuturesPerSecond }
	of("submitted by hundreds", "burndown", func(r *bench.Report) float64 { return r.SubmitPerSecond })
	of("of those, run and awaited", "burndown", done)
	of("submitted one by one by 16, run meanwhile and awaited", "stream", done)
	of("64 clients, each one at a time", "load", done)
	of("items of batches", "batch", done)
	table(b, head("futures"), rows)
}

func (d *Document) latencies(b *bytes.Buffer) {
	b.WriteString("## Latency of an idle cluster\n\n" +
		"One future at a time, from its submit to its result, in milliseconds;\n" +
		"and a commit of one key on the same store, which shows what the store itself takes of it.\n\n")
	cell := func(v func(r *bench.Report) float64) func(r *bench.Report) string {
		return func(r *bench.Report) string { return figure(v(r)) }
	}
	table(b, head("", "ms"), [][]string{
		d.perStore([]string{"submit to result", "p50"}, "latency", cell(func(r *bench.Report) float64 { return r.P50 })),
		d.perStore([]string{"submit to result", "p99"}, "latency", cell(func(r *bench.Report) float64 { return r.P99 })),
		d.perStore([]string{"a commit", "p50"}, "latency", cell(func(r *bench.Report) float64 { return r.CommitP50 })),
		d.perStore([]string{"ratio", ""}, "latency", cell(func(r *bench.Report) float64 { return r.LatencyInCommits })),
	})
}

// curve writes a plot and its figures.
func (d *Document) curve(b *bytes.Buffer, c curve) {
	fmt.Fprintf(b, "## %s\n\n%s\n\n![%s](%s)\n\n", c.title, c.text, c.title, c.file)
	var rows [][]string
	for _, kind := range Kinds() {
		r := d.find(c.scenario, kind)
		if r == nil {
			continue
		}
		for _, p := range r.Points {
			row := []string{name(kind), rounded(p.At), rounded(p.FuturesPerSecond)}
			if c.latency {
				row = append(row, figure(p.P50), figure(p.P99))
			} else {
				row = append(row, fmt.Sprintf("%.2f", p.FuturesPerSecond/max(r.Points[0].FuturesPerSecond, 1)))
			}
			rows = append(rows, row)
		}
	}
	last := []string{"ratio to the first"}
	if c.latency {
		last = []string{"p50 ms", "p99 ms"}
	}
	table(b, append([]string{"store", c.x, "futures/s"}, last...), rows)
}

// others are what scenarios say that have figures of their own.
func (d *Document) others(b *bytes.Buffer) {
	b.WriteString("## What more costs more\n\n")
	var rows [][]string
	add := func(id, what, format string, values func(r *bench.Report) []any) {
		rows = append(rows, d.perStore([]string{what}, id, func(r *bench.Report) string {
			return fmt.Sprintf(format, values(r)...)
		}))
	}
	add("contention", "64 processes that claim apart, rate to that of 1", "%.2f",
		func(r *bench.Report) []any { return []any{r.Ratio} })
	add("await", "last result, after the last run", "%.0f ms", func(r *bench.Report) []any { return []any{r.AfterLast} })
	add("idle", "1,000 idle workers", "%.0f reads/s, %.0f commits/s",
		func(r *bench.Report) []any { return []any{r.ReadsPerSecond, r.CommitsPerSecond} })
	add("batch", "items of batches, rate to plain futures", "%.2f", func(r *bench.Report) []any { return []any{r.Ratio} })
	add("graph", "futures with two inputs, rate to futures without", "%.2f",
		func(r *bench.Report) []any { return []any{r.Ratio} })
	add("steps", "futures of ten steps, time to futures without", "%.1f",
		func(r *bench.Report) []any { return []any{r.Ratio} })
	add("actors", "calls of 1,000 actors, rate to plain futures", "%.2f",
		func(r *bench.Report) []any { return []any{r.Ratio} })
	add("peers", "items on peers, rate to workers of the cluster", "%.2f",
		func(r *bench.Report) []any { return []any{r.Ratio} })
	add("wasm", "a WASM function of 0.3 ms, rate to a plain runtime", "%.2f",
		func(r *bench.Report) []any { return []any{r.Ratio} })
	table(b, head("what"), rows)
	d.each(b)
}

// spread is the lowest and the highest of several ratios in order, and a dash for none.
func spread(ratios []float64) string {
	if len(ratios) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f to %.2f", ratios[0], ratios[len(ratios)-1])
}

// each are the tables of lanes, edges and hints.
func (d *Document) each(b *bytes.Buffer) {
	var lanes, edges, pressures, processes [][]string
	for _, kind := range Kinds() {
		if r := d.find("pressure", kind); r != nil {
			for _, p := range r.Pressures {
				pressures = append(pressures, []string{p.Name, name(kind), rounded(p.FuturesPerSecond),
					fmt.Sprintf("%.2f", p.Ratio), spread(p.Ratios), rounded(p.BackMS)})
			}
		}
		for _, id := range [...]string{"lanes", "actors"} {
			r := d.find(id, kind)
			if r == nil {
				continue
			}
			for _, l := range r.Lanes {
				lanes = append(lanes, []string{l.Name, name(kind), figure(l.Transactions), figure(l.Mutations), figure(l.Reads),
					rounded(l.FuturesPerSecond)})
			}
		}
		if r := d.find("processes", kind); r != nil {
			for _, l := range r.Lanes {
				processes = append(processes, []string{l.Name, name(kind), figure(l.Transactions), figure(l.Mutations),
					figure(l.Reads), fmt.Sprintf("%.1f %%", 100*l.Conflicts), rounded(l.FuturesPerSecond)})
			}
		}
		if r := d.find("graph", kind); r != nil {
			for _, s := range r.Shapes {
				edges = append(edges, []string{s.Name, name(kind), figure(float64(s.Futures)), figure(float64(s.Edges)),
					figure(s.TransactionsPerEdge), figure(s.MutationsPerEdge), figure(s.ReadsPerEdge), rounded(s.RunMS)})
			}
		}
	}
	if len(pressures) > 0 {
		b.WriteString("A backlog of 100,000 beside something else: the rate, its ratio to the mean of those before and\n" +
			"after, and how long after its end the rate was nine tenths of the one before again. Of several rounds it is\n" +
			"the median, and the ratios of all are from the lowest to the highest: into some a checkpoint falls, and\n" +
			"beside nothing the rate varies, too.\n\n")
		table(b, []string{"beside", "store", "futures/s", "ratio", "of all rounds", "back after ms"}, pressures)
	}
	if len(lanes) > 0 {
		b.WriteString("[Lanes](../concepts/lanes.md) and [actors](../guide/actors.md), each future:\n\n")
		table(b, []string{"futures", "store", "transactions", "mutations", "reads", "futures/s"}, lanes)
	}
	if len(processes) > 0 {
		b.WriteString("Two workers, each in a process of its own, run futures that contend for the same rows:\n\n")
		table(b, []string{"futures", "store", "transactions", "mutations", "reads", "conflicts", "futures/s"}, processes)
	}
	if len(edges) > 0 {
		b.WriteString("[Dependencies](../concepts/futures.md), each edge:\n\n")
		table(b, []string{"graph", "store", "futures", "edges", "transactions", "mutations", "reads", "all in ms"}, edges)
	}
	if r := d.find("hints", InProcess); r != nil && r.Hints != nil {
		h := r.Hints
		fmt.Fprintf(b, "Between two processes a future takes %s ms with hints and %s ms without (p50), "+
			"and %s and %s reads.\n\n", figure(h.With.P50), figure(h.Without.P50),
			figure(h.With.ReadsPerFuture), figure(h.Without.ReadsPerFuture))
	}
	if r := d.find("objects", InProcess); r != nil && r.Objects != nil {
		o := r.Objects
		b.WriteString("[Results that stay with workers](../internals/objects.md):\n\n")
		row := func(what string, t bench.ObjectTimes) []string {
			return []string{what, figure(t.Small), figure(t.Large), figure(t.Ratio)}
		}
		table(b, []string{"", "1 kB, µs", "10 MB, ms", "rate to a bare copy"}, [][]string{
			row("put", o.Put), row("get within a process", o.Within), row("get on one host", o.Between),
			row("get over a socket", o.OverSocket),
		})
	}
}

// scenarios say how often each was run.
func (d *Document) scenarios(b *bytes.Buffer) {
	b.WriteString("## How to measure it\n\n`make bench` runs the scenarios once each and writes this page; " +
		"`futura-bench --help`\ndescribes them, and `futura-bench SCENARIO` runs one, on the store of `--store`. " +
		"FoundationDB is measured where\n`fdbserver` and its client library are installed. Numbers of futures:\n\n")
	var rows [][]string
	for _, id := range bench.Scenarios() {
		row := d.perStore([]string{"`" + id + "`"}, id, func(r *bench.Report) string { return figure(float64(r.Futures)) })
		if row[1]+row[2]+row[3] != "" {
			rows = append(rows, row)
		}
	}
	table(b, head("scenario"), rows)
}
