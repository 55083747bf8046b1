package mutants

// headMutants are faults of a head's side of peers.
func headMutants() []mutant {
	const answer, order, peer = "protocol/peerhead/answer.go", "protocol/peerhead/order.go", "protocol/peerhead/peer.go"
	const cache, verify = "protocol/peerhead/resultcache.go", "protocol/peerhead/verify.go"
	on := func(tests string) suites { return suites{{of: "protocol/peerhead", run: tests}} }
	return []mutant{
		{name: "any MAC is the chunk's", file: "protocol/peerhead/ordermac.go", by: on("TestForeignResults"),
			old: "return hmac.Equal([]byte(a), []byte(b))", new: "return hmac.Equal([]byte(a), []byte(a))"},
		{name: "an order MAC does not name the peer", file: "protocol/peerhead/ordermac.go", by: on("TestForeignResults"),
			old: "\tfield(string(peer))\n", new: "\t_ = peer\n"},
		{name: "progress needs no order MAC", file: answer, by: on("TestProgressNeedsTheOrderMAC"),
			old: "o != nil && sameMAC(o.mac, m.OrderMAC) {", new: "o != nil {"},
		{name: "one peer may have more than all", file: "protocol/p2p/options.go",
			by:  suites{{of: "protocol/p2p", run: "TestOptionsThatAreRefused"}},
			old: "|| l.Memory < l.PeerMemory {", new: "{"},
		{name: "one peer may not have all", file: "protocol/p2p/options.go",
			by:  suites{{of: "protocol/p2p", run: "TestOptionsThatAreRefused"}},
			old: "l.Memory < l.PeerMemory", new: "l.Memory <= l.PeerMemory"},
		{name: "the last answer counts", file: answer, by: on("TestTheFirstAnswerCounts"),
			old: "\t\tif ended {\n", new: "\t\tif ended && landing == nil {\n"},
		{name: "failures of earlier memberships count", file: cache, by: on("TestLateFailures"),
			old: " || !x.OK() {", new: " {"},
		{name: "a restart is not noticed", file: peer, by: on("TestARestartedPeer"),
			old: "case m != nil && before.incarnation != o.incarnation:", new: "case m != nil && before.name != o.name:"},
		{name: "a peer that is away stays", file: peer, by: on("TestAPeerThatIsAway"),
			old: "now.Sub(p.away) >= grace", new: "now.Sub(p.away) >= 1000*grace"},
		{name: "silence is no death", file: peer, by: on("TestASilentPeer"),
			old: "m.busySince(now) >= grace && silent >= grace", new: "m.busySince(now) < 0"},
		{name: "what was withdrawn is not stopped", file: order, by: on("TestCancelReaches"),
			old: "if o.stops = append(o.stops, index); o.telling {", new: "if o.telling {"},
		{name: "labels of strangers count", file: "protocol/peerhead/answer.go", by: on("TestLabelsOfStrangers"),
			old: "offerOf(m, h.options.Trusted(from))", new: "offerOf(m, true)"},
		{name: "a code of nothing is a success", file: "protocol/batches.go", by: on("TestEndingsOfItems"),
			old: "return o.Code == CodeOK && o.ExitCode == 0", new: "return o.ExitCode == 0"},
		{name: "one voice is enough", file: verify, by: on("TestALiar|TestPeersThatDisagree"),
			old: "count[d] >= v.Agree {", new: "count[d] >= 1 {"},
		{name: "a vote is of whoever answers", file: verify, by: on("TestPeersThatDisagree|TestALiar"),
			old: "\th.Write(content[:])\n", new: ""},
		{name: "places beyond the order count", file: answer, by: on("TestForeignResults"),
			old: "x.Index < 0 || x.Index >= len(o.calls)", new: "x.Index < 0 || x.Index > len(o.calls)"},
		{name: "a peer is not told of a limit", file: order, by: on("TestLimitsOfOwners"),
			old: "if first.group.limit > 0 {", new: "if first.group.limit > 1 {"},
		{name: "a wait at a peer is a timeout", file: "protocol/peerhead/takeback.go", by: on("TestWaitingIsNoTimeout"),
			old: "\t\tfree = len(waiting)\n", new: ""},
		{name: "a peer keeps no limit", file: "protocol/peerworker/orders.go",
			by:  suites{{of: "protocol/peerworker", run: "TestLimitsOfRequests"}},
			old: "= int(min(o.Concurrency, math.MaxInt32))", new: "= int(min(o.Concurrency+1, math.MaxInt32))"},
	}
}
