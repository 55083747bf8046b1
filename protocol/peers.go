package protocol

// Hello introduces a worker to a head: after connecting, and whenever something
// in it changes. The head answers with HelloResponse.
type Hello struct {
	Envelope
	// Version is that of the worker's program.
	Version string `json:"version,omitempty"`
	// Incarnation is drawn at each start of the process: 16 hex digits.
	Incarnation string `json:"incarnation"`
	// Name is for people.
	Name string `json:"name,omitempty"`
	// Capacity is the capacity of the worker.
	Capacity Capacity `json:"capacity"`
	// Labels are those that futures may require.
	Labels map[string]string `json:"labels,omitempty"`
	// Functions are full names, such as "go:resize", or "wasm:*" for any module: 32 KiB of
	// them together at most.
	Functions []string `json:"functions,omitempty"`
	// MaxChunk is how many items the worker takes in one chunk; 0 is no bound of its
	// own.
	MaxChunk int `json:"max_chunk,omitempty"`
	// Limits says that the worker keeps the concurrency limit of orders: of all that one
	// head gives it with the same request id, so many items run at a time.
	Limits bool `json:"limits,omitempty"`
	// Kept are the chunks whose results it still has.
	Kept []Kept `json:"kept,omitempty"`
	// Running are the ids of the chunks that it runs.
	Running []string `json:"running,omitempty"`
}

// Type returns TypeHello.
func (*Hello) Type() string { return TypeHello }

// Capacity is the capacity of a worker.
type Capacity struct {
	// Slots is how many items it runs at a time.
	Slots int `json:"slots"`
	// CPUMillis is in thousandths of a processor.
	CPUMillis int64 `json:"cpu_millis,omitempty"`
	// RAMBytes is memory, in bytes.
	RAMBytes int64 `json:"ram_bytes,omitempty"`
	// GPUMillis is in thousandths of a device.
	GPUMillis int64 `json:"gpu_millis,omitempty"`
}

// Kept names a chunk whose results a worker has.
type Kept struct {
	// ChunkID is the chunk's id.
	ChunkID string `json:"chunk_id"`
	// OrderMAC is that of the order.
	OrderMAC string `json:"ticket,omitempty"`
}

// HelloResponse is the head's answer to Hello.
type HelloResponse struct {
	Envelope
	// Code is CodeOK if the worker is a member now.
	Code Code `json:"code"`
	// Message describes the error.
	Message string `json:"message,omitempty"`
	// Head names the head.
	Head string `json:"head,omitempty"`
	// HeartbeatMS is how often the worker reports on each chunk that it runs, in
	// milliseconds.
	HeartbeatMS int64 `json:"heartbeat_ms,omitempty"`
	// DeadAfterMS is after which silence the worker counts as lost, in milliseconds.
	DeadAfterMS int64 `json:"dead_after_ms,omitempty"`
	// Wanted are chunks whose results the worker should send.
	Wanted []string `json:"wanted,omitempty"`
	// Unknown are chunks that the worker should forget.
	Unknown []string `json:"unknown,omitempty"`
}

// Type returns TypeHelloResponse.
func (*HelloResponse) Type() string { return TypeHelloResponse }

// WorkOrderProgress says how far a chunk is, so that a head can tell a busy
// worker from a lost one. A worker sends it once a heartbeat, and first soon after it took the
// chunk: a head may give it to others if it hears nothing of it. It is answered by Ack.
type WorkOrderProgress struct {
	Envelope
	// ChunkID is the chunk's id.
	ChunkID string `json:"chunk_id"`
	// OrderMAC is that of the order.
	OrderMAC string `json:"ticket,omitempty"`
	// Running is how many items run now.
	Running int `json:"running"`
	// Done is how many items have ended.
	Done int `json:"done"`
	// Items are the places of those that run now.
	Items []int `json:"items,omitempty"`
	// Order are the ids and attempts of all items of the order, in their order. They are sent to a head that
	// answered CodeConflict: it does not know the chunk any more, and finds out by the order MAC whether it gave
	// these items, and which of them it still wants.
	Order []OrderItem `json:"order,omitempty"`
}

// Type returns TypeWorkOrderProgress.
func (*WorkOrderProgress) Type() string { return TypeWorkOrderProgress }

// CancelOrder asks a worker to stop items of a chunk. It is answered by Ack.
type CancelOrder struct {
	Envelope
	// ChunkID is the chunk's id.
	ChunkID string `json:"chunk_id"`
	// Indexes are the places of the items; none stands for all.
	Indexes []int `json:"indexes,omitempty"`
	// Reason is for people.
	Reason string `json:"reason,omitempty"`
}

// Type returns TypeCancelOrder.
func (*CancelOrder) Type() string { return TypeCancelOrder }

// TakeBack asks a worker to give back items of a chunk that it has not begun. The items that it
// gives back are among its outcomes, by CodeUnavailable, and are not run; begun ones go on. It
// is answered by Ack.
type TakeBack struct {
	Envelope
	// ChunkID is the chunk's id.
	ChunkID string `json:"chunk_id"`
	// Indexes are the places of the items; none stands for all.
	Indexes []int `json:"indexes,omitempty"`
	// Reason is for people.
	Reason string `json:"reason,omitempty"`
}

// Type returns TypeTakeBack.
func (*TakeBack) Type() string { return TypeTakeBack }

// Goodbye says that a worker takes no more chunks. It finishes those that it
// has, except what it returns. It is answered by Ack.
type Goodbye struct {
	Envelope
	// Returned are the items that it has not run and will not run.
	Returned []Returned `json:"returned,omitempty"`
}

// Type returns TypeGoodbye.
func (*Goodbye) Type() string { return TypeGoodbye }

// Returned names items that a worker gives back.
type Returned struct {
	// ChunkID is the chunk's id.
	ChunkID string `json:"chunk_id"`
	// Indexes are the places of the items; none stands for all.
	Indexes []int `json:"indexes,omitempty"`
}

// Ack answers a message on StreamFutura that has no answer of its own.
type Ack struct {
	Envelope
	// Code answers a WorkOrderBatch by CodeAccepted (taken), CodeUnavailable (busy),
	// CodeNotFound (unknown function), CodeConflict (it has the chunk already, and
	// its results will come), CodeNotPermitted (the worker takes no orders of this head) or CodeInvalid (too many
	// items, or some that contradict each other); a WorkOrderBatchResponse by CodeOK (stored: forget it),
	// CodeUnavailable (keep it and send it again) or CodeGone (not wanted: forget
	// it); a WorkOrderProgress by CodeGone if the head wants no item of the chunk; a CancelOrder and a TakeBack by
	// CodeNotFound if the worker does not have the chunk; and others by CodeOK. A
	// WorkOrderBatchResponse and a WorkOrderProgress of a chunk that the head does not know are answered by
	// CodeConflict if they are without the items of the order. A head that does not know the worker answers
	// CodeNotAuthorized: it wants a Hello first. What can't be read is answered by CodeInvalid, and a type that the
	// receiver does not take by CodeNotSupported.
	Code Code `json:"code"`
	// Message describes the error.
	Message string `json:"message,omitempty"`
	// ChunkID is that of the message that is answered, if it has one.
	ChunkID string `json:"chunk_id,omitempty"`
	// Unwanted are the places of items that the head does not want, in the answer to a WorkOrderProgress that has the
	// items of the order: the worker is to stop them.
	Unwanted []int `json:"unwanted,omitempty"`
}

// Type returns TypeAck.
func (*Ack) Type() string { return TypeAck }
