package mutants

// anomalyMutants are faults in what finds anomalies in histories.
func anomalyMutants() []mutant {
	const check, graph, cycle = "internal/anomaly/check.go", "internal/anomaly/graph.go", "internal/anomaly/cycle.go"
	by := suites{{of: "internal/anomaly"}}
	return []mutant{
		{name: "a read that missed an append precedes nothing", file: graph, by: by,
			old: "if to := c.writer(r.key, order[next]); to != last {",
			new: "if to := c.writer(r.key, order[next]); to != last && false {"},
		{name: "an append that no read shows precedes all", file: check, by: by,
			old: "c.unseen = append(c.unseen, unseen{i, e, lost})", new: ""},
		{name: "an intermediate read is not found", file: check, by: by,
			old: "found && !by.last && c.committed[by.tx] {", new: "found && !by.last && !c.committed[by.tx] {"},
		{name: "an unknown transaction that was read is not committed", file: check, by: by,
			old: "c.committed[by.tx] = true", new: "c.committed[by.tx] = false"},
		{name: "a read in another order is not found", file: check, by: by,
			old: "if !c.isPrefix(r) {", new: "if !c.isPrefix(r) && false {"},
		{name: "who has ended precedes only the next one", file: graph, by: by,
			old: "return slices.Contains(before[e.tx], tx)", new: "return true"},
		{name: "an unknown transaction has ended", file: graph, by: by,
			old: "if t.Outcome == OK {", new: "if c.committed[i] {"},
		{name: "two cycles that share a transaction are one", file: cycle, by: by,
			old: "if met[at.tx] || at.tx == from {", new: "if met[at.tx] && at.tx == from {"},
	}
}
