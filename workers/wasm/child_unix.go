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
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// childVariable is the environment variable that makes the program a child.
const childVariable = "FUTURA_WASM_CHILD"

// childMainCalled is a fact about the program: that starting it anew with
// childVariable gives a child, and not a second copy of what the program does.
var childMainCalled atomic.Bool

// ChildMain makes a program able to run functions in child processes, which are
// the program itself started anew; see IsolationProcess. It must be the first
// call in main, also in TestMain of tests. In a child it does the child's work
// and does not return; else it returns at once.
func ChildMain() {
	childMainCalled.Store(true)
	if os.Getenv(childVariable) == "" {
		return
	}
	os.Exit(childProcess((*child).handle))
}

// Descriptors of a child, apart from its standard error.
const (
	requestPipe = 0
	answerPipe  = 1
	haltPipe    = 3
)

// childProcess serves until its parent closes the pipe of requests or of halts.
// Signals for the program as a whole are for the parent to act on.
func childProcess(handle func(c *child, kind byte, body []byte) error) int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	answers := os.Stdout // collected, it would close the descriptor
	defer runtime.KeepAlive(answers)
	os.Stdout = os.Stderr
	closeInherited()
	preferAsVictim()
	c := &child{answers: pipe(answerPipe), loaded: map[uint64]*program{}}
	go c.awaitHalt(pipe(haltPipe))
	if err := c.serve(pipe(requestPipe), handle); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// child is a process that runs functions for its parent, one at a time.
type child struct {
	settings *settings
	engine   *engine
	loaded   map[uint64]*program
	frames   *frameReader
	garbage  garbage
	guard    memoryGuard
	part     []byte      // of a stream or a question, the last one that was sent
	input    *childInput // of the call that runs, or nil
	// standing and missing are what raiseWalls returned.
	standing, missing []string

	mu      sync.Mutex
	answers io.Writer // under mu
	current *streams  // of the call that runs, or nil; under mu
	// user and sys are the processor time of this process before that call; under mu.
	user, sys time.Duration
}

func (c *child) serve(requests io.Reader, handle func(c *child, kind byte, body []byte) error) error {
	c.frames = newFrameReader(requests, frameSlack)
	for {
		kind, content, err := c.frames.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = handle(c, kind, content)
		}
		if err != nil {
			return err
		}
		if kind == frameSetup {
			c.frames.maxSize = max(c.settings.limits.maxInput, 2*c.settings.limits.maxModuleSize+maxCode) + 2*frameSlack
		}
		c.garbage.collect()
	}
}

func (c *child) handle(kind byte, body []byte) error {
	frame := &content{bytes: body}
	switch kind {
	case frameSetup:
		return c.answer(c.setup(body))
	case frameCompile:
		return c.compile(frame.number(), frame)
	case frameLoad:
		number, minMemory, module := frame.number(), frame.number(), frame.slice()
		var given machineCode
		frame.fixed(given.name[:])
		if given.bytes = frame.rest(); frame.err != nil {
			return frame.err
		}
		c.engine.exchange.given = &given
		program, err := c.engine.load(context.Background(), module, minMemory)
		c.engine.exchange.given = nil
		if err == nil {
			c.loaded[number] = program
		}
		return c.answer(err)
	case frameDrop:
		number := frame.number()
		if program := c.loaded[number]; program != nil {
			c.engine.drop(program)
			delete(c.loaded, number)
		}
		return frame.err
	case frameRun:
		number, call, streaming, err := decodeRun(body)
		if err != nil {
			return err
		}
		if streaming&streamsInput != 0 {
			c.input = &childInput{child: c}
			call.input = func(context.Context) io.Reader { return c.input }
		}
		if streaming&streamsOutput != 0 {
			call.output = &childOutput{child: c}
		}
		err = c.run(c.loaded[number], call)
		c.input = nil
		return err
	}
	return fmt.Errorf("%w: kind %q is unknown", errFrame, kind)
}

func (c *child) setup(body []byte) error {
	settings, err := decodeSettings(body)
	if err != nil {
		return fail(KindError, err)
	}
	const workers = 2
	c.engine, err = newExchangeEngine(context.Background(), settings.limits, workers)
	if err != nil {
		return fail(KindError, err)
	}
	c.settings = settings
	if settings.compiler() {
		if err := limitCompiler(settings); err != nil {
			return fail(KindError, err)
		}
	} else {
		c.guard.allow(0, settings.limits)
		c.garbage.start()
	}
	c.standing, c.missing = raiseWalls()
	return nil
}

// compile answers with the code of a module.
func (c *child) compile(minMemory uint64, frame *content) error {
	if frame.err != nil {
		return frame.err
	}
	if _, err := c.engine.load(context.Background(), frame.rest(), minMemory); err != nil {
		return c.answer(err)
	}
	made := &c.engine.exchange.made
	if len(made.bytes) > maxCode {
		return c.answer(failf(KindTooLarge, "the module's compiled form has %d bytes, the limit is %d", len(made.bytes),
			maxCode))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return writeFrame(c.answers, frameCode, made.name[:], made.bytes)
}

func (c *child) answer(err error) error {
	var status []byte
	if err == nil {
		status = appendString(appendString(status, ""), "")
		status = appendStrings(appendStrings(status, c.standing), c.missing)
		user, sys := processorTime()
		status = appendNumbers(status, int64(user), int64(sys))
	} else {
		failure := asError(KindError, err)
		status = appendString(appendString(status, failure.Kind), failure.Message)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return writeFrame(c.answers, frameStatus, status)
}

func (c *child) run(p *program, call *call) error {
	if p == nil {
		return fmt.Errorf("%w: call of a module that is not loaded", errFrame)
	}
	c.guard.allow(call.memoryLimit, c.settings.limits)
	out := newStreams(context.Background(), c.settings.limits, call.output, &childHost{child: c})
	if p.asks {
		call.stdin = bytes.Clone(call.stdin) // answers come by the same buffer
	}
	c.mu.Lock()
	c.current = out
	c.user, c.sys = processorTime()
	c.mu.Unlock()
	ran := c.engine.run(out.ctx, p, call, out)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spent(&ran)
	c.current = nil
	return writeFrame(c.answers, frameResult, encodeResult(&ran), ran.stderr, ran.stdout)
}

// spent sets the processor time since the call began. It is called under mu.
func (c *child) spent(ran *result) {
	user, sys := processorTime()
	ran.cpuUser, ran.cpuSys = max(user-c.user, 0), max(sys-c.sys, 0)
}

// awaitHalt waits for the end of a pipe: the parent closed it, or died. What the
// running call has written and used is handed over, and the process ends.
func (c *child) awaitHalt(halts io.Reader) {
	_, _ = halts.Read(make([]byte, 1))
	c.mu.Lock()
	if c.current != nil {
		ran := result{exitCode: -1}
		c.current.fill(&ran)
		c.spent(&ran)
		_ = writeFrame(c.answers, frameHalted, encodeResult(&ran), ran.stderr, ran.stdout)
	}
	os.Exit(0)
}

// garbage, once it was started, collects between calls instead of during them: the collector has to
// stop all code for a moment, and the code of a function that loops can't be
// stopped.
type garbage struct {
	sample []metrics.Sample
	next   uint64 // size of the heap at which to collect
}

const (
	heapStep = 64 * mebibyte
	// heapCeiling is where the collector steps in during a call.
	heapCeiling = 512 * mebibyte
)

func (g *garbage) start() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(heapCeiling)
	g.sample = []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	g.next = heapStep
}

func (g *garbage) collect() {
	if g.sample == nil || g.size() < g.next {
		return
	}
	debug.FreeOSMemory()
	live := g.size()
	g.next = live + heapStep
	debug.SetMemoryLimit(int64(2*live + heapCeiling))
}

func (g *garbage) size() uint64 {
	metrics.Read(g.sample)
	return g.sample[0].Value.Uint64()
}

func appendNumbers(to []byte, numbers ...int64) []byte {
	for _, number := range numbers {
		to = binary.AppendUvarint(to, uint64(number))
	}
	return to
}
