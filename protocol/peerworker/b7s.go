package peerworker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/signal"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// Received implements Handler.
func (h *handler) Received(ctx context.Context, peer string, message []byte) {
	w := (*Worker)(h)
	m, err := protocol.Decode(message)
	if err != nil {
		w.unreadable(peer, err)
		return
	}
	if !w.mayOrder(peer) {
		w.log.Debug("a peer that may give no orders sent a message", "peer", peer, "type", m.Type())
		return
	}
	switch m := m.(type) {
	case *protocol.WorkOrderBatch:
		if len(m.Items) > 0 || m.Module != "" {
			w.log.Debug("an order of Futura's own dialect came by b7s's protocol", "peer", peer)
			return
		}
		w.takeB7S(ctx, peer, m, false)
	case *protocol.WorkOrder:
		w.takeB7S(ctx, peer, asBatch(m), true)
	case *protocol.InstallFunction:
		w.installLater(peer, m)
	default:
		w.log.Debug("a message that a worker does not take", "peer", peer, "type", m.Type())
	}
}

// Published implements Handler.
func (h *handler) Published(ctx context.Context, author string, message []byte) {
	w := (*Worker)(h)
	m, err := protocol.GossipLimits().Decode(message)
	if err != nil {
		w.unreadable(author, err)
		return
	}
	if !w.mayOrder(author) {
		return
	}
	switch m := m.(type) {
	case *protocol.RollCall:
		w.answerCall(ctx, author, m)
	case *protocol.InstallFunction:
		w.installLater(author, m)
	}
}

func (w *Worker) unreadable(peer string, err error) {
	w.counts.garbage.Add(1)
	w.log.Debug("a peer sent what can't be read", "peer", peer, "error", err)
}

// answerCall answers a roll call if the worker could run the function now.
func (w *Worker) answerCall(ctx context.Context, head string, m *protocol.RollCall) {
	if w.stopping.Load() || m.Consensus != protocol.ConsensusNone || !w.hasAttributes(m.Attributes) || !w.couldTake(head) {
		return
	}
	if !w.functionsOfB7S.runs(head, m.FunctionID) {
		w.log.Debug("a roll call for a function that is not here", "head", head, "function", m.FunctionID)
		return
	}
	w.sendB7S(ctx, head, &protocol.RollCallResponse{
		Envelope: m.Envelope, Code: protocol.CodeAccepted, FunctionID: m.FunctionID, RequestID: m.RequestID,
		BatchSupport: m.Batch,
	}, protocol.DialectChunk)
}

// hasAttributes reports whether the worker's labels have what a roll call asks for.
// They are not attested.
func (w *Worker) hasAttributes(a *protocol.Attributes) bool {
	if a == nil {
		return true
	}
	if a.Attested || len(a.Attestors.Each) > 0 || len(a.Attestors.OneOf) > 0 {
		return false
	}
	for _, v := range a.Values {
		if own, found := w.options.Labels[v.Name]; !found || own != v.Value {
			return false
		}
	}
	return true
}

// sendB7S sends a message, and reports whether it was sent.
func (w *Worker) sendB7S(ctx context.Context, head string, m protocol.Message, d protocol.Dialect) error {
	data, err := protocol.Encode(m, d)
	if err == nil {
		err = w.network.Send(ctx, head, data)
	}
	if err != nil {
		w.log.Debug("a message was not sent", "head", head, "type", m.Type(), "error", err)
	}
	return err
}

// asBatch is a single order as one of a batch with one item.
func asBatch(m *protocol.WorkOrder) *protocol.WorkOrderBatch {
	arguments := m.Arguments
	if len(arguments) == 0 {
		for _, p := range m.Parameters {
			arguments = append(arguments, p.Value)
		}
	}
	return &protocol.WorkOrderBatch{
		Envelope: m.Envelope, RequestID: m.RequestID, ChunkID: m.RequestID, Arguments: [][]string{arguments},
		Template: protocol.Template{FunctionID: m.FunctionID, Method: m.Method, Config: m.Config},
	}
}

// b7sOrder is an order of b7s's, whose results are sent all at once.
type b7sOrder struct {
	*protocol.WorkOrderBatch
	single bool
}

// takeB7S takes an order of b7s's. What it can't take it answers at once, as failed.
func (w *Worker) takeB7S(ctx context.Context, head string, m *protocol.WorkOrderBatch, single bool) {
	if m.Dialect == protocol.DialectFutura {
		m.Dialect = protocol.DialectChunk // its head speaks b7s's protocol
	}
	o := &b7sOrder{WorkOrderBatch: m, single: single}
	name := chunkName{head, m.ChunkID}
	if w.chunk(name) != nil {
		return // it came twice
	}
	c := newChunk(w, name, m, len(m.Arguments), nil)
	c.order = o
	c.release()
	size := sizeOf(m)
	why := w.refusesB7S(head, m, size)
	if why == nil {
		why = w.beginB7S(ctx, c, size)
	}
	if why != nil {
		w.counts.rejected.Add(1)
		w.log.Debug("an order is refused", "head", head, "chunk", m.ChunkID, "code", why.code, "why", why.message)
		w.refuseB7S(c, why)
	}
}

// maxRefusals bounds the refused orders that are in memory until their heads have heard it.
const maxRefusals = 32

// refuseB7S answers an order that is not taken, unless there are too many.
func (w *Worker) refuseB7S(c *chunk, why *refusal) {
	select {
	case w.refusals <- struct{}{}:
	default:
		w.rare.Warn("an order is refused without an answer: too many heads don't take theirs", "head", c.name.head,
			"chunk", c.name.chunk)
		return
	}
	w.spawn(func() {
		defer func() { <-w.refusals }()
		w.replyB7S(w.ctx, c, c.order.refused(why))
	})
}

// refusesB7S says why an order is not taken, nil if it is.
func (w *Worker) refusesB7S(head string, m *protocol.WorkOrderBatch, size int64) *refusal {
	switch {
	case w.stopping.Load():
		return refuse(protocol.CodeUnavailable, "the worker stops")
	case m.Template.Config.Consensus != "":
		return refuse(protocol.CodeNotImplemented, "this worker takes no part in %s", m.Template.Config.Consensus)
	case !w.hasRoom(head, len(m.Arguments), size):
		return refuse(protocol.CodeUnavailable, "%s", noRoom)
	}
	return nil
}

// beginB7S has the items of an order run.
func (w *Worker) beginB7S(ctx context.Context, c *chunk, size int64) *refusal {
	template := c.order.template()
	if !strings.HasPrefix(template.FunctionID, goPrefix) {
		template.FunctionID = installedAs(c.name.head, template.FunctionID)
	}
	function, err := futurestore.Function(ctx, w.node.cluster, &template)
	if err != nil {
		return refuse(protocol.CodeNotFound, "%v", err)
	}
	if !w.runsHere(function) {
		return refuse(protocol.CodeNotFound, "the function %s does not run here", function)
	}
	subs := make([]fdbmodel.Submission, len(c.ids))
	for i := range subs {
		sub := futurestore.Submission(&template, function, c.order.Arguments[i])
		sub.ID, sub.Spec.Parallel = c.ids[i], 0 // as many as there are slots; workers of b7s only log what an order says
		sub.Spec.Requirements.RAM = memoryOf(&c.order.Template.Config, protocol.MemoryPage)
		setTrace(&sub.Spec, c.order.Carrier)
		subs[i] = sub
	}
	if err := w.runner.checkAll(subs); err != nil {
		return refusalOf(err)
	}
	switch {
	case w.admit(c, size):
	case w.chunk(c.name) != nil:
		return nil // it came twice
	default:
		return refuse(protocol.CodeUnavailable, "%s", noRoom)
	}
	w.runner.hold(c, subs)
	c.keep()
	w.counts.chunks.Add(1)
	w.counts.items.Add(int64(len(c.ids)))
	w.runner.start(c)
	w.runChunk(c)
	return nil
}

// runsHere reports whether the worker runs a function, by its full name.
func (w *Worker) runsHere(function string) bool {
	if name, found := strings.CutPrefix(function, goPrefix); found {
		return w.functions[name] != nil
	}
	return w.options.Modules != nil
}

// template is what the items have in common, as package batch has it.
func (o *b7sOrder) template() batch.Template {
	config := &o.Template.Config
	t := batch.Template{FunctionID: o.Template.FunctionID, Method: o.Template.Method, Config: batch.Config{
		Stdin: config.Stdin, Environment: config.Environment, Timeout: config.Timeout,
	}}
	if r := config.Runtime; r != nil {
		t.Config.RunTime = int64(min(r.RunTime, uint64(protocol.MaxTime.Milliseconds())))
		if r.Entry != startEntry {
			t.Config.Entry = r.Entry
		}
	}
	return t
}

// startEntry is the export that b7s calls where an order names none.
const startEntry = "_start"

// refused are the outcomes of an order that is not taken.
func (o *b7sOrder) refused(why *refusal) []ended {
	all := make([]ended, len(o.Arguments))
	for i := range all {
		all[i] = ended{index: i, outcome: &protocol.Outcome{
			Index: i, Code: why.code, ExitCode: batch.NoExitCode, Message: cut(why.message),
		}}
	}
	return all
}

// Bounds of replies in b7s's protocol, where nothing is acknowledged.
const (
	sendTries = 6
	sendWait  = 200 * time.Millisecond
)

// replyOutputs are how many bytes of output a reply has at most: fewer if it turns out
// to be too large, since JSON may take six bytes for one.
var replyOutputs = [...]int64{8 << 20, 2 << 20, 512 << 10, 0}

// keptOutput is how many bytes of an order's output are kept for the reply, of the items
// that end first.
const keptOutput = 16 << 20

// deliverB7S replies to an order once all of its items have ended.
func (c *chunk) deliverB7S(ctx context.Context) {
	for {
		c.mu.Lock()
		open, dropped := c.open, c.dropped
		c.mu.Unlock()
		if dropped {
			return
		}
		if open == 0 {
			break
		}
		select {
		case <-c.ring:
		case <-ctx.Done():
			return
		}
	}
	c.mu.Lock()
	all := c.queue
	c.queue = nil
	c.mu.Unlock()
	c.worker.replyB7S(ctx, c, all)
	c.worker.counts.delivered.Add(int64(len(all)))
	c.settle(all)
	signal.Send(c.worker.news)
}

// replyB7S sends the results of an order. A head that does not get them waits no longer
// than some seconds, so neither does the worker.
func (w *Worker) replyB7S(ctx context.Context, c *chunk, all []ended) {
	slices.SortFunc(all, func(a, b ended) int { return a.index - b.index })
	tries, pause := 0, sendWait
	for _, most := range replyOutputs {
		results := c.results(all, most)
		for ; tries < sendTries; tries++ {
			err := w.sendB7S(ctx, c.name.head, c.order.reply(results), c.order.Dialect)
			if err == nil {
				return
			}
			if errors.Is(err, protocol.ErrLimit) || errors.Is(err, p2p.ErrTooLarge) {
				break // with less output
			}
			if w.waitFor(ctx, c.name.head, pause) != nil {
				return
			}
			pause *= 2
		}
	}
	w.rare.Warn("the head has not got the results of a chunk", "head", c.name.head, "chunk", c.name.chunk)
}

// waitFor waits for d, or until something changes with a head. It makes no link: nothing would end that of a stranger
// that has gone.
func (w *Worker) waitFor(ctx context.Context, head string, d time.Duration) error {
	w.mu.Lock()
	l := w.links[head]
	w.mu.Unlock()
	if l == nil {
		return clock.Sleep(ctx, clock.Real{}, d)
	}
	return l.waitOrChange(ctx, d)
}

func noRoomInReply(size, most int64) string {
	return fmt.Sprintf("the output of %d bytes has no room in the reply, which has %d", size, most)
}

// fit is an outcome as it is kept for the reply, with its size. Output beyond keptOutput is not.
func (c *chunk) fit(o protocol.Outcome, size int64) (protocol.Outcome, int64) {
	switch o.Code {
	case protocol.CodeOK:
	case protocol.CodeAccepted, protocol.CodeUnavailable:
		o = protocol.Outcome{Code: protocol.CodeError, Message: "the function was not run here"}
	default:
		o.Code = protocol.CodeError
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.output+size > keptOutput {
		return protocol.Outcome{Code: protocol.CodeError, Message: noRoomInReply(size, replyOutputs[0])}, 0
	}
	c.output += size
	return o, size
}

// results are those of the items, with at most so many bytes of output together. An
// item beyond that has failed, and so has one whose output can't be read.
func (c *chunk) results(all []ended, most int64) []protocol.ItemResult {
	results := make([]protocol.ItemResult, len(all))
	total := int64(0)
	for i, e := range all {
		arguments := c.order.Arguments[e.index]
		r := &results[i]
		r.Invocation, r.Arguments = c.order.Template.Invocation(), arguments
		why := noRoomInReply(e.size, most)
		if total+e.size <= most {
			var err error
			if r.NodeResult, err = c.resultOf(e.outcome); err == nil {
				total += e.size
				continue
			}
			why = fmt.Sprintf("the output of %d bytes can't be read: %v", e.size, err)
			c.worker.rare.Warn("a result can't be read", "chunk", c.name.chunk, "error", err)
		}
		r.NodeResult = protocol.NodeResult{Code: protocol.CodeError, Result: protocol.Output{
			Stderr: why, ExitCode: batch.NoExitCode,
		}}
	}
	return results
}

// resultOf is an outcome in the words of b7s.
func (c *chunk) resultOf(o *protocol.Outcome) (r protocol.NodeResult, err error) {
	r.Code, r.Usage = o.Code, o.Usage
	if o.Code != protocol.CodeOK {
		r.Result = protocol.Output{
			Stdout: string(o.Stdout), Stderr: cmp.Or(string(o.Stderr), o.Message),
			ExitCode: cmp.Or(o.ExitCode, batch.NoExitCode),
		}
		return r, nil
	}
	value := o.Value
	if o.Blob != nil {
		from := c.worker.blobs.last(blobName{c.name.head, o.Blob.ID})
		if from == nil {
			return r, ErrNoBlob
		}
		if value, err = io.ReadAll(from.content()); err != nil {
			return r, err
		}
	}
	r.Result = protocol.Output{Stdout: string(value), Stderr: string(o.Stderr), ExitCode: o.ExitCode}
	return r, nil
}

// reply is the message with results.
func (o *b7sOrder) reply(results []protocol.ItemResult) protocol.Message {
	if o.single {
		r := &protocol.WorkOrderResponse{Envelope: o.Envelope, RequestID: o.RequestID}
		if len(results) > 0 {
			r.Code, r.Result = results[0].Code, results[0].NodeResult
		}
		return r
	}
	r := &protocol.WorkOrderBatchResponse{
		Envelope: o.Envelope, RequestID: o.RequestID, ChunkID: o.ChunkID,
		Results: make(map[string]protocol.ItemResult, len(results)),
	}
	for i := range results {
		r.Results[o.Template.ItemID(results[i].Arguments)] = results[i]
	}
	return r
}
