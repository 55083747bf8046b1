package layout

import (
	"time"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

// subPaces is the subspace of the paces that a whole cluster keeps.
const subPaces = "paces"

// maxGap is the longest time between two starts at one pace.
const maxGap = 24 * time.Hour

// Gap is the time between two starts: at most a day.
func (p *Pace) Gap() time.Duration {
	return time.Duration(min(float64(time.Second)/p.PerSecond, float64(maxGap)))
}

// PaceRecord says how far a pace is given out.
type PaceRecord struct {
	// Next is when the next start may be that is not reserved yet, in nanoseconds of
	// Unix time.
	Next int64 `msgpack:"n" json:"next_ns"`
}

// Paces returns the prefix of the paces.
func (k Keyspace) Paces() []byte { return k.Global(subPaces) }

// Pace returns the key of a pace.
func (k Keyspace) Pace(key string) []byte { return tuple.AppendString(k.Paces(), key) }
