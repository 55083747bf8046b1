//go:build unix

package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// haltGrace is how long a child has to hand over what a function wrote when
	// the function is ended, before it is killed.
	haltGrace = 250 * time.Millisecond
	// frameSlack is what a frame may have beyond what limits name.
	frameSlack = 64 * kibibyte
	// keptCrash is how much of a child's own standard error is kept.
	keptCrash = 16 * kibibyte
)

// errNotSent is returned when a request did not reach a child in full, so that
// it can be sent to another one.
var errNotSent = errors.New("the process for functions is gone")

// worker is a child process as its parent sees it. One goroutine uses it at a
// time.
type worker struct {
	command *exec.Cmd
	files   []*os.File // to close at the end
	input   pipe
	frames  *frameReader
	lifted  *os.File // its end tells the child to halt
	crash   *crashText
	exited  chan struct{} // closed when the child has ended
	halting sync.Once

	loaded *lru[uint64] // numbers of loaded modules by content id
	next   uint64       // number of the next module
	broken bool         // no request can be sent any more

	// user and sys are the processor time of the child up to its last answer, as it said.
	user, sys time.Duration

	idleSince time.Time // by the pool
	// standing are the walls around the child, and missing says why others are not.
	standing, missing []string
}

// pipe is a file descriptor whose calls block the thread: the wake-up of a
// blocked thread is quicker than one by way of the poller.
type pipe int

// Read implements io.Reader.
func (p pipe) Read(to []byte) (int, error) {
	for {
		n, err := syscall.Read(int(p), to)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(to) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// Write implements io.Writer.
func (p pipe) Write(from []byte) (int, error) {
	written := 0
	for written < len(from) {
		n, err := syscall.Write(int(p), from[written:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// startWorker starts a child that waits for its settings. It keeps so many loaded
// modules, and its answers are at most so large.
func startWorker(s *starter, modules int, largest int64) (*worker, error) {
	w := &worker{crash: &crashText{}, exited: make(chan struct{}), loaded: newLRU[uint64](int64(modules))}
	var ends [3][2]*os.File // requests, answers, halt: each to read and to write
	for i := range ends {
		reading, writing, err := os.Pipe()
		if err != nil {
			w.closeFiles()
			return nil, fmt.Errorf("wasm: pipe to a process for functions: %w", err)
		}
		ends[i] = [2]*os.File{reading, writing}
		w.files = append(w.files, reading, writing)
	}
	for _, file := range w.files[:4] {
		if err := syscall.SetNonblock(int(file.Fd()), false); err != nil {
			w.closeFiles()
			return nil, fmt.Errorf("wasm: pipe to a process for functions: %w", err)
		}
	}
	widenPipes(ends[0][1], ends[1][1])
	path, err := executable()
	if err != nil {
		w.closeFiles()
		return nil, err
	}
	w.command = exec.Command(path)
	w.command.Args = []string{"futura-wasm"}
	w.command.Env = []string{childVariable + "=1", "GOMAXPROCS=2", "GOTRACEBACK=single"}
	w.command.Dir = "/"
	w.command.Stdin, w.command.Stdout, w.command.Stderr = ends[0][0], ends[1][1], w.crash
	w.command.ExtraFiles = []*os.File{ends[2][0]}
	w.command.SysProcAttr = childAttributes()
	if err := s.start(w.command); err != nil {
		w.closeFiles()
		return nil, fmt.Errorf("wasm: process for functions: %w", err)
	}
	for i, keep := range []int{1, 0, 1} {
		_ = ends[i][1-keep].Close()
	}
	w.files = []*os.File{ends[0][1], ends[1][0]}
	w.lifted = ends[2][1]
	w.input = pipe(ends[0][1].Fd())
	w.frames = newFrameReader(pipe(ends[1][0].Fd()), largest)
	go func() {
		_ = w.command.Wait()
		close(w.exited)
	}()
	return w, nil
}

func (w *worker) closeFiles() {
	for _, file := range w.files {
		_ = file.Close()
	}
	if w.lifted != nil {
		_ = w.lifted.Close()
	}
}

// discard kills the child and waits until it is gone.
func (w *worker) discard() {
	_ = w.command.Process.Kill()
	<-w.exited
	w.halting.Do(func() {})
	w.closeFiles()
}

// halt has the child end a call and hand over its streams; it kills the child
// when that takes too long. halt may be called while another goroutine waits for
// an answer of the child, which then comes to an end.
func (w *worker) halt() {
	w.halting.Do(func() {
		_ = w.lifted.Close()
		w.killSoon()
	})
}

// killSoon kills the child if it does not end by itself.
func (w *worker) killSoon() {
	killing := time.AfterFunc(haltGrace, func() { _ = w.command.Process.Kill() })
	go func() {
		<-w.exited
		killing.Stop()
	}()
}

// unsaid kills a child, and returns its processor time since its last answer.
func (w *worker) unsaid() (user, sys time.Duration) {
	_ = w.command.Process.Kill()
	<-w.exited
	ended := w.command.ProcessState
	if ended == nil {
		return 0, 0
	}
	return max(ended.UserTime()-w.user, 0), max(ended.SystemTime()-w.sys, 0)
}

// exchange sends a request and waits for the answer. Until then flow, if not nil, serves
// the streams of a call. When ctx is done first, or flow fails, the worker is broken, and
// the answer is frameHalted or the failure, with the answer if there is one and flow failed. A
// worker is also broken if a panic of flow ends the exchange.
func (w *worker) exchange(ctx context.Context, flow *flow, kind byte, head []byte, tails ...[]byte,
) (byte, []byte, error) {
	broken := w.broken
	w.broken = true
	stop := context.AfterFunc(ctx, w.halt)
	err := writeFrame(w.input, kind, head, tails...)
	notSent := err != nil
	var answer byte
	var content []byte
	for err == nil {
		answer, content, err = w.frames.next()
		if err != nil || flow == nil || !flow.serve(w, answer, content) {
			break
		}
	}
	failed := flow.failure()
	// A stream that fails because ctx is done may do so before halt is called for that.
	halted := !stop() || failed != nil && ctx.Err() != nil
	w.broken = broken || err != nil || halted || failed != nil
	switch {
	case halted && (err != nil || failed != nil && answer != frameHalted):
		return 0, nil, ended(ctx)
	case failed != nil && !halted:
		return answer, content, failed
	case err == nil:
		return answer, content, nil
	case notSent:
		return 0, nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	return 0, nil, w.death(err)
}

// death returns the failure of a call whose child gave no answer.
func (w *worker) death(err error) *Error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fail(KindLost, err)
	}
	w.killSoon() // code that has broken out can close its pipes and stay
	<-w.exited
	state, text := w.command.ProcessState.String(), w.crash.text()
	if w.diedOf(syscall.SIGSYS) {
		return failf(KindPanic, "the process of the function was ended because it made a system call that no function "+
			"needs (%s): the module may have broken out of the engine", state)
	}
	for _, sign := range []string{"out of memory", "cannot allocate memory"} {
		if strings.Contains(text, sign) {
			return failf(KindMemory, "the process of the function ran out of memory (%s)", state)
		}
	}
	if text == "" {
		return failf(KindLost, "the process of the function ended (%s)", state)
	}
	return failf(KindLost, "the process of the function ended (%s): %s", state, text)
}

// diedOf reports whether a child that has exited was ended by a signal.
func (w *worker) diedOf(signal syscall.Signal) bool {
	ended := w.command.ProcessState
	if ended == nil {
		return false // it can't be told: another part of the process waited for the child
	}
	status, ok := ended.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// status sends a request that is answered by a status.
func (w *worker) status(ctx context.Context, kind byte, head []byte, tails ...[]byte) (*Error, error) {
	answer, body, err := w.exchange(ctx, nil, kind, head, tails...)
	if err != nil {
		return nil, err
	}
	return w.decodeStatus(answer, body)
}

func (w *worker) decodeStatus(answer byte, body []byte) (*Error, error) {
	status := &content{bytes: body}
	failureKind, message := status.text(), status.text()
	if failureKind == "" {
		w.standing, w.missing = status.texts(), status.texts()
		w.user, w.sys = time.Duration(status.number()), time.Duration(status.number())
	}
	if answer != frameStatus || status.err != nil {
		w.broken = true
		return nil, fmt.Errorf("%w: kind %q instead of a status", errFrame, answer)
	}
	if failureKind != "" {
		return &Error{Kind: failureKind, Message: message}, nil
	}
	return nil, nil
}

// load has the child load a module by its code, and drop the one that was used
// least recently when it has too many.
func (w *worker) load(ctx context.Context, cid string, module source, c machineCode) (*Error, error) {
	number := w.next
	w.next++
	head := binary.AppendUvarint(nil, number)
	head = binary.AppendUvarint(head, module.minMemory)
	head = binary.AppendUvarint(head, uint64(len(module.checked)))
	failure, err := w.status(ctx, frameLoad, head, module.checked, c.name[:], c.bytes)
	if err != nil || failure != nil {
		return failure, err
	}
	for _, dropped := range w.loaded.put(cid, number, 1) {
		if err := writeFrame(w.input, frameDrop, binary.AppendUvarint(nil, dropped)); err != nil {
			w.broken = true
			return nil, fmt.Errorf("%w: %w", errNotSent, err)
		}
	}
	return nil, nil
}

// crashText keeps the beginning of what a child writes to its standard error,
// which is nothing unless the child itself fails.
type crashText struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

// Write implements io.Writer.
func (c *crashText) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := keptCrash - c.kept.Len()
	c.kept.Write(p[:min(len(p), max(room, 0))])
	return len(p), nil
}

func (c *crashText) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := strings.TrimSpace(c.kept.String())
	return text[:min(len(text), maxMessage/2)]
}
