package layout

// BatchRecord is a batch. Its items are held futures whose owner is the batch's
// id. The code that makes batches defines the meaning of the template and the
// status.
type BatchRecord struct {
	ID          string `msgpack:"-" json:"id"`
	Template    []byte `msgpack:"t" json:"template"`
	Queue       string `msgpack:"q" json:"queue"`
	MaxAttempts int    `msgpack:"m" json:"max_attempts"`
	Items       int    `msgpack:"n" json:"items"`
	Status      int    `msgpack:"s,omitempty" json:"status"`
	Reason      string `msgpack:"r,omitempty" json:"reason,omitempty"`
	// Made is set once all items exist. Until then Maker names the process that
	// makes them, and Digest is the digest of the request: another maker of the
	// same request may continue in its place.
	Made       bool   `msgpack:"d,omitempty" json:"made"`
	Maker      string `msgpack:"k,omitempty" json:"maker,omitempty"`
	Digest     []byte `msgpack:"h,omitempty" json:"digest,omitempty"`
	CreatedAt  int64  `msgpack:"c" json:"created_at_ms"`
	FinishedAt int64  `msgpack:"f,omitempty" json:"finished_at_ms,omitempty"`
	// CancelledAt is the time when a cancel began that has not reached all
	// items yet, 0 otherwise. Reason is the reason given for the cancel.
	CancelledAt int64 `msgpack:"x,omitempty" json:"cancelled_at_ms,omitempty"`
}

// BatchChunk is the set of items that a worker was given from a batch at one
// time. Its items carry its id as the reason for their assignment.
type BatchChunk struct {
	ID        string   `msgpack:"-" json:"id"`
	Worker    WorkerID `msgpack:"w" json:"worker"`
	Items     int      `msgpack:"n" json:"items"`
	Status    int      `msgpack:"s,omitempty" json:"status"`
	CreatedAt int64    `msgpack:"c" json:"created_at_ms"`
	// Peer is the worker's LabelPeer, empty if it has none.
	Peer string `msgpack:"p,omitempty" json:"peer,omitempty"`
	// FinishedAt is when the chunk was found to be over, 0 before.
	FinishedAt int64 `msgpack:"f,omitempty" json:"finished_at_ms,omitempty"`
	// Lost is how many of its items were taken from the worker because it died or left.
	Lost int `msgpack:"l,omitempty" json:"lost,omitempty"`
	// Moved is how many of its items went to other chunks because the worker had not begun
	// them; Items is without those.
	Moved int `msgpack:"v,omitempty" json:"moved,omitempty"`
}
