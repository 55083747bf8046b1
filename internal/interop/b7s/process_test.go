//go:build linux

package b7s

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Limits of waiting. All of them are far above what is measured.
const (
	startLimit = 20 * time.Second
	endLimit   = 10 * time.Second
)

// process is a program with what it has printed.
type process struct {
	name   string
	cmd    *exec.Cmd
	ended  chan struct{}
	output output
}

// output is the lines that a process printed.
type output struct {
	mu      sync.Mutex
	lines   []string
	partial []byte
	more    chan struct{} // closed by the next line
}

// startProcess starts a program that ends with the test.
func startProcess(t *testing.T, name, program string, args ...string) *process {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.output.more = make(chan struct{})
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.cmd.Dir}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("%s printed:\n%s", name, p.output.tail())
		}
	})
	return p
}

// stop ends a process, which may have ended before.
func (p *process) stop(t *testing.T) {
	_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(endLimit):
		t.Errorf("%s did not end within %s of an interrupt", p.name, endLimit)
		p.kill()
	}
}

// kill ends a process without notice.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// await returns the first line that has some texts, once it is printed.
func (p *process) await(t *testing.T, texts ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	line, ok := p.output.await(ctx, p.ended, texts...)
	require.True(t, ok, "%s ended or took more than %s and did not print %q", p.name, startLimit, texts)
	return line
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partial = append(o.partial, text...)
	for {
		line, rest, found := bytes.Cut(o.partial, []byte("\n"))
		if !found {
			break
		}
		o.lines = append(o.lines, string(line))
		o.partial = rest
	}
	close(o.more)
	o.more = make(chan struct{})
	return len(text), nil
}

func (o *output) await(ctx context.Context, ended <-chan struct{}, texts ...string) (line string, ok bool) {
	for seen, last := 0, false; ; {
		o.mu.Lock()
		fresh, more := o.lines[seen:], o.more
		o.mu.Unlock()
		for _, line := range fresh {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
				return line, true
			}
		}
		if last {
			return "", false
		}
		seen += len(fresh)
		select {
		case <-more:
		case <-ended:
			last = true
		case <-ctx.Done():
			last = true
		}
	}
}

// tail is the last lines, each cut.
func (o *output) tail() string {
	const most, long = 20, 500
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	for _, line := range o.lines[max(0, len(o.lines)-most):] {
		b.WriteString("    " + line[:min(len(line), long)] + "\n")
	}
	return b.String()
}
