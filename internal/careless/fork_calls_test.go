package careless

// forkCall forks a future that may not be over, or shows what would be forked.
func forkCall(w *walk) call {
	args := pick(w, [][]string{
		{"fork", w.anyID()}, {"fork", w.anyID(), "--from", "start"}, {"fork", w.anyID(), "--from", "charge", "--set", "a=1"},
		{"fork", "--where", "error~a"}, {"fork", "--where", "state=ready"}, {"fork", "--queue", "q1", "--from", "start"},
	})
	return call{args: args, codes: []int{codeOK, codeUsage, codeNotFound, codeFailed}}
}
