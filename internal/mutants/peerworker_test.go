package mutants

// peerMutants are faults of the worker's side of peers.
func peerMutants() []mutant {
	const share = "protocol/peerworker/share.go"
	const journal, recall = "protocol/peerworker/journal.go", "protocol/peerworker/recall.go"
	const link, chunk = "protocol/peerworker/link.go", "protocol/peerworker/chunk.go"
	on := func(tests string) suites { return suites{{of: "protocol/peerworker", run: tests}} }
	head := func(tests string) suites { return suites{{of: "protocol/peerhead", run: tests}} }
	return []mutant{
		{name: "heads share the names of items", file: chunk, by: on("TestHeadsNameItems"),
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
		{name: "kept results have no bound", file: share, by: on("TestAHeadThatAcknowledges"),
			old: "if unsent > most {", new: "if unsent < 0 {"},
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
			old: "if a.Key != futureKey || !ok {", new: "if ok || !ok {"},
		{name: "a cancel outlives its order", file: "protocol/peerworker/runner.go", by: on("TestACancelIsOf|Snoozed"),
			old: "case x == nil || x.void:", new: "case x == nil:"},
		{name: "an order waits for no cancel", file: "protocol/peerworker/runner.go", by: on("TestACancelIsOfItsOrder"),
			old: "if x.chunk = c; x.cancelled != nil {", new: "if x.chunk = c; false {"},
		{name: "what a head has runs again", file: journal, by: on("TestWhatAHeadHas"),
			old: "\t\ttx.Set(tuple.AppendInt(item, 0), []byte(\"{}\"))\n", new: ""},
		{name: "what a later chunk had runs again", file: journal, by: on("TestWhatALaterChunk"),
			old: "\t\tj.settleIn(tx, moved)\n", new: ""},
		{name: "a cancel is forgotten", file: journal, by: on("TestACancelIsRemembered"),
			old: "if c.wants(i) && c.order == nil {", new: "if false {"},
		{name: "a result is sent before it is remembered", file: chunk, by: on("TestAWorkerWithAState|TestResultsOfAny"),
			old: "if j := c.worker.journal; j != nil && c.order == nil {", new: "if j := c.worker.journal; false {"},
		{name: "half an order counts", file: journal, by: on("TestWhatACrashCutOff"),
			old: "kind == rowOrder && (first || s.order != nil)", new: "kind == rowOrder"},
		{name: "what is recalled asks no head", file: recall, by: on("TestAWorkerForgets"),
			old: "\t\tcase <-c.released:\n", new: "\t\tdefault:\n"},
		{name: "a lost peer is not told", file: "protocol/peerhead/answer.go", by: head("TestALostPeer"),
			old: "case !p.leaves.Load():", new: "case p.leaves.Load() && m != nil:"},
	}
}
