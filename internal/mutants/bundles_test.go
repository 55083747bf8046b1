package mutants

// bundles are the suites of bundles.
func bundles() suites {
	return suites{
		{of: "fdbmodel/lanes", run: "Bundle|Gather|TestWhatWorkersDied"}, {of: "fdbmodel", run: "TestMachine"},
		{of: "internal/sim"},
	}
}

// bundleMutants are faults in bundles.
func bundleMutants() []mutant {
	const file = "fdbmodel/bundles.go"
	return []mutant{
		{name: "a bundle takes members of what is paused", file: file, by: bundles(),
			old: "\tif !paused {\n",
			new: "\tif !paused || paused {\n"},
		{name: "a bundle that gathers again has nothing", file: file, by: bundles(),
			old: "g.bundle.gathered.bytes, g.bundle.gathered.members > 0",
			new: "int64(0), false"},
		{name: "a bundle takes what its worker may be unable to run", file: file, by: bundles(),
			old: "if !g.runs(row.Spec) {",
			new: "if !row.Spec.Member {"},
		{name: "members of a kind without bundles run together", file: file, by: bundles(),
			old: "k.Most, k.Bytes, k.Linger = 1, 0, 0",
			new: "k.Most, k.Bytes, k.Linger = 100, 1000, 0"},
		{name: "bundles run the function of their kind", file: "fdbmodel/internal/lane/bundles.go", by: bundles(),
			old: "Function: first.Function,",
			new: "Function: l.kind.Settings.Bundle,"},
		{name: "a bundle has no timeout", file: "fdbmodel/internal/lane/bundles.go", by: bundles(),
			old: "Requirements: first.Requirements, Timeout: first.Timeout,",
			new: "Requirements: first.Requirements,"},
		{name: "a bundle takes who leaves the line meanwhile", file: file, by: bundles(),
			old: "\t\ttx.AddReadConflictKey(item.Key)\n\t\ttx.AddReadConflictRange(keys.RecordRange(entry.ID))\n",
			new: ""},
		{name: "what workers died with has company behind it", file: file, by: bundles(),
			old: "\t\tif candidate {\n",
			new: "\t\tif candidate && more != true {\n"},
		{name: "members of a gather that ended with an error stay claimed", file: file, by: bundles(),
			old: "\t\tr.doubt(token)\n",
			new: ""},
		{name: "claims of members stay on the list", file: file, by: bundles(),
			old: "\t\tr.held.Hold(token.Sequence, taken)\n",
			new: "\t\t_ = taken\n"},
		{name: "a call lingers as long as it takes to fill it", file: "workers/bundle.go",
			by:  suites{{of: "batch/grouping", run: "TestCallsLinger"}},
			old: "\t\tif next.After(until) {\n", new: "\t\tif next.After(until) && false {\n"},
		{name: "a call with as many bytes as it may have lingers", file: "workers/bundle.go",
			by:  suites{{of: "batch/grouping", run: "TestCallsLinger"}},
			old: "if got.Full || len(members) < 2 ||", new: "if len(members) < 2 ||"},
		{name: "a member is admitted without a bundle", file: "fdbmodel/internal/lane/admission.go", by: bundles(),
			old: "if err == nil && row.Spec != nil && row.Spec.Member && row.Line != nil {",
			new: "if err == nil && row.Spec != nil && row.Spec.Member && row.Line == nil {"},
	}
}
