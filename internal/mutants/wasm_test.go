package mutants

// wasmMutants are faults in what calls of modules leave to each other, and get at their start.
func wasmMutants() []mutant {
	return []mutant{
		{name: "wasm: a call finds the memory of the one before", file: "workers/wasm/memory_linux.go",
			by:  suites{{of: "workers/wasm", run: "TestMemory"}},
			old: "\t\t\tclear(near[at : at+clearedBlock])\n",
			new: ""},
		{name: "wasm: memory beyond what is cleared by hand stays", file: "workers/wasm/memory_linux.go",
			by:  suites{{of: "workers/wasm", run: "TestMemory"}},
			old: "return giveBack(used[kept:]) && wiped",
			new: "return giveBack(near[kept:]) && wiped"},
		{name: "wasm: data that overlap are joined", file: "workers/wasm/data.go",
			by:  suites{{of: "workers/wasm", run: "TestJoinedData|TestData"}},
			old: "gap := int64(next.at) - last.end(); {",
			new: "gap := max(int64(next.at)-last.end(), 0); {"},
		{name: "wasm: data of Go are not joined", file: "workers/wasm/data.go",
			by:  suites{{of: "workers/wasm", run: "TestData"}},
			old: "return cmp.Compare(a.at, b.at)",
			new: "return cmp.Compare(0, 0)"},
		{name: "wasm: data that the code numbers are joined", file: "workers/wasm/module.go",
			by:  suites{{of: "workers/wasm", run: "TestData"}},
			old: "section.err == nil && !p.counted {",
			new: "section.err == nil {"},
	}
}
