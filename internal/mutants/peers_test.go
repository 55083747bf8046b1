package mutants

// hostMutants are faults of the host that moves what peers say.
func hostMutants() []mutant {
	const send, receive, table, watch = "protocol/p2p/send.go", "protocol/p2p/receive.go", "protocol/p2p/table.go",
		"protocol/p2p/watch.go"
	const gossip, blob, fetch = "protocol/p2p/gossip.go", "protocol/p2p/blob.go", "protocol/p2p/fetch.go"
	on := func(tests string) suites { return suites{{of: "protocol/p2p", run: tests}} }
	return []mutant{
		{name: "a peer that is denied may connect", file: "protocol/p2p/gate.go", by: on("TestAllowAndDeny"),
			old: "return !g.deny[p] && (g.allow == nil || g.allow[p])", new: "return g.allow == nil || g.allow[p]"},
		{name: "every user of the machine may be a worker", file: "cmd/futura/peers.go",
			by:  suites{{of: "cmd/futura", run: "TestPeersFlags"}},
			old: "if isLoopback(address) {\n\t\t\twho =", new: "if isLoopback(address) {\n\t\t\tcontinue\n\t\t\twho ="},
		{name: "a message grows without asking", file: "protocol/p2p/frame.go", by: on("FuzzReadMessage|TestReadMessage"),
			old: "if cap(message) >= small && more != nil {", new: "if cap(message) > 4*small && more != nil {"},
		{name: "memory of a message is kept", file: receive, by: on("TestOversizedFrames"),
			old: "\t\t\theld += more\n", new: ""},
		{name: "a peer has all handlers", file: table, by: on("TestFlood$"),
			old: "take(ctx, s.handlers, t.all.handlers, 1)", new: "take(ctx, t.all.memory, t.all.handlers, 1)"},
		{name: "a refused wait takes a turn", file: table, by: on("TestRateOfAPeer"),
			old: "\t\tturn.CancelAt(now)\n", new: ""},
		{name: "each byte begins a deadline anew", file: "protocol/p2p/pace.go", by: on("TestTrickle"),
			old: "p.stretch > 0 && p.bytes >= p.stretch", new: "p.bytes >= p.stretch"},
		{name: "a protocol is looked for once", file: send, by: on("TestProtocolAnnouncedLate"),
			old: "if err == nil || !isUnsupported(err) {", new: "if true {"},
		{name: "a peer that left is not told", file: watch, by: on("TestEventsOfPeers"),
			old: "if !w.told[p] {", new: "if true {"},
		{name: "a new connection is no new session", file: watch, by: on("TestEventsOfPeers"),
			old: "\t\tw.last++\n", new: "\t\tw.last = 1\n"},
		{name: "authors have no rate", file: gossip, by: on("TestJudgedGossip"),
			old: "case !g.limiter(author).AllowN(g.host.clock.Now(), 1):", new: "case false:"},
		{name: "own messages are heard", file: gossip, by: on("TestGossip$"),
			old: "if m.GetFrom() != g.host.id {", new: "if m != nil {"},
		{name: "relays have no rate", file: gossip, by: on("TestFloodOfGossip"),
			old: "if !share.relayed.AllowN(g.host.clock.Now(), n) {", new: "if !share.relayed.AllowN(g.host.clock.Now(), 0) {"},
		{name: "a blob goes on from its beginning", file: fetch, by: on("TestBlobs$"),
			old: "Offset: f.done", new: "Offset: 0"},
		{name: "any bytes are the blob", file: fetch, by: on("TestBlobsThatCanNotBeFetched"),
			old: "[sha256.Size]byte(f.hash.Sum(nil)) != want", new: "len(f.hash.Sum(nil)) != len(want)"},
		{name: "a blob has two names", file: blob, by: on("TestBlobIDs"),
			old: "|| BlobID(hash) != id ", new: ""},
		{name: "a dead connection is kept", file: "protocol/p2p/stale.go", by: on("TestPeerThatLostItsWay"),
			old: "\t\t\t\t_ = c.Close()\n", new: ""},
		{name: "a key file is for everyone", file: "protocol/p2p/identity.go", by: on("TestKeysThatAreRefused"),
			old: "key, err := trust.ReadSecret(path, keySize)",
			new: "key, err := os.ReadFile(path)\n\t_ = trust.ReadSecret"},
	}
}
