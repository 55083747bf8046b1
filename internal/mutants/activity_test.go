package mutants

// activityMutants are faults in what is kept of what happened.
func activityMutants() []mutant {
	const meter, keeper = "fdbmodel/internal/meter/meter.go", "fdbmodel/activity/keeper.go"
	room := suites{{of: "fdbmodel/activity"}, {of: "fdbmodel", run: "TestMachine"}}
	return []mutant{
		{name: "a worker writes what a janitor has folded", file: meter, by: room,
			old: "return MinuteIsClosed(at, now) })",
			new: "return MinuteIsClosed(at, now) && false })"},
		{name: "the late twin of a heartbeat restores what it has", file: meter, by: room,
			old: "\t\ttx.AddReadConflictKey(records[i].key)\n",
			new: ""},
		{name: "a janitor goes by its own clock", file: keeper, by: room,
			old: "meter.MinuteIsClosed(at, time.UnixMilli(last.At))",
			new: "last.At >= 0"},
		{name: "what a worker may still write is not folded later", file: keeper, by: room,
			old: "open = min(open, at) }",
			new: "open = max(open, at) }"},
		{name: "each janitor counts futures", file: keeper, by: room,
			old: "err != nil || sum.CountedAt != 0 {",
			new: "err != nil {"},
		{name: "a clock that is set back stops the folding", file: keeper, by: room,
			old: "from := min(k.folded, until)",
			new: "from := k.folded"},
		{name: "what is folded twice counts twice", file: keeper, by: room,
			old: "\t\t\ttx.Clear(meter.Keys(keys).Activity(key))\n",
			new: ""},
		{name: "a cancelled future has failed", file: "fdbmodel/ends.go", by: room,
			old: "of == layout.Failed && !c.After.Cancelled",
			new: "of == layout.Failed"},
	}
}
