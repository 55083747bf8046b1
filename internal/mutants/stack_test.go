package mutants

// stackMutants are faults in what requests without a token, and logins, may take.
func stackMutants() []mutant {
	const dir = "futures/httpapi/stack/"
	on := func(tests string) suites { return suites{{of: "futures/httpapi/stack", run: tests}} }
	return []mutant{
		{name: "a wait outlives its token", file: "futures/httpapi/stack/stack.go",
			by:  suites{{of: "futures/httpapi/stack", run: "TestWaitsEnd"}},
			old: "if s.mayGoOn(q) {", new: "if s.mayGoOn(nil) || q == nil {"},
		{name: "no retries of a call are the default", file: "futures/httpapi/actors.go",
			by:  suites{{of: "futures/httpapi", run: "TestCallsOfActors"}},
			old: "in.MaxRetries, _ = strconv.Atoi(text)", new: "_, _ = strconv.Atoi(text)"},
		{name: "wrong tokens have no budget", file: dir + "unauthenticated.go", by: on("HaveABudget"),
			old: "if of.spend(address, time.Now()) {", new: "if of.spend(address, time.Now()) || refused != nil {"},
		{name: "a right token needs a budget", file: dir + "access.go", by: on("HaveABudget"),
			old: "\tcase q.authenticated:\n\tcase err", new: "\tcase q.authenticated && false:\n\tcase err"},
		{name: "a connection without a token has any number of requests", file: dir + "unauthenticated.go",
			by: on("HasFewRequests"), old: "return c.answered >= unauthenticatedRequests", new: "return false"},
		{name: "a document never stays the same", file: dir + "document.go", by: on("CompressedOnce"),
			old: `h.Set("ETag", tag)`, new: `h.Set("ETag", "\"new\"")`},
		{name: "one token pushes out the logins of others", file: dir + "sessions.go", by: on("Sessions"),
			old: "count[one.of]++", new: "count[one.of] = 1"},
		{name: "a session prolongs itself", file: dir + "sessions.go", by: on("Session"),
			old: "if !last.IsZero() && last.Before(until) {", new: "if false {"},
		{name: "a list is read before it has memory", file: "futures/httpapi/futures.go",
			by:  suites{{of: "futures/httpapi", run: "TakeMemory"}},
			old: "stack.Reserve(ctx, min(int64(in.Limit)*listedBytes, listBytes))", new: "stack.Reserve(ctx, 0*listBytes)"},
	}
}
