package layout

import (
	"encoding/binary"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// ParseOpen parses the key of a counter of futures that are with workers, below
// an owner's prefix.
func ParseOpen(prefix []byte, item kv.KeyValue) (reason string, n int64, err error) {
	rest := tuple.NewReader(item.Key[len(prefix):])
	reason = rest.Text()
	if rest.Done() != nil || len(item.Value) != 8 {
		return "", 0, fmt.Errorf("%s: %w: not a counter", tuple.String(item.Key), ErrBadRecord)
	}
	return reason, int64(binary.LittleEndian.Uint64(item.Value)), nil
}

// Counts are the futures of a cluster by queue, owner and state, kept by
// counters that change with the futures.
type Counts map[CountKey]int64

// CountKey is the combination that futures are counted by.
type CountKey struct {
	Queue, Owner string
	State        State
}

// Total returns the number of futures in a state.
func (c Counts) Total(s State) int64 {
	n := int64(0)
	for k, v := range c {
		if k.State == s {
			n += v
		}
	}
	return n
}

// ParseCount parses the key of a counter below a shard's prefix.
func ParseCount(prefix []byte, item kv.KeyValue) (CountKey, int64, error) {
	rest := tuple.NewReader(item.Key[len(prefix):])
	key := CountKey{Queue: rest.Text(), Owner: rest.Text()}
	state, err := ParseState(rest.Text())
	key.State = state
	if err != nil || rest.Err() != nil || len(item.Value) != 8 {
		return key, 0, fmt.Errorf("%s: %w: not a counter", tuple.String(item.Key), ErrBadRecord)
	}
	return key, int64(binary.LittleEndian.Uint64(item.Value)), nil
}

// OpenKey is the combination that owned futures are counted by while they are
// with workers.
type OpenKey struct{ Owner, Reason string }

// ShardCount names a counter of one shard.
type ShardCount struct {
	Shard int
	CountKey
}

// CountOf names the counter of futures with this spec in a state.
func CountOf(shard int, s *Spec, state State) ShardCount {
	return ShardCount{Shard: shard, CountKey: CountKey{Queue: s.Queue, Owner: s.Owner, State: state}}
}
