package careless

// far keeps a schedule from firing during the walk.
const far = "2090-01-01T00:00:00Z"

// scheduleAdd makes schedules that don't fire for long.
func (w *walk) scheduleAdd() call {
	if w.chance(30) {
		return call{args: append([]string{"schedule", "add"}, pick(w, [][]string{
			{}, {"s1"}, {"s1", "wasm:echo"}, {"s1", "wasm:echo", "--cron", "* *"}, {"s1", "echo", "--every", "1h"},
			{"No Name", "wasm:echo", "--every", "1h"}, {"s1", "wasm:echo", "--every", "1ms"},
			{"s1", "wasm:echo", "--cron", "@daily", "--zone", "Nowhere"}, {"s1", "wasm:echo", "--every", "1h", "--from", "now"},
			{"s1", "wasm:echo", "--cron", "@daily", "--every", "1h"}, {"s1", "wasm:echo", "--every", "1h", "--missed", "all"},
			{"s1", "wasm:echo", "--cron", "@daily", "--except", "32-13"}, {"s1", "wasm:none", "--every", "1h"},
		})...), codes: []int{codeUsage, codeNotFound}}
	}
	args := append([]string{"schedule", "add"}, pick(w, [][]string{
		{"s1", "wasm:echo", "--cron", "30 2 * * *", "--zone", "Europe/Zurich"}, {"s2", "wasm:echo", "--every", "1h"},
		{"s1", "wasm:echo", "--cron", "@weekly", "--overlap", "queue", "--missed", "skip"},
		{"s2", "wasm:echo", "--every", "2h", "--replace"},
	})...)
	return call{args: append(args, "--from", far), codes: []int{codeOK, codeUsage, codeNotFound}}
}

// bySchedule makes calls with the name of a schedule, which may not exist.
func bySchedule(command string) func(*walk) call {
	return func(w *walk) call {
		names := [][]string{{"s1"}, {"s2"}, {"none"}, {}, {"a b"}}
		return call{args: append([]string{"schedule", command}, pick(w, names)...),
			codes: []int{codeOK, codeNotFound, codeUsage}}
	}
}

// scheduleTrigger leaves the schedules that exist alone: the walk has to know its futures.
func (w *walk) scheduleTrigger() call {
	return call{args: append([]string{"schedule", "trigger"}, pick(w, [][]string{{"none"}, {}, {"a b"}})...),
		codes: []int{codeNotFound, codeUsage}}
}
