package protocol

// ExecuteBatch asks a head to run a function once for each list of arguments.
type ExecuteBatch struct {
	Envelope
	// Topic is where the roll call is published. Empty is TopicGeneral.
	Topic string `json:"topic"`
	// Template is the common part of all items.
	Template Template `json:"template"`
	// Arguments are one list for each item, at least one.
	Arguments [][]string `json:"arguments"`
	// MaxAttempts is how often an item is tried; 0 leaves it to the head. The wire has
	// 32 bits: more is written, and read, as their maximum.
	MaxAttempts uint64 `json:"max_attempts,omitempty"`
	// WorkerConcurrency is how many items a worker runs at a time; 0 leaves it to
	// the worker. DialectChunk has no such field.
	WorkerConcurrency uint64 `json:"worker_concurrency_limit,omitempty"`
}

// Type returns TypeExecuteBatch.
func (*ExecuteBatch) Type() string { return TypeExecuteBatch }

// ExecuteBatchResponse is the head's answer to ExecuteBatch.
type ExecuteBatchResponse struct {
	Envelope
	// RequestID is the batch's id: a UUID.
	RequestID string `json:"request_id,omitempty"`
	// Code is CodeOK if the batch was run. Whether an item succeeded says its own.
	Code Code `json:"code,omitempty"`
	// Chunks are by their ids; DialectStrand spells it "strands".
	Chunks map[string]ChunkResults `json:"chunks,omitempty"`
	// Message describes the error.
	Message string `json:"message,omitempty"`

	// AsSingle says that the type on the wire is TypeExecuteResponse, as the nodes of
	// b7s write it. It needs Chunks, by which Decode tells the two apart.
	AsSingle bool `json:"-"`
	// Dialect is that in which Decode read it. Encode ignores it.
	Dialect Dialect `json:"-"`
}

// Type returns TypeExecuteBatchResponse, or TypeExecuteResponse if AsSingle is
// set.
func (r *ExecuteBatchResponse) Type() string {
	if r.AsSingle {
		return TypeExecuteResponse
	}
	return TypeExecuteBatchResponse
}

// ChunkResults are the results of one chunk.
type ChunkResults struct {
	// Peer is the worker that ran it.
	Peer string `json:"peer,omitempty"`
	// Results are by the ids of the items; see Template.ItemID.
	Results map[string]ItemResult `json:"results,omitempty"`
}

// WorkOrderBatch asks a worker to run a chunk: some items of a batch.
type WorkOrderBatch struct {
	Envelope
	// Template is the common part of all items.
	Template Template `json:"template"`
	// RequestID is the batch's id: a UUID.
	RequestID string `json:"request_id"`
	// ChunkID is the chunk's id; DialectStrand spells it "strand_id".
	ChunkID string `json:"chunk_id"`
	// Arguments are one list for each item, at least one.
	Arguments [][]string `json:"arguments"`
	// Concurrency is how many items run at a time; 0 leaves it to the worker.
	Concurrency uint64 `json:"concurrency_limit,omitempty"`

	// The fields below are Futura's own.

	// Module is the content id of the module to fetch by a blob stream, if the
	// function is one.
	Module string `json:"module,omitempty"`
	// OrderMAC is the head's MAC of the order, by which it knows the order again. The worker
	// sends it back with results, and need not understand it. At most MaxOrderMAC bytes.
	OrderMAC string `json:"ticket,omitempty"`
	// Priority is that of the items, from 0 to 255.
	Priority int `json:"priority,omitempty"`
	// Items are as many as Arguments and in their order, or none.
	Items []OrderItem `json:"items,omitempty"`

	// Dialect is that in which Decode read it, and in which a worker answers.
	// Encode ignores it.
	Dialect Dialect `json:"-"`
}

// Type returns TypeWorkOrderBatch.
func (*WorkOrderBatch) Type() string { return TypeWorkOrderBatch }

// OrderItem is the part of an item of a chunk beside its arguments.
type OrderItem struct {
	// ID is that of the future.
	ID string `json:"id"`
	// Attempt counts from 1.
	Attempt int `json:"attempt,omitempty"`
	// TimeoutMS bounds the attempt, in milliseconds. 0 is no bound.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// Codec is how Args are encoded: msgpack, json, raw or inputs. Empty for an item
	// that has arguments alone.
	Codec string `json:"codec,omitempty"`
	// Args are the arguments of a function of Go, in base64 on the wire.
	Args []byte `json:"args,omitempty"`
	// Trace is the context of the trace that the future is part of, as in Envelope.
	Trace Carrier `json:"trace,omitempty"`
}

// WorkOrderBatchResponse is the worker's answer to WorkOrderBatch.
//
// In DialectChunk and DialectStrand the ids are written under both of their
// spellings and the results as "Results", which heads of either spelling read.
type WorkOrderBatchResponse struct {
	Envelope
	// RequestID is that of the order.
	RequestID string `json:"request_id"`
	// ChunkID is the chunk's id; DialectStrand spells it "StrandID".
	ChunkID string `json:"chunk_id"`
	// Results are by the ids of the items; see Template.ItemID. Items that run the
	// same share one.
	Results map[string]ItemResult `json:"results,omitempty"`

	// The fields below are Futura's own.

	// OrderMAC is that of the order.
	OrderMAC string `json:"ticket,omitempty"`
	// Partial says that the chunk goes on: more results follow.
	Partial bool `json:"partial,omitempty"`
	// Outcomes are the results by the places of the items.
	Outcomes []Outcome `json:"outcomes,omitempty"`
	// Items are the ids and attempts of all items of the order, in their order. They are
	// sent to a head that answered CodeConflict: it does not know the chunk any more, and
	// finds out by the order MAC whether it gave these items.
	Items []OrderItem `json:"items,omitempty"`

	// Dialect is that in which Decode read it. Encode ignores it.
	Dialect Dialect `json:"-"`
}

// Type returns TypeWorkOrderBatchResponse.
func (*WorkOrderBatchResponse) Type() string { return TypeWorkOrderBatchResponse }

// Outcome is how one item of a chunk ended.
type Outcome struct {
	// Index is the place of the item in the order, from 0.
	Index int `json:"index"`
	// Code is CodeOK for an item that succeeded, CodeAccepted for one that is to be run
	// again after SnoozeMS, and CodeUnavailable for one that the worker gives back unrun.
	// Others failed.
	Code Code `json:"code"`
	// Kind says why the item failed, in the words of the model such as "timeout".
	Kind string `json:"kind,omitempty"`
	// Message says it for people.
	Message string `json:"message,omitempty"`
	// ExitCode is that of a module.
	ExitCode int `json:"exit_code,omitempty"`
	// Permanent says that no further attempt can succeed.
	Permanent bool `json:"permanent,omitempty"`
	// RetryMS is how long the function wants the next attempt to wait, in milliseconds.
	// Left out, the head decides.
	RetryMS *int64 `json:"retry_ms,omitempty"`
	// SnoozeMS is after how many milliseconds the function wants to be run again, without
	// an attempt being counted.
	SnoozeMS int64 `json:"snooze_ms,omitempty"`
	// Stdout is the standard output of a module that failed, in base64 on the wire.
	Stdout []byte `json:"stdout,omitempty"`
	// Stderr is the standard error, in base64 on the wire.
	Stderr []byte `json:"stderr,omitempty"`
	// Value is the result of a function of Go, or the standard output of a module, in
	// base64 on the wire.
	Value []byte `json:"value,omitempty"`
	// Codec is how Value is encoded.
	Codec string `json:"codec,omitempty"`
	// Truncated says that Stdout or Stderr was cut.
	Truncated bool `json:"truncated,omitempty"`
	// Usage is the use of the run.
	Usage Usage `json:"usage,omitzero"`
	// Blob is where the value is to be fetched, if it is too large to be in Value.
	Blob *Blob `json:"blob,omitempty"`
}

// OK reports whether the item succeeded.
func (o *Outcome) OK() bool { return o.Code == CodeOK && o.ExitCode == 0 && o.Kind == "" }

// Blob names bytes that a peer serves on StreamBlob.
type Blob struct {
	// ID is the content id: CIDv1, raw, sha2-256.
	ID string `json:"id"`
	// Size is in bytes.
	Size int64 `json:"size"`
}
