package mutants

// askMutants are faults in what modules ask.
func askMutants() []mutant {
	asks := suites{{of: "workers/wasm", run: "Asks|Asked|Input|Answer|Imports"}}
	steps := suites{{of: "workers", run: "Module"}}
	const state = "workers/module_state.go"
	const host, child = "workers/wasm/host.go", "workers/wasm/child_streams_unix.go"
	return []mutant{
		{name: "asking: a start that asked serves others", file: "workers/wasm/streams.go", by: asks,
			old: "s.hasRead || s.hasAsked ||", new: "s.hasRead ||"},
		{name: "asking: an answer takes the place of input", file: child, by: asks,
			old: "in.rest = bytes.Clone(in.rest)", new: "_ = bytes.Clone(in.rest)"},
		{name: "asking: an answer takes the place of standard input", file: "workers/wasm/child_unix.go", by: asks,
			old: "call.stdin = bytes.Clone(call.stdin)", new: "_ = bytes.Clone(call.stdin)"},
		{name: "asking: a function asks with what is not its own", file: host, by: asks,
			old: "Memory().Read(at, size); within {", new: "Memory().Read(at, size); within || at > 0 {"},
		{name: "asking: a child asks without end", file: "workers/wasm/flow_unix.go", by: asks,
			old: "len(part.value) > maxAsked-len(f.asked) {", new: "len(part.value) > maxAsked {"},
		{name: "asking: a function past its time asks on", file: host, by: asks,
			old: "if s.ctx.Err() != nil {\n\t\tleave()\n\t}\n\ts.hasAsked = true", new: "s.hasAsked = true"},
		{name: "asking: a process past its time is answered", file: "workers/wasm/flow_unix.go",
			by:  suites{{of: "workers/wasm", run: "PastItsTime", flags: []string{"-count=60"}}},
			old: "f.failed != nil || f.ctx.Err() != nil:", new: "f.failed != nil:"},
		{name: "asking: a large value is refused without being seen", file: host,
			by:  suites{{of: "workers/wasm", run: "AskingIsBounded"}},
			old: "maxAsked = layout.MaxPut + 1", new: "maxAsked = layout.MaxPut"},
		{name: "asking: a module lends its slot", file: "workers/steplog.go", by: steps,
			old: " && !isModule(f.Spec.Function) {", new: " {"},
		{name: "asking: an outer step of a module is recorded as the inner one", file: "workers/module_host.go", by: steps,
			old: `name == "" || name != h.name {`, new: `name == "" || h.name == "" {`},
		{name: "asking: a step of a module is the memory of another", file: "workers/module_host.go", by: steps,
			old: "Value: bytes.Clone(value),", new: "Value: value[:len(bytes.TrimSpace(value))],"},
		{name: "asking: a module asks for steps without end", file: "workers/module_host.go", by: steps,
			old: "h.asked++; h.asked > steps.Max {", new: "h.asked++; h.asked > 2*steps.Max {"},
		{name: "asking: a module that failed changes its actor", file: "workers/middleware.go", by: steps,
			old: "return nil, m.job.overTurn(m.failure)", new: "return nil, m.failure"},
		{name: "asking: a second call goes on with the state of the first", file: "workers/module_host.go", by: steps,
			old: "\th.job.dropTurn()\n", new: ""},
		{name: "asking: a module leaves its actor as it was", file: "workers/module_host.go", by: steps,
			old: "h.failed = h.job.overTurn(nil)", new: "h.failed = nil"},
		{name: "asking: a module changes its actor in a step", file: state, by: steps,
			old: "if h.name != \"\" {", new: "if h.name != \"\" && false {"},
		{name: "asking: a state that a module leaves is the memory of another", file: state, by: steps,
			old: "m.value, m.exists, m.changed = bytes.Clone(value), exists, true",
			new: "m.value, m.exists, m.changed = value, exists, true"},
		{name: "asking: a module takes the state of newer code", file: state, by: steps,
			old: "s.Head.Schema > 0 {", new: "s.Head.Schema > 2 {"},
		{name: "asking: a call by the wrong name of a module makes lanes", file: "futures/actors.go",
			by:  suites{{of: "futures", run: "CallsOfModules"}},
			old: "c.cluster.ResolveFunction(ctx, method); err == nil {",
			new: "c.cluster.ResolveFunction(ctx, method); err == nil || true {"},
		{name: "asking: a module whose step is lost has failed", file: "workers/module.go",
			by:  suites{{of: "workers", run: "AStepOfAModuleWhose|MisusedSteps"}},
			old: "if host.failed != nil {", new: "if host.failed != nil && false {"},
	}
}
