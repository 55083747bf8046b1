package mutants

const inEngine = "fdbmodel/kv/embedded/"

// engine are the suites of the embedded engine.
func engine() suites {
	return suites{{of: "fdbmodel/kv/embedded"}, {of: "fdbmodel/kv/kvtest"}}
}

// turns are the tests of transactions that take turns.
func turns() suites { return suites{{of: "fdbmodel/kv/embedded", run: "Turn"}} }

// marks are the tests of what is known to be synced.
func marks() suites { return suites{{of: "fdbmodel/kv/embedded", run: "Mark|TornTail|Images|Loss"}} }

// orderMutants are faults in the order and the conflicts of commits.
func orderMutants() []mutant {
	const file = inEngine + "sequence.go"
	return []mutant{
		{name: "a key that was read is not checked", file: file, by: engine(),
			old: "if v := q.index.changedKey(s.begin); v > since {",
			new: "if v := q.index.changedKey(s.begin); v > since && false {"},
		{name: "a change at the version after the read passes", file: file, by: engine(),
			old: "if v := q.index.changedKey(s.begin); v > since {",
			new: "if v := q.index.changedKey(s.begin); v > since+1 {"},
		{name: "a range that was read is not checked against rows", file: file, by: engine(),
			old: "if v := q.index.changed(s.begin, s.end, since); v != 0 {",
			new: "if v := q.index.changed(s.begin, s.end, since); v != 0 && false {"},
		{name: "a key that was read is not checked against cleared ranges", file: file, by: engine(),
			old: "return q.ranges.written(s.begin, work.after(s.begin), since)",
			new: "return 0"},
		{name: "a range that was read is not checked against cleared ranges", file: file, by: engine(),
			old: "return q.ranges.written(s.begin, s.end, since)",
			new: "return 0"},
		{name: "a read version that was forgotten is not too old", file: file, by: engine(),
			old: "if r.readVersion < q.line.lowest() {",
			new: "if r.readVersion < q.line.lowest() && false {"},
		{name: "a declared write of a key conflicts with nobody", file: file, by: engine(),
			old: "\t\t\tq.ranges.addKey(s.begin, v)\n\t\t} else {",
			new: "\t\t} else {"},
		{name: "rows that are deleted since the last checkpoint come back where all is cold", file: inEngine + "evict.go",
			by:  suites{{of: "fdbmodel/kv/embedded", run: "DeletedRowsStayGone"}},
			old: "if leaf.changed > through {", new: "if leaf.changed > through && false {"},
		{name: "rows of tables are seen in leaves whose rows are gone", file: inEngine + "readbelow.go",
			by:  suites{{of: "fdbmodel/kv/embedded", run: "QueuesByChance"}},
			old: "c.hides = true", new: "c.hides = false"},
		{name: "transactions that have met take no turns", file: inEngine + "transaction.go", by: turns(),
			old: "t.store.turns.meet(t.options.Tag)", new: "_ = t.store.turns.meet"},
		{name: "a transaction that is cancelled keeps its turn", file: inEngine + "transaction.go", by: turns(),
			old: "\tt.state = txOver\n\tt.passTurn(kv.NoVersion)\n", new: "\tt.state = txOver\n"},
		{name: "a transaction that is cancelled as it waits keeps its turn", file: inEngine + "transaction.go", by: turns(),
			old: "\t\tt.store.turns.end(turn, kv.NoVersion)\n", new: ""},
		{name: "a turn does not read what lingers", file: inEngine + "transaction.go", by: turns(),
			old: "max(t.epoch.version, t.least)", new: "t.epoch.version"},
		{name: "a turn is never taken from one that stopped", file: inEngine + "turns.go", by: turns(),
			old: "turnWait = 250", new: "turnWait  = 250_000"},
		{name: "all wait for one that stopped", file: inEngine + "turns.go", by: turns(),
			old: "of.taken = taken", new: "_ = taken"},
		{name: "any number of tags takes turns", file: inEngine + "turns.go", by: turns(),
			old: "if of == nil && len(k.byTag) >= maxTurns {", new: "if of == nil && false {"},
		{name: "turns go on for ever", file: inEngine + "turns.go", by: turns(),
			old: "left <= 0 || left > turnsFor", new: "left > turnsFor"},
		{name: "a conflict waits for what lingers", file: inEngine + "checkpoint.go",
			by:  suites{{of: "fdbmodel/kv/embedded", run: "ALingering"}},
			old: "s.disk.pipeline.hurry()", new: ""},
		{name: "a clear of an absent key conflicts with nobody", file: file, by: engine(),
			old: "if !q.index.clear(key, v) {\n\t\tq.ranges.addKey(key, v)",
			new: "if !q.index.clear(key, v) {"},
		{name: "an atomic operation without effect conflicts with nobody", file: file, by: engine(),
			old: "\t\tq.ranges.addKey(o.key, v)\n\tcase stays:",
			new: "\tcase stays:"},
		{name: "a cleared range conflicts with nobody", file: file, by: engine(),
			old: "\t\tq.ranges.add(o.key, o.value, c.Version)\n",
			new: ""},
		{name: "a stamp is that of the commit before", file: file, by: engine(),
			old: "binary.BigEndian.PutUint64(r.committed.Stamp[:], uint64(v))",
			new: "binary.BigEndian.PutUint64(r.committed.Stamp[:], uint64(v-1))"},
		{name: "rows are collected one version early", file: file, by: engine(),
			old: "q.index.collect(floor)",
			new: "q.index.collect(floor + 1)"},
		{name: "a second opening in one process gives the lock away", file: inEngine + "private.go",
			by:  suites{{of: "fdbmodel/kv/embedded", run: "TestASecondOpeningKeepsTheLock"}},
			old: "|os.O_EXCL, privateMode)\n\tif err == nil {\n\t\terr = f.Close()\n\t}\n\tif err != nil && ",
			new: ", privateMode)\n\tif err == nil {\n\t\terr = f.Close()\n\t}\n\tif err != nil && "},
		{name: "a commit asks for watches before it takes the lock", file: file,
			by: suites{{of: "fdbmodel/kv/embedded", run: "TestConformance$/memory/Watch/Armed",
				flags: []string{"-count=20"}}}, // one run meets it every second time
			old: "x := q.index\n\tfor ops := r.work.ops; len(ops) > 0; {\n" +
				"\t\tn := min(len(ops), lockedRows)\n\t\tx.mu.Lock()\n" +
				"\t\t// A watch that is armed after this question sees what this part writes.\n" +
				"\t\tx.watched = q.watch.live.Load() > 0\n",
			new: "x := q.index\n\tx.watched = q.watch.live.Load() > 0\n\tfor ops := r.work.ops; len(ops) > 0; {\n" +
				"\t\tn := min(len(ops), lockedRows)\n\t\tx.mu.Lock()\n"},
		{name: "a watch is reviewed before it counts", file: inEngine + "watch.go",
			by:  suites{{of: "fdbmodel/kv/embedded", run: "TestConformance$/memory/Watch|DuringASync"}},
			old: "if t.review(w) {\n\t\tt.pending = append(t.pending, w)\n\t}\n}\n\n// touched",
			new: "t.review(w)\n}\n\n// touched"},
		{name: "the largest end of a run of ranges is the last one", file: inEngine + "ranges.go", by: engine(),
			old: "if i > 0 && bytes.Compare(reach[i-1], r.end) > 0 {",
			new: "if i > 0 && bytes.Compare(reach[i-1], r.end) > 0 && false {"},
		{name: "a version is dropped under its readers", file: inEngine + "timeline.go", by: engine(),
			old: "|| t.epochs.len() > maxEpochs) && oldest.close()) {",
			new: "|| t.epochs.len() > maxEpochs)) {"},
		{name: "an old version stays readable for ever", file: inEngine + "timeline.go", by: engine(),
			old: "if !old && all[i].enter() {",
			new: "if (!old || old) && all[i].enter() {"},
		{name: "an abandoned commit gives its memory back", file: inEngine + "transaction.go", by: engine(),
			old: "\tif r != nil {\n\t\tt.work = nil\n\t}\n\tt.close(err)",
			new: "\tt.close(err)"},
		{name: "a transaction of any size is committed", file: inEngine + "transaction.go", by: engine(),
			old: "if t.work.size > kv.MaxTxSize {",
			new: "if t.work.size > 2*kv.MaxTxSize {"},
	}
}

// logMutants are faults in what makes commits durable, and in recovery.
func logMutants() []mutant {
	const record = inEngine + "recover.go"
	return []mutant{
		{name: "a commit is answered before its sync", file: inEngine + "pipeline.go", by: engine(),
			old: "err := p.disk.wait()",
			new: "err := error(nil)"},
		{name: "a sync of the log is skipped", file: inEngine + "segment.go", by: engine(),
			old: "return s.file.SyncData()",
			new: "return nil"},
		{name: "a failed sync of the log counts", file: inEngine + "segment.go", by: engine(),
			old: "return s.file.SyncData()",
			new: "_ = s.file.SyncData()\n\treturn nil"},
		{name: "a manifest is installed before its name is durable", file: inEngine + "manifest.go", by: engine(),
			old: "if err == nil {\n\t\terr = dir.Sync()\n\t}",
			new: ""},
		{name: "a manifest is installed before its content is durable", file: inEngine + "manifest.go", by: engine(),
			old: "return errors.Join(f.Sync(), f.Close())",
			new: "return f.Close()"},
		{name: "the checksum of the manifest is not checked", file: inEngine + "manifest.go", by: engine(),
			old: "if !found || string(sum) != checksumLine(body) {",
			new: "if !found || sum == nil {"},
		{name: "a set of an empty value is not logged", file: inEngine + "sequence.go", by: engine(),
			old: "if !q.recorded {",
			new: "if !q.recorded || len(value) == 0 {"},
		{name: "a value that the log has is read without its checksum", file: inEngine + "spill.go", by: engine(),
			old: "castagnoli) != sum {",
			new: "castagnoli) != sum && false {"},
		{name: "a clear is not logged", file: inEngine + "sequence.go", by: engine(),
			old: "if q.recorded {\n\t\tb.body = appendClear(",
			new: "if q.recorded && false {\n\t\tb.body = appendClear("},
		{name: "a cleared range is not logged", file: inEngine + "sequence.go", by: engine(),
			old: "if (removed > 0 || below) && q.recorded {",
			new: "if (removed > 0 || below) && q.recorded && false {"},
		{name: "a gap between two records is read over", file: record, by: engine(),
			old: "if h.seq != j.next {",
			new: "if h.seq != j.next && false {"},
		{name: "a sealed segment may end early", file: record, by: engine(),
			old: "\tif s.Sealed {\n\t\treturn j.dir.corrupt(r.name, \"record %d is missing",
			new: "\tif s.Sealed && false {\n\t\treturn j.dir.corrupt(r.name, \"record %d is missing"},
		{name: "damage in front of synced records is read as the end", file: record, by: engine(),
			old: "j.known = j.known.or(promised(b, j.store))",
			new: "_ = promised(b, j.store)"},
		{name: "a mark claims what was written and not synced", file: inEngine + "mark.go", by: marks(),
			old: "attestation{seq: j.durable, version: j.version}",
			new: "attestation{seq: j.durable + 1, version: j.version}"},
		{name: "an opening does not look at the mark", file: inEngine + "mark.go", by: marks(),
			old: "return mark{segment: h.seq, known:",
			new: "h = header{}\n\treturn mark{segment: h.seq, known:"},
		{name: "versions go on where they ended before a crash", file: record, by: engine(),
			old: "max(j.version, j.manifest.Version, j.known.version) + versionJump",
			new: "max(j.version, j.manifest.Version, j.known.version)"},
	}
}

// endMutants are faults at the end of the log, where an opening goes on.
func endMutants() []mutant {
	return []mutant{
		{name: "the end of the log is not recorded at a close", file: inEngine + "begin.go", by: engine(),
			old: "m.Segments[len(m.Segments)-1].seal(j.next-1, j.current.written)",
			new: "_ = j.current.written"},
		{name: "what was read of the log counts as synced", file: inEngine + "begin.go", by: engine(),
			old: "t.synced = max(t.synced, h.durable)",
			new: "t.synced = max(t.synced, h.seq)"},
		{name: "a store that was not closed is shown as it was read", file: inEngine + "open.go", by: engine(),
			old: "if s.disk.journal.doubtful() {",
			new: "if false {"},
		{name: "a file that the manifest may name is removed", file: inEngine + "begin.go", by: engine(),
			old: "if !errors.Is(err, errInstall) {",
			new: "if true {"},
		{name: "a segment without a record is read as empty", file: inEngine + "begin.go", by: engine(),
			old: "First: first, Synced: j.next}",
			new: "First: first}"},
	}
}

// readMutants are faults in what transactions read and see.
func readMutants() []mutant {
	return []mutant{
		{name: "a commit succeeds after a read of what is unreadable", file: "fdbmodel/kv/embedded/txread.go",
			by:  suites{{of: "fdbmodel/kv/embedded", run: "Conformance"}},
			old: "\t\tt.fail(err)\n",
			new: ""},
		{name: "a key that is read is not in the conflict set", file: inEngine + "txread.go", by: engine(),
			old: "if serializable {\n\t\tt.work.addRead(",
			new: "if serializable && false {\n\t\tt.work.addRead("},
		{name: "a range that is read is not in the conflict set", file: inEngine + "txread.go", by: engine(),
			old: "if serializable {\n\t\tt.addRangeRead(",
			new: "if serializable && false {\n\t\tt.addRangeRead("},
		{name: "the last row of a page is not in the conflict set", file: inEngine + "txread.go", by: engine(),
			old: "end = w.after(last)",
			new: "end = last"},
		{name: "a stamped value can be read before the commit", file: inEngine + "overlay.go", by: engine(),
			old: "if found && p.kind == unreadable {",
			new: "if found && p.kind == unreadable && false {"},
		{name: "a row is seen before its version", file: inEngine + "index.go", by: engine(),
			old: "if e.born() > v {",
			new: "if e.born() > v+1 {"},
		{name: "a cleared row is seen for a version more", file: inEngine + "index.go", by: engine(),
			old: "if e.absent() && e.died() <= v {",
			new: "if e.absent() && e.died() < v {"},
		{name: "a range is cleared with its end", file: inEngine + "index.go", by: engine(),
			old: "if bytes.Compare(x.at(r).key(), end) >= 0 {",
			new: "if bytes.Compare(x.at(r).key(), end) > 0 {"},
		{name: "a watch on a row that is not published is forgotten", file: inEngine + "watch.go", by: engine(),
			old: "return newest > at",
			new: "return newest > at && false"},
		{name: "a watch does not look when it is armed", file: inEngine + "watch.go", by: engine(),
			old: "if t.review(w) {\n\t\tt.pending",
			new: "if false && t.review(w) {\n\t\tt.pending"},
	}
}
