package mutants

// hintMutants are faults in hints, which nothing else would show: the future ends all
// the same, later or at a higher cost.
func hintMutants() []mutant {
	const sender = "workers/objects/hints/hints.go"
	model := suites{{of: "fdbmodel", run: "Hint|IdleWorkerPasses"}}
	client := suites{{of: "futures", run: "Hint"}}
	hints := suites{{of: "workers/objects/hints"}}
	return []mutant{
		{name: "an idle worker looks again for what its process has claimed", file: "fdbmodel/wake.go", by: model,
			old: "Gone: gone, Elsewhere: r.elsewhere(ctx, req.Defers)}",
			new: "Elsewhere: r.elsewhere(ctx, req.Defers)}"},
		{name: "what somebody looks for is woken for once more", file: "fdbmodel/internal/notify/hints.go", by: model,
			old: "placed[d] = left - hinter.Hint(",
			new: "placed[d] = left - 0*hinter.Hint("},
		{name: "hints of others are heeded without end", file: "fdbmodel/internal/notify/hints.go", by: model,
			old: "return !now.Before(r.paced)",
			new: "return !now.Before(r.paced) || true"},
		{name: "looks in vain are forgotten at once", file: "fdbmodel/internal/notify/hints.go",
			by:  append(suites{{of: "fdbmodel/internal/notify"}}, client[0]),
			old: "p.next = now.Add(max(p.wait, least))",
			new: "p.next = now.Add(least)"},
		{name: "a hint at a shard that there is not is heeded", file: "fdbmodel/internal/notify/demand.go", by: model,
			old: "shard < 0 || shard >= int64(shards)",
			new: "shard < 0"},
		{name: "no client hears of mail", file: "fdbmodel/write.go", by: append(suites{{of: "fdbmodel/mailbox"}}, client[0]),
			old: "if len(p.mail) > 0 {",
			new: "if false {"},
		{name: "a worker tells its clients nothing", file: "workers/hinted.go", by: client,
			old: "session == \"\"",
			new: "session != \"\""},
		{name: "a worker without hints takes some", file: "workers/keep.go",
			by:  suites{{of: "workers", run: "TakeHints"}},
			old: "if !w.options.NoHints {",
			new: "if !w.options.NoHints || true {"},
		{name: "a client without hints sends some", file: "futures/hints.go", by: client,
			old: "c.manual() || c.options.NoHints",
			new: "c.manual()"},
		{name: "busy workers are asked again and again", file: sender, by: hints,
			old: "w.wait = min(max(2*w.wait, refusedMin), refusedMax)",
			new: "w.wait = 0"},
		{name: "a worker that does not answer is asked again", file: sender, by: hints,
			old: "w.wait = min(max(2*w.wait, hintTimeout), lateMax)",
			new: "w.wait = 0"},
		{name: "a worker that is gone is kept", file: sender, by: hints,
			old: "!errors.Is(err, context.Canceled):\n\t\ts.drop(at)",
			new: "!errors.Is(err, context.Canceled):"},
		{name: "connections without end", file: sender, by: hints,
			old: "lines >= maxLines && !s.evict(now, refused) ||",
			new: "lines >= 100*maxLines && !s.evict(now, refused) ||"},
		{name: "more heed a hint than it is for", file: "workers/objects/peer/hints.go",
			by:  suites{{of: "workers/objects/peer", run: "Hint"}},
			old: "return min(heeded, n), nil",
			new: "return heeded, nil"},
		{name: "a hint of any size", file: "workers/objects/peer/hints.go",
			by:  suites{{of: "workers/objects/peer", run: "HostileHints"}},
			old: "if length > MaxHint {",
			new: "if false {"},
	}
}
