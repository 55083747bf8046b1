package mutants

// stepMutants are faults in what steps record and find.
func stepMutants() []mutant {
	const room, index, under = "fdbmodel/steps/steps.go", "fdbmodel/internal/step/step.go", "fdbmodel/under.go"
	model := suites{{of: "fdbmodel/steps"}}
	durable := suites{{of: "futures", run: "Step|Sleep|CodeMay"}}
	return []mutant{
		{name: "who lost the claim records steps", file: under, by: model,
			old: "err == nil && claim.Token == f.Token", new: "err == nil"},
		{name: "steps are recorded of what is realized", file: under, by: model,
			old: "value == nil || result != nil", new: "value == nil || result != nil && false"},
		{name: "a claim may end while a step is recorded", file: under, by: model,
			old: "askedClaim{key, tx.Get(key)", new: "askedClaim{key, tx.Snapshot().Get(key)"},
		{name: "a future may be realized while a step is recorded", file: under, by: model,
			old: "tx.Get(keys.State(f.ID, layout.StateResult))", new: "tx.Snapshot().Get(keys.State(f.ID, layout.StateResult))"},
		{name: "steps of a claim that the worker ends are recorded", file: room, by: model,
			old: "if e := &entries[i]; e.Ended == nil || !e.Ended() {", new: "if e := &entries[i]; e != nil {"},
		{name: "a step whose claim has ended since is not recognised", file: room, by: model,
			old: "\t\t\treturn s.recognise(ctx, tx, entries, recorded)\n", new: "\t\t\treturn nil\n"},
		{name: "a future is not marked as one with steps", file: room, by: model,
			old: "\tif e.First {\n", new: "\tif false {\n"},
		{name: "steps outlive their future", file: index, by: model,
			old: "before.Steps && after == nil", new: "false"},
		{name: "what a step refers to is swept", file: "fdbmodel/maintenance/sweep.go", by: model,
			old: "if ref.Kind == layout.ChunkStep && row.Steps {", new: "if false {"},
		{name: "what a running attempt stored is swept", file: "fdbmodel/maintenance/sweep.go", by: model,
			old: "\t\t_, claim = step.NameIn(ref)\n", new: "\t\t_, _ = step.NameIn(ref)\n"},
		{name: "who starts over keeps the steps", file: room, by: model,
			old: "\t\t\ttx.ClearRange(kv.Prefix(s.keys.Of(id)))\n", new: ""},
		{name: "the second page of steps is not read", file: room, by: model,
			old: "if more = items.More; more {", new: "if more = false; items.More {"},
		{name: "a step may be named as a repeated one", file: room, by: model,
			old: "|| isNumbered(name) || step", new: "|| step"},
		{name: "steps stay unused", file: room, by: model,
			old: "return func(tx kv.Tx) { tx.Clear(key) }", new: "return func(tx kv.Tx) {}"},
		{name: "an attempt that sleeps ends with its result", file: "workers/execute.go", by: durable,
			old: "\terr = j.mind(err)\n", new: "\t_ = j.mind\n"},
		{name: "steps run while their attempt sleeps", file: "workers/steplog.go", by: durable,
			old: "\tif !l.wake.IsZero() {\n\t\treturn \"\", nil, l.asleep()\n\t}\n", new: ""},
		{name: "the second step with a name is the first", file: "workers/steplog.go", by: durable,
			old: "steps.Numbered(name, l.asked[name])", new: "name"},
		{name: "nothing says which steps are unused", file: "workers/job.go", by: durable,
			old: "\t\t\tc.Beside = ", new: "\t\t\t_ = "},
		{name: "two steps have one number", file: "fdbmodel/audit/steps.go",
			by:  suites{{of: "fdbmodel/audit", run: "Broken"}},
			old: "if other, taken := p.numbered[at]; taken {", new: "if other, taken := p.numbered[at]; taken && false {"},
		{name: "steps without a mark are sound", file: "fdbmodel/audit/steps.go",
			by:  suites{{of: "fdbmodel/audit", run: "Broken"}},
			old: "case !r.Steps:", new: "case false:"},
	}
}
