package kv

import "context"

// Version is a commit version of a store. Versions grow with every commit and
// order everything that happens in one store. They say nothing about time: a
// store may jump by any amount, and does so whenever it is opened.
type Version int64

// Stamp is a versionstamp: eight bytes of commit version, big endian, and two
// bytes of order among the commits that share the version. Stamps of one store
// sort in commit order.
type Stamp [StampSize]byte

// Database is an open store. Its methods are safe for concurrent use.
type Database interface {
	// Begin starts a transaction. It does not wait for the store: an error of
	// the store surfaces in the first read or in the commit.
	Begin(Options) Tx

	// Close closes the store. Transactions that are still open, and watches
	// that have not fired, end with ErrClosed. A second Close returns nil.
	Close() error
}

// Options of one transaction. The zero value is a durable transaction.
type Options struct {
	// NoSync says that losing this transaction in a crash of the store breaks
	// no promise, so its commit need not wait for the disk. Other transactions
	// see it only once it is durable, and Commit may return before that;
	// SetReadVersion to the version it returned works at once. A driver may
	// ignore it. Defaults to false.
	NoSync bool

	// Tag names the operation, at most 16 characters, for throttling and for
	// metrics. A driver may ignore it. Defaults to none.
	Tag string

	// Turns says that transactions with this Tag are likely to conflict when they run
	// at the same time. Once two of them have, whichever processes they are of, a driver
	// may have them read and commit one after the other for a second: the first read then
	// waits, for a quarter of a second at most. It saves time and changes no result. A driver
	// may ignore it. Defaults to false.
	Turns bool
}

// Reader is the reading half of a transaction. Reads are issued at once and
// waited for later, so many can be in flight together:
//
//	a, b := tx.Get(keyA), tx.Get(keyB)
//	va, err := a.Wait(ctx)
//	vb, err := b.Wait(ctx)
//
// A read that was asked for before the Commit of its transaction may be waited for after it. The caller owns the slices
// that a read returns.
type Reader interface {
	// Get asks for the value of key. The answer is nil if the key is absent,
	// and empty but not nil if the value is empty.
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
	// that was read from or committed to this store. It must come before the
	// first read. A version that is too old fails the reads with ErrTooOld, one
	// that the store has not reached with ErrFutureVersion.
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
	// another one writes the key or range, as if this one had read it. Keys
	// that this transaction has already set or cleared are left out, so add
	// conflicts before the writes.
	AddReadConflictKey(key []byte)
	AddReadConflictRange(r Range)

	// AddWriteConflictKey and AddWriteConflictRange make other transactions
	// that read the key or range fail, as if this one had written it.
	AddWriteConflictKey(key []byte)
	AddWriteConflictRange(r Range)

	// Watch returns a watch on key that takes effect at commit and compares
	// with the value that the transaction sees. It reads the key serializably.
	// Set watches in transactions that write nothing else.
	Watch(key []byte) Watch

	// Commit makes the writes durable and visible, in that order, and returns
	// their place in the store's history. A transaction that wrote nothing and
	// added no write conflict commits without contacting the store, with
	// version -1 and no stamp. If ctx ends first, the error is ErrUnknownResult
	// joined with the cause.
	Commit(ctx context.Context) (Committed, error)

	// Cancel abandons the transaction and those of its watches that have not
	// been committed. It may be called at any time and more than once.
	Cancel()
}

// Committed is the place of a transaction in the store's history.
type Committed struct {
	// Version is the commit version, -1 for a transaction that wrote nothing.
	Version Version
	// Stamp is the stamp that replaced the transaction's incomplete stamps.
	Stamp Stamp
}

// Watch reports a change of one key. It fires when the key's value differs from
// the one its transaction saw. A value that changes and changes back may be
// missed, and a watch may fire without a change, so the caller reads the key
// again.
type Watch interface {
	// Done is closed when the watch has fired or failed, including when its
	// transaction was cancelled or failed to commit.
	Done() <-chan struct{}

	// Err is nil before Done is closed and after the watch fired. Otherwise it
	// says why the watch ended: ErrCancelled, ErrClosed, ErrTooManyWatches, the
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
	// More is set when a bound of RangeOptions ended the page, which then has
	// at least one row. There may still be no further rows.
	More bool
}

// RangeOptions bound a GetRange.
type RangeOptions struct {
	// Limit is the maximum number of rows to return. Defaults to no limit.
	Limit int
	// Bytes ends the page with the row at which its keys and values reach this
	// many bytes. Defaults to no limit.
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
	// Locate returns which servers hold the given keys. It returns the errors
	// of reads.
	Locate(ctx context.Context, keys [][]byte) (Location, error)
}

// Location describes which servers hold keys.
type Location struct {
	// Teams are the addresses of the servers that hold each key, sorted.
	Teams [][]string
	// Servers is how many servers of the store hold keys at all.
	Servers int
}
