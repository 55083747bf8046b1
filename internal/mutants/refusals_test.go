package mutants

// refusalMutants are faults in who gets what a worker or peer has rejected, or is silent on.
func refusalMutants() []mutant {
	model := func(run string) suites { return suites{{of: "fdbmodel", run: run}} }
	head := func(run string) suites { return suites{{of: "protocol/peerhead", run: run}} }
	return []mutant{
		{name: "a worker on trial is woken before others", file: "fdbmodel/internal/notify/notify.go",
			by:  suites{{of: "fdbmodel/internal/notify"}},
			old: "return r.worker.id != d.FailedOn && !r.want.Last })", new: "return r.worker.id != d.FailedOn })"},
		{name: "a worker that rejects a future takes it again", file: "fdbmodel/avoid.go", by: model("OneRejects"),
			old: "until := e.RefusedBy(name); until.After(r.cluster.clock.Now())",
			new: "until := e.RefusedBy(name); false"},
		{name: "others wait for the backoff of one", file: "fdbmodel/state/state.go", by: model("OneRejects"),
			old: "\t{layout.Claimed, EventReject, holdsClaim.and(othersMay), layout.Ready, rejectToOthers, Applied},\n",
			new: ""},
		{name: "any number of workers reject a future without a wait", file: "fdbmodel/state/effects.go",
			by:  model("FewReject"),
			old: "r.Attempts.Refused.Passing(layout.Millis(e.Now)) < layout.MaxRefusals", new: "true"},
		{name: "a peer that joins again is another one", file: "fdbmodel/refusals.go", by: model("AtAnotherHead"),
			old: "e.Peer, e.Crowded = r.info.Labels[layout.LabelPeer], room == 0", new: "e.Crowded = room == 0"},
		{name: "a worker passes over any number of futures", file: "fdbmodel/refusals.go", by: model("CrowdOfRejections"),
			old: "r.refused = append(r.refused, until)", new: "_ = until"},
		{name: "a worker that rejected a future is woken for it", file: "fdbmodel/internal/notify/worker.go",
			by:  model("NotWoken"),
			old: "!d.refusedBy(w.Name) && ", new: "(w.Name != \"\" || !d.refusedBy(w.Name)) && "},
		{name: "a worker that rejected a future is called from the ring", file: "fdbmodel/internal/notify/ring.go",
			by:  model("NotWoken"),
			old: " && !d.refusedBy(NameOf(worker, idle.Labels))", new: ""},
		{name: "a peer begins with all its slots", file: "protocol/peerhead/score.go", by: head("TheWindow"),
			old: "window: firstWindow}", new: "window: maxSlots}"},
		{name: "faults leave the window of a peer", file: "protocol/peerhead/score.go", by: head("TheWindow"),
			old: "\ts.window = max(1, s.window>>min(n, mostFaults))\n", new: ""},
		{name: "a peer on trial may be silent", file: "protocol/peerhead/order.go", by: head("BadPeer"),
			old: "\t\tm.watchTrial(o)\n", new: ""},
		{name: "futures are claimed ahead for a peer on trial", file: "workers/ahead.go",
			by: suites{{of: "workers", run: "ClaimedAhead"}}, old: "s.pace <= 0 || s.lean", new: "s.pace <= 0"},
		{name: "what runs for long never widens the window", file: "protocol/peerhead/answer.go",
			by: head("LongFunctions"), old: "\t\t\tp.score.lasts(n)\n", new: ""},
		{name: "a peer reports nothing before its heartbeat", file: "protocol/peerworker/orders.go",
			by:  suites{{of: "protocol/peerworker", run: "FirstReport"}},
			old: "\tw.reportSoon(o.name.head)\n", new: ""},
	}
}
