// Package anomaly finds what transactions saw that no strictly serializable store shows, and names it: a checker in
// the manner of Elle (Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations",
// 2020).
//
// Transactions append distinct elements to lists and read whole lists. A list that was read shows the order of the
// appends to it, so reads tell which transactions must have come before which others:
//
//	ww  T1 appended an element, T2 the next one
//	wr  T1 appended the last element that T2 read
//	rw  T1 read a list, T2 appended its next element
//	rt  T1 had ended before T2 began
//
// Transactions in a cycle of these were in no order at all. The kinds of its edges name it, after Adya.
package anomaly

// Tx is a transaction as its client saw it.
type Tx struct {
	// ID names the transaction in findings. No two of a history have the same.
	ID int
	// Process is the client, for findings alone.
	Process int
	// Begin and End are its places in one order of all beginnings and ends. It began to read after Begin, and its answer
	// had come at End. Only the end of a transaction that is OK counts.
	Begin, End int64
	// Ops are in the order of the transaction. Those of a transaction that failed or is unknown may be incomplete, but
	// have each append.
	Ops     []Op
	Outcome Outcome
}

// Outcome is what the client knows about the end of a transaction.
type Outcome uint8

const (
	// OK means that it was committed, and that transactions that begin after its end must see it.
	OK Outcome = iota
	// Failed means that it was not committed and never will be.
	Failed
	// Unknown means that it may have been committed, or may yet be. It counts as committed once one of its elements was
	// read by a transaction that was.
	Unknown
)

// Op is an append, or a read of a list.
type Op struct {
	Key string
	// Element is what is appended, above 0. It is 0 for a read.
	Element int
	// List is what a read returned, with the transaction's own appends before it.
	List []int
}

// Append returns the append of an element, which no other transaction may append to the same list.
func Append(key string, element int) Op { return Op{Key: key, Element: element} }

// Read returns the read of a list.
func Read(key string, list ...int) Op { return Op{Key: key, List: list} }

func (o Op) isRead() bool { return o.Element == 0 }

// Names of findings. Those of cycles in which one transaction had ended before another began end with Realtime: the
// store is serializable there, but not strictly.
const (
	// G0 is a cycle of appends alone: a write cycle.
	G0 = "G0"
	// G1a is a read of an element whose transaction failed: an aborted read.
	G1a = "G1a"
	// G1b is a read that ends among the appends of another transaction: an intermediate read.
	G1b = "G1b"
	// G1c is a cycle of appends, and of reads of what was appended: circular information flow.
	G1c = "G1c"
	// GSingle is a cycle in which one read missed one append, such as a lost update or read skew.
	GSingle = "G-single"
	// G2 is a cycle in which several reads missed an append, such as write skew.
	G2 = "G2-item"
	// Realtime is the suffix of cycles that take the order of time to close.
	Realtime = "-realtime"
	// IncompatibleOrder is two reads of a list of which neither begins with the other.
	IncompatibleOrder = "incompatible-order"
	// DuplicateElement is an element that a list has twice.
	DuplicateElement = "duplicate-element"
	// UnwrittenElement is an element that no transaction appended.
	UnwrittenElement = "unwritten-element"
	// LostAppend is a committed append that no read shows, though one began after its end.
	LostAppend = "lost-append"
	// Internal is a read that disagrees with earlier operations of its own transaction.
	Internal = "internal"
)
