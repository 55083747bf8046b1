package mutants

// attemptMutants are faults in what is kept of attempts, and in what is around a call.
func attemptMutants() []mutant {
	model := suites{{of: "fdbmodel", run: "Progress|History|Death"}, {of: "internal/sim"}}
	lists := suites{{of: "fdbmodel/inspect", run: "Newest|Lists"}}
	workers := suites{{of: "workers", run: "Progress|Middleware"}}
	return []mutant{
		{name: "a dead worker writes progress", file: "fdbmodel/progress.go", by: model,
			old: "if err := r.checkAlive(ctx, r.askAlive(tx)); err != nil {",
			new: "if err := r.checkAlive(ctx, r.askAlive(tx)); err != nil && false {"},
		{name: "progress does not see that its claim ends", file: "fdbmodel/progress.go", by: model,
			old: "\t\t\t\ttx.AddReadConflictKey(key)\n",
			new: "\t\t\t\t_ = key\n"},
		{name: "progress of an earlier claim is shown", file: "fdbmodel/layout/life.go", by: model,
			old: "case r.Claim != nil && r.Claim.Token == p.Token:",
			new: "case r.Claim != nil:"},
		{name: "a history grows without a bound", file: "fdbmodel/layout/life.go", by: model,
			old: "past = h.Past[max(0, len(h.Past)+1-MaxHistory):]",
			new: "past = h.Past"},
		{name: "a retry is an attempt in the history", file: "fdbmodel/history.go", by: model,
			old: " || by == EventRetry {",
			new: " {"},
		{name: "the last progress is lost", file: "workers/job.go", by: workers,
			old: "c.Progress = j.life.progress.take(j)",
			new: "j.life.progress.take(j)"},
		{name: "each progress is written at once", file: "workers/progress.go", by: workers,
			old: "return r.written.Add(progressEvery)",
			new: "return r.written"},
		{name: "a future that failed is not listed", file: "fdbmodel/write.go", by: lists,
			old: "\tw.list(before, after)\n",
			new: ""},
		{name: "a list has no order over shards", file: "fdbmodel/inspect/newest.go", by: lists,
			old: "s.buffer[0].age.Compare(best.buffer[0].age) > 0)",
			new: "s.buffer[0].age.Compare(best.buffer[0].age) < 0)"},
		{name: "futures with a key are not listed", file: "fdbmodel/inspect/newest.go", by: lists,
			old: "\t\t\tn.addIndex(shard, keys.ListedKeyed(shard))\n",
			new: ""},
		{name: "what was claimed ahead stays behind a long call", file: "workers/ahead.go",
			by:  suites{{of: "workers", run: "ALongCall"}},
			old: "\tif stuck {\n",
			new: "\tif stuck && false {\n"},
		{name: "a long call does not count until it ends", file: "workers/ahead.go",
			by:  suites{{of: "workers", run: "Ahead"}},
			old: "if s.free.Slots <= 0 {",
			new: "if s.free.Slots < 0 {"},
		{name: "a second call appends to the result of the first", file: "workers/middleware.go", by: workers,
			old: "\t\t\tj.dropWritten()\n",
			new: ""},
	}
}
