package mutants

// peerMutants are faults of the worker's side of peers.
func peerMutants() []mutant {
	const share = "protocol/peerworker/share.go"
	const again = "protocol/peerworker/again.go"
	const link, chunk = "protocol/peerworker/link.go", "protocol/peerworker/chunk.go"
	on := func(tests string) suites { return suites{{of: "protocol/peerworker", run: tests}} }
	head := func(tests string) suites { return suites{{of: "protocol/peerhead", run: tests}} }
	return []mutant{
		{name: "heads share the names of items", file: "protocol/peerworker/record.go", by: on("TestHeadsNameItems"),
			old: "layout.KeyedID(head, fmt.Sprintf", new: "layout.KeyedID(\"\", fmt.Sprintf"},
		{name: "strangers may cancel", file: "protocol/peerworker/handler.go", by: on("TestHeadsNameItems"),
			old: "if !w.mayOrder(peer) {\n\t\treturn &protocol.Ack", new: "if false {\n\t\treturn &protocol.Ack"},
		{name: "the last message comes early", file: "protocol/peerworker/deliver.go", by: on("TestTheLastMessage"),
			old: "if !partial && c.flights > 0 {", new: "if !partial && c.flights < 0 {"},
		{name: "a hello counts for a later connection", file: link, by: on("TestAConnectionThatChanges"),
			old: "if l.peer.Session != peer.Session || !l.peer.Connected || l.again {", new: "if l.again {"},
		{name: "an idle worker says nothing", file: link, by: on("TestAnIdleWorker"),
			old: "time.Since(said) >= idleHello &&", new: "time.Since(said) < 0 &&"},
		{name: "results that wait are not reported", file: chunk, by: on("TestAHeadThatIsSlow"),
			old: "if c.unsent == 0 || c.dropped {", new: "if c.open == 0 || c.dropped {"},
		{name: "kept results have no bound", file: "protocol/peerworker/room.go", by: on("TestAHeadThatAcknowledges"),
			old: "full := kept > w.options.MaxBytes", new: "full := kept < 0"},
		{name: "a head installs for another", file: "protocol/peerworker/install.go", by: on("TestAHeadInstalls"),
			old: "sha256.Sum256([]byte(head))", new: "sha256.Sum256([]byte(head[:0]))"},
		{name: "a stopped head takes its peers for lost", file: "protocol/peerhead/head.go", by: head("TestAHeadThatWas"),
			old: "if late >= every {", new: "if late < 0 {"},
		{name: "who waits for the store is silent", file: "protocol/peerhead/peer.go", by: head("TestAStoreThatStalls"),
			old: "if p.answering > 0 || len", new: "if p.answering < 0 || len"},
		{name: "a head that hoards keeps others out", file: share, by: on("TestShares|TestAHeadThatHoards"),
			old: "return all.within(most, 1) || c.heads > 1 &&", new: "return all.within(most, 1) || c.heads < 0 &&"},
		{name: "strangers have shares each", file: share, by: on("TestStrangersAreOneHead|TestShares"),
			old: "\t\treturn head\n\t}\n\treturn \"\"", new: "\t}\n\treturn head"},
		{name: "heads don't share slots", file: "protocol/peerworker/lines.go", by: on("TestHeadsShareSlots"),
			old: "x.head != before.head && a != b {", new: "a != a {"},
		{name: "the oldest module goes first", file: "protocol/peerworker/modules.go", by: on("TestModulesOfAHead"),
			old: "if of[m.here[idle[i].CID].party] > of[", new: "if of[m.here[idle[i].CID].party] < 0*of["},
		{name: "lines name the ids of the worker", file: "protocol/peerworker/logs.go", by: on("TestLinesNameFutures"),
			old: "if a.Key != futureKey || !ok {", new: "if true {"},
		{name: "a cancel outlives its order", file: "protocol/peerworker/runner.go", by: on("TestACancelIsOf|Snoozed"),
			old: "case x == nil || x.void:", new: "case x == nil:"},
		{name: "an order waits for no cancel", file: "protocol/peerworker/runner.go", by: on("TestACancelIsOfItsOrder"),
			old: "if x.chunk = c; x.cancelled != nil {", new: "if x.chunk = c; false {"},
		{name: "a cancel in the store outlives its order", file: again, by: on("TestACancelIsOfItsOrder|Snoozed"),
			old: "case row == nil, isVoid(row):", new: "case row == nil:"},
		{name: "an order waits for no cancel in the store", file: again, by: on("TestACancelIsOfItsOrder"),
			old: "case row.Cancel != nil && !row.State().Terminal():", new: "case false:"},
		{name: "a lost peer is not told", file: "protocol/peerhead/answer.go", by: head("TestALostPeer"),
			old: "case !p.leaves.Load():", new: "case p.leaves.Load() && m != nil:"},
	}
}
