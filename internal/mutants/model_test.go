package mutants

// model are the suites of the data model.
func model() suites {
	return suites{{of: "fdbmodel", run: "TestMachine"}, {of: "fdbmodel"}, {of: "internal/sim"}}
}

// claimMutants are faults in claims and in the fence of workers.
func claimMutants() []mutant {
	const claim, worker, reap = "fdbmodel/claim.go", "fdbmodel/worker.go", "fdbmodel/reap.go"
	return []mutant{
		{name: "a fence is not checked", file: worker, by: model(),
			old: "if err == nil && value == nil {\n\t\terr = fmt.Errorf(\"worker %s: %w\", r.info.ID, ErrReaped)",
			new: "if err == nil && value == nil && false {\n\t\terr = fmt.Errorf(\"worker %s: %w\", r.info.ID, ErrReaped)"},
		{name: "two workers may claim one entry", file: "fdbmodel/write.go", by: model(),
			old: "\tfor i := range entries {\n\t\tw.tx.AddReadConflictKey(entries[i].Key)\n\t}\n",
			new: ""},
		{name: "a claim leaves its entry in the index", file: "fdbmodel/write.go", by: model(),
			old: "\t\tw.tx.Clear(e.Key)\n",
			new: ""},
		{name: "a claim that is undone leaves no entry in the index", file: "fdbmodel/write.go", by: model(),
			old: "\tw.tx.Set(e.Key, e.Value())\n",
			new: ""},
		{name: "the late twin of a claim lands beside its retry", file: claim, by: model(),
			old: "\ttx.AddReadConflictKey(listKey)\n",
			new: ""},
		{name: "the retry of a claim does not look what the first took", file: claim, by: model(),
			old: "if tx.MaybeCommitted {\n\t\tlist, err :=",
			new: "if tx.MaybeCommitted && false {\n\t\tlist, err :="},
		{name: "a claim is in no list of its worker", file: claim, by: model(),
			old: "\ttx.Set(listKey, list)\n",
			new: "\t_ = list\n"},
		{name: "claims in doubt are not settled", file: claim, by: model(),
			old: "r.doubts = append(r.doubts, token.Sequence)",
			new: "_ = token.Sequence"},
		{name: "a completion of another claim of the worker counts", file: "fdbmodel/effects.go", by: model(),
			old: "return r.Claim.Token == e.Token }}",
			new: "return r.Claim.Token.Worker == e.Token.Worker }}"},
		{name: "a dead worker's claims may be reaped while it lives", file: reap, by: model(),
			old: "if err == nil && alive != nil {",
			new: "if err == nil && alive != nil && false {"},
		{name: "a worker is dead although its heart beat", file: worker, by: model(),
			old: "dead = beat == nil || bytes.Equal(beat, observed)",
			new: "dead = true || bytes.Equal(beat, observed)"},
		{name: "a worker is forgotten with claims", file: worker, by: model(),
			old: "if len(page.Items) > 0 {\n\t\treturn fmt.Errorf(\"worker %s: %w: it still holds claims\"",
			new: "if len(page.Items) > 1 {\n\t\treturn fmt.Errorf(\"worker %s: %w: it still holds claims\""},
		{name: "a list of claims stays when all have ended", file: "fdbmodel/finish.go", by: model(),
			old: "\t\ttx.Clear(c.keys.Claims(r.info.ID, sequence))\n",
			new: "\t\t_ = sequence\n"},
		{name: "two completions of one claim count", file: "fdbmodel/finish.go", by: model(),
			old: "if isRepeated(completions, i) {",
			new: "if isRepeated(completions, i) && false {"},
		{name: "a completion is lost by a store that shows claims late", file: "fdbmodel/finish.go", by: model(),
			old: "if claimed == kv.NoVersion {\n\t\treturn nil",
			new: "if claimed != kv.NoVersion || recent {\n\t\treturn nil"},
		{name: "workers of a process compete", file: "fdbmodel/ledger.go", by: model(),
			old: "if l.taken[id].hides(snapshot, now) {\n\t\treturn false",
			new: "if l.taken[id].hides(snapshot, now) && false {\n\t\treturn false"},
		{name: "a claim takes more than fits", file: "fdbmodel/look.go", by: model(),
			old: "\t\t\ts.free = s.free.Take(q)\n",
			new: "\t\t\ts.free.Slots--\n"},
	}
}

// recordMutants are faults in what one transaction writes about a future.
func recordMutants() []mutant {
	const file = "fdbmodel/write.go"
	return []mutant{
		{name: "a counter keeps what left a state", file: file, by: model(),
			old: "\tw.count(id, queue, owner, from, -1)\n",
			new: ""},
		{name: "a counter is off by one", file: file, by: model(),
			old: "\tw.count(row.ID, row.Spec.Queue, row.Spec.Owner, row.State(), 1)\n",
			new: "\tw.count(row.ID, row.Spec.Queue, row.Spec.Owner, row.State(), 2)\n"},
		{name: "a discarded future stays counted", file: "fdbmodel/cancel.go", by: model(),
			old: "\tw.count(row.ID, row.Spec.Queue, row.Spec.Owner, row.State(), -1)\n",
			new: ""},
		{name: "a discarded future leaves its chunks", file: "fdbmodel/cancel.go", by: model(),
			old: "\tw.tx.ClearRange(kv.Prefix(w.keys.ChunksOfFuture(row.ID)))\n",
			new: ""},
		{name: "the futures of an owner with workers are not counted down", file: file, by: model(),
			old: "\tw.countOpen(before, -1)\n",
			new: ""},
		{name: "a future stays where it waited", file: file, by: model(),
			old: "\tw.unplace(before)\n",
			new: ""},
		{name: "a finished future is in no list of the done", file: file, by: model(),
			old: "if !row.Spec.Held() {\n\t\tw.done",
			new: "if !row.Spec.Held() && len(w.done) > 0 {\n\t\tw.done"},
		{name: "a held future expires", file: file, by: model(),
			old: "if !row.Spec.Held() {\n\t\tw.done",
			new: "if row.Spec.Held() || !row.Spec.Held() {\n\t\tw.done"},
		{name: "a session gets no notice", file: file, by: model(),
			old: "if row.Spec.Session != \"\" {",
			new: "if row.Spec.Session != \"\" && false {"},
		{name: "a subscriber gets no notice", file: file, by: model(),
			old: "if s != row.Spec.Session {",
			new: "if s != row.Spec.Session && false {"},
		{name: "mail rings no bell", file: file, by: append(model(), suite{of: "futures"}),
			old: "\tput()\n\tw.tx.SetVersionstampedValue(w.keys.Bell(session), layout.EncodeBell(), layout.StampOffset)\n",
			new: "\tput()\n"},
		{name: "an owner's bell does not ring", file: file, by: model(),
			old: "w.owners[owner] = struct{}{}",
			new: "_ = w.owners"},
		{name: "the exception of an attempt is not written", file: file, by: model(),
			old: "if before.Exception != after.Exception {",
			new: "if before.Exception != after.Exception && false {"},
	}
}

// lifeMutants are faults in the table of transitions.
func lifeMutants() []mutant {
	const file = "fdbmodel/effects.go"
	return []mutant{
		{name: "a future has one attempt more", file: file, by: model(),
			old: "return r.Attempts.Failed+1 >= r.Spec.MaxRetries+1",
			new: "return r.Attempts.Failed+1 > r.Spec.MaxRetries+1"},
		{name: "a permanent failure is retried", file: file, by: model(),
			old: "return e.Permanent || !e.Exception.Kind.Retryable()",
			new: "return !e.Exception.Kind.Retryable()"},
		{name: "a request to cancel outlives the result", file: file, by: model(),
			old: "r.Result, r.Cancel = e.Result, nil",
			new: "r.Result = e.Result"},
		{name: "a future that is put back stays assigned", file: file, by: model(),
			old: "\t\tr.Claim, r.Attempts.Assigned = nil, \"\"\n",
			new: "\t\tr.Claim = nil\n"},
		{name: "a retried future keeps its attempts", file: file, by: model(),
			old: "layout.Attempts{Reason: r.Attempts.Reason}, nil, nil, nil",
			new: "r.Attempts, nil, nil, nil"},
		{name: "a future is promoted early", file: file, by: model(),
			old: "return r.Attempts.Due <= layout.Millis(e.Now)",
			new: "return r.Attempts.Due <= layout.Millis(e.Now)+1"},
		{name: "a cancel that was asked is forgotten by a failure", file: "fdbmodel/state.go", by: model(),
			old: "\t{layout.Claimed, EventFail, holdsClaim.and(cancelAsked), layout.Failed, failCancelled, Applied},\n",
			new: ""},
		{name: "a backoff does not grow", file: "fdbmodel/layout/backoff.go",
			by: append(suites{{of: "fdbmodel/layout"}}, model()...), old: "wait = base << (n - 1)", new: "wait = base"},
		{name: "a record of a newer version is read", file: "fdbmodel/layout/codec.go",
			by: append(suites{{of: "fdbmodel/layout"}}, model()...), old: "value[0] > RecordVersion {",
			new: "value[0] > RecordVersion && false {"},
	}
}

// submitMutants are faults in how futures come to be, and how they are cancelled.
func submitMutants() []mutant {
	const file = "fdbmodel/submit.go"
	return []mutant{
		{name: "the retry of a submit does not look for the first", file: file, by: model(),
			old: "c.insertBatch(ctx, tx, subs, insertion{look: tx.MaybeCommitted})",
			new: "c.insertBatch(ctx, tx, subs, insertion{})"},
		{name: "the late twin of a submit lands beside its retry", file: file, by: model(),
			old: "\t\t\ttx.AddReadConflictKey(c.keys.Spec(s.ID))\n",
			new: ""},
		{name: "ids next to each other are taken for unused", file: file, by: model(),
			old: "return err == nil && len(page.Items) == 0, err",
			new: "return err == nil && len(page.Items) >= 0, err"},
		{name: "an id with another environment is the same work", file: "fdbmodel/samework.go", by: model(),
			old: "case !maps.Equal(a.Env, b.Env):",
			new: "case false && !maps.Equal(a.Env, b.Env):"},
		{name: "arguments that were swept are submitted", file: file, by: model(),
			old: "if err == nil && value == nil {",
			new: "if err == nil && value == nil && false {"},
		{name: "a piece of the wrong size is read", file: "fdbmodel/stream.go", by: model(),
			old: "len(piece) != len(into) {",
			new: "len(piece) != len(into) && false {"},
		{name: "a worker does not hear of a cancel", file: "fdbmodel/cancel.go", by: append(model(), suite{of: "workers"}),
			old: "id), layout.Mark())\n\t\t}\n\t\tw := c.changes(tx)",
			new: "id), layout.Mark())\n\t\t\ttx.Clear(c.keys.Cancelled(after.Claim.Worker, id))\n\t\t}\n\t\tw := c.changes(tx)"},
		{name: "a cancel is forgotten by a heartbeat in doubt", file: "fdbmodel/worker.go", by: model(),
			old: "if !tx.MaybeCommitted {\n\t\t\tcancelled = nil",
			new: "if tx.Number > 0 {\n\t\t\tcancelled = nil"},
		{name: "acknowledged mail stays", file: "fdbmodel/mailbox.go", by: model(),
			old: "tx.ClearRange(kv.Range{Begin: m.acked, End: m.cursor})",
			new: "_ = tx"},
	}
}

// janitorMutants are faults in what is done from time to time.
func janitorMutants() []mutant {
	const file = "fdbmodel/janitor.go"
	return []mutant{
		{name: "a future that was retried expires with its first end", file: file, by: model(),
			old: "row.FinishedAt() <= e.at &&",
			new: "(true || row.FinishedAt() <= e.at) &&"},
		{name: "an entry of the done stays when it has expired", file: file, by: model(),
			old: "\t\t\ttx.Clear(e.key)\n",
			new: "\t\t\t_ = e.key\n"},
		{name: "arguments are swept before their future comes", file: file, by: model(),
			old: "c.clock.Now().Sub(drawn) < orphanAge",
			new: "c.clock.Now().Sub(drawn) < 0"},
		{name: "a chunk that a result refers to is swept", file: file, by: model(),
			old: "if row.RefersTo(ref) || c.MayRefer(&row, ref) {",
			new: "if c.MayRefer(&row, ref) {"},
		{name: "the role of the janitor is taken from one who lives", file: file, by: model(),
			old: "present.Worker != worker && !bytes.Equal(value, observed) {",
			new: "present.Worker != worker && !bytes.Equal(value, observed) && false {"},
		{name: "futures that become due wake nobody", file: file, by: append(model(), suite{of: "workers"}),
			old: "c.follow(ctx, result.Version, then)\n\treturn promoted, next, nil",
			new: "_, _ = result, then\n\treturn promoted, next, nil"},
		{name: "an unreadable future is forgotten by the expiry", file: file, by: model(),
			old: "w.done = append(w.done, id) // a version",
			new: "_ = append(w.done, id) // a version"},
	}
}
