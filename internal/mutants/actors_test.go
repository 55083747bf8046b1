package mutants

// actorMutants are faults in what the end of an attempt writes of actors, and submits.
func actorMutants() []mutant {
	const beside, turn = "fdbmodel/beside.go", "workers/turn.go"
	model := suites{{of: "fdbmodel/actors"}}
	calls := suites{{of: "futures", run: "Actor|Turn|Call|Send|State|Reminder|OneTime"}}
	return []mutant{
		{name: "results of one transaction don't see each other", file: beside, by: model,
			old: "\tif e.written != nil {\n", new: "\tif false {\n"},
		{name: "a result counts on a state that has changed", file: beside, by: model,
			old: "(value == nil) != (item.Value == nil) || !bytes.Equal(value, item.Value)",
			new: "false && bytes.Equal(value, item.Value)"},
		{name: "a state that is gone is an empty one", file: beside, by: model,
			old: "(value == nil) != (item.Value == nil) || ", new: ""},
		{name: "the end of a turn looks at the time of its claim", file: "fdbmodel/finish.go", by: calls,
			old: "f.pinned = recent && tx.Number == 1", new: "f.pinned = false"},
		{name: "a state is not written", file: beside, by: model,
			old: "\t\t\ttx.Set(item.Key, item.Value)\n", new: "\t\t\t_ = item.Key\n"},
		{name: "one bad submission keeps the others of a transaction from ending", file: beside, by: model,
			old: "\t\treturn one.completion, one.error\n", new: "\t\treturn 0, nil\n"},
		{name: "the first attempt of a transaction is at fault", file: beside, by: model,
			old: "&submitError{f.submitter[at], ", new: "&submitError{0, "},
		{name: "futures of a repeated transaction come twice", file: "fdbmodel/finish.go", by: model,
			old: "f.outcomes, f.submits, f.submitter = make([]Outcome, len(completions)), nil, nil",
			new: "f.outcomes = make([]Outcome, len(completions))"},
		{name: "nothing says whether a state was written", file: "fdbmodel/finish.go", by: model,
			old: "\tf.done(result.Version)\n", new: ""},
		{name: "a version is that of its number", file: "fdbmodel/actors/turn.go", by: model,
			old: "Call: f.ID, Token: f.Token,", new: "Call: layout.ID{1}, Token: layout.Token{},"},
		{name: "a turn of a call that middleware dropped counts", file: turn, by: calls,
			old: "\tj.turnSoFar = nil\n", new: "\t_ = j.turnSoFar\n"},
		{name: "a call that fails has its turn count", file: turn, by: suites{{of: "workers", run: "Turn"}},
			old: "\tif !counts {\n", new: "\tif false {\n"},
		{name: "a turn takes more after its function", file: turn, by: calls,
			old: "\tt.over = true\n", new: ""},
		{name: "what is sent is left out", file: turn, by: calls,
			old: "c.Beside, c.Submits = t.beside, t.submits", new: "c.Beside = t.beside"},
		{name: "a state in memory outlives a conflict", file: turn, by: suites{{of: "workers", run: "Warm"}},
			old: "if version != kv.NoVersion && s.Exists()", new: "if s.Exists()"},
		{name: "a deleted actor keeps its state", file: "futures/actor.go", by: calls,
			old: "\t\tall[0].deleted = true\n", new: "\t\t_ = all\n"},
		{name: "a turn that changes nothing counts on states of two versions", file: turn, by: calls,
			old: "t.versions == 1 && ", new: ""},
		{name: "a turn that sends counts on a state that has changed", file: turn, by: calls,
			old: " && len(t.submits) == 0 {", new: " {"},
		{name: "reminders pile up", file: "futures/method.go", by: calls,
			old: "OnConflict: ConflictReplace", new: "OnConflict: ConflictReturn"},
		{name: "a head without a state is sound", file: "fdbmodel/audit/actors.go",
			by:  suites{{of: "fdbmodel/audit", run: "Broken"}},
			old: "\t\t\tp.broken(InvariantActor, it.Raw, \"actor %s has a head and no state\", ref)\n", new: ""},
	}
}
