package mutants

// metricMutants are faults in metrics.
func metricMutants() []mutant {
	const tally, ends = "workers/tally.go", "fdbmodel/ends.go"
	attempts := suites{{of: "workers", run: "TestMetrics|TestPairs|TestModulesIn|TestWaitsAre"}}
	deaths := suites{{of: "fdbmodel", run: "TestAReturnThatFails|TestHeartbeat"}}
	return []mutant{
		{name: "each function has series of its own", file: tally, by: attempts,
			old: "known == nil && len(t.byPair) >= maxPairs", new: "false"},
		{name: "modules are named by what all begin with", file: tally, by: attempts,
			old: "module[len(module)-shownOfCID:]", new: "module[:shownOfCID]"},
		{name: "a delay is a wait for a worker", file: ends, by: attempts,
			old: "s.Later || ", new: ""},
		{name: "inputs are a wait for a worker", file: ends, by: attempts,
			old: "s.HasInputs() || ", new: ""},
		{name: "each attempt has waited", file: ends, by: attempts,
			old: "again := a.Failed > 0 || ", new: "again := "},
		{name: "results are not counted by function", file: "workers/finish.go", by: attempts,
			old: "\t\t\tm.worker.tallies.of(c.Future.Spec).realized.Inc()\n", new: ""},
		{name: "a dead worker dies again", file: "fdbmodel/opening.go", by: deaths,
			old: "\tif was {\n", new: "\tif was || true {\n"},
	}
}
