package mutants

// topMutants are faults of what a terminal shows.
func topMutants() []mutant {
	const dir = "internal/top/"
	by := suites{{of: "internal/top", run: "Test"}}
	overview := suites{{of: "futures/httpapi", run: "RarelyRead"}}
	return []mutant{
		{name: "a screen obeys names", file: dir + "view.go", by: by,
			old: `strings.ReplaceAll(console.Printable(s), "\n", " ")`, new: `strings.ReplaceAll(s, "\n", " ")`},
		{name: "a line is wider than its screen", file: dir + "view.go", by: by,
			old: `ansi.Truncate(clean(l.text), width, "…")`, new: `clean(l.text)`},
		{name: "a list has futures of another state", file: dir + "model.go", by: by,
			old: "msg.query != m.query", new: "!m.query.List"},
		{name: "an error of the store is the last reading", file: dir + "model.go", by: by,
			old: "m.reading = false\n", new: "m.reading = msg.err != nil\n"},
		{name: "a paused screen reads", file: dir + "model.go", by: by,
			old: "int(msg) == m.turn && !m.paused", new: "int(msg) == m.turn"},
		{name: "an overview reads an hour every time", file: "futures/httpapi/overview.go", by: overview,
			old: "start.Before(r.due)", new: "start.Before(r.due.Add(-2 * time.Hour))"},
		{name: "the youngest future is the oldest of its queue", file: "fdbmodel/inspect/oldest.go",
			by:  suites{{of: "fdbmodel/inspect", run: "OldestReady"}},
			old: "at.Before(known)", new: "at.After(known)"},
		{name: "what a worker that died had is not found by it", file: "fdbmodel/inspect/list.go",
			by:  suites{{of: "fdbmodel/inspect", run: "Breakdown"}},
			old: "range row.EndedAttempts() {", new: "range row.EndedAttempts()[:0] {"},
		{name: "a list ends in the past of its beginning", file: "fdbmodel/inspect/newest.go",
			by:  suites{{of: "fdbmodel/inspect", run: "Newest"}},
			old: "bytes.Compare(s.left.Begin, s.left.End) < 0", new: "bytes.Compare(s.left.Begin, s.left.End) != 0"},
		{name: "a row that a page has cut is whole", file: "fdbmodel/inspect/list.go",
			by:  suites{{of: "fdbmodel/inspect", run: "RowsThatAPage"}},
			old: "return rows[:n-1], read, ", new: "return rows, read, "},
		{name: "a sweep changes items of batches", file: "fdbmodel/inspect/sweep.go",
			by:  suites{{of: "fdbmodel/inspect", run: "Sweep"}},
			old: "case rows[i].Spec.Held():", new: "case false:"},
	}
}
