package layout

// BatchRecord is a batch whose items are held futures of the owner with its id.
// What the template and the status mean is up to whoever makes batches.
type BatchRecord struct {
	ID          string `msgpack:"-" json:"id"`
	Template    []byte `msgpack:"t" json:"template"`
	Queue       string `msgpack:"q" json:"queue"`
	MaxAttempts int    `msgpack:"m" json:"max_attempts"`
	Items       int    `msgpack:"n" json:"items"`
	Status      int    `msgpack:"s,omitempty" json:"status"`
	Reason      string `msgpack:"r,omitempty" json:"reason,omitempty"`
	// Made is set once all items exist. Until then Maker is who makes them, and
	// Digest says of what: who makes the same may go on in its place.
	Made       bool   `msgpack:"d,omitempty" json:"made"`
	Maker      string `msgpack:"k,omitempty" json:"maker,omitempty"`
	Digest     []byte `msgpack:"h,omitempty" json:"digest,omitempty"`
	CreatedAt  int64  `msgpack:"c" json:"created_at_ms"`
	FinishedAt int64  `msgpack:"f,omitempty" json:"finished_at_ms,omitempty"`
	// CancelledAt is when a cancel began that has not reached all items yet, 0
	// otherwise. Reason is the cancel's.
	CancelledAt int64 `msgpack:"x,omitempty" json:"cancelled_at_ms,omitempty"`
}

// BatchChunk is what a worker was given of a batch at one time. Its items say its
// id as the reason of their assignment.
type BatchChunk struct {
	ID        string   `msgpack:"-" json:"id"`
	Worker    WorkerID `msgpack:"w" json:"worker"`
	Items     int      `msgpack:"n" json:"items"`
	Status    int      `msgpack:"s,omitempty" json:"status"`
	CreatedAt int64    `msgpack:"c" json:"created_at_ms"`
}
