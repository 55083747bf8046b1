package bench

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// b7sNode is a process of b7s with what it has printed.
type b7sNode struct {
	address string // of the peer, with its id
	cmd     *exec.Cmd
	ended   chan struct{}

	mu     sync.Mutex
	output bytes.Buffer
	more   chan struct{} // closed when there is more output
}

func startB7S(program, dir string, args []string) (*b7sNode, error) {
	n := &b7sNode{cmd: exec.Command(program, args...), ended: make(chan struct{}), more: make(chan struct{})}
	n.cmd.Stdout, n.cmd.Stderr, n.cmd.Dir = n, n, dir
	n.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = n.cmd.Wait() // how it ends does not matter
		close(n.ended)
	}()
	return n, nil
}

// maxB7SOutput is how much of what a node prints is kept: what is waited for comes first.
const maxB7SOutput = 1 << 20

// Write implements io.Writer.
func (n *b7sNode) Write(text []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.output.Write(text[:min(len(text), maxB7SOutput-n.output.Len())])
	close(n.more)
	n.more = make(chan struct{})
	return len(text), nil
}

// await returns the first line with a text, or nothing after a time.
func (n *b7sNode) await(ctx context.Context, most time.Duration, text string) string {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		n.mu.Lock()
		more := n.more
		for line := range strings.Lines(n.output.String()) {
			if strings.Contains(line, text) && strings.HasSuffix(line, "\n") {
				n.mu.Unlock()
				return line
			}
		}
		n.mu.Unlock()
		select {
		case <-more:
		case <-n.ended:
			return ""
		case <-timer.C:
			return ""
		case <-ctx.Done():
			return ""
		}
	}
}

// tail is the end of what the node has printed.
func (n *b7sNode) tail() string {
	const long = 1000
	n.mu.Lock()
	defer n.mu.Unlock()
	text := n.output.String()
	return text[max(0, len(text)-long):]
}

// stop ends the process.
func (n *b7sNode) stop() {
	_ = n.cmd.Process.Signal(os.Interrupt) // it may have ended
	select {
	case <-n.ended:
	case <-time.After(b7sEnd):
		_ = n.cmd.Process.Kill()
		<-n.ended
	}
}
