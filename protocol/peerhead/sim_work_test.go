package peerhead

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// The functions of a run, beside a module. Each says its item's number as its result.
const (
	simEcho   = "echo"
	simFlaky  = "flaky"  // fails at first
	simBroken = "broken" // fails
	simFatal  = "fatal"  // fails for good
	simPanic  = "panic"
	simSlow   = "slow" // exceeds its timeout
	simDeaf   = "deaf" // exceeds its timeout, and does not heed its context
	simSnooze = "snooze"
	simLater  = "later" // asks for a wait before its second attempt
	simLarge  = "large"
	simModule = "module"
	simExit   = "exit" // a module that fails
	simItem   = "item" // an item of a batch
)

// simLargeSize is beyond what is in a message.
const simLargeSize = 5 << 18

// simFuture is a future as the workload wants it.
type simFuture struct {
	n         int
	id        layout.ID
	kind      string
	spec      layout.Spec
	inputs    bool
	cancelled bool
	stopped   bool // was cancelled at any time
	discarded bool
	tries     int    // that earlier retries have used up
	ended     string // how, once it has
}

// valueOf is the only result that an item may have.
func valueOf(n int, kind string) []byte {
	value := fmt.Appendf(nil, "=%d", n)
	if kind == simLarge {
		value = append(value, bytes.Repeat([]byte("x"), simLargeSize)...)
	}
	return value
}

// draw draws a number below n.
func (w *simWorld) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// chance draws a fault. There is none once the world heals.
func (w *simWorld) chance(p float64) bool {
	if w.healing.Load() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.Float64() < p
}

// delay draws how long something takes: mostly little.
func (w *simWorld) delay(most time.Duration) time.Duration {
	if w.healing.Load() || w.draw(4) > 0 {
		return time.Duration(w.draw(3)) * time.Millisecond
	}
	return time.Duration(w.draw(int(most)))
}

// kinds are those of the workload. Peers that check each other have to say the same.
func (w *simWorld) kinds() []string {
	all := []string{simEcho, simEcho, simEcho, simBroken, simFatal, simPanic, simSlow, simLarge, simModule, simModule,
		simModule, simModule, simExit}
	if !w.options.Verify.on() {
		all = append(all, simEcho, simFlaky, simFlaky, simDeaf, simSnooze, simLater)
	}
	return all
}

// drawFuture draws a future and its options.
func (w *simWorld) drawFuture() (*simFuture, fdbmodel.Submission) {
	kinds := w.kinds()
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.random
	f := &simFuture{n: len(w.futures), kind: kinds[r.IntN(len(kinds))]}
	f.spec = layout.Spec{
		Function: "go:" + f.kind, Codec: layout.CodecRaw, MaxRetries: r.IntN(5), Priority: uint8(r.IntN(3)),
		Backoff: layout.Backoff{Base: 100 * time.Millisecond, Max: time.Second}, Timeout: 40 * time.Second,
	}
	if f.kind == simLarge && w.report.Large >= 4 {
		f.kind, f.spec.Function = simEcho, "go:"+simEcho
	}
	sub := fdbmodel.Submission{Args: fmt.Append(nil, f.n)}
	switch f.kind {
	case simLarge:
		w.report.Large++
	case simSlow, simDeaf:
		f.spec.Timeout = time.Second
	case simModule, simExit:
		f.spec.Function, f.spec.Codec, sub.Args = "wasm:"+w.module, "", nil
		f.spec.Argv = []string{fmt.Sprint(f.n), f.kind}
	}
	switch r.IntN(8) {
	case 0:
		f.spec.Lane = layout.Lane{Kind: "pair", Key: string(rune('a' + r.IntN(2)))}
	case 1:
		f.spec.Lane = layout.Lane{Kind: "rated", Key: "a"}
	case 2:
		f.spec.Pace = &layout.Pace{Key: "k", PerSecond: 2, Shared: r.IntN(2) == 0}
	case 3:
		f.spec.Deadline = time.Now().Add(time.Duration(1+r.IntN(40)) * time.Second).UnixMilli()
	case 4:
		f.spec.ExpiresAt = time.Now().Add(time.Duration(1+r.IntN(40)) * time.Second).UnixMilli()
	case 5:
		sub.NotBefore = time.Now().Add(time.Duration(r.IntN(10)) * time.Second)
	case 6:
		if n := len(w.futures); n > 0 && f.spec.Argv == nil && !w.futures[n-1].discarded {
			f.inputs, sub.Inputs = true, []layout.ID{w.futures[n-1].id}
			f.spec.Codec, sub.Args, f.kind, f.spec.Function = layout.CodecInputs, nil, simEcho, "go:join"
		}
	}
	for i := range f.id {
		f.id[i] = byte(r.Uint32())
	}
	sub.ID, sub.Spec = f.id, f.spec
	w.futures = append(w.futures, f)
	w.byID[f.id] = f
	return f, sub
}

// submit submits some futures.
func (w *simWorld) submit(n int) {
	var subs []fdbmodel.Submission
	for range n {
		_, sub := w.drawFuture()
		subs = append(subs, sub)
	}
	w.insist(func() error {
		_, err := w.client.Submit(w.over, subs)
		return err
	})
}

// cancel cancels a future.
func (w *simWorld) cancel() {
	f := w.futures[w.draw(len(w.futures))]
	f.cancelled = f.cancelled || f.ended == ""
	f.stopped = true
	w.insist(func() error {
		_, err := w.client.CancelMany(w.over, []layout.ID{f.id}, "simulated")
		return err
	})
}

// retry has a failed future tried again.
func (w *simWorld) retry() {
	for _, f := range w.futures {
		if !strings.HasPrefix(f.ended, "failure") || f.spec.Deadline > 0 || f.discarded || w.draw(3) > 0 {
			continue
		}
		w.insist(func() error {
			outcomes, err := w.client.RetryMany(w.over, []layout.ID{f.id})
			if err == nil && outcomes[0] == fdbmodel.Applied {
				w.logf("future %d is retried", f.n)
				w.report.Retries++
				f.ended, f.cancelled, f.tries = "", false, f.tries+f.spec.MaxRetries+1
			}
			return err
		})
		return
	}
}

// discard removes a future that has ended.
func (w *simWorld) discard() {
	for _, f := range w.futures {
		if f.ended == "" || f.discarded || w.draw(3) > 0 {
			continue
		}
		w.insist(func() error {
			n, err := w.client.DiscardMany(w.over, []layout.ID{f.id})
			if f.discarded = n > 0; f.discarded {
				w.logf("future %d is discarded", f.n)
				w.report.Discards++
			}
			return err
		})
		return
	}
}

// simBatch is a batch as the workload wants it.
type simBatch struct {
	request batch.Request
	id      string
	first   int // the number of its first item
}

// drawBatch draws a batch.
func (w *simWorld) drawBatch() *simBatch {
	b := &simBatch{first: 1000 * (1 + len(w.batches)), request: batch.Request{
		Key: fmt.Sprintf("batch-%d", len(w.batches)), MaxAttempts: uint64(1 + w.draw(4)),
		Template: batch.Template{FunctionID: "go:" + simItem, Method: simItem, Config: batch.Config{
			Nodes: w.draw(4) - 1, Concurrency: 1 + w.draw(3),
		}},
	}}
	for n := range 1 + w.draw(20) {
		b.request.Arguments = append(b.request.Arguments, []string{fmt.Sprint(b.first + n)})
	}
	w.batches = append(w.batches, b)
	return b
}

// submitBatch submits a batch to one head after the other, until one has taken it.
func (w *simWorld) submitBatch(b *simBatch) {
	for b.id == "" && w.over.Err() == nil {
		w.processes.Lock()
		run := w.heads[w.draw(len(w.heads))].run
		w.processes.Unlock()
		if run != nil {
			made, _, err := run.batches.Submit(run.ctx, b.request)
			if err == nil {
				b.id = made.ID
				return
			}
		}
		w.pass(w.over, time.Second)
	}
}

// functions are those of a process of a peer.
func (w *simWorld) functions() map[string]workers.Function {
	all := map[string]workers.Function{}
	for _, kind := range []string{simEcho, simFlaky, simBroken, simFatal, simPanic, simSlow, simDeaf, simSnooze, simLater,
		simLarge} {
		all[kind] = func(ctx context.Context, args []byte) ([]byte, error) { return w.runKind(ctx, kind, string(args)) }
	}
	all["join"] = func(_ context.Context, args []byte) ([]byte, error) { return []byte("joined"), nil }
	all[simItem] = func(ctx context.Context, args []byte) ([]byte, error) {
		var argv []string
		if err := json.Unmarshal(args, &argv); err != nil {
			return nil, err
		}
		if w.ran(argv[0]) == 1 && strings.HasSuffix(argv[0], "3") && !w.options.Verify.on() {
			return nil, errors.New("it fails at first")
		}
		w.pass(ctx, time.Duration(w.draw(800))*time.Millisecond)
		return []byte("=" + argv[0]), ctx.Err()
	}
	return all
}

// ran counts a run of an item.
func (w *simWorld) ran(n string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Runs++
	w.runs[n]++
	return w.runs[n]
}

// runKind runs an item.
func (w *simWorld) runKind(ctx context.Context, kind, n string) ([]byte, error) {
	run := w.ran(n)
	number := 0
	if _, err := fmt.Sscan(n, &number); err != nil {
		return nil, err
	}
	switch kind {
	case simFlaky:
		if run <= 1+number%2 {
			return nil, errors.New("it fails at first")
		}
	case simBroken:
		return nil, errors.New("it fails")
	case simFatal:
		return nil, workers.Permanent(errors.New("it fails for good"))
	case simPanic:
		panic("it panics")
	case simSlow:
		w.pass(ctx, time.Minute)
		return nil, context.Cause(ctx)
	case simDeaf:
		w.pass(w.over, 4*time.Second)
	case simSnooze:
		if run == 1 {
			return nil, workers.Snooze(2 * time.Second)
		}
	case simLater:
		if run == 1 {
			return nil, workers.RetryAfter(2*time.Second, errors.New("it asks for a wait"))
		}
	}
	w.pass(ctx, time.Duration(w.draw(3000))*time.Millisecond)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return valueOf(number, kind), nil
}

// simModules runs modules in a peer.
type simModules struct{ w *simWorld }

// RunModule implements workers.ModuleRunner.
func (m simModules) RunModule(ctx context.Context, call workers.ModuleCall) (workers.ModuleOutcome, error) {
	code, err := call.Load(ctx)
	if err != nil {
		return workers.ModuleOutcome{}, err
	}
	if string(code) != simCode {
		m.w.flaw("the module %s is %q", call.CID, code)
	}
	m.w.pass(ctx, time.Duration(m.w.draw(1000))*time.Millisecond)
	if ctx.Err() != nil {
		return workers.ModuleOutcome{}, ctx.Err()
	}
	out, exit := m.w.runModule(call.Argv)
	o := workers.ModuleOutcome{Stdout: out, ExitCode: exit}
	if exit != 0 {
		o.Kind, o.Message = layout.KindExit, "it exits"
	}
	return o, nil
}

// simCode is the module.
const simCode = "\x00asm\x01\x00\x00\x00"

// runModule is what the module does.
func (w *simWorld) runModule(argv []string) (stdout []byte, exit int) {
	w.ran(argv[0])
	if argv[1] == simExit {
		return []byte("out"), 3
	}
	return []byte("=" + argv[0]), 0
}

// misbehave answers an order that a peer refuses, or has and says nothing more of; nil for
// what it takes as it should.
func (w *simWorld) misbehave(message []byte) []byte {
	m, err := protocol.Decode(message)
	order, ok := m.(*protocol.WorkOrderBatch)
	if err != nil || !ok || !w.chance(0.1) {
		return nil
	}
	answer := &protocol.Ack{Code: protocol.CodeAccepted, ChunkID: order.ChunkID}
	if w.draw(2) == 0 {
		answer.Code = protocol.CodeError
		w.count(&w.report.Refused)
	} else {
		w.count(&w.report.Silent)
	}
	data, err := protocol.Encode(answer, protocol.DialectFutura)
	if err != nil {
		w.flaw("%v", err)
	}
	return data
}

// offer changes what a hello offers.
func (w *simWorld) offer(message []byte) []byte {
	m, err := protocol.Decode(message)
	hello, ok := m.(*protocol.Hello)
	if err != nil || !ok {
		return message
	}
	w.count(&w.report.Offers)
	hello.Capacity.Slots = 1 + w.draw(6)
	data, err := protocol.Encode(hello, protocol.DialectFutura)
	if err != nil {
		w.flaw("%v", err)
	}
	return data
}

// add adds outcomes to those of a message: of the same items again, and of places that the
// order does not have.
func (w *simWorld) add(message []byte) []byte {
	m, err := protocol.Decode(message)
	r, ok := m.(*protocol.WorkOrderBatchResponse)
	if err != nil || !ok || len(r.Outcomes) == 0 {
		return message
	}
	w.count(&w.report.Surplus)
	for _, index := range []int{r.Outcomes[0].Index, w.net.sizeOf(r.ChunkID), 5000} {
		r.Outcomes = append(r.Outcomes, protocol.Outcome{Index: index, Code: protocol.CodeOK, Value: []byte(forged)})
	}
	data, err := protocol.Encode(r, protocol.DialectFutura)
	if err != nil {
		return message // there is no such place on the wire
	}
	return data
}

// lie changes the results of a message.
func (w *simWorld) lie(message []byte) []byte {
	m, err := protocol.Decode(message)
	r, ok := m.(*protocol.WorkOrderBatchResponse)
	if err != nil || !ok {
		return message
	}
	for i := range r.Outcomes {
		if r.Outcomes[i].OK() && w.draw(2) == 0 {
			r.Outcomes[i].Value, r.Outcomes[i].Blob = []byte(forged), nil
			w.count(&w.report.Lies)
		}
	}
	data, err := protocol.Encode(r, protocol.DialectFutura)
	if err != nil {
		w.flaw("%v", err)
	}
	return data
}
