package careless

// actorCalls are those of actors, of which the walk has none.
func actorCalls() []maker {
	return []maker{
		{"actor list", 1, actorCall("list", []string{}, []string{"t"}, []string{"a b"}, []string{"t", "--limit", "0"},
			[]string{"--after", "k"}, []string{"t", "--after", "k"})},
		{"actor show", 1, actorCall("show", byActor()...)},
		{"actor parts", 1, actorCall("parts", append(byActor(), []string{"t/k", "--limit", "0"},
			[]string{"t/k", "--after", "a"})...)},
		{"actor call", 1, actorCall("call", append(byActor(), []string{"t/k", "m"}, []string{"t/k", "m", "1"},
			[]string{"t/k", "m", "{"}, []string{"t/k", "m", "1", "--key", ""}, []string{"t/k", "m", "-1"},
			[]string{"t/k", "a b"}, []string{"t/k", ""})...)},
		{"actor delete", 1, actorCall("delete", byActor()...)},
		{"actor export", 1, actorCall("export", []string{"t"}, []string{"a b"}, []string{})},
	}
}

// byActor names actors that do not exist, or can't.
func byActor() [][]string {
	return [][]string{{"t/k"}, {"t/a/b c"}, {"t/.."}, {"t"}, {"/k"}, {"a b/k"}, {}, {"t/k", "m", "1", "x"}}
}

func actorCall(command string, args ...[]string) func(*walk) call {
	return func(w *walk) call {
		return call{args: append([]string{"actor", command}, pick(w, args)...),
			codes: []int{codeOK, codeNotFound, codeUsage}}
	}
}
