package mutants

// repairMutants are faults in the repair of keys that follow from others.
func repairMutants() []mutant {
	const repair, mend = "fdbmodel/audit/repair.go", "fdbmodel/audit/mend.go"
	room := suites{{of: "fdbmodel/audit", run: "Meets|Revive|Released|Unknown|Breakage|ALane"}}
	return []mutant{
		{name: "a repair does not see that a future moves on", file: repair, by: room,
			old: "p := k.newPage(tx)\n",
			new: "p := k.newPage(tx.Snapshot())\n"},
		{name: "two repairs both correct a counter", file: mend, by: room,
			old: "\ttx.AddWriteConflictKey(fence)\n",
			new: ""},
		{name: "keys of a future whose records contradict each other are repaired", file: repair, by: room,
			old: "\tif !sound {\n",
			new: "\tif !sound && false {\n"},
		{name: "the place of a future without a spec is cleared", file: repair, by: room,
			old: "if p.partial[r.ID] {",
			new: "if p.partial[r.ID] && false {"},
		{name: "a future is offered whose inputs are not realized", file: "fdbmodel/audit/place.go", by: room,
			old: "in.State() != layout.Realized && !wasLost(in)",
			new: "in.State().Terminal() && !wasLost(in) && false"},
		{name: "a use that an end has released is left to a mark that does not release it", file: "fdbmodel/audit/edges.go",
			by:  room,
			old: "!(*marked && r.Spec.InputsRef != nil)",
			new: "!*marked"},
		{name: "a lane admits by a count that leaves out futures", file: repair, by: room,
			old: "k.repairs == nil || !k.repairs.uncounted",
			new: "k.repairs == nil || true || !k.repairs.uncounted"},
		{name: "a total is written without the lanes that can't be read", file: mend,
			by:  suites{{of: "fdbmodel/audit", run: "ATotal"}},
			old: "c.isKnown(ctx, tx, key)\n\t\t\tif done {",
			new: "c.isKnown(ctx, tx, key)\n\t\t\tif err == nil {"},
		{name: "lanes of a newer version are miscounted", file: "fdbmodel/audit/counters.go",
			by:  suites{{of: "fdbmodel/audit", run: "TestCheckNotes"}},
			old: "err == nil {\n\t\t\terr = c.leaveOut(",
			new: "err != nil {\n\t\t\terr = c.leaveOut("},
	}
}
