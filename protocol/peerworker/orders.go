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
	size     int64 // of its arguments
}

// refusal is why an order is not taken.
type refusal struct {
	code    protocol.Code
	message string
}

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
func cut(text string) string { return text[:min(len(text), 1000)] }

func (w *Worker) takeOrder(ctx context.Context, head string, m *protocol.WorkOrderBatch) *refusal {
	o := &order{WorkOrderBatch: m, name: chunkName{head, m.ChunkID}}
	switch {
	case !w.mayOrder(head):
		return refuse(protocol.CodeNotPermitted, "this worker takes no orders of %s", head)
	case w.stopping.Load():
		return refuse(protocol.CodeUnavailable, "the worker stops")
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

// owner is what items have in common of which so many may run at a time, empty if any number
// may.
func (o *order) owner() string {
	if o.Concurrency == 0 {
		return ""
	}
	return chunkName{o.name.head, o.RequestID}.owner()
}

// begin makes an order a chunk. If its module is here its futures are made before it
// returns; else once the module is.
func (w *Worker) begin(ctx context.Context, o *order) *refusal {
	c := newChunk(w, o.name, record{
		Head: o.name.head, Chunk: o.ChunkID, Request: o.RequestID, Ticket: o.Ticket, Module: o.Module, Items: len(o.items),
		Owner: o.owner(),
	}, o.items)
	c.release() // the head wants it
	w.cancelling.Lock()
	admitted := w.admit(c, o.size)
	w.cancelling.Unlock()
	if !admitted {
		return refuse(protocol.CodeConflict, "the chunk is here")
	}
	var err error
	if w.options.State != "" {
		err = w.node.writeRecord(ctx, c.owner, &c.record, c.items)
	}
	here := true
	if err == nil && o.Module != "" {
		here, err = w.modules.isHere(ctx, o.name.head, o.Module)
	}
	if err == nil && here {
		err = w.submit(ctx, o, c)
	}
	if err != nil {
		w.abandon(ctx, c)
		return refusalOf(err)
	}
	w.counts.chunks.Add(1)
	w.counts.items.Add(int64(len(o.items)))
	w.reportSoon(o.name.head)
	if here {
		w.runChunk(c)
		return nil
	}
	w.spawn(func() { w.beginLater(o, c) })
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

// beginLater fetches the module of an order first.
func (w *Worker) beginLater(o *order, c *chunk) {
	err := w.modules.fetch(w.ctx, o.name.head, o.Module)
	if err == nil {
		err = w.submit(w.ctx, o, c)
	}
	if err != nil && w.ctx.Err() == nil {
		w.rare.Warn("an order can't be run", "head", o.name.head, "chunk", o.ChunkID, c.named(nil), "error", err)
		for i := range c.ids {
			c.end(ended{index: i, outcome: returned(i, cut(err.Error()))})
		}
		signal.Send(c.ring)
	}
	w.runChunk(c)
}

// abandon forgets a chunk that could not be begun.
func (w *Worker) abandon(ctx context.Context, c *chunk) {
	ctx = context.WithoutCancel(ctx)
	c.drop(ctx, "its order could not be taken")
	c.mu.Lock()
	for i := range c.states {
		c.settleItem(i, 0)
	}
	c.mu.Unlock()
	if err := w.forget(ctx, []*chunk{c}); err != nil {
		w.log.Warn("a chunk that was not begun can't be removed", "chunk", c.name.chunk, "error", err)
		w.remove(c)
	}
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

// submit makes the futures of an order's items.
func (w *Worker) submit(ctx context.Context, o *order, c *chunk) error {
	subs := make([]fdbmodel.Submission, len(c.ids))
	env := environment(&o.Template.Config)
	for i := range subs {
		subs[i] = o.submission(i)
		subs[i].ID, subs[i].Assigned = c.ids[i], w.node.worker.ID()
		subs[i].Spec.Owner, subs[i].Spec.Env = futuresOwner, env
		setTrace(&subs[i].Spec, o.Items[i].Trace)
	}
	if c.record.Owner != "" {
		for i := range subs {
			subs[i].Spec.Owner, subs[i].Spec.Parallel = c.record.Owner, int(min(o.Concurrency, math.MaxInt32))
		}
	}
	if c.isDirect() {
		return w.runner.submit(c, subs)
	}
	made, err := w.node.cluster.Submit(ctx, subs)
	if err != nil {
		return err
	}
	var existed []int
	for i := range made {
		if made[i].Existed {
			existed = append(existed, i)
		}
	}
	return c.takeOver(ctx, subs, existed)
}

// submission is the future of an item.
func (o *order) submission(i int) fdbmodel.Submission {
	it, config := &o.Items[i], &o.Template.Config
	sub := fdbmodel.Submission{Args: it.Args, Spec: layout.Spec{
		Function: o.function, Codec: it.Codec, Argv: o.Arguments[i], Priority: uint8(o.Priority),
		MaxRetries: itemRetries, Backoff: layout.Backoff{Base: itemBackoff, Max: itemBackoff},
		Timeout: time.Duration(min(it.TimeoutMS, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond,
	}}
	sub.Spec.Requirements.RAM = memoryOf(config)
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

// memoryOf is the most memory of an order's modules, in bytes, 0 for none.
func memoryOf(config *protocol.Config) int64 {
	if config.Runtime == nil {
		return 0
	}
	return int64(min(config.Runtime.Memory, math.MaxInt64))
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
