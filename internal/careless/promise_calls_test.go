package careless

// promiseCalls are those of promises.
func promiseCalls() []maker {
	return []maker{
		{"promise new", 1, promiseNew},
		{"promise resolve", 1, promiseCompleted("resolve", "1", "{")},
		{"promise reject", 1, promiseCompleted("reject", "no", "")},
		{"promise token", 1, promiseCompleted("token")},
		{"promise list", 1, fixed("promise list")},
	}
}

// promiseNew makes a promise that somebody completes, or a janitor ends.
func promiseNew(w *walk) call {
	flags := pick(w, [][]string{{"--expires", "1s"}, {"--expires", "1s", "--key", "p1"}, {"--deadline", "tomorrow"}})
	return call{args: append([]string{"promise", "new"}, flags...), codes: []int{codeOK, codeUsage}}
}

// promiseCompleted completes what is no promise, or is over.
func promiseCompleted(command string, more ...string) func(*walk) call {
	return func(w *walk) call {
		who := pick(w, []string{w.anyID(), "prm_0", "nobody"})
		args := []string{"promise", command, who}
		if len(more) > 0 {
			args = append(args, pick(w, more))
		}
		return call{args: args, codes: []int{codeUsage, codeNotFound}}
	}
}
