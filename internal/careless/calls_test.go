package careless

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// call is one run of a command.
type call struct {
	command string
	args    []string
	in      string
	// codes are those that it may end with beside that of a store which is in use; nil
	// stands for all.
	codes []int
	// interrupt is set for what ends only so.
	interrupt bool
	how       manner
	// after enters what it printed in the ledger.
	after func(code int, out string)
}

// maker makes calls of a command, more often the greater its weight.
type maker struct {
	command string
	weight  int
	make    func(*walk) call
}

// makers are all commands apart from those that go on until they are stopped.
func makers() []maker {
	return append([]maker{
		{"submit", 60, (*walk).submit},
		{"put", 5, (*walk).putValue},
		{"await", 8, (*walk).await},
		{"get", 5, byID("get")},
		{"explain", 4, byID("explain")},
		{"graph", 3, byID("graph")}, {"steps", 2, byID("steps")}, {"forks", 1, byID("forks")}, {"fork", 2, forkCall},
		{"inspect", 4, (*walk).inspect},
		{"list", 8, (*walk).list},
		{"cancel", 4, (*walk).cancel},
		{"retry", 4, (*walk).retry},
		{"delete", 3, (*walk).remove},
		{"pin", 2, pinned("pin")},
		{"unpin", 2, pinned("unpin")},
		{"clone", 1, copied("clone")},
		{"transfer", 1, copied("transfer")},
		{"function put", 8, (*walk).put},
		{"function alias", 2, (*walk).alias},
		{"function rm", 2, (*walk).removeFunction},
		{"function list", 2, fixed("function list")},
		{"pause", 1, (*walk).pauseWork},
		{"resume", 2, (*walk).resumeWork},
		{"lane set", 3, (*walk).laneSet},
		{"lane list", 1, fixed("lane list")},
		{"lane show", 1, byLane("show")},
		{"lane pause", 1, byLane("pause")},
		{"lane resume", 2, byLane("resume")},
		{"lane remove", 1, byLane("remove")},
		{"tasks submit", 2, (*walk).tasksSubmit},
		{"tasks get", 1, byTask("get")},
		{"tasks cancel", 1, byTask("cancel")},
		{"schedule add", 3, (*walk).scheduleAdd},
		{"schedule list", 1, fixed("schedule list")},
		{"schedule show", 1, bySchedule("show")},
		{"schedule next", 1, bySchedule("next")},
		{"schedule pause", 1, bySchedule("pause")},
		{"schedule resume", 1, bySchedule("resume")},
		{"schedule trigger", 1, (*walk).scheduleTrigger},
		{"schedule remove", 1, bySchedule("remove")},
		{"batch submit", 8, (*walk).batchSubmit},
		{"batch list", 2, (*walk).batchList},
		{"batch status", 2, byBatch("status")},
		{"batch result", 2, byBatch("result")},
		{"batch chunks", 2, byBatch("chunks")},
		{"batch watch", 2, byBatch("watch")},
		{"batch cancel", 1, byBatch("cancel")},
		{"batch retry", 1, byBatch("retry")},
		{"batch delete", 1, byBatch("delete")},
		{"peers", 1, (*walk).listPeers},
		{"backup", 3, (*walk).backup},
		{"restore", 3, (*walk).restore},
		{"migrate", 3, (*walk).migrate},
		{"check", 6, fixed("check")},
		{"token create", 2, (*walk).token},
		{"token list", 1, fixed("token list")},
		{"token revoke", 1, (*walk).revoke},
		{"cluster show", 2, fixed("cluster show")},
		{"cluster list", 1, fixed("cluster list")},
		{"cluster create", 1, (*walk).clusterCreate},
		{"cluster set", 2, (*walk).clusterSet},
		{"limits show", 1, fixed("limits show")},
		{"limits set", 2, limitsSet},
		{"usage", 1, (*walk).usage},
		{"activity", 1, (*walk).activity},
		{"top", 1, (*walk).top},
		{"support", 1, (*walk).support},
		{"unique show", 1, fixed("unique show u1")},
		{"unique release", 2, unique},
		{"workers", 3, fixed("workers")},
		{"version", 1, fixed("version")},
	}, slices.Concat(jobCalls(), promiseCalls(), actorCalls())...)
}

// servers are the commands that go on until they are stopped. begin starts them, but for ui.
func servers() []string { return []string{"dev", "serve", "worker", "head", "ui"} }

// checkCoverage requires that the walk knows all commands.
func (w *walk) checkCoverage() {
	known := servers()
	for _, m := range makers() {
		known = append(known, m.command)
	}
	w.now = w.worlds[0]
	var visit func(path string)
	visit = func(path string) {
		p := w.start(w.dir, nil, "", append([]string{w.bin}, append(strings.Fields(path), "--help")...)...)
		w.wait(p, commandBound)
		names := commandsIn(string(read(p.out)))
		if len(names) == 0 && !slices.Contains(known, path) {
			w.fail("the walk knows no command %q: add it to makers", path)
		}
		for _, name := range names {
			visit(strings.TrimSpace(path + " " + name))
		}
	}
	visit("")
}

// commandsIn returns the commands that a help text lists, in one group or in several.
func commandsIn(help string) (names []string) {
	for part := range strings.SplitSeq(help, "\n\n") {
		title, list, _ := strings.Cut(part, "\n")
		others := []string{"Usage:", "Examples:"}
		if !strings.HasSuffix(title, ":") || strings.HasSuffix(title, "Flags:") || slices.Contains(others, title) {
			continue
		}
		for line := range strings.Lines(list) {
			name := strings.Fields(line)
			if strings.HasPrefix(line, "  ") && len(name) > 1 && name[0] != "help" && name[0] != "completion" {
				names = append(names, name[0])
			}
		}
	}
	return names
}

// choose draws a call, sometimes a wrong one.
func (w *walk) choose() call {
	all := makers()
	total := 0
	for _, m := range all {
		total += m.weight
	}
	n := w.random.IntN(total)
	for _, m := range all {
		if n -= m.weight; n < 0 {
			c := call{codes: []int{codeOK}, args: strings.Fields(m.command)}
			switch w.random.IntN(20) {
			case 0:
				c.args = append(c.args, "--help")
			case 1:
				c.args, c.codes = append(c.args, pick(w, nonsense())...), []int{codeUsage}
			case 2:
				c = m.make(w)
				c.args, c.codes = append(c.args, pick(w, strangeSettings())...), nil
				c.after = nil // it may be about another store
			default:
				c = m.make(w)
				if w.chance(20) {
					c.args = append(c.args, "--json")
				}
			}
			c.command = m.command
			return c
		}
	}
	panic("the weights are wrong")
}

// nonsense are flags that no command takes.
func nonsense() [][]string {
	return [][]string{
		{"--nonsense"}, {"--json=perhaps"}, {"-z"}, {"--limit", "many"}, {"--store"}, {"--timeout", "soon"}, {"--=x"},
	}
}

// strangeSettings are stores, clusters and files that are wrong or empty.
func strangeSettings() [][]string {
	return [][]string{
		{"--store", "nowhere"}, {"--store", "embedded:"}, {"--store", "embedded:../files/text"}, {"--store", "memory:"},
		{"--store", "remote:unix:/nowhere"}, {"--store", "remote:tcp:127.0.0.1:1"}, {"--store", "fdb:../files/binary"},
		{"--store", "embedded:../files/directory"}, {"--cluster", "No Name"}, {"--cluster", "elsewhere"},
		{"--config", "../files/bad.yaml"}, {"--config", "../files/odd.yaml"}, {"--config", "../files/directory"},
		{"--config", "../files/none"}, {"--config", "../files/binary"}, {"--store", ""}, {"--cluster", ""},
	}
}

// fixed is a command that takes nothing.
func fixed(command string) func(*walk) call {
	return func(*walk) call {
		return call{args: strings.Fields(command), codes: []int{codeOK, codeNotFound}}
	}
}

// file is the name of a file that commands are given.
func (w *walk) file(name string) string { return filepath.Join(w.files, name) }

// anyID is a future's id, mostly of one that was promised here.
func (w *walk) anyID() string {
	order := w.now.order
	if len(order) == 0 || w.chance(5) {
		return "01995b4e-6f3a-7c1e-9d2b-0123456789ab"
	}
	const recent = 30
	if w.chance(60) {
		order = order[max(0, len(order)-recent):]
	}
	return pick(w, order)
}

// mistaken is a word in the place of an id.
func (w *walk) mistaken() string {
	return pick(w, []string{"x", "-", "", "01995b4e", "../../etc", "\x1b[2J"})
}

func byID(command string) func(*walk) call {
	return func(w *walk) call {
		if w.chance(5) {
			return call{args: []string{command, w.mistaken()}, codes: []int{codeUsage}}
		}
		return call{args: []string{command, w.anyID()}, codes: []int{codeOK, codeNotFound}}
	}
}

// pinned pins futures by one of few names.
func pinned(command string) func(*walk) call {
	return func(w *walk) call {
		if w.chance(10) {
			wrong := [][]string{{w.anyID()}, {w.anyID(), "--as", "no name"}, {w.mistaken(), "--as", "p"}, {}}
			return call{args: append([]string{command}, pick(w, wrong)...), codes: []int{codeUsage, codeNotFound, codeOK}}
		}
		name := pick(w, []string{"p", "q"})
		return call{args: []string{command, w.anyID(), "--as", name}, codes: []int{codeOK, codeNotFound}}
	}
}

// limitsSet sets limits that are far off, or wrong.
func limitsSet(w *walk) call {
	flags := pick(w, [][]string{{"--pending", "100000"}, {"--running", "0"}, {"--per-second", "1e6"}, {"--bytes", "-1"}})
	return call{args: append([]string{"limits", "set"}, flags...), codes: []int{codeOK, codeUsage, codeNotFound}}
}

// unique releases a key, which may be that of a future that is not over.
func unique(w *walk) call {
	key := pick(w, [][]string{{"u1"}, {"u2"}, {"--name", "0123"}, {}})
	return call{args: append([]string{"unique", "release"}, key...), codes: []int{codeOK, codeUsage, codeNotFound}}
}

// copied asks for copies of results that are no objects.
func copied(command string) func(*walk) call {
	return func(w *walk) call {
		return call{args: []string{command, w.anyID()}, codes: []int{codeUsage, codeNotFound}}
	}
}

// submit creates a future and enters it in the ledger.
func (w *walk) submit() call {
	w.values++
	value := "value " + strconv.Itoa(w.values)
	p := &promise{queue: pick(w, []string{"", "q1", "q2"}), value: value}
	function := pick(w, []string{"wasm:echo", "wasm:echo", "wasm:echo", "wasm:trap", "wasm:loop", "go:nobody"})
	c := call{args: []string{"submit", function, "--args", value}, codes: []int{codeOK, codeNotFound}}
	p.echo = function == "wasm:echo"
	if p.queue != "" {
		c.args = append(c.args, "--queue", p.queue)
	}
	if function == "wasm:loop" {
		c.args = append(c.args, "--timeout", "50ms")
	}
	if !p.echo {
		c.args = append(c.args, "--max-retries", "0")
	}
	switch w.random.IntN(16) {
	case 0:
		c.args = append(c.args, "--priority", strconv.Itoa(w.random.IntN(256)))
	case 1:
		c.args = append(c.args, "--delay", strconv.Itoa(w.random.IntN(3000))+"ms")
	case 2:
		c.args = append(c.args, "--env", "A=b", "--arg", "x")
	case 3:
		p.odd = true
		c.args = append(c.args, "--cpu", "100000000")
	case 4:
		p.odd = true
		c.args = append(c.args, "--ram", strconv.Itoa(w.random.IntN(1<<20)))
	case 5:
		n := strconv.Itoa(w.random.IntN(5))
		p.value, p.odd = "of key "+n, true
		c = call{
			args:  []string{"submit", "wasm:echo", "--args", p.value, "--key", "k" + n},
			codes: []int{codeOK, codeUsage, codeNotFound},
		}
		p.queue = ""
	case 7:
		c.args = append(c.args, "--unique", pick(w, []string{"u1", "u2"}), "--unique-for", "1s")
		c.codes = []int{codeOK, codeUsage, codeNotFound}
	case 6:
		return call{
			args:  append(c.args, pick(w, wrongSubmits(w.file(pick(w, wrongFiles()))))...),
			codes: []int{codeUsage, codeNotFound},
		}
	}
	c.after = func(_ int, out string) { w.promise(promisedID(out), p) }
	if w.chance(15) {
		c.args = append(c.args, "--wait", "--wait-timeout", "3s")
		c.codes = []int{codeOK, codeNotFound, codeFailed, codeTimeout, codeUsage}
		echoes := p.echo && !p.odd
		c.after = func(code int, out string) {
			if code == codeOK && echoes && out != p.value && !strings.HasPrefix(out, "{") {
				w.fail("submit of %q printed %q", p.value, out)
			}
		}
	}
	return c
}

// putValue puts a value and enters its future in the ledger.
func (w *walk) putValue() call {
	if w.chance(20) {
		wrong := [][]string{
			{"-", "--codec", "xml"}, {"-", "--key", ""}, {w.file("directory")}, {w.file("none")}, {}, {"-", "-"},
			{"-", "--queue", "No Queue"}, {"-", "--stored", "--as-object"}, {"-", "--label", strings.Repeat("l", 65)},
		}
		return call{args: append([]string{"put"}, pick(w, wrong)...), codes: []int{codeUsage, codeNotFound}}
	}
	w.values++
	p := &promise{queue: pick(w, []string{"", "q1", "q2"}), value: "value " + strconv.Itoa(w.values), echo: true}
	c := call{args: []string{"put", "-"}, in: p.value, codes: []int{codeOK, codeNotFound}}
	if p.queue != "" {
		c.args = append(c.args, "--queue", p.queue)
	}
	c.after = func(_ int, out string) { w.promise(promisedID(out), p) }
	return c
}

// wrongSubmits are flags that submit refuses.
func wrongSubmits(file string) [][]string {
	return [][]string{
		{"--priority", "256"}, {"--priority", "-1"}, {"--cpu", "-1"}, {"--ram", "x"}, {"--max-retries", "-1"},
		{"--delay", "soon"},
		{"--timeout", "-1s"}, {"--delay", "-1s"}, {"--env", "nothing"}, {"--queue", "No Queue"}, {"--codec", "xml"},
		{"--key", ""},
		{"--args", "", "--args-file", file + "-none"}, {"too", "many"}, {"--wait", "--wait-timeout", "-1s"},
	}
}

// promise enters an id that a command has printed.
func (w *walk) promise(id string, p *promise) {
	if id == "" {
		return
	}
	if old := w.now.futures[id]; old != nil {
		old.odd = true // the same key
		return
	}
	w.now.futures[id] = p
	w.now.order = append(w.now.order, id)
}

func (w *walk) await() call {
	c := call{
		args:  []string{"await", "--timeout", "500ms"},
		codes: []int{codeOK, codeFailed, codeNotFound, codeTimeout},
	}
	for range 1 + w.random.IntN(3) {
		c.args = append(c.args, w.anyID())
	}
	if w.chance(5) {
		c.args, c.interrupt = []string{"await", w.anyID()}, true
	}
	return c
}

func (w *walk) inspect() call {
	right := [][]string{
		{w.anyID()}, {w.anyID(), "--fdbcli"}, {"ready"}, {"workers", "--limit", "3"}, {"claim"}, {"aliases"}, {"modules"},
		{"--prefix", `\x02futura\x00`}, {"done"},
	}
	wrong := [][]string{
		{}, {"nothing"}, {"ready", "--limit", "0"}, {"--key", `\x0`}, {"--prefix", "zz", "--key", "a"}, {"ready", "--fdbcli"},
	}
	if w.chance(15) {
		return call{args: append([]string{"inspect"}, pick(w, wrong)...), codes: []int{codeUsage, codeNotFound}}
	}
	return call{args: append([]string{"inspect"}, pick(w, right)...), codes: []int{codeOK, codeNotFound}}
}

func (w *walk) list() call {
	right := [][]string{
		{}, {"--state", "failed"}, {"--state", "ready", "--queue", "q1"}, {"--limit", "2"}, {"--limit", "1000"},
		{"--function", "go:nobody"}, {"--oldest", "--items"}, {"--label", "none"},
	}
	wrong := [][]string{
		{"--state", "running"}, {"--limit", "0"}, {"--limit", "1001"}, {"--cursor", "zz"}, {"--cursor", "ffff"}, {"x"},
		{"--queue", "No Queue"},
	}
	if w.chance(15) {
		return call{args: append([]string{"list"}, pick(w, wrong)...), codes: []int{codeUsage, codeNotFound}}
	}
	return call{args: append([]string{"list"}, pick(w, right)...), codes: []int{codeOK, codeNotFound}}
}

// mark marks the promises that a command may touch: one, or all of a queue.
func (w *walk) mark(id, queue string, as func(*promise)) {
	for known, p := range w.now.futures {
		if known == id || id == "" && (queue == "" || p.queue == queue) {
			as(p)
		}
	}
}

func (w *walk) cancel() call {
	cancelled := func(p *promise) { p.cancelled = true }
	switch {
	case w.chance(20):
		w.mark("", "q2", cancelled)
		return call{args: []string{"cancel", "--queue", "q2", "--state", "ready"}, codes: []int{codeOK, codeNotFound}}
	case w.chance(10):
		return call{
			args:  pick(w, [][]string{{"cancel"}, {"cancel", "--state", "realized"}, {"cancel", "x"}}),
			codes: []int{codeUsage, codeNotFound},
		}
	default:
		id := w.anyID()
		w.mark(id, "", cancelled)
		return call{args: []string{"cancel", id, "--reason", "of no use"}, codes: []int{codeOK, codeNotFound}}
	}
}

func (w *walk) retry() call {
	if w.chance(30) {
		return call{args: []string{"retry", "--failed"}, codes: []int{codeOK, codeNotFound}}
	}
	return call{args: []string{"retry", w.anyID()}, codes: []int{codeOK, codeNotFound, codeUsage}}
}

func (w *walk) remove() call {
	deleted := func(p *promise) { p.deleted = true }
	if w.chance(15) {
		w.mark("", "q2", deleted)
		return call{args: []string{"delete", "--queue", "q2"}, codes: []int{codeOK, codeNotFound}}
	}
	id := w.anyID()
	w.mark(id, "", deleted)
	return call{args: []string{"delete", id}, codes: []int{codeOK, codeNotFound, codeUsage}}
}

func (w *walk) put() call {
	if w.chance(25) {
		return call{
			args:  []string{"function", "put", w.file(pick(w, wrongFiles())), "--alias", "echo"},
			codes: []int{codeUsage},
		}
	}
	name := pick(w, []string{"echo", "echo", "trap", "loop"})
	return call{
		args: []string{"function", "put", w.file(name + ".wasm"), "--alias", name}, codes: []int{codeOK},
		after: func(code int, _ string) { w.now.echo = w.now.echo || code == codeOK && name == "echo" },
	}
}

// putAll stores the modules where most futures are submitted.
func (w *walk) putAll() {
	for _, at := range w.worlds {
		w.now = at
		for _, name := range []string{"echo", "trap", "loop"} {
			w.sure(codeOK, "function", "put", w.file(name+".wasm"), "--alias", name)
		}
	}
}

// idsOf are the ids in what list prints, and the cursor of the next page.
func idsOf(out string) (ids []string, cursor string, err error) {
	var answer struct {
		Futures []struct{ ID string }
		Cursor  string
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		return nil, "", fmt.Errorf("%w: %.200s", err, out)
	}
	for _, f := range answer.Futures {
		ids = append(ids, f.ID)
	}
	return ids, answer.Cursor, nil
}
