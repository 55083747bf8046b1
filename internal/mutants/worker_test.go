package mutants

// workerMutants are faults in the worker process and in a served store.
func workerMutants() []mutant {
	workers := suites{{of: "workers"}, {of: "internal/sim"}}
	remote := suites{{of: "fdbmodel/kv/remote"}}
	return []mutant{
		{name: "a timeout does not end the attempt", file: "workers/job.go", by: workers,
			old: "\tj.settle(j.overdue())\n",
			new: ""},
		{name: "a claim ends twice", file: "workers/job.go", by: workers,
			old: "if !j.settled.CompareAndSwap(false, true) {\n\t\treturn false\n\t}\n\tj.life.put(c)",
			new: "j.settled.Store(true)\n\tj.life.put(c)"},
		{name: "the context of a function does not end at its timeout", file: "workers/job.go", by: workers,
			old: "\tj.cancel(ErrTimeout)\n",
			new: ""},
		{name: "an error after the worker stopped the function is an attempt", file: "workers/execute.go", by: workers,
			old: "\tcase cause != nil:\n",
			new: "\tcase cause != nil && false:\n"},
		{name: "completions that were not written are dropped", file: "workers/finish.go", by: workers,
			old: "if len(rest) > 0 {\n\t\te.ended = append(rest, e.ended...)\n\t}",
			new: ""},
		{name: "a future that waits too long is not given back", file: "workers/beat.go", by: workers,
			old: "\t\t\tl.giveBackStale(now.Add(-patience))\n",
			new: ""},
		{name: "a future that was cancelled before it was queued runs", file: "workers/slots.go", by: workers,
			old: "; cancelled || j.future.Cancel != nil ||",
			new: "; (cancelled && false) || j.future.Cancel != nil ||"},
		{name: "the unknown end of a commit is not passed on by a retry", file: "fdbmodel/kv/transact.go",
			by:  append(suites{{of: "fdbmodel/kv"}}, model()...),
			old: "maybe = maybe || MaybeCommitted(err)",
			new: "maybe = MaybeCommitted(err)"},
		{name: "a served store lets anybody in", file: "fdbmodel/kv/remote/handshake.go", by: remote,
			old: "return subtle.ConstantTimeCompare(a[:], b[:]) == 1",
			new: "return subtle.ConstantTimeCompare(a[:], b[:]) <= 1"},
		{name: "a watch that is cancelled stays at the server", file: "fdbmodel/kv/remote/watch.go", by: remote,
			old: "\tw.tx.cancelWatch(w)\n",
			new: ""},
		{name: "any secret is that of a token", file: "futures/httpapi/stack/tokens.go",
			by:  suites{{of: "futures/httpapi/stack"}},
			old: "same := subtle.ConstantTimeCompare(tokens[i].sum[:], sum[:]) == 1",
			new: "same := subtle.ConstantTimeCompare(tokens[i].sum[:], sum[:]) <= 1"},
	}
}
