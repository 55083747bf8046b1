package kv

import "context"

// Version is a commit version of a store. Versions grow with every commit and
// order everything that one store ever did. They say nothing about time: a
// store may jump by any amount, and does so whenever it is opened.
type Version int64

// Stamp is a versionstamp: eight bytes of commit version, big endian, and two
// bytes of order among the commits that share the version. Stamps of one store
// sort in commit order.
type Stamp [StampSize]byte

// Database is an open store. Its methods may be called from many goroutines.
type Database interface {
	// Begin starts a transaction. It does not wait for the store: a failing
	// store shows in the first read or in the commit.
	Begin(Options) Tx

	// Close ends the store's use. Transactions that are still open, and
	// watches that have not fired, end with ErrClosed. A second Close returns
	// nil.
	Close() error
}

// Options of one transaction. The zero value is a durable transaction.
type Options struct {
	// NoSync says that losing this transaction in a crash of the store loses
	// nothing that was promised to anyone, so that its commit need not wait for
	// the disk. Others see it only once it is durable, so Commit may return
	// before that; SetReadVersion to the version it returned works at once. A
	// driver may ignore it. Defaults to false.
	NoSync bool

	// Tag names the operation, at most 16 characters, for throttling and for
	// metrics. A driver may ignore it. Defaults to none.
	Tag string
}

// Reader is the reading half of a transaction. Reads are asked at once and
// waited for later, so that many can be under way together:
//
//	a, b := tx.Get(keyA), tx.Get(keyB)
//	va, err := a.Wait(ctx)
//	vb, err := b.Wait(ctx)
//
// Slices that a read returns belong to the caller.
type Reader interface {
	// Get asks for the value of key. The answer is nil where the key is absent,
	// and empty but not nil where the value is.
	Get(key []byte) Pending[[]byte]

	// GetRange asks for the keys of r in order.
	GetRange(r Range, o RangeOptions) Pending[Page]
}

// Tx is a transaction. It belongs to one goroutine at a time. After Commit or
// Cancel only Cancel may be called; everything else fails with ErrUsed.
// Slices that are passed in may be reused as soon as the call returns.
type Tx interface {
	Reader

	// Snapshot reads without adding read conflicts.
	Snapshot() Reader

	// ReadVersion returns the version that the transaction reads at. It is at
	// least the version of every commit that was acknowledged before the
	// transaction's first read.
	ReadVersion(ctx context.Context) (Version, error)

	// SetReadVersion makes the transaction read at v, which must be a version
	// that was read or committed on this store. It must come before the first
	// read. A version that is too old fails the reads with ErrTooOld, one that
	// the store has not reached with ErrFutureVersion.
	SetReadVersion(v Version)

	Set(key, value []byte)
	Clear(key []byte)
	ClearRange(r Range)

	// Atomic changes the value of key by op and param at commit, without
	// reading it.
	Atomic(op AtomicOp, key, param []byte)

	// SetVersionstampedKey sets value at key with the ten bytes from offset
	// replaced by the transaction's stamp.
	SetVersionstampedKey(key []byte, offset int, value []byte)

	// SetVersionstampedValue sets key to value with the ten bytes from offset
	// replaced by the transaction's stamp.
	SetVersionstampedValue(key, value []byte, offset int)

	// AddReadConflictKey and AddReadConflictRange make the transaction fail if
	// the key or range is written by others, as if it had been read: what the
	// transaction has set or cleared before is left out, so add conflicts
	// before the writes.
	AddReadConflictKey(key []byte)
	AddReadConflictRange(r Range)

	// AddWriteConflictKey and AddWriteConflictRange make others who read the
	// key or range fail, as if it had been written.
	AddWriteConflictKey(key []byte)
	AddWriteConflictRange(r Range)

	// Watch returns a watch on key that starts to count at commit, from the
	// value that the transaction sees. It reads the key serializably. Set
	// watches in transactions that write nothing else.
	Watch(key []byte) Watch

	// Commit makes the writes durable and visible, in that order, and returns
	// where in the store's history they are. A transaction that wrote nothing
	// and added no write conflict commits without the store, with version -1
	// and no stamp. If ctx ends first, the error is ErrUnknownResult joined
	// with the cause.
	Commit(ctx context.Context) (Committed, error)

	// Cancel gives up the transaction and its watches that have not been
	// committed. It may be called at any time and more than once.
	Cancel()
}

// Committed says where a transaction lies in the store's history.
type Committed struct {
	// Version is the commit version, -1 for a transaction that wrote nothing.
	Version Version
	// Stamp is what replaced the incomplete stamps of the transaction.
	Stamp Stamp
}

// Watch tells of a change of one key. It fires when the key's value differs
// from the one its transaction saw. A value that changes and changes back may
// be missed, and a watch may fire without a change: whoever is woken reads
// again.
type Watch interface {
	// Done is closed when the watch has fired or failed, also when its
	// transaction was cancelled or failed to commit.
	Done() <-chan struct{}

	// Err is nil before Done is closed and after the watch fired, and says why
	// it ended otherwise: ErrCancelled, ErrClosed, ErrTooManyWatches, the
	// error of the commit, or of the store.
	Err() error

	// Cancel ends the watch with ErrCancelled and frees what it holds. A watch
	// that is no longer wanted must be cancelled.
	Cancel()
}

// KeyValue is one row.
type KeyValue struct {
	Key, Value []byte
}

// Page is the answer to a GetRange.
type Page struct {
	Items []KeyValue
	// More is set when a bound of RangeOptions ended the page, which then has at
	// least one row. There may still be nothing behind it.
	More bool
}

// RangeOptions bound a GetRange.
type RangeOptions struct {
	// Limit is the most rows to return. Defaults to no limit.
	Limit int
	// Bytes ends the page with the row that brings its keys and values to so
	// many bytes. A driver may ignore it. Defaults to no limit.
	Bytes int
	// Reverse returns the rows from the end of the range backwards.
	Reverse bool
}

// AtomicOp is a change that the store applies at commit. Numbers are little
// endian. "Absent" below means that the key does not exist at that moment.
type AtomicOp uint8

const (
	// Add adds param to the value as unsigned integers of param's length,
	// wrapping around; the value is cut or zero-extended to that length.
	// Absent counts as zero.
	Add AtomicOp = iota + 1
	// Max and Min keep the larger or smaller of the value and param as
	// unsigned little-endian integers of param's length. Absent becomes param.
	Max
	Min
	// ByteMax and ByteMin keep the larger or smaller of the value and param
	// as byte strings. Absent becomes param.
	ByteMax
	ByteMin
	// CompareAndClear clears the key if its value equals param.
	CompareAndClear
)

// Located is implemented by a Database that keeps its keys on several servers.
type Located interface {
	// Locate tells which servers hold keys. It returns the errors of reads.
	Locate(ctx context.Context, keys [][]byte) (Location, error)
}

// Location says where keys lie.
type Location struct {
	// Teams are the addresses of the servers that hold each key, sorted.
	Teams [][]string
	// Servers is how many servers of the store hold keys at all.
	Servers int
}
