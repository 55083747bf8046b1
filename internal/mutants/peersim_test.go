package mutants

// peerSimMutants are faults between heads and peers that the simulation of both finds.
func peerSimMutants() []mutant {
	const head, peer = "protocol/peerhead/", "protocol/peerworker/"
	simulation := suites{{of: "protocol/peerhead", run: "TestSimulation", flags: []string{"-sim.seeds=12"}}}
	return []mutant{
		{name: "results are acknowledged before they are stored", file: head + "answer.go", by: simulation,
			old: "if !m.awaitAcks(ctx, m.take(o, r.Outcomes)) {", new: "if m.take(o, r.Outcomes); false {"},
		{name: "late results need no order MAC", file: head + "earlier.go", by: simulation,
			old: "if !sameMAC(orderMAC(h.options.Key, p.id, r.ChunkID, r.Items), r.OrderMAC) {",
			new: "if !sameMAC(r.OrderMAC, r.OrderMAC) {"},
		{name: "an order that is over keeps its place in the window", file: head + "member.go", by: simulation,
			old: "\t\tdelete(m.orders, o.id)\n\t\t<-m.window\n", new: "\t\tdelete(m.orders, o.id)\n"},
		{name: "the worker of a lost peer lives on", file: head + "member.go", by: simulation,
			old: "\tm.worker.Abandon()\n\tm.cancel()\n", new: "\tm.cancel()\n"},
		{name: "a remote is not told which ends are stored", file: "workers/remote.go", by: simulation,
			old: "\tw.options.Remote.Acknowledge(ids)\n", new: ""},
		{name: "a peer forgets its chunks at a restart", file: peer + "recall.go", by: simulation,
			old: "for _, r := range found {", new: "for _, r := range found[:0] {"},
		{name: "chunks whose results were delivered stay", file: peer + "journal.go", by: simulation,
			old: "\t\t\t\ttx.ClearRange(kv.Prefix(chunkKey(c)))\n", new: ""},
		{name: "an order has one place more", file: head + "answer.go", by: simulation,
			old: "x.Index < 0 || x.Index >= len(o.calls)", new: "x.Index < 0 || x.Index >= len(o.calls)+1"},
	}
}
