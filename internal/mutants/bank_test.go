package mutants

// bankMutants are faults of turns that money of killed processes finds within seconds.
func bankMutants() []mutant {
	const turn = "workers/turn.go"
	by := suites{{of: "internal/bank", run: "TestMoneyOfKilledProcesses"}}
	return []mutant{
		{name: "a turn that changes states counts on ones that have changed", file: turn, by: by,
			old: "len(beside.Write) == 0 && ", new: ""},
		{name: "a turn that has a state from memory has seen one version", file: turn, by: by,
			old: "t.versions += 2 // it is of an unknown one", new: "t.versions++"},
		{name: "a checker of sums lets accounts pay what they have not", file: "internal/bank/sum_test.go",
			by:  suites{{of: "internal/bank", run: "Checkers"}},
			old: "if a.balance() < 0 {", new: "if false {"},
		{name: "a checker of accounts overlooks stale reads", file: "internal/bank/linear_test.go",
			by:  suites{{of: "internal/bank", run: "Checkers"}},
			old: "return out == told{s, c.amount != 0}, s", new: "return c.amount == 0 || out == told{s, true}, s"},
		{name: "a checker of ledgers overlooks what nobody made", file: "internal/bank/ledger_test.go",
			by:  suites{{of: "internal/bank", run: "Checkers"}},
			old: "if h.payments[m.Name] == nil {", new: "if false {"},
	}
}
