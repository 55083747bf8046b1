package mutants

// circleMutants are faults in what finds functions that wait for each other.
func circleMutants() []mutant {
	const room, worker = "fdbmodel/circles/circles.go", "workers/circle.go"
	model := suites{{of: "fdbmodel/circles"}}
	refusal := suites{{of: "workers", run: "Circle"}}
	return []mutant{
		{name: "a wait outlives its claim", file: room, by: model,
			old: "row.Claim != nil && row.Claim.Worker == w.Worker", new: "true"},
		{name: "a wait for several futures is one for the first", file: room, by: model,
			old: "a.Count == 1 && !a.For.IsZero()", new: "!a.For.IsZero()"},
		{name: "a wide lane has one slot", file: room, by: model,
			old: "err != nil || kind.Width != 1 || kind.Bundle != \"\"", new: "err != nil || kind.Width == 0"},
		{name: "one heartbeat is enough", file: room, by: model,
			old: " && now.Beat > then.Beat", new: ""},
		{name: "another wait of the same function goes on with a circle", file: room, by: model,
			old: "now.Await == then.Await", new: "now.ID == then.ID"},
		{name: "each sees another youngest wait", file: room, by: model,
			old: "slices.MaxFunc(c, ", new: "slices.MaxFunc(c[:1], "},
		{name: "inputs are not followed", file: room, by: model,
			old: "\tfor _, input := range ids {\n", new: "\tfor _, input := range ids[:0] {\n"},
		{name: "a search goes on without a bound", file: room, by: model,
			old: " || len(s.seen) == maxSteps", new: ""},
		{name: "all waits of a circle are refused", file: worker, by: refusal,
			old: "lasts && circle.Youngest() == id", new: "lasts"},
		{name: "no circle is seen twice", file: worker, by: refusal,
			old: "\t\tw.circle = circle\n", new: ""},
	}
}
