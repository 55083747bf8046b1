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
			old: "if !e.HasFailedOn(r.info.ID) {",
			new: "if !e.HasFailedOn(r.info.ID) || true {"},
		{name: "a worker leaves what failed on it to others for ever", file: "fdbmodel/rivals.go",
			by:  suites{{of: "fdbmodel", run: "Retry|Preferred"}},
			old: "if now.Sub(l.since) >= preferOthers ||",
			new: "if"},
	}
}
