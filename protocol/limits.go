package protocol

import "github.com/futura-run/futura/batch"

// Limits bound a message, and what decoding it can cost. Each is a most: begin
// with DirectLimits or GossipLimits and change what you need. A message beyond
// one is refused with ErrLimit, and what Bytes, Depth, Objects, Lists and Values
// bound is counted before memory is taken for it.
type Limits struct {
	// Bytes is the size of a message.
	Bytes int
	// Depth is how many objects and lists may be inside each other.
	Depth int
	// Objects is how many objects a message has, those of unknown fields included.
	Objects int
	// Lists is how many lists it has.
	Lists int
	// Values is how many values it has; an empty object or list counts twice.
	Values int
	// Items is how many lists of arguments, outcomes or places of items a message has.
	Items int
	// Arguments is how many arguments one item has.
	Arguments int
	// ArgumentBytes is the size of the arguments of one item together.
	ArgumentBytes int
}

// DirectLimits are those of messages on streams: 64 MiB.
func DirectLimits() Limits {
	return Limits{
		Bytes: 64 << 20, Depth: 16, Objects: 400_000, Lists: 1_100_000, Values: 4_000_000,
		Items: batch.MaxItems, Arguments: 4096, ArgumentBytes: batch.MaxArguments,
	}
}

// GossipLimits are those of published messages: 64 KiB.
func GossipLimits() Limits {
	return Limits{
		Bytes: 64 << 10, Depth: 16, Objects: 1000, Lists: 1000, Values: 8000,
		Items: 1000, Arguments: 4096, ArgumentBytes: batch.MaxArguments,
	}
}

// Limits of fields.
const (
	// MaxID is the most bytes of an id of a request or chunk, which has hex digits,
	// colons and hyphens.
	MaxID = 128
	// MaxName is the most bytes of a function's id, a method, a peer's id, a label
	// and other names.
	MaxName = 256
	// MaxText is the most bytes of a message for people, a reason or a URL.
	MaxText = 16 << 10
	// MaxOrderMAC is the most bytes of a head's order MAC.
	MaxOrderMAC = 200
	// MaxCarrier is the most bytes of the names and values of a carrier together.
	MaxCarrier = 8 << 10
	// MaxNames is the most names in one list: functions, labels, chunks, peers.
	MaxNames = 10_000
	// MaxMetadata is the most bytes of the metadata of a result.
	MaxMetadata = 64 << 10
)
