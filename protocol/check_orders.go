package protocol

import (
	"math"

	"github.com/futura-run/futura/batch"
)

// MaxArgs is the most bytes of the encoded arguments of one function of Go, or of the standard
// input of one run of a module.
const MaxArgs = 8 << 20

func (m *WorkOrderBatch) check(c *checker) {
	method := m.Template.Method
	if method == "" && m.Module != "" {
		method = "start" // a module is run from its start if none is named
	}
	c.template(&m.Template, method)
	c.id("request_id", m.RequestID)
	c.id("chunk_id", m.ChunkID)
	c.items(m.Arguments)
	c.part("module", m.Module)
	c.text("ticket", m.OrderMAC, MaxOrderMAC)
	c.within("priority", int64(m.Priority), 0, math.MaxUint8)
	if len(m.Items) != 0 && len(m.Items) != len(m.Arguments) {
		c.fail(ErrInvalid, "items", "has %d entries, arguments %d: send as many, or no items", len(m.Items), len(m.Arguments))
	}
	c.note("items", "as many as `arguments`, or none")
	for i := range m.Items {
		c.orderItem("items", &m.Items[i])
	}
}

func (c *checker) orderItem(field string, item *OrderItem) {
	c.id(field+".id", item.ID)
	c.within(field+".attempt", int64(item.Attempt), 0, math.MaxInt32)
	c.within(field+".timeout_ms", item.TimeoutMS, 0, maxSeconds*1000)
	c.line(field+".codec", item.Codec, MaxName)
	c.most(field+".args", len(item.Args), MaxArgs, "bytes")
	c.carrier(field+".trace", item.Trace)
}

func (m *WorkOrderBatchResponse) check(c *checker) {
	c.id("request_id", m.RequestID)
	c.id("chunk_id", m.ChunkID)
	c.results(m.Results)
	c.text("ticket", m.OrderMAC, MaxOrderMAC)
	c.most("outcomes", len(m.Outcomes), c.limits.Items, "entries")
	left := c.enter("outcomes")
	for i := range m.Outcomes {
		c.outcome(&m.Outcomes[i])
	}
	c.prefix = left
	c.proof("items", m.Items)
}

// proof checks the items by which a head finds out that it gave an order.
func (c *checker) proof(field string, items []OrderItem) {
	c.most(field, len(items), c.limits.Items, "entries")
	for i := range items {
		c.orderItem(field, &items[i])
	}
}

func (c *checker) outcome(o *Outcome) {
	c.within("index", int64(o.Index), 0, batch.MaxItems-1)
	c.code("code", o.Code)
	c.line("kind", o.Kind, MaxName)
	c.text("message", o.Message, MaxText)
	c.line("codec", o.Codec, MaxName)
	if o.RetryMS != nil {
		c.within("retry_ms", *o.RetryMS, 0, maxSeconds*1000)
	}
	c.within("snooze_ms", o.SnoozeMS, 0, maxSeconds*1000)
	c.exit("exit_code", o.ExitCode)
	c.usage(&o.Usage)
	if o.Blob != nil {
		c.blob("blob.id", o.Blob.ID)
		c.natural("blob.size", o.Blob.Size)
	}
}

// blob checks a content id.
func (c *checker) blob(field, id string) {
	c.required(field, id == "")
	c.part(field, id)
}

func (m *Hello) check(c *checker) {
	c.line("version", m.Version, MaxName)
	c.optionalID("incarnation", m.Incarnation)
	c.note("incarnation", "16 of them")
	if len(m.Incarnation) != incarnationDigits {
		c.fail(ErrInvalid, "incarnation", "is %.60q: use %d hex digits", m.Incarnation, incarnationDigits)
	}
	c.line("name", m.Name, MaxName)
	c.within("capacity.slots", int64(m.Capacity.Slots), 0, math.MaxInt32)
	c.natural("capacity.cpu_millis", m.Capacity.CPUMillis)
	c.natural("capacity.ram_bytes", m.Capacity.RAMBytes)
	c.natural("capacity.gpu_millis", m.Capacity.GPUMillis)
	c.most("labels", len(m.Labels), MaxNames, "entries")
	for name, value := range m.Labels {
		c.line("labels", name, MaxName)
		c.line("labels", value, MaxName)
	}
	c.names("functions", m.Functions)
	c.within("max_chunk", int64(m.MaxChunk), 0, batch.MaxItems)
	c.most("kept", len(m.Kept), MaxNames, "entries")
	for _, k := range m.Kept {
		c.id("kept.chunk_id", k.ChunkID)
		c.text("kept.ticket", k.OrderMAC, MaxOrderMAC)
	}
	c.ids("running", m.Running)
}

const incarnationDigits = 16

func (m *HelloResponse) check(c *checker) {
	c.code("code", m.Code)
	c.text("message", m.Message, MaxText)
	c.line("head", m.Head, MaxName)
	c.within("heartbeat_ms", m.HeartbeatMS, 0, maxSeconds*1000)
	c.within("dead_after_ms", m.DeadAfterMS, 0, maxSeconds*1000)
	c.ids("wanted", m.Wanted)
	c.ids("unknown", m.Unknown)
}

func (m *WorkOrderProgress) check(c *checker) {
	c.id("chunk_id", m.ChunkID)
	c.text("ticket", m.OrderMAC, MaxOrderMAC)
	c.within("running", int64(m.Running), 0, batch.MaxItems)
	c.within("done", int64(m.Done), 0, batch.MaxItems)
	c.indexes("items", m.Items)
	c.proof("order", m.Order)
}

func (m *CancelOrder) check(c *checker) {
	c.id("chunk_id", m.ChunkID)
	c.indexes("indexes", m.Indexes)
	c.text("reason", m.Reason, MaxText)
}

func (m *TakeBack) check(c *checker) {
	c.id("chunk_id", m.ChunkID)
	c.indexes("indexes", m.Indexes)
	c.text("reason", m.Reason, MaxText)
}

func (m *Goodbye) check(c *checker) {
	c.most("returned", len(m.Returned), MaxNames, "entries")
	for _, r := range m.Returned {
		c.id("returned.chunk_id", r.ChunkID)
		c.indexes("returned.indexes", r.Indexes)
	}
}

func (m *Ack) check(c *checker) {
	c.code("code", m.Code)
	c.text("message", m.Message, MaxText)
	c.optionalID("chunk_id", m.ChunkID)
	c.indexes("unwanted", m.Unwanted)
}
