package careless

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// walk is one walk, of one goroutine.
type walk struct {
	t      *testing.T
	random *rand.Rand
	seed   uint64
	bin    string
	shell  string // sh, empty where there is none
	dir    string // of everything
	files  string // what commands are given
	worlds []*world
	// now is where the step takes place.
	now *world
	// steps and commands count what was done, history says it.
	steps, commands int
	history         []string
	slow            int // commands
	// values makes each argument another one.
	values int
	// codes counts how commands ended.
	codes map[int]int
	// copies counts backups and copied stores.
	copies int
	// backups are files that a backup said to be complete, with what was promised
	// before.
	backups []string
}

// world is one store, with what runs on it and what was promised by it.
type world struct {
	name string
	// dir is where its commands are run. The store is in the default place there.
	dir  string
	disk string // the directory of a small disk, if it is on one
	full bool
	// processes are those that go on until they are stopped.
	processes []*process
	futures   map[string]*promise
	order     []string
	batches   map[string]*promise
	batchIDs  []string
	echo      bool // a module echo was stored
}

// promise is a future or a batch that a command has printed the id of.
type promise struct {
	queue string
	// value is the expected result, if echo ran it.
	echo  bool
	value string
	// deleted, cancelled and odd are set if the walk asked for that, or gave it flags
	// that may make it fail or wait.
	deleted, cancelled, odd bool
}

func newWalk(t *testing.T, seed uint64) *walk {
	w := &walk{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), codes: map[int]int{}, bin: build(t), dir: t.TempDir(),
	}
	if sh, err := exec.LookPath("sh"); err == nil {
		w.shell = sh
	}
	w.files = filepath.Join(w.dir, "files")
	for _, name := range []string{"files", "home", "tmp", "said"} {
		w.must(os.Mkdir(filepath.Join(w.dir, name), 0o700))
	}
	w.makeFiles()
	w.addWorld("first", "")
	w.addWorld("second", "")
	if disk := w.smallDisk(); disk != "" {
		w.addWorld("small", disk)
	}
	t.Cleanup(w.end)
	return w
}

func (w *walk) addWorld(name, disk string) {
	dir := disk
	if dir == "" {
		dir = filepath.Join(w.dir, name)
		w.must(os.Mkdir(dir, 0o700))
	}
	w.worlds = append(w.worlds, &world{
		name: name, dir: dir, disk: disk, futures: map[string]*promise{}, batches: map[string]*promise{},
	})
}

// end kills what still runs.
func (w *walk) end() {
	for _, at := range w.worlds {
		for _, p := range at.processes {
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	}
}

// note adds a step to what is printed if the walk fails.
func (w *walk) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf("%d %s: ", w.steps, w.now.name)+fmt.Sprintf(format, args...))
}

// fail ends the test with the steps so far.
func (w *walk) fail(format string, args ...any) {
	w.t.Helper()
	const most = 200
	steps := w.history[max(0, len(w.history)-most):]
	why := fmt.Sprintf(format, args...)
	w.t.Fatalf("FUTURA_SEED=%d, after the steps\n%s\n\n%s", w.seed, strings.Join(steps, "\n"), why)
}

func (w *walk) must(err error) {
	w.t.Helper()
	require.NoError(w.t, err)
}

// chance is true so many times of a hundred.
func (w *walk) chance(percent int) bool { return w.random.IntN(100) < percent }

func pick[T any](w *walk, from []T) T { return from[w.random.IntN(len(from))] }

// step does one thing.
func (w *walk) step() {
	w.now = pick(w, w.worlds)
	w.sweep()
	if w.held() && w.chance(50) {
		w.strike()
		return
	}
	switch n := w.random.IntN(100); {
	case n < 55:
		w.call()
	case n < 70:
		w.crowd()
	case n < 80:
		w.begin()
	case n < 89:
		w.strike()
	case n < 95:
		w.pause()
	default:
		w.fill()
	}
}

// held reports whether a process has the store for itself alone.
func (w *walk) held() bool {
	serves := slices.ContainsFunc(w.now.processes, func(p *process) bool {
		return p.args[1] == "dev" || p.args[1] == "serve"
	})
	return len(w.now.processes) > 0 && !serves
}

// sweep forgets processes that have ended.
func (w *walk) sweep() {
	kept := w.now.processes[:0]
	for _, p := range w.now.processes {
		if p.ended() {
			w.look(p)
			w.note("%v has ended with %d: %s", p.args, p.code(), tail(p.err, 300))
			p.tidy()
			continue
		}
		kept = append(kept, p)
	}
	w.now.processes = kept
}

// call runs one command.
func (w *walk) call() {
	c := w.choose()
	p := w.issue(&c, w.manner(&c))
	w.wait(p, commandBound)
	w.judge(&c, p)
}

// crowd runs some commands at once.
func (w *walk) crowd() {
	calls := make([]call, 2+w.random.IntN(4))
	running := make([]*process, len(calls))
	for i := range calls {
		calls[i] = w.choose()
	}
	for i := range calls {
		running[i] = w.issue(&calls[i], w.manner(&calls[i]))
	}
	for i, p := range running {
		w.wait(p, commandBound)
		w.judge(&calls[i], p)
	}
}

// begin starts a process that goes on.
func (w *walk) begin() {
	kinds := [][]string{
		{"dev", "--listen", "127.0.0.1:0", "--slots", "2", "--drain", "1s"},
		{"dev", "--listen", "127.0.0.1:0", "--queue", "q1,default", "--json"},
		{"worker", "--slots", "3", "--drain", "1s"},
		{"head", "--rest-api", "127.0.0.1:0"},
		{"serve", "--listen", "127.0.0.1:0", "--drain", "1s"},
	}
	// Most users have dev running.
	args := kinds[max(0, w.random.IntN(len(kinds)+4)-4)]
	const most = 4
	if len(w.now.processes) >= most {
		return
	}
	w.note("begin %v", args)
	w.now.processes = append(w.now.processes, w.start(w.now.dir, nil, "", append([]string{w.bin}, args...)...))
}

// strike ends a process that goes on: as Ctrl-C does, or at once.
func (w *walk) strike() {
	if len(w.now.processes) == 0 {
		w.begin()
		return
	}
	p := pick(w, w.now.processes)
	signal := pick(w, []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGKILL})
	w.note("%v to %v", signal, p.args)
	p.strike(signal)
	w.wait(p, stopBound)
}

// pause stops a process while others go on, and continues it.
func (w *walk) pause() {
	if len(w.now.processes) == 0 {
		w.begin()
		return
	}
	p := pick(w, w.now.processes)
	w.note("pause %v", p.args)
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	calls := make([]call, 1+w.random.IntN(2))
	running := make([]*process, len(calls))
	for i := range calls {
		calls[i] = w.choose()
		running[i] = w.issue(&calls[i], plain)
	}
	// Commands that need no store are the clock.
	for range 1 + w.random.IntN(40) {
		w.wait(w.start(w.now.dir, nil, "", w.bin, "version"), commandBound)
	}
	w.note("continue %v", p.args)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	for i, q := range running {
		w.wait(q, commandBound)
		w.judge(&calls[i], q)
	}
}
