package mutants

// actorCallMutants are faults in calls to actors without the Go type, and in what is shown of them.
func actorCallMutants() []mutant {
	const list, calls, explain = "fdbmodel/actors/list.go", "futures/actors.go", "fdbmodel/inspect/explain_actor.go"
	model, client := suites{{of: "fdbmodel/actors", run: "Lists"}}, suites{{of: "futures", run: "Actor|WrongNames"}}
	read := suites{{of: "futures", run: "Reader"}}
	explained := suites{{of: "fdbmodel/inspect", run: "ExplainOf"}}
	changes := suites{{of: "futures", run: "Deadline|Reminder|Delete"}}
	return []mutant{
		{name: "what a call sends has its deadline", file: "futures/method.go", by: changes,
			old: "context.WithValue(ctx, taskcontext.DeadlineKey{}, nil)", new: "ctx"},
		{name: "two reminders of a name in a call are both made", file: "workers/turn.go", by: changes,
			old: "\tt.submits = slices.Delete(t.submits, at, at+1)\n", new: ""},
		{name: "a state that is changed after a delete is dropped", file: "futures/actor.go", by: changes,
			old: "!a.isSame(c.Value, j.last)", new: "false"},
		{name: "a part that is set after a delete is dropped", file: "workers/turnparts.go", by: changes,
			old: "\tif of.bare {\n", new: "\tif false {\n"},
		{name: "a call sees the parts that it has deleted", file: "workers/turnparts.go", by: changes,
			old: "\tif bare {\n", new: "\tif bare && false {\n"},
		{name: "a list of states takes any memory", file: list, by: model,
			old: "i < len(list) && size <= MaxTurnBytes", new: "i < len(list)"},
		{name: "a list of states ends where they are large", file: list, by: model,
			old: "more || len(asked) < len(list)", new: "more"},
		{name: "a state that is not that of its head is listed", file: list, by: model,
			old: "one.Err == nil && !one.Head.fits(one.Value)", new: "false"},
		{name: "a call by a wrong name of a method waits", file: calls, by: client,
			old: "if len(others) > 0 {", new: "if len(others) < 0 {"},
		{name: "a call by a wrong name of a type makes lanes", file: calls, by: client,
			old: "if err != nil || !knows {", new: "if knows && err != nil {"},
		{name: "readers wait in line", file: calls, by: read,
			old: "if err == nil && m.reads {", new: "if err == nil && m.reads && false {"},
		{name: "a reader is called where a worker has a method", file: calls, by: read,
			old: "return true, read && !change, nil", new: "return true, read, nil"},
		{name: "what is known of a method counts for ever", file: calls, by: read,
			old: "is && now.Sub(seen.(calledMethod).at) < methodsKnown {", new: "is {"},
		{name: "a method is called by the arguments of a reader", file: "futures/method.go", by: read,
			old: "if lane.Kind != actors.LaneKind(m.actor) {", new: "if lane.Kind != actors.LaneKind(m.actor) && false {"},
		{name: "a call runs that another lane has admitted", file: explain, by: explained,
			old: "e.row.HasSlot() && e.row.Spec.Lane == lane", new: "e.row.HasSlot()"},
		{name: "a call that waits runs", file: explain, by: explained,
			old: "e.row.HasSlot() && e.row.Spec.Lane == lane", new: "e.row.Spec.Lane == lane"},
	}
}
