package mutants

// batchMutants are faults in how a head drives batches.
func batchMutants() []mutant {
	resumes := suites{{of: "batch/head", run: "ResumedAtOnce"}}
	return []mutant{
		{name: "batches are resumed one after the other", file: "batch/head/head.go", by: resumes,
			old: "\th.wg.Go(func() { d.run(ctx) })\n",
			new: "\th.mu.Unlock()\n\td.run(ctx)\n\th.mu.Lock()\n"},
		{name: "chunks are resumed one after the other", file: "batch/head/record.go", by: resumes,
			old: "\td.head.wg.Go(func() {\n",
			new: "\tfunc(run func()) { run() }(func() {\n"},
		{name: "chunks that can't be read at first are not resumed", file: "batch/head/record.go",
			by:  suites{{of: "batch/head", run: "ResumedOnceTheStore"}},
			old: "\t\td.resume = true\n", new: ""},
		{name: "a worker that does not hear of a cancel runs on", file: "batch/head/record.go",
			by:  suites{{of: "batch/head", run: "HearOfACancel"}},
			old: "\t\t\tr.stopped = false\n", new: ""},
		{name: "items of a lost chunk stay", file: "batch/head/cluster.go", by: suites{{of: "batch/head", run: "LostChunk"}},
			old: "r.cluster.DiscardMany(ctx, r.lost)", new: "r.cluster.DiscardMany(ctx, r.lost[:0])"},
		{name: "a peer has the id of its worker", file: "batch/head/driver.go", by: suites{{of: "batch/head", run: "Peer"}},
			old: "Worker: w.Worker, Peer: w.Peer,",
			new: "Worker: w.Worker,"},
		{name: "what a head has given since a heartbeat is forgotten", file: "batch/head/load.go",
			by:  suites{{of: "batch/head", run: "SmallBatches|TakeWhatIsLeft"}},
			old: "\treturn c.Slots - others - t.open\n",
			new: "\treturn c.Slots - others\n"},
		{name: "what a batch had of workers stays taken", file: "batch/head/head.go",
			by:  suites{{of: "batch/head", run: "EndsWithIt"}},
			old: "\t\td.holds(nil)\n",
			new: ""},
		{name: "a template is as large as it likes", file: "batch/model.go",
			by:  suites{{of: "batch/memstore", run: "Suite"}},
			old: "\tif len(encoded) > MaxTemplate {\n",
			new: "\tif len(encoded) > 10*MaxTemplate {\n"},
		{name: "each worker keeps the pace of the cluster by itself", file: "workers/pace.go",
			by: suites{{of: "workers", run: "Pace"}}, old: "if !pace.Shared {", new: "if pace != nil {"},
		{name: "two reserve the same start", file: "fdbmodel/quota/pace.go",
			by:  suites{{of: "fdbmodel/quota", run: "Pace"}},
			old: "asked := tx.Get(key)",
			new: "asked := tx.Snapshot().Get(key)"},
	}
}
