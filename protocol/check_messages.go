package protocol

import (
	"crypto/md5"
	"encoding/hex"
	"math"
	"strings"

	"github.com/futura-run/futura/batch"
)

func (m *HealthCheck) check(c *checker) { c.within("code", int64(m.Code), 0, 999) }

func (m *InstallFunction) check(c *checker) {
	if m.CID == "" {
		c.missing("cid")
	}
	c.part("cid", m.CID)
	c.line("manifest_url", m.ManifestURL, MaxText)
}

func (m *InstallFunctionResponse) check(c *checker) {
	c.code("code", m.Code)
	c.text("message", m.Message, MaxText)
	c.part("cid", m.CID)
}

func (m *RollCall) check(c *checker) {
	if m.FunctionID == "" {
		c.missing("function_id")
	}
	c.part("function_id", m.FunctionID)
	c.id("request_id", m.RequestID)
	c.consensus(m.Consensus)
	c.attributes("attributes", m.Attributes)
}

func (m *RollCallResponse) check(c *checker) {
	c.code("code", m.Code)
	c.part("function_id", m.FunctionID)
	c.id("request_id", m.RequestID)
}

func (m *FormCluster) check(c *checker) {
	c.id("request_id", m.RequestID)
	c.names("peers", m.Peers)
	c.consensus(m.Consensus)
	c.most("connection_info", len(m.Connections), MaxNames, "entries")
	for _, p := range m.Connections {
		c.line("connection_info", p.ID, MaxName)
		c.names("connection_info", p.Addresses)
	}
}

func (m *FormClusterResponse) check(c *checker) {
	c.id("request_id", m.RequestID)
	c.code("code", m.Code)
	c.consensus(m.Consensus)
}

func (m *DisbandCluster) check(c *checker) { c.id("request_id", m.RequestID) }

func (m *Execute) check(c *checker) {
	c.function(m.FunctionID, m.Method, "")
	c.arguments("arguments", m.Arguments)
	c.parameters("parameters", m.Parameters)
	c.config(&m.Config)
	c.line("signature", m.Signature, MaxText)
	c.topic(m.Topic)
}

func (m *ExecuteResponse) check(c *checker) {
	c.optionalID("request_id", m.RequestID)
	c.code("code", m.Code)
	c.text("message", m.Message, MaxText)
	for peer, result := range m.Results {
		c.line("results", peer, MaxName)
		c.result(&result)
	}
	c.line("cluster.main", m.Cluster.Main, MaxName)
	c.names("cluster.peers", m.Cluster.Peers)
}

func (m *WorkOrder) check(c *checker) {
	c.function(m.FunctionID, m.Method, "")
	c.arguments("arguments", m.Arguments)
	c.parameters("parameters", m.Parameters)
	c.config(&m.Config)
	c.line("signature", m.Signature, MaxText)
	c.id("request_id", m.RequestID)
}

func (m *WorkOrderResponse) check(c *checker) {
	c.id("request_id", m.RequestID)
	c.code("code", m.Code)
	c.result(&m.Result)
	c.text("error_message", m.Message, MaxText)
}

func (m *ExecuteBatch) check(c *checker) {
	c.topic(m.Topic)
	c.function(m.Template.FunctionID, m.Template.Method, "template.")
	c.config(&m.Template.Config)
	c.items(m.Arguments)
}

func (m *ExecuteBatchResponse) check(c *checker) {
	c.optionalID("request_id", m.RequestID)
	c.code("code", m.Code)
	c.text("message", m.Message, MaxText)
	if m.AsSingle && len(m.Chunks) == 0 {
		c.fail(ErrInvalid, "chunks", "is missing: the type of a single execution needs it")
	}
	for id, chunk := range m.Chunks {
		c.id("chunks", id)
		c.line("chunks.peer", chunk.Peer, MaxName)
		c.results(chunk.Results)
	}
}

func (m *WorkOrderBatch) check(c *checker) {
	method := m.Template.Method
	if method == "" && m.Module != "" {
		method = "start" // a module is run from its start if none is named
	}
	c.function(m.Template.FunctionID, method, "template.")
	c.config(&m.Template.Config)
	c.id("request_id", m.RequestID)
	c.id("chunk_id", m.ChunkID)
	c.items(m.Arguments)
	c.line("module", m.Module, MaxName)
	c.text("ticket", m.Ticket, MaxTicket)
	c.within("priority", int64(m.Priority), 0, math.MaxUint8)
	if len(m.Items) != 0 && len(m.Items) != len(m.Arguments) {
		c.fail(ErrInvalid, "items", "has %d entries, arguments %d: send as many, or no items", len(m.Items), len(m.Arguments))
	}
	for i := range m.Items {
		c.orderItem(&m.Items[i])
	}
}

func (c *checker) orderItem(item *OrderItem) {
	c.id("items.id", item.ID)
	c.within("items.attempt", int64(item.Attempt), 0, math.MaxInt32)
	c.within("items.timeout_ms", item.TimeoutMS, 0, maxSeconds*1000)
	c.line("items.codec", item.Codec, MaxName)
	c.most("items.args", len(item.Args), maxArgs, "bytes")
}

func (m *WorkOrderBatchResponse) check(c *checker) {
	c.id("request_id", m.RequestID)
	c.id("chunk_id", m.ChunkID)
	c.results(m.Results)
	c.text("ticket", m.Ticket, MaxTicket)
	c.most("outcomes", len(m.Outcomes), c.limits.Items, "items")
	for i := range m.Outcomes {
		c.outcome(&m.Outcomes[i])
	}
	c.most("items", len(m.Items), c.limits.Items, "items")
	for i := range m.Items {
		c.orderItem(&m.Items[i])
	}
}

func (c *checker) results(results map[string]ItemResult) {
	for id, result := range results {
		if c.err != nil {
			return
		}
		if !isMD5(id) {
			c.fail(ErrInvalid, "results", "has the id %.60q: use the MD5 of the item, in hex", id)
		}
		c.line("function_invocation", result.Invocation, 2*MaxName+1)
		c.arguments("arguments", result.Arguments)
		c.result(&result.NodeResult)
	}
}

// isMD5 reports whether a text is a sum in lower-case hex.
func isMD5(id string) bool {
	_, err := hex.DecodeString(id)
	return err == nil && len(id) == 2*md5.Size && strings.ToLower(id) == id
}

func (c *checker) result(r *NodeResult) {
	c.code("code", r.Code)
	c.line("signature", r.Signature, MaxText)
	c.line("pbft.replica", r.PBFT.Replica, MaxName)
	c.most("metadata", len(r.Metadata), MaxMetadata, "bytes")
	c.exit(r.Result.ExitCode)
	c.usage(&r.Usage)
}

func (c *checker) exit(code int) { c.within("exit_code", int64(code), math.MinInt32, math.MaxInt32) }

func (c *checker) usage(u *Usage) {
	for _, n := range []int64{u.WallClock, u.CPUUser, u.CPUSystem, u.MemoryMaxKB} {
		c.within("usage", n, 0, math.MaxInt64)
	}
}

func (c *checker) outcome(o *Outcome) {
	c.within("outcomes.index", int64(o.Index), 0, batch.MaxItems-1)
	c.code("outcomes.code", o.Code)
	c.line("outcomes.kind", o.Kind, MaxName)
	c.text("outcomes.message", o.Message, MaxText)
	c.line("outcomes.codec", o.Codec, MaxName)
	if o.RetryMS != nil {
		c.within("outcomes.retry_ms", *o.RetryMS, 0, maxSeconds*1000)
	}
	c.within("outcomes.snooze_ms", o.SnoozeMS, 0, maxSeconds*1000)
	c.exit(o.ExitCode)
	c.usage(&o.Usage)
	if o.Blob != nil {
		c.blob("outcomes.blob.id", o.Blob.ID)
		c.within("outcomes.blob.size", o.Blob.Size, 0, math.MaxInt64)
	}
}

// blob checks a content id.
func (c *checker) blob(field, id string) {
	if id == "" {
		c.missing(field)
	}
	c.part(field, id)
}

func (m *Hello) check(c *checker) {
	c.line("version", m.Version, MaxName)
	c.optionalID("incarnation", m.Incarnation)
	if len(m.Incarnation) != incarnationDigits {
		c.fail(ErrInvalid, "incarnation", "is %.60q: use %d hex digits", m.Incarnation, incarnationDigits)
	}
	c.line("name", m.Name, MaxName)
	c.within("capacity.slots", int64(m.Capacity.Slots), 0, math.MaxInt32)
	for _, n := range []int64{m.Capacity.CPUMillis, m.Capacity.RAMBytes, m.Capacity.GPUMillis} {
		c.within("capacity", n, 0, math.MaxInt64)
	}
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
		c.text("kept.ticket", k.Ticket, MaxTicket)
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
	c.text("ticket", m.Ticket, MaxTicket)
	c.within("running", int64(m.Running), 0, batch.MaxItems)
	c.within("done", int64(m.Done), 0, batch.MaxItems)
	c.indexes("items", m.Items)
}

func (m *CancelOrder) check(c *checker) {
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
}

// indexes checks places of items.
func (c *checker) indexes(field string, list []int) {
	c.most(field, len(list), c.limits.Items, "items")
	for _, i := range list {
		c.within(field, int64(i), 0, batch.MaxItems-1)
	}
}

// maxArgs is the most bytes of the encoded arguments of one function of Go.
const maxArgs = 8 << 20
