package mutants

// timeMutants are faults in schedules and in what ends futures that wait too long.
func timeMutants() []mutant {
	const schedule, firing = "fdbmodel/schedule/schedule.go", "fdbmodel/schedule/fire.go"
	const overdue = "fdbmodel/maintenance/due.go"
	schedules := suites{{of: "fdbmodel/schedule"}}
	late := suites{{of: "fdbmodel", run: "Overdue|Expire|Deadline"}}
	return []mutant{
		{name: "a time fires again after a change of its timetable", file: schedule, by: schedules,
			old: "max(now-1, lastTime(&old.State))", new: "now-1"},
		{name: "a trigger stands for a time of its schedule", file: schedule, by: schedules,
			old: "if !run.Trigger {", new: "if true {"},
		{name: "a change of dates left out changes nothing", file: schedule, by: schedules,
			old: "a.Until == b.Until &&\n\t\treflect.DeepEqual(a.Except, b.Except)", new: "a.Until == b.Until"},
		{name: "a pause is lost while its schedule fires", file: firing, by: schedules,
			old: "before, err := l.read(ctx, tx, name)\n\t\t\tif",
			new: "before, err := l.read(ctx, tx.Snapshot(), name)\n\t\t\tif"},
		{name: "a time on the edge of the grace is missed as well", file: firing, by: schedules,
			old: "late := edge.Add(-time.Millisecond)", new: "late := edge"},
		{name: "a missed time fires beside one in time", file: firing, by: schedules,
			old: "if len(timely) == 0 {", new: "if true {"},
		{name: "nobody comes back for the rest of many times", file: firing, by: schedules,
			old: "\t\t\t\tagain = now\n", new: ""},
		{name: "schedules that can't fire hold up others", file: firing, by: schedules,
			old: "walk.after, next = due[len(due)-1].key, now", new: "walk.after, next = nil, now"},
		{name: "a deadline counts from the time of the schedule", file: firing, by: schedules,
			old: "spec.Deadline = now + s", new: "spec.Deadline = at + s"},
		{name: "nobody comes back for the rest of many overdue futures", file: overdue, by: late,
			old: "\t\t\tlater = now\n", new: "\t\t\t_ = later\n"},
		{name: "the attempt that failed after the deadline does not count", file: "fdbmodel/state/overdue.go", by: late,
			old: "\t\tcountAttempt(r, e, false)\n", new: ""},
		{name: "midnight belongs to the day before", file: "internal/timetable/timetable.go",
			by:  suites{{of: "internal/timetable"}},
			old: "after = t.endOfDay(next).Add(-time.Millisecond)", new: "after = t.endOfDay(next)"},
	}
}

// uniqueMutants are faults in names, in pauses and in what Finish tells.
func uniqueMutants() []mutant {
	const hold, free = "fdbmodel/unique.go", "fdbmodel/names/names.go"
	names := suites{{of: "fdbmodel/names"}}
	return []mutant{
		{name: "work that has begun is replaced", file: "fdbmodel/internal/unique/holder.go", by: names,
			old: "h.Row != nil && !h.Row.HasBegun() &&", new: "h.Row != nil &&"},
		{name: "work that has begun keeps its name until a claim", file: "fdbmodel/internal/unique/holder.go", by: names,
			old: "|| !h.Row.HasBegun()", new: "|| h.Row.State() != layout.Claimed"},
		{name: "two futures take a name at once", file: "fdbmodel/internal/unique/names.go", by: names,
			old: "n.asked[name] = Ask(tx, keys, name)",
			new: "n.asked[name] = Ask(tx.(kv.Tx).Snapshot(), keys, name)"},
		{name: "a retry takes a name that another one takes meanwhile", file: hold, by: names,
			old: "before.ID, unique.Ask(w.Tx, w.Keys, name))",
			new: "before.ID, unique.Ask(w.Tx.Snapshot(), w.Keys, name))"},
		{name: "a name is free for others in the transaction that replaces its holder", file: hold, by: names,
			old: "\tins.asked.names.Take(ins.subs[i].Spec.Unique.Name, i)\n", new: ""},
		{name: "a task that others of its call take is replaced", file: hold, by: names,
			old: " && row.Line == nil && !taken:", new: " && row.Line == nil && (!taken || true):"},
		{name: "a name is freed that is taken again meanwhile", file: free, by: names,
			old: "\t\t\t\ttx.AddReadConflictKey(item.Key)\n", new: ""},
		{name: "a pause has a worker take what it can't run", file: "fdbmodel/unpaused.go",
			by:  suites{{of: "fdbmodel/pauses"}},
			old: "return asked(function) && !r.cluster", new: "return !r.cluster"},
		{name: "nobody hears that a claim has ended", file: "fdbmodel/finish.go",
			by:  suites{{of: "fdbmodel/quota"}, {of: "workers", run: "Limit"}},
			old: "\tr.cluster.claims.Tell(-count(f.outcomes, Applied), result.Version)\n", new: ""},
	}
}
