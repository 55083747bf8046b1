package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options of Start.
type Options struct {
	// Command is the file of the command.
	Command string
	// Dir is its working directory.
	Dir string
	// Args are its arguments. With --json among them, it must announce where it
	// listens as dev and head do, or print another object.
	Args []string
	// Env is added to this process's environment, of which the settings of Go's
	// collector are left out: a bound of the memory is for the default.
	Env []string
	// Descriptors is how many files and connections it may have open. Defaults to
	// what this process may have.
	Descriptors int
}

// Process is a process of futura.
type Process struct {
	// Endpoint is what it has announced.
	Endpoint Endpoint
	// Log is what it writes to standard error.
	Log *Log

	cmd   *exec.Cmd
	ended chan struct{}
	err   error
}

// Endpoint is where a process listens.
type Endpoint struct {
	URL      string `json:"url"`
	Token    string `json:"token"`
	Store    string `json:"store"`
	StoreTCP string `json:"store_tcp"`
	// Peers are the multiaddrs that peers reach it at.
	Peers []string `json:"peers"`
}

// Start starts a process, and returns once it has announced itself.
func Start(ctx context.Context, o Options) (*Process, error) {
	limit := ":"
	if o.Descriptors > 0 {
		limit = "ulimit -n " + strconv.Itoa(o.Descriptors)
	}
	shell := append([]string{"-c", limit + ` && exec "$0" "$@"`, o.Command}, o.Args...)
	p := &Process{Log: &Log{}, cmd: exec.Command("sh", shell...), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = o.Dir, append(environment(o.Dir), o.Env...), p.Log
	p.cmd.WaitDelay = time.Second // its children may have standard error, too
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout = in
	if err = errors.Join(p.cmd.Start(), in.Close()); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	if err := json.NewDecoder(out).Decode(&p.Endpoint); err != nil {
		p.Kill()
		return nil, fmt.Errorf("it announced nothing: %w\n%s", errors.Join(err, out.Close()), p.Log)
	}
	go func() { _, _ = io.Copy(io.Discard, out); _ = out.Close() }() // what else it prints is of no interest
	return p, nil
}

// Kill ends the process as kill -9 does, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// Stop asks the process to end, and returns how it ended.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return errors.Join(err, p.Alive())
	}
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		p.Kill()
		return ctx.Err()
	}
}

// Alive returns an error if the process has ended.
func (p *Process) Alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the process has ended: %w\n%s", errors.Join(p.err, errEnded), p.Log)
	default:
		return nil
	}
}

var errEnded = errors.New("it should go on")

// Memory returns the bytes that the process has in memory, and the most it had
// since ForgetPeak.
func (p *Process) Memory() (now, peak int64, err error) {
	content, err := os.ReadFile(p.proc("status"))
	if err != nil {
		return 0, 0, errors.Join(err, p.Alive())
	}
	for line := range strings.Lines(string(content)) {
		words := strings.Fields(line)
		if len(words) != 3 || words[2] != "kB" {
			continue
		}
		n, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			return 0, 0, err
		}
		switch words[0] {
		case "VmRSS:":
			now = n << 10
		case "VmHWM:":
			peak = n << 10
		}
	}
	return now, peak, nil
}

// ForgetPeak lets the peak of Memory begin again.
func (p *Process) ForgetPeak() error {
	return os.WriteFile(p.proc("clear_refs"), []byte("5"), 0)
}

// Descriptors returns how many files and connections the process has open.
func (p *Process) Descriptors() (int, error) {
	open, err := os.ReadDir(p.proc("fd"))
	if err != nil {
		return 0, errors.Join(err, p.Alive())
	}
	return len(open), nil
}

func (p *Process) proc(name string) string {
	return fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, name)
}

// Watched reports whether the memory of processes can be watched here.
func Watched() bool {
	self := fmt.Sprintf("/proc/%d/", os.Getpid())
	_, err := os.Stat(self + "clear_refs")
	_, missing := os.Stat(self + "fd")
	return err == nil && missing == nil
}

// Log keeps the end of what a process writes, and counts its bytes and lines.
type Log struct {
	mu    sync.Mutex
	tail  []byte
	bytes int64
	lines int
	found []string
}

// logTail is how much of a log is kept.
const logTail = 32 << 10

// fatal are texts that no log of a process may have.
var fatal = []string{"panic: ", "goroutine ", "fatal error: ", "too many open files", "DATA RACE"}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes += int64(len(b))
	l.lines += bytes.Count(b, []byte("\n"))
	for _, text := range fatal {
		if bytes.Contains(b, []byte(text)) {
			l.found = append(l.found, text)
		}
	}
	if l.tail = append(l.tail, b...); len(l.tail) > 2*logTail {
		l.tail = append([]byte(nil), l.tail[len(l.tail)-logTail:]...)
	}
	return len(b), nil
}

// String returns the end of the log.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.tail)
}

// Lines returns how many lines were written.
func (l *Log) Lines() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines
}

// Fatal returns an error if the process has panicked or was out of descriptors.
func (l *Log) Fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.found) > 0 {
		return fmt.Errorf("the log says %q:\n%s", l.found, l.tail)
	}
	return nil
}

// environment is this process's, without the settings of Go's collector, and with caches in dir: what is killed
// leaves nothing with the user.
func environment(dir string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "GOGC=") || strings.HasPrefix(e, "GOMEMLIMIT=")
	}), "XDG_CACHE_HOME="+filepath.Join(dir, "caches"))
}
