package mutants

// jobMutants are faults in logs of jobs and their consumers.
func jobMutants() []mutant {
	const log, consumer, engine = "fdbmodel/jobs.go", "fdbmodel/jobs_consumer.go", "batch/jobqueue/"
	stored := suites{{of: "fdbmodel", run: "Job|Lease|Append|Parked|Trim"}, {of: "batch/jobqueue"}}
	consumed := suites{{of: "batch/jobqueue"}}
	return []mutant{
		{name: "an append whose result is unknown is repeated", file: log, by: stored,
			old: "if last.Sequence >= a.Sequence {", new: "if last.Sequence > a.Sequence {"},
		{name: "jobs are removed that a consumer has not done", file: log, by: stored,
			old: "if passed < 0 || p.Index < passed {", new: "if passed < 0 || p.Index > passed {"},
		{name: "a lost lease still commits", file: consumer, by: stored,
			old: "if present.Holder != l.holder {", new: "if present.Holder != l.holder && present.Holder == \"\" {"},
		{name: "a progress goes back", file: consumer, by: stored,
			old: "if at != from {", new: "if at < from {"},
		{name: "a commit that landed is taken for a lost lease", file: consumer, by: stored,
			old: "if at == to && tx.MaybeCommitted {", new: "if at == to && tx.MaybeCommitted && false {"},
		{name: "effects of a job are applied without its progress", file: consumer, by: stored,
			old: "\t\tc.writeProgress(tx, l.consumer, to)\n", new: ""},
		{name: "a living process loses its lease", file: consumer, by: stored,
			old: "!bytes.Equal(value, t.Observed) && !c.diedBefore(&old)",
			new: "!bytes.Equal(value, t.Observed) && t.Observed == nil && !c.diedBefore(&old)"},
		{name: "a dropped job has effects", file: "fdbmodel/jobs_parked.go", by: stored,
			old: "\t\tif value == nil {\n\t\t\tif tx.MaybeCommitted",
			new: "\t\tif value == nil && failure != nil {\n\t\t\tif tx.MaybeCommitted"},
		{name: "the progress passes a job that runs", file: engine + "window.go", by: consumed,
			old: "w.states[n] == ended", new: "w.states[n] != waiting"},
		{name: "the progress passes a job that failed", file: engine + "window.go", by: consumed,
			old: "w.states[n] == ended", new: "w.states[n] != running"},
		{name: "a consumer searches ahead without a bound", file: engine + "scan.go", by: consumed,
			old: "if bound := e.options.MaxSearchAhead; bound > 0 {",
			new: "if bound := e.options.MaxSearchAhead; bound > 1<<20 {"},
		{name: "a check that comes during a look is lost", file: engine + "engine.go", by: consumed,
			old: "\te.mu.Unlock()\n\tsignal(e.checked)\n}\n\n// report", new: "\te.mu.Unlock()\n}\n\n// report"},
		{name: "a refused effect fails another job", file: engine + "commit.go", by: consumed,
			old: "e.reopen(refused.index, refused.error)", new: "e.reopen(from+1, refused.error)"},
		{name: "a job fails that has ended", file: engine + "attempt.go", by: consumed,
			old: "if e.window.at(job.Index) != running {", new: "if e.window.at(job.Index) == 0 {"},
		{name: "what a job emits is lost", file: engine + "attempt.go", by: consumed,
			old: "if r.parked != nil || !r.output.empty() {", new: "if r.parked != nil {"},
	}
}
