package mutants

// limitMutants are faults in the limits of a cluster.
func limitMutants() []mutant {
	const admit, read = "fdbmodel/quota/admit.go", "fdbmodel/quota/quota.go"
	model := suites{{of: "fdbmodel/quota"}}
	return []mutant{
		{name: "what was submitted since the reading is forgotten", file: admit, by: model,
			old: "now := used.Pending + l.submitted;", new: "now := used.Pending;"},
		{name: "futures that are not committed yet are forgotten", file: read, by: model,
			old: "l.underWay(q.cluster.Now()), l.", new: "0, l."},
		{name: "claims that a reading does not see are forgotten", file: admit, by: model,
			old: "\t\tn += c.n\n", new: "\t\t_ = c\n"},
		{name: "an end that a reading has seen frees two places", file: admit, by: model,
			old: "if version > l.reading.version {", new: "if true {"},
		{name: "one more future is pending than may be", file: admit, by: model,
			old: "now+int64(n) > limits.Pending", new: "now+int64(n) > limits.Pending+1"},
		{name: "a process takes all that is left by one reading", file: admit, by: model,
			old: "max(1, left/limitShare)", new: "max(1, left)"},
		{name: "a value that is put is taken for a pending future", file: admit, by: model,
			old: "now := used.Pending + l.submitted; pending && ", new: "now := used.Pending + l.submitted; "},
		{name: "the store may grow beyond its limit", file: admit, by: model,
			old: "used.Bytes >= limits.Bytes {", new: "used.Bytes >= 2*limits.Bytes {"},
		{name: "tokens are leased that are not there", file: admit, by: model,
			old: "bucket.Tokens -= leased\n", new: "bucket.Tokens -= leased / 2\n"},
		{name: "unused tokens outlive their lease", file: admit, by: model,
			old: "l.tokens = 0 // what", new: "l.tokens *= 1 // what"},
		{name: "claims of this process are forgotten", file: admit, by: model,
			old: "left-l.claimed, share-l.claimed", new: "left, share"},
		{name: "delayed futures are not pending", file: read, by: model,
			old: "case layout.Blocked, layout.Ready, layout.Delayed:", new: "case layout.Blocked, layout.Ready:"},
		{name: "what never fits is said to fit later", file: admit, by: model,
			old: "if int64(n) <= limits.Pending {", new: "if int64(n) <= 2*limits.Pending {"},
		{name: "a put asks for no room", file: "futures/put.go", by: suites{{of: "futures", run: "Limit"}},
			old: "if err := c.findRoom(ctx, 1, o.WaitForRoom, quota.Of(c.cluster).AdmitValues); err != nil {",
			new: "if err := c.findRoom(ctx, 0, o.WaitForRoom, quota.Of(c.cluster).AdmitValues); err != nil {"},
		{name: "a batch asks for room for one", file: "batch/futurestore/store.go",
			by: suites{{of: "batch/futurestore", run: "Limit"}}, old: "quota.Of(s.cluster).Admit(ctx, len(arguments))",
			new: "quota.Of(s.cluster).Admit(ctx, min(1, len(arguments)))"},
		{name: "a job fails for want of room", file: "batch/jobqueue/output.go",
			by:  suites{{of: "batch/jobqueue", run: "Limit"}},
			old: "isOfStore(err) || noRoom(err) > 0 {", new: "isOfStore(err) {"},
		{name: "many jobs wait for room together", file: "batch/jobqueue/commit.go",
			by:  suites{{of: "batch/jobqueue", run: "Limit"}},
			old: "limit = max(1, n/2)\n\t\t\tfailures++", new: "failures++"},
	}
}
