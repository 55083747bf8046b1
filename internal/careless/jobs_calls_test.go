package careless

// queues are logs of jobs, one that may exist and some that don't.
func queues() [][]string { return [][]string{{"j1"}, {"j2"}, {"none"}, {}, {"a b"}} }

// jobsAppend makes logs of jobs, which nobody consumes.
func (w *walk) jobsAppend() call {
	in := pick(w, []string{"", "one\n", "one\ntwo\nthree", "\n\n", "{\"a\":1}\n"})
	args := append([]string{"jobs", "append"}, pick(w, queues())...)
	if w.chance(30) {
		args = append(args, "--producer", pick(w, []string{"p", "a b", ""}))
	}
	return call{args: args, in: in, codes: []int{codeOK, codeUsage}}
}

// onJobs makes calls with the name of a log and more arguments, most of them wrong.
func onJobs(command string, more ...[]string) func(*walk) call {
	return func(w *walk) call {
		args := append([]string{"jobs", command}, pick(w, queues())...)
		if len(more) > 0 {
			args = append(args, pick(w, more)...)
		}
		return call{args: args, codes: []int{codeOK, codeUsage, codeNotFound}}
	}
}

// jobCalls are the commands about logs of jobs.
func jobCalls() []maker {
	parked := [][]string{{"c", "1"}, {"c"}, {"c", "--all"}, {"c", "x"}, {"a b", "1"}}
	return []maker{
		{"jobs list", 1, onJobs("list")},
		{"jobs show", 1, onJobs("show", nil)},
		{"jobs read", 1, onJobs("read", nil, []string{"--from", "2"}, []string{"--limit", "0"})},
		{"jobs append", 3, (*walk).jobsAppend},
		{"jobs parked", 1, onJobs("parked", []string{"c"}, nil)},
		{"jobs retry", 1, onJobs("retry", parked...)},
		{"jobs drop", 1, onJobs("drop", parked...)},
		{"jobs remove", 1, onJobs("remove", nil, []string{"--force"}, []string{"--consumer", "c"})},
	}
}
