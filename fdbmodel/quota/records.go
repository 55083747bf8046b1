package quota

import (
	"fmt"
	"math"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Limits are those of a whole cluster. A zero field limits nothing.
type Limits struct {
	// Pending is the most futures that are blocked, ready or delayed, and Running the
	// most that workers hold.
	Pending int64 `msgpack:"p,omitempty" json:"pending,omitempty"`
	Running int64 `msgpack:"r,omitempty" json:"running,omitempty"`
	// Bytes is the most that the store may hold.
	Bytes int64 `msgpack:"b,omitempty" json:"bytes,omitempty"`
	// PerSecond is how many futures may be submitted in a second.
	PerSecond float64 `msgpack:"s,omitempty" json:"per_second,omitempty"`
}

// Any reports whether there is a limit.
func (l Limits) Any() bool { return l != Limits{} }

// Validate returns layout.ErrBadConfig for a limit that can't be one.
func (l Limits) Validate() error {
	const fastest = 1e9
	switch {
	case l.Pending < 0 || l.Running < 0 || l.Bytes < 0:
		return fmt.Errorf("%w: limits pending=%d running=%d bytes=%d per_second=%g: none may be negative; 0 is no limit",
			layout.ErrBadConfig, l.Pending, l.Running, l.Bytes, l.PerSecond)
	case !(l.PerSecond >= 0 && l.PerSecond <= fastest) || l.PerSecond > 0 && l.PerSecond < 1/float64(3600*24):
		return fmt.Errorf("%w: %v submits per second: use one a day (%.6f) to %.0f, or 0 for no limit", layout.ErrBadConfig,
			l.PerSecond, 1/float64(3600*24), fastest)
	}
	return nil
}

// RateRecord is what is left of the submits of the present second. Tokens are below 0
// while more were taken than there were.
type RateRecord struct {
	Tokens float64 `msgpack:"n,omitempty" json:"tokens"`
	At     int64   `msgpack:"t" json:"at_ms"`
}

// UsageRecord is how much the store held at a time, for processes that can't measure it.
type UsageRecord struct {
	Bytes int64 `msgpack:"b,omitempty" json:"bytes"`
	At    int64 `msgpack:"t" json:"at_ms"`
}

// rateSkew is by how many milliseconds a clock may be ahead of the others, and maxTokens
// how many tokens a record may have or owe.
const (
	rateSkew  = 60_000
	maxTokens = 1e9
)

// Refill returns the record at a time: rate more tokens for each second since it was
// written, up to most. One that is more than a minute ahead was written by a wrong clock,
// or before the clock was set back: it is replaced by a full one, as is one that can't be.
func (r RateRecord) Refill(now int64, rate, most float64) RateRecord {
	switch {
	case r.At > now+rateSkew || !(math.Abs(r.Tokens) <= maxTokens):
		return RateRecord{Tokens: most, At: now}
	case now > r.At:
		r.Tokens = math.Min(most, r.Tokens+(float64(now)-float64(r.At))/1000*rate)
		r.At = now
	}
	return r
}

// PaceRecord says how far a pace is given out.
type PaceRecord struct {
	// Next is when the next start may be that is not reserved yet, in nanoseconds of
	// Unix time.
	Next int64 `msgpack:"n" json:"next_ns"`
}
