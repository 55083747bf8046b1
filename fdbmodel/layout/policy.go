package layout

import (
	"cmp"
	"fmt"
	"time"
)

// Policy is what the operator of a cluster or a worker allows futures, and what
// those get that ask for nothing. Zero fields neither limit nor give anything.
type Policy struct {
	// DefaultTimeout is the timeout of futures that ask for none, and MaxTimeout
	// the longest that one may be. Without a default, attempts are bounded by
	// MaxTimeout.
	DefaultTimeout time.Duration `msgpack:"td,omitempty" json:"default_timeout_ns,omitempty"`
	MaxTimeout     time.Duration `msgpack:"tm,omitempty" json:"max_timeout_ns,omitempty"`
	// DefaultMemory is the memory limit of modules whose futures require none,
	// and MaxMemory the most that a future may require, in bytes.
	DefaultMemory int64 `msgpack:"dm,omitempty" json:"default_memory_bytes,omitempty"`
	MaxMemory     int64 `msgpack:"mm,omitempty" json:"max_memory_bytes,omitempty"`
	// MaxPriority is the highest priority that a future may have.
	MaxPriority int `msgpack:"p,omitempty" json:"max_priority,omitempty"`
	// MaxOutput is the largest result, in bytes.
	MaxOutput int64 `msgpack:"o,omitempty" json:"max_output_bytes,omitempty"`
}

// Validate returns ErrBadConfig for a policy that contradicts itself.
func (p *Policy) Validate() error {
	switch {
	case p.DefaultTimeout < 0 || p.MaxTimeout < 0 || p.DefaultMemory < 0 || p.MaxMemory < 0 || p.MaxOutput < 0:
		return fmt.Errorf("%w: policy %+v: nothing may be negative; 0 is no limit", ErrBadConfig, *p)
	case p.MaxPriority < 0 || p.MaxPriority > MaxPriority:
		return fmt.Errorf("%w: highest priority %d: use 1 to %d, or 0 for no limit", ErrBadConfig, p.MaxPriority,
			MaxPriority)
	case p.MaxTimeout > 0 && p.DefaultTimeout > p.MaxTimeout:
		return fmt.Errorf("%w: default timeout %v is above the longest one, %v", ErrBadConfig, p.DefaultTimeout,
			p.MaxTimeout)
	case p.MaxMemory > 0 && p.DefaultMemory > p.MaxMemory:
		return fmt.Errorf("%w: default memory of %d bytes is above the most, %d", ErrBadConfig, p.DefaultMemory,
			p.MaxMemory)
	}
	return nil
}

// Complete gives a new future what it asks nothing for. It returns ErrBadSpec if
// the future asks for more than the cluster allows.
func (p *Policy) Complete(s *Spec) error {
	const remedy = "ask for less, or have the operator change it (futura cluster set)"
	switch {
	case p.MaxTimeout > 0 && s.Timeout > p.MaxTimeout:
		return fmt.Errorf("%w: timeout of %v: this cluster allows at most %v; %s", ErrBadSpec, s.Timeout, p.MaxTimeout,
			remedy)
	case p.MaxMemory > 0 && s.Requirements.RAM > p.MaxMemory:
		return fmt.Errorf("%w: %d bytes of memory: this cluster allows at most %d; %s", ErrBadSpec, s.Requirements.RAM,
			p.MaxMemory, remedy)
	case p.MaxMemory > 0 && s.Growth != nil && s.Growth.Max > p.MaxMemory:
		return fmt.Errorf("%w: memory that grows up to %d bytes: this cluster allows at most %d; %s", ErrBadSpec,
			s.Growth.Max, p.MaxMemory, remedy)
	case p.MaxPriority > 0 && int(s.Priority) > p.MaxPriority:
		return fmt.Errorf("%w: priority %d: this cluster allows at most %d; %s", ErrBadSpec, s.Priority, p.MaxPriority,
			remedy)
	}
	if !s.IsPromise() {
		s.Timeout = cmp.Or(s.Timeout, p.DefaultTimeout)
	}
	return nil
}

// Timeout returns the timeout of an attempt whose future asks for one, or with 0
// for none.
func (p *Policy) Timeout(asked time.Duration) time.Duration {
	asked = cmp.Or(asked, p.DefaultTimeout)
	if p.MaxTimeout > 0 && (asked == 0 || asked > p.MaxTimeout) {
		return p.MaxTimeout
	}
	return asked
}

// Memory returns the memory limit of a module whose future requires some, or
// with 0 none. It is 0 if its runner decides.
func (p *Policy) Memory(required int64) int64 {
	return lower(cmp.Or(required, p.DefaultMemory), p.MaxMemory)
}

// Within returns the stricter of two policies in each limit. What p gives by
// default comes before what other does.
func (p Policy) Within(other Policy) Policy {
	strict := Policy{
		MaxTimeout: stricter(p.MaxTimeout, other.MaxTimeout), MaxMemory: stricter(p.MaxMemory, other.MaxMemory),
		MaxPriority: stricter(p.MaxPriority, other.MaxPriority), MaxOutput: stricter(p.MaxOutput, other.MaxOutput),
	}
	strict.DefaultTimeout = lower(cmp.Or(p.DefaultTimeout, other.DefaultTimeout), strict.MaxTimeout)
	strict.DefaultMemory = lower(cmp.Or(p.DefaultMemory, other.DefaultMemory), strict.MaxMemory)
	return strict
}

type amount interface{ ~int | ~int64 }

// stricter returns the lower of two limits, where 0 is none.
func stricter[T amount](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// lower returns a value that is no higher than a limit, if there is one.
func lower[T amount](value, limit T) T {
	if limit > 0 {
		return min(value, limit)
	}
	return value
}
