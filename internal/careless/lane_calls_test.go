package careless

// laneSet sets kinds of lanes, whose futures the walk does not make: they would wait for
// one another.
func (w *walk) laneSet() call {
	if w.chance(40) {
		return call{args: append([]string{"lane", "set"}, pick(w, [][]string{
			{}, {"l1", "l2"}, {"no name"}, {"l1", "--width", "0"}, {"l1", "--width", "-1"}, {"l1", "--total", "-1"},
			{"l1", "--rate", "fast"}, {"l1", "--rate", "-1/s"}, {"l1", "--rate", "1/year"}, {"l1", "--rate", "1/99999h"},
			{"l1", "--width", "99999999999"},
		})...), codes: []int{codeUsage}}
	}
	return call{args: append([]string{"lane", "set"}, pick(w, [][]string{
		{"l1"}, {"l1", "--width", "3"}, {"l2", "--rate", "10/s", "--aside"}, {"l2", "--rate", "0"}, {"l1", "--total", "5"},
	})...), codes: []int{codeOK, codeUsage}}
}

// byLane makes calls with a kind of lanes and perhaps a key, neither of which may exist.
func byLane(command string) func(*walk) call {
	return func(w *walk) call {
		names := [][]string{{"l1"}, {"l2"}, {"none"}, {}, {"a b"}}
		if command != "remove" {
			names = append(names, []string{"l1", "k"}, []string{"l2", ""}, []string{"none", "k"}, []string{"l1", "k", "x"})
		}
		return call{args: append([]string{"lane", command}, pick(w, names)...),
			codes: []int{codeOK, codeNotFound, codeUsage}}
	}
}

// pauseWork pauses nothing that the walk needs.
func (w *walk) pauseWork() call {
	return call{args: append([]string{"pause"}, pick(w, [][]string{
		{}, {"queue", "unused"}, {"function", "go:unused"}, {"function", "wasm:none"}, {"queue"}, {"queue", "a b"},
		{"worker", "w"}, {"function", "unused"}, {"queue", "unused", "--reason", "r"},
	})...), codes: []int{codeOK, codeNotFound, codeUsage}}
}

func (w *walk) resumeWork() call {
	return call{args: append([]string{"resume"}, pick(w, [][]string{
		{"queue", "unused"}, {"function", "go:unused"}, {"function", "wasm:none"}, {}, {"queue", ""}, {"queue", "default"},
	})...), codes: []int{codeOK, codeNotFound, codeUsage}}
}

// tasksSubmit submits nothing: no handler exists.
func (w *walk) tasksSubmit() call {
	return call{args: append([]string{"tasks", "submit"}, pick(w, [][]string{
		{}, {"none"}, {"none", "--input", "{}"}, {"l1", "--input", "{}"}, {"l1", "--input", "{}", "--target", "x"},
		{"l2", "--input-file", "/none"}, {"a b", "--input", "1"}, {"l1", "--input", "x", "--key", ""},
	})...), codes: []int{codeNotFound, codeUsage}}
}

// byTask makes calls with ids of futures that are no tasks.
func byTask(command string) func(*walk) call {
	return func(w *walk) call {
		c := byID(command)(w)
		c.args, c.codes = append([]string{"tasks"}, c.args...), []int{codeOK, codeNotFound, codeUsage}
		return c
	}
}
