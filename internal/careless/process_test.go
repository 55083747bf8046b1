package careless

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Bounds of what must end: a command, and a process that is asked to stop.
const (
	commandBound = 3 * time.Minute
	stopBound    = time.Minute
)

// Exit codes of the command, as docs/reference/command.md has them, and those of
// shells for what died of a signal.
const (
	codeOK          = 0
	codeFailed      = 1
	codeUsage       = 64
	codeNotFound    = 3
	codeStore       = 4
	codeTimeout     = 5
	codeInterrupted = 130
	codeKilled      = 137
	codePipe        = 141
	codeTerminated  = 143
)

// disaster is what no command may print.
var disaster = regexp.MustCompile(`(?m)^panic: |^fatal error: |runtime error|^goroutine \d+ |DATA RACE`)

// process is a command that runs or has ended.
type process struct {
	args     []string
	cmd      *exec.Cmd
	out, err string // files
	done     chan struct{}
	// struck is set before a signal that may end it at any place.
	struck bool
	began  time.Time
	took   time.Duration // known once it is done
}

// start runs a command of a world. A nil stdout is a file.
func (w *walk) start(dir string, stdout *os.File, in string, args ...string) *process {
	w.commands++
	base := filepath.Join(w.dir, "said", fmt.Sprint(w.commands))
	p := &process{args: args, out: base + ".out", err: base + ".err", done: make(chan struct{})}
	p.cmd = exec.Command(args[0], args[1:]...)
	if args[0] == w.shell {
		p.args = args[3:]
	}
	p.cmd.Dir = dir
	p.cmd.Env = w.environment()
	p.cmd.Stdin = strings.NewReader(in)
	p.cmd.WaitDelay = stopBound
	errFile, err := os.Create(p.err)
	w.must(err)
	outFile := stdout
	if outFile == nil {
		outFile, err = os.Create(p.out)
		w.must(err)
		defer outFile.Close()
	}
	defer errFile.Close()
	p.cmd.Stdout, p.cmd.Stderr = outFile, errFile
	p.began = time.Now()
	w.must(p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		p.took = time.Since(p.began)
		close(p.done)
	}()
	return p
}

// environment has nothing of the machine's own settings.
func (w *walk) environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(w.dir, "home"), "TMPDIR=" + filepath.Join(w.dir, "tmp"),
		"GOTRACEBACK=all",
	}
}

// ended reports whether the process has come to its end.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// code is the exit code as a shell has it.
func (p *process) code() int {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// strike sends a signal after which the process may end in any way, again and again
// as a user does whom it does not obey: it may have come before the process was
// ready for it.
func (p *process) strike(signal syscall.Signal) {
	p.struck = true
	go func() {
		again := time.NewTicker(slow)
		defer again.Stop()
		for {
			_ = p.cmd.Process.Signal(signal)
			select {
			case <-p.done:
				return
			case <-again.C:
			}
		}
	}()
}

// wait waits for the end of a process, whose output is then looked through.
func (w *walk) wait(p *process, bound time.Duration) {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		again := time.NewTimer(stopBound)
		defer again.Stop()
		select {
		case <-p.done:
		case <-again.C:
			_ = p.cmd.Process.Kill()
		}
		w.fail("%v did not end within %v; where it stood:\n%s", p.args, bound, calls(read(p.err)))
	}
	w.look(p)
}

// slow is when a command counts as slow.
const slow = 5 * time.Second

// calls are the lines of a dump of goroutines that name functions of Futura, and
// everything before the dump.
func calls(dump []byte) string {
	said, stacks, _ := strings.Cut(string(dump), "SIGQUIT: quit")
	for line := range strings.Lines(stacks) {
		if strings.HasPrefix(line, "goroutine ") || strings.Contains(line, "futura") && !strings.HasPrefix(line, "\t") {
			said += line
		}
	}
	return said
}

// look requires a documented end without a disaster.
func (w *walk) look(p *process) {
	code := p.code()
	w.codes[code]++
	if p.took > slow && !slices.Contains(servers(), p.args[1]) {
		w.note("%v took %v", p.args, p.took.Round(time.Millisecond))
		w.slow++
	}
	said := append(read(p.out), read(p.err)...)
	if disaster.Match(said) {
		w.fail("%v ended with %d and said:\n%s", p.args, code, said)
	}
	documented := []int{codeOK, codeFailed, codeUsage, codeNotFound, codeStore, codeTimeout}
	if p.struck {
		documented = append(documented, codeInterrupted, codeKilled, codeTerminated, codePipe)
	}
	if !slices.Contains(documented, code) {
		w.fail("%v ended with %d, which is not documented, and said:\n%s", p.args, code, said)
	}
}

// tidy removes what a process said.
func (p *process) tidy() {
	_ = os.Remove(p.out)
	_ = os.Remove(p.err)
}

func read(name string) []byte {
	content, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return []byte(err.Error())
	}
	return content
}

// tail returns the end of a file.
func tail(name string, most int) []byte {
	content := read(name)
	return bytes.TrimSpace(content[max(0, len(content)-most):])
}
