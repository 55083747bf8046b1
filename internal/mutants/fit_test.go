package mutants

// fitMutants are faults in which worker may run a future, and in what happens if
// none may.
func fitMutants() []mutant {
	const infeasible = "fdbmodel/infeasible.go"
	fit := suites{{of: "fdbmodel", run: "Label|Misfit|NoWorker|WithoutWorkers|ClaimedMeanwhile|RequireFit"}}
	return []mutant{
		{name: "labels are not compared", file: "fdbmodel/scan.go", by: fit,
			old: "w.labels.Have(e.Class.Labels) &&",
			new: "(w.labels.Have(e.Class.Labels) || true) &&"},
		{name: "any of the labels is enough", file: "fdbmodel/layout/labels.go",
			by:  append(suites{{of: "fdbmodel/layout", run: "Labels"}}, fit...),
			old: "\t\tif _, found := s[label]; !found {\n\t\t\treturn false\n\t\t}\n\t}\n\treturn true",
			new: "\t\tif _, found := s[label]; found {\n\t\t\treturn true\n\t\t}\n\t}\n\treturn false"},
		{name: "what is claimed meanwhile ends as infeasible", file: infeasible, by: fit,
			old: "read.Records(w.tx, c.keys, ids)",
			new: "read.Rows(w.tx.Snapshot(), c.keys, ids, c.keys.Spec)"},
		{name: "what was just submitted ends as infeasible", file: infeasible, by: fit,
			old: "row.Spec.SubmittedAt > limit ||",
			new: "row.Spec.SubmittedAt > limit && false ||"},
		{name: "a worker that can't be read can run nothing", file: infeasible, by: fit,
			old: "return len(a.members) > 0 && !slices",
			new: "return len(a.members) > 0 || !slices"},
		{name: "a worker takes what failed on it at once", file: "fdbmodel/rivals.go",
			by:  suites{{of: "fdbmodel", run: "Retry|Preferred"}},
			old: "if !e.HasFailedOn(r.info.ID) {\n\t\t\tvar near",
			new: "if !e.HasFailedOn(r.info.ID) || true {\n\t\t\tvar near"},
		{name: "a worker leaves what failed on it to others for ever", file: "fdbmodel/rivals.go",
			by:  suites{{of: "fdbmodel", run: "Retry|Preferred"}},
			old: "if now.Sub(l.since) >= wait ||",
			new: "if"},
		{name: "a worker takes what another one has the inputs of", file: "fdbmodel/rivals.go",
			by:  suites{{of: "fdbmodel", run: "GoesWhere|Preferred"}},
			old: "if near == \"\" || near == r.info.ID ||",
			new: "if true || near == r.info.ID ||"},
		{name: "a worker leaves what a dead one has the inputs of", file: "fdbmodel/near.go",
			by:  suites{{of: "fdbmodel", run: "GoesWhere|Preferred"}},
			old: "return n.info != nil\n",
			new: "return true\n"},
		{name: "work goes where the least bytes are", file: "fdbmodel/near.go",
			by:  suites{{of: "fdbmodel", run: "GoesWhere|Preferred"}},
			old: "cmp.Compare(b.bytes, a.bytes)",
			new: "cmp.Compare(a.bytes, b.bytes)"},
		{name: "work goes to a worker that can't do it", file: "fdbmodel/near.go",
			by:  suites{{of: "fdbmodel", run: "GoesWhere|Preferred"}},
			old: "info != nil && info.CanRun(row.Needs()) == nil",
			new: "info != nil"},
		{name: "any idle worker is woken for what another one has the inputs of", file: "fdbmodel/wake.go",
			by:  suites{{of: "fdbmodel", run: "InputsIsWoken"}},
			old: "\tc.wakeNear(ctx, version, placed)\n",
			new: ""},
	}
}
