package peerworker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/signal"
	"github.com/futura-run/futura/protocol"
)

// Prefixes of the full names of functions.
const (
	goPrefix     = "go:"
	modulePrefix = "wasm:"
)

// order is an order on its way to become a chunk.
type order struct {
	*protocol.WorkOrderBatch
	name     chunkName
	function string // its full name here
	items    []item
	size     int64  // of its arguments
	message  []byte // as the journal keeps it, nil without one
}

// refusal is why an order is not taken.
type refusal struct {
	code    protocol.Code
	message string
}

// Error implements error.
func (r *refusal) Error() string { return r.message }

func refuse(code protocol.Code, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// take takes an order of a head, and answers it.
func (w *Worker) take(ctx context.Context, head string, m *protocol.WorkOrderBatch) *protocol.Ack {
	answer := &protocol.Ack{Code: protocol.CodeAccepted, ChunkID: m.ChunkID}
	if r := w.takeOrder(ctx, head, m); r != nil {
		answer.Code, answer.Message = r.code, cut(r.message)
		w.counts.rejected.Add(1)
	}
	return answer
}

// cut shortens a text to what a message takes.
func cut(text string) string { return layout.Shorten(text, 1000) }

func (w *Worker) takeOrder(ctx context.Context, head string, m *protocol.WorkOrderBatch) *refusal {
	o := &order{WorkOrderBatch: m, name: chunkName{head, m.ChunkID}}
	switch {
	case !w.mayOrder(head):
		return refuse(protocol.CodeNotPermitted, "this worker takes no orders of %s", head)
	case w.stopping.Load():
		return refuse(protocol.CodeUnavailable, "the worker stops")
	case w.journal.isFailing():
		return refuse(protocol.CodeUnavailable, "the journal of the worker can't be written")
	case w.chunk(o.name) != nil:
		return refuse(protocol.CodeConflict, "the chunk is here")
	case len(m.Items) != len(m.Arguments):
		return refuse(protocol.CodeInvalid, "%d items and %d lists of arguments: send as many", len(m.Items),
			len(m.Arguments))
	case len(m.Items) > w.options.MaxChunk:
		return refuse(protocol.CodeInvalid, "%d items: at most %d", len(m.Items), w.options.MaxChunk)
	}
	if r := w.nameFunction(o); r != nil {
		return r
	}
	if r := o.readItems(); r != nil {
		return r
	}
	if w.journal != nil {
		var err error
		if o.message, err = protocol.Encode(m, protocol.DialectFutura); err != nil {
			return refuse(protocol.CodeInvalid, "%v", err)
		}
		o.size = max(o.size, sizeKept(o.message))
	}
	if !w.hasRoom(head, len(m.Items), o.size) {
		return refuse(protocol.CodeUnavailable, "%s", noRoom)
	}
	return w.begin(ctx, o)
}

// nameFunction finds out what an order runs here.
func (w *Worker) nameFunction(o *order) *refusal {
	id := o.Template.FunctionID
	if strings.HasPrefix(id, goPrefix) && o.Module == "" {
		if o.function = id; w.functions[strings.TrimPrefix(id, goPrefix)] == nil {
			return refuse(protocol.CodeNotFound, "the function %s is not registered here", id)
		}
		return nil
	}
	if o.Module == "" {
		return refuse(protocol.CodeNotFound, "the order for %s names no module", id)
	}
	if w.options.Modules == nil {
		return refuse(protocol.CodeNotFound, "this worker runs no modules")
	}
	o.function = modulePrefix + o.Module
	if o.Template.Method != "" {
		o.function += "/" + o.Template.Method
	}
	if err := layout.CheckFunctionName(o.function); err != nil {
		return refuse(protocol.CodeInvalid, "%v", err)
	}
	return nil
}

// readItems reads what the head calls the items.
func (o *order) readItems() *refusal {
	seen := make(map[item]bool, len(o.Items))
	o.items = make([]item, len(o.Items))
	for i := range o.Items {
		it := &o.Items[i]
		id, err := layout.ParseID(it.ID)
		if err != nil {
			return refuse(protocol.CodeInvalid, "items[%d]: %v", i, err)
		}
		if it.Attempt < 0 || it.Attempt > math.MaxInt32 {
			return refuse(protocol.CodeInvalid, "items[%d]: the attempt is %d", i, it.Attempt)
		}
		o.items[i] = item{id, uint32(it.Attempt)}
		if seen[o.items[i]] {
			return refuse(protocol.CodeInvalid, "items[%d]: the same attempt is in the chunk already", i)
		}
		seen[o.items[i]] = true
		o.size += int64(len(it.Args))
	}
	o.size += sizeOf(o.WorkOrderBatch)
	return nil
}

// sizeOf is about what the items of an order take here, without the arguments of Go
// functions. Each has an environment and an input of its own, which the order names once.
func sizeOf(m *protocol.WorkOrderBatch) int64 {
	each := int64(200 + len(m.Template.Config.Stdin))
	for _, v := range m.Template.Config.Environment {
		each += int64(len(v.Name) + len(v.Value))
	}
	size := each * int64(len(m.Arguments))
	for _, list := range m.Arguments {
		for _, a := range list {
			size += int64(len(a))
		}
	}
	return size
}

// sizeKept is how much of the bounds of the worker an order takes by what the journal keeps of it.
// Arguments are longer there, in base64: this counts what else a message may have.
func sizeKept(message []byte) int64 { return int64(len(message)) / 2 }

// begin makes an order a chunk, whose items begin once its module is here.
func (w *Worker) begin(ctx context.Context, o *order) *refusal {
	c := newChunk(w, o.name, o.WorkOrderBatch, len(o.items), o.items)
	subs := w.submissions(o, c)
	if err := w.runner.checkAll(subs); err != nil { // before it has anything of another chunk
		return refusalOf(err)
	}
	c.release() // the head wants it
	switch {
	case w.admit(c, o.size):
	case w.chunk(o.name) != nil:
		return refuse(protocol.CodeConflict, "the chunk is here")
	default:
		return refuse(protocol.CodeUnavailable, "%s", noRoom)
	}
	w.runner.hold(c, subs)
	err := w.journal.begin(ctx, c, o.message)
	if err != nil && ctx.Err() == nil {
		w.journal.fail(err)
	}
	c.keep()
	here := true
	if err == nil && o.Module != "" {
		here, err = w.modules.isHere(ctx, o.name.head, o.Module)
	}
	if err != nil {
		w.abandon(ctx, c)
		return refusalOf(err)
	}
	w.counts.chunks.Add(1)
	w.counts.items.Add(int64(len(o.items)))
	w.reportSoon(o.name.head)
	if here {
		w.runner.start(c)
	} else {
		w.spawn(func() { w.startLater(c) })
	}
	w.runChunk(c) // an earlier order may end some of its items before its module is here
	return nil
}

// reportSoon has a head be told of what has begun.
func (w *Worker) reportSoon(head string) {
	w.mu.Lock()
	l := w.links[head]
	w.mu.Unlock()
	if l != nil {
		signal.Send(l.fresh)
	}
}

// startLater starts a chunk once its module is here.
func (w *Worker) startLater(c *chunk) {
	here, err := true, error(nil)
	if c.module != "" && !c.isOver() {
		here, err = w.modules.isHere(w.ctx, c.name.head, c.module)
	}
	if err == nil && !here {
		err = w.modules.fetch(w.ctx, c.name.head, c.module)
	}
	if err == nil {
		w.runner.start(c)
	} else if w.ctx.Err() == nil {
		c.giveBack(c.openItems(), err)
	}
}

// giveBack ends those of some items that have not begun, as they can't be run here.
func (c *chunk) giveBack(indexes []int, why error) {
	indexes = c.worker.runner.withdraw(c, indexes)
	c.worker.rare.Warn("an order can't be run", "head", c.name.head, "chunk", c.name.chunk, c.named(indexes), "error", why)
	for _, i := range indexes {
		c.end(ended{index: i, outcome: returned(i, cut(why.Error())), discarded: true})
	}
}

// abandon forgets a chunk that could not be begun.
func (w *Worker) abandon(ctx context.Context, c *chunk) {
	c.drop("its order could not be taken")
	c.mu.Lock()
	for i := range c.states {
		c.settleItem(i, 0)
	}
	c.mu.Unlock()
	if err := w.journal.forget(context.WithoutCancel(ctx), []*chunk{c}); err != nil {
		w.rare.Warn("a chunk that was not begun can't be removed", "chunk", c.name.chunk, "error", err)
	}
	w.dropChunk(c)
	w.runner.news()
}

func refusalOf(err error) *refusal {
	for _, bad := range []error{
		layout.ErrBadSpec, layout.ErrBadName, fdbmodel.ErrTooLarge, fdbmodel.ErrIDInUse, layout.ErrUnfit,
	} {
		if errors.Is(err, bad) {
			return refuse(protocol.CodeInvalid, "%v", err)
		}
	}
	return refuse(protocol.CodeUnavailable, "%v", err)
}

// submissions are the items of an order as the worker runs them.
func (w *Worker) submissions(o *order, c *chunk) []fdbmodel.Submission {
	subs := make([]fdbmodel.Submission, len(c.ids))
	env := environment(&o.Template.Config)
	for i := range subs {
		subs[i] = o.submission(i)
		subs[i].ID, subs[i].Spec.Env = c.ids[i], env
		if o.Concurrency > 0 { // of all orders with the same request
			subs[i].Spec.Owner = chunkName{o.name.head, o.RequestID}.owner()
			subs[i].Spec.Parallel = int(min(o.Concurrency, math.MaxInt32))
		}
		setTrace(&subs[i].Spec, o.Items[i].Trace)
	}
	return subs
}

// submission is an item as the worker runs it.
func (o *order) submission(i int) fdbmodel.Submission {
	it, config := &o.Items[i], &o.Template.Config
	sub := fdbmodel.Submission{Args: it.Args, Spec: layout.Spec{
		Function: o.function, Codec: it.Codec, Argv: o.Arguments[i], Priority: uint8(o.Priority),
		Timeout: time.Duration(min(it.TimeoutMS, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond,
	}}
	sub.Spec.Requirements.RAM = memoryOf(config, 1)
	switch {
	case it.Codec == layout.CodecInputs:
		sub.Spec.Codec = layout.CodecRaw // the head has put them together
	case it.Codec == "" && len(it.Args) > 0:
		sub.Spec.Codec = layout.CodecRaw
	case it.Codec == "" && config.Stdin != "":
		sub.Spec.Codec, sub.Args = layout.CodecRaw, []byte(config.Stdin)
	case it.Codec == "":
		sub.Spec.Codec = layout.CodecArgv
	}
	return sub
}

// memoryOf is the most memory of an order's modules in bytes, 0 for none. The order counts it in units.
func memoryOf(config *protocol.Config, unit uint64) int64 {
	if config.Runtime == nil {
		return 0
	}
	return int64(min(config.Runtime.Memory, math.MaxInt64/unit) * unit)
}

// environment is that of an order's items. Nothing of the process's is in it.
func environment(config *protocol.Config) map[string]string {
	if len(config.Environment) == 0 {
		return nil
	}
	env := make(map[string]string, len(config.Environment))
	for _, v := range config.Environment {
		env[v.Name] = v.Value
	}
	return env
}
