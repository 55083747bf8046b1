package careless

import (
	"encoding/json"
	"path/filepath"
	"strconv"
)

// batchSubmit creates a batch and enters it in the ledger.
func (w *walk) batchSubmit() call {
	codes := []int{codeOK, codeNotFound, codeUsage}
	if w.chance(25) {
		file := w.file(pick(w, append(wrongFiles(), "items.csv", "items.ndjson")))
		return call{
			args:  []string{"batch", "submit", "--function", "echo", "--file", file},
			codes: codes, after: w.promiseBatch(true),
		}
	}
	c := call{
		args:  []string{"batch", "submit", "--function", "echo", "--stdin-file", w.file("text"), "a", "b", "c", "d"},
		codes: codes, after: w.promiseBatch(false),
	}
	switch w.random.IntN(6) {
	case 0:
		c.args = append(c.args, "--nodes", "-1")
	case 1:
		c.args = append(c.args, "--concurrency", "3", "--rate-per-host", "0.5")
	case 2:
		c.args, c.codes, c.after = append(c.args, pick(w, [][]string{
			{"--nodes", "-2"}, {"--timeout", "-1"}, {"--concurrency", "-1"}, {"--rate-per-host", "-1"}, {"--format", "xml"},
			{"--file", w.file("bad.csv")}, {"--env", "x"}, {"--url", "nowhere"}, {"--token-file", w.file("empty")},
		})...), []int{codeUsage}, nil
	}
	return c
}

func (w *walk) promiseBatch(odd bool) func(int, string) {
	return func(_ int, out string) {
		if id := promisedID(out); id != "" && w.now.batches[id] == nil {
			w.now.batches[id] = &promise{odd: odd}
			w.now.batchIDs = append(w.now.batchIDs, id)
		}
	}
}

func (w *walk) batchList() call {
	return call{
		args: append([]string{"batch", "list"}, pick(w, [][]string{
			{}, {"--active"}, {"--limit", "1"}, {"--limit", "-1"},
		})...),
		codes: []int{codeOK, codeUsage},
	}
}

func (w *walk) usage() call {
	return call{
		args: append([]string{"usage"}, pick(w, [][]string{
			{}, {"--by", "worker"}, {"--by", "x"}, {"--from", "2026-01-31", "--to", "2026-02-01"}, {"--from", "today"},
			{"--from", "9999-01-01"},
		})...),
		codes: []int{codeOK, codeUsage, codeNotFound},
	}
}

func (w *walk) activity() call {
	return call{
		args: append([]string{"activity"}, pick(w, [][]string{
			{}, {"--last", "24h"}, {"--last", "7d", "--json"}, {"--last", "7d", "--by", "minute"},
			{"--last", "x"},
		})...),
		codes: []int{codeOK, codeUsage, codeNotFound},
	}
}

func (w *walk) top() call {
	return call{
		args:  append([]string{"top", "--once"}, pick(w, [][]string{{}, {"--json"}, {"--every", "1"}, {"--every", "x"}})...),
		codes: []int{codeOK, codeUsage, codeNotFound},
	}
}

func (w *walk) support() call {
	w.copies++
	name := filepath.Join(w.dir, "support-"+strconv.Itoa(w.copies)+".zip")
	if w.chance(25) {
		name = w.file(pick(w, []string{"text", "directory", "none/none"}))
	}
	return call{args: []string{"support", "--output", name}, codes: []int{codeOK, codeUsage, codeNotFound}}
}

func (w *walk) listPeers() call {
	return call{
		args:  append([]string{"peers"}, pick(w, [][]string{{}, {"--limit", "1"}, {"--limit", "-1"}, {"--after", "x"}})...),
		codes: []int{codeOK, codeUsage},
	}
}

// byBatch is a command about a batch.
func byBatch(command string) func(*walk) call {
	return func(w *walk) call {
		id := "01995b4e-6f3a-7c1e-9d2b-0123456789ab"
		if len(w.now.batchIDs) > 0 && w.chance(95) {
			id = pick(w, w.now.batchIDs)
			p := w.now.batches[id]
			p.cancelled = p.cancelled || command == "cancel"
			p.deleted = p.deleted || command == "delete"
		}
		c := call{args: []string{"batch", command, id}, codes: []int{codeOK, codeUsage, codeNotFound}}
		if command == "watch" {
			c.codes = append(c.codes, codeFailed)
			c.interrupt = true // its items may wait for a worker
		}
		return c
	}
}

func (w *walk) backup() call {
	if w.chance(25) {
		return call{
			args:  []string{"backup", w.file(pick(w, []string{"text", "directory", "none/none", "text/none", "huge"}))},
			codes: []int{codeUsage, codeNotFound},
		}
	}
	w.copies++
	name := filepath.Join(w.dir, "backup-"+strconv.Itoa(w.copies)+".futura")
	return call{args: []string{"backup", name}, codes: []int{codeOK, codeNotFound}, after: func(code int, _ string) {
		if code == codeOK {
			w.backups = append(w.backups, name)
		}
	}}
}

func (w *walk) restore() call {
	w.copies++
	to := "embedded:" + filepath.Join(w.dir, "restored-"+strconv.Itoa(w.copies))
	if len(w.backups) == 0 || w.chance(30) {
		return call{args: []string{"restore", w.file(pick(w, wrongFiles())), "--store", to}, codes: []int{codeUsage}}
	}
	return call{args: []string{"restore", pick(w, w.backups), "--store", to}, codes: []int{codeOK}}
}

func (w *walk) migrate() call {
	w.copies++
	from := "embedded:" + filepath.Join(w.now.dir, ".futura")
	to := "embedded:" + filepath.Join(w.dir, "migrated-"+strconv.Itoa(w.copies))
	switch w.random.IntN(5) {
	case 0:
		return call{
			args: []string{"migrate", "--from", from, "--to", pick(w, []string{
				"", from, "memory:", from + "/", "embedded:./.futura",
			})},
			codes: []int{codeUsage, codeNotFound},
		}
	case 1:
		return call{
			args:  []string{"migrate", "--from", from, "--to", "embedded:" + w.file("text")},
			codes: []int{codeUsage, codeNotFound},
		}
	default:
		return call{
			args:  []string{"migrate", "--from", from, "--to", to},
			codes: []int{codeOK, codeNotFound, codeUsage},
		}
	}
}

func (w *walk) token() call {
	name := pick(w, []string{"ci", "ops", "No Name", "", "x/y"})
	return call{
		args: []string{
			"token", "create", name, "--role", pick(w, []string{"read", "submit", "admin", "king"}),
			"--expires", pick(w, []string{"0", "1h", "-1h"}),
		},
		codes: []int{codeOK, codeUsage, codeNotFound},
	}
}

func (w *walk) revoke() call {
	return call{
		args:  []string{"token", "revoke", pick(w, []string{"ci", "ops", "nobody"})},
		codes: []int{codeOK, codeUsage, codeNotFound},
	}
}

func (w *walk) clusterCreate() call {
	return call{
		args: append([]string{"cluster", "create", "--cluster", "second"}, pick(w, [][]string{
			{},
			{"--shards", "4"},
			{"--shards", "3"},
			{"--retention", "-1s"},
		})...),
		codes: []int{codeOK, codeUsage},
	}
}

func (w *walk) clusterSet() call {
	return call{
		args: append([]string{"cluster", "set"}, pick(w, [][]string{
			{}, {"--retention", "48h"}, {"--heartbeat", "1s", "--dead-after", "3s"}, {"--dead-after", "1ms"},
			{"--heartbeat", "-1s"},
		})...),
		codes: []int{codeOK, codeUsage, codeNotFound},
	}
}

// itemsOf are the states and outputs of a batch's items.
func itemsOf(out string) (states, outputs []string, err error) {
	type item struct {
		State  string
		Result struct{ Stdout string }
	}
	for dec := json.NewDecoder(stringReader(out)); dec.More(); {
		var one item
		if err := dec.Decode(&one); err != nil {
			return nil, nil, err
		}
		states, outputs = append(states, one.State), append(outputs, one.Result.Stdout)
	}
	return states, outputs, nil
}

// alias names modules, and takes such names away. Nothing depends on them.
func (w *walk) alias() call {
	return call{
		args: append([]string{"function", "alias"}, pick(w, [][]string{
			{"other", "echo"}, {"other", "wasm:loop"}, {"other", "--rm"}, {"other", "none"}, {"No Name", "echo"}, {"other"},
			{"other", "echo", "--rm"},
		})...),
		codes: []int{codeOK, codeNotFound, codeUsage},
	}
}

// removeFunction removes a module that no future needs, or by force one whose
// futures may fail.
func (w *walk) removeFunction() call {
	return call{
		args: append([]string{"function", "rm"}, pick(w, [][]string{
			{"trap"},
			{"loop"},
			{"trap", "--force"},
			{"none"},
			{},
		})...),
		codes: []int{codeOK, codeNotFound, codeUsage},
	}
}
