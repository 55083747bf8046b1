package mutants

// sharingMutants are faults of stores that processes share.
func sharingMutants() []mutant {
	const dir = "fdbmodel/kv/sharing/"
	by := suites{{of: "fdbmodel/kv/sharing", run: "Conformance|TestA|Killed"}}
	return []mutant{
		{name: "an owner forgets the one that was killed", file: dir + "owner.go", by: by,
			old: "	d.lose(before.Connection)\n", new: ""},
		{name: "an owner forgets those that do not come back", file: dir + "owner.go", by: by,
			old: "Returning: slices.Clone(o.record.Clients),", new: ""},
		{name: "those that ask late are not told", file: dir + "database.go", by: by,
			old: "	for _, id := range d.lost {\n		d.tell(hear, id)\n	}\n", new: ""},
		{name: "a store is exclusive while others use it", file: dir + "database.go", by: by,
			old: "now.owner != nil && now.owner.isAlone()", new: "now.owner != nil"},
		{name: "a holder that ends as it is found ends the opening", file: "fdbmodel/kv/kvopen/holder.go",
			by:  suites{{of: "fdbmodel/kv/kvopen", run: "TestTheHolderEnds", flags: []string{"-count=20"}}},
			old: "served = served && !errors.Is(err, kv.ErrUnavailable)", new: "served = served && err != nil"},
		{name: "an owner that is stopped is asked again and again", file: dir + "follower.go",
			by:  suites{{of: "fdbmodel/kv/sharing", run: "TestAStoppedOwner"}},
			old: "if inUse {", new: "if inUse && owner.ended != nil {"},
		{name: "a holder that does not answer is asked past the time", file: "fdbmodel/kv/kvopen/open.go",
			by:  suites{{of: "fdbmodel/kv/kvopen", run: "TestTheHolderIsStopped"}},
			old: "late = late || o.GiveUpAfter > 0 &&", new: "late = late && o.GiveUpAfter > 0 &&"},
		{name: "a takeover makes a store", file: dir + "owner.go", by: by,
			old: "options.Only = *followed", new: "_ = followed"},
		{name: "what a follower had is closed at a takeover", file: dir + "follower.go", by: by,
			old: "f.Retire()", new: "f.Close()"},
		{name: "a close waits until its store fails", file: dir + "owner.go",
			by:  suites{{of: "fdbmodel/kv/sharing", run: "TestACloseDuring"}},
			old: "case <-o.db.ctx.Done():", new: "case <-context.Background().Done():"},
		{name: "a close leaves open what it has just opened", file: dir + "database.go",
			by:  suites{{of: "fdbmodel/kv/sharing", run: "TestACloseDuring"}},
			old: "last := d.now.Load(); last != now {", new: "last := d.now.Load(); last == nil {"},
		{name: "a long path has its socket in the directory", file: dir + "owner.go", by: by,
			old: "len(path) <= socket.MaxPath", new: "len(path) <= 10*socket.MaxPath"},
		{name: "a serve leaves delayed futures alone", file: "cmd/futura/serve.go",
			by:  suites{{of: "cmd/futura", run: "TestServeDoesAJanitorsWork"}},
			old: "run := n.runJanitor", new: "run := func(ctx context.Context) error { return n.run(ctx, nil) }"},
		{name: "a request that does not end fails the stop", file: "cmd/futura/node.go",
			by:  suites{{of: "cmd/futura", run: "TestServeEndsInTime"}},
			old: "errors.Is(err, context.DeadlineExceeded)", new: "err == context.Canceled"},
	}
}
