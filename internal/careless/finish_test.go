package careless

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func stringReader(s string) io.Reader { return strings.NewReader(s) }

func (w *walk) promised() (n int) {
	for _, at := range w.worlds {
		n += len(at.order)
	}
	return n
}

func (w *walk) promisedBatches() (n int) {
	for _, at := range w.worlds {
		n += len(at.batchIDs)
	}
	return n
}

// finish stops everything, and looks in each world for what was promised.
func (w *walk) finish() {
	for _, at := range w.worlds {
		w.now = at
		if at.full {
			w.free()
		}
		w.stop()
		if _, err := os.Stat(filepath.Join(at.dir, ".futura")); err != nil && len(at.order) == 0 {
			continue
		}
		w.mustCheck()
		w.begun()
		w.sure(codeOK, "function", "put", w.file("echo.wasm"), "--alias", "echo")
		for _, stuck := range []string{"wasm:loop", "wasm:trap"} {
			w.run("cancel", "--function", stuck)
		}
		w.everyFuture()
		w.everyResult()
		w.everyBatch()
		w.stop()
		w.mustCheck()
	}
	for _, name := range w.backups {
		to := "embedded:" + name + ".store"
		w.sure(codeOK, "restore", name, "--store", to)
		w.sure(codeOK, "check", "--store", to)
		w.must(os.RemoveAll(name + ".store"))
	}
	left, err := os.ReadDir(filepath.Join(w.dir, "tmp"))
	w.must(err)
	w.t.Logf("%d temporary files were left behind", len(left))
}

// stop ends what goes on, as Ctrl-C does.
func (w *walk) stop() {
	for _, p := range w.now.processes {
		p.strike(syscall.SIGINT)
	}
	for _, p := range w.now.processes {
		w.wait(p, stopBound)
	}
	w.now.processes = nil
}

// begun starts a dev that serves all queues and waits until it is there.
func (w *walk) begun() {
	p := w.start(w.now.dir, nil, "", w.bin, "dev", "--listen", "127.0.0.1:0", "--queue", "default,q1,q2", "--drain", "1s")
	w.now.processes = append(w.now.processes, p)
	for !strings.Contains(string(read(p.out)), "is running here") {
		if p.ended() {
			w.fail("dev ended at once: %s", read(p.err))
		}
		w.wait(w.start(w.now.dir, nil, "", w.bin, "version"), commandBound)
	}
}

// run runs a command of the end.
func (w *walk) run(args ...string) (code int, out string) {
	w.note("at the end %q", args)
	p := w.start(w.now.dir, nil, "", append([]string{w.bin}, args...)...)
	w.wait(p, 2*commandBound)
	defer p.tidy()
	if p.code() != codeOK {
		w.note("  ended with %d: %s", p.code(), tail(p.err, 2000))
	}
	return p.code(), string(read(p.out))
}

// sure requires an exit code.
func (w *walk) sure(want int, args ...string) string {
	code, out := w.run(args...)
	if code != want {
		w.fail("%q ended with %d and printed %s", args, code, out)
	}
	return out
}

func (w *walk) mustCheck() { w.sure(codeOK, "check") }

// everyFuture requires all promised futures in the list.
func (w *walk) everyFuture() {
	there := map[string]bool{}
	for cursor := ""; ; {
		ids, next, err := idsOf(w.sure(codeOK, "list", "--json", "--items", "--limit", "1000", "--cursor", cursor))
		w.must(err)
		for _, id := range ids {
			there[id] = true
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	for _, id := range w.now.order {
		if !there[id] && !w.now.futures[id].deleted {
			w.fail("future %s was promised and is not there", id)
		}
	}
}

// everyResult awaits the promised futures of echo and compares their results.
func (w *walk) everyResult() {
	var ids []string
	for _, id := range w.now.order {
		if p := w.now.futures[id]; p.echo && !p.odd && !p.deleted {
			ids = append(ids, id)
		}
	}
	const most = 200
	for part := range slices.Chunk(ids, most) {
		_, out := w.run(append([]string{"await", "--json", "--timeout", "2m"}, part...)...)
		var views []struct {
			ID, State string
			Failure   struct{ Kind string }
			Result    struct{ Value struct{ Data string } }
		}
		w.must(json.Unmarshal([]byte(out), &views))
		if len(views) != len(part) {
			w.fail("await of %d futures printed %d", len(part), len(views))
		}
		for _, v := range views {
			p := w.now.futures[v.ID]
			switch {
			case v.State == "realized" && v.Result.Value.Data == p.value:
			case v.State == "failed" && v.Failure.Kind == "cancelled" && p.cancelled:
			case v.State == "failed" && v.Failure.Kind == "lost": // its workers were killed too often
			default:
				w.fail("future %s should have the result %q and is %+v", v.ID, p.value, v)
			}
		}
	}
}

// everyBatch requires the promised batches, and the right outputs of items that are
// done.
func (w *walk) everyBatch() {
	for _, id := range w.now.batchIDs {
		p := w.now.batches[id]
		if p.deleted {
			continue
		}
		w.sure(codeOK, "batch", "status", id)
		if p.cancelled || p.odd {
			continue
		}
		w.run("batch", "watch", id)
		states, outputs, err := itemsOf(w.sure(codeOK, "batch", "result", id, "--ndjson"))
		w.must(err)
		if len(states) == 0 {
			w.fail("batch %s has no items", id)
		}
		for i, state := range states {
			if state == "done" && outputs[i] != "no module\n" {
				w.fail("item %d of batch %s printed %q", i, id, outputs[i])
			}
		}
	}
}
