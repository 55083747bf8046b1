package layout

import (
	"cmp"
	"fmt"
	"slices"
)

// Limits of what is kept of the attempts of a future.
const (
	// MaxProgressText is the maximum length of the text of a progress, in bytes.
	MaxProgressText = 256
	// MaxHistory is how many ended attempts a future remembers besides its last one,
	// and MaxHistoryText how many bytes of each one's error.
	MaxHistory     = 8
	MaxHistoryText = 500
)

// ProgressRecord is how far an attempt says that it is. It stays when the attempt
// ends, until a later one writes its own.
type ProgressRecord struct {
	Token         // of the attempt's claim
	Attempt int   `msgpack:"a,omitempty" json:"attempt"`
	Done    int64 `msgpack:"d,omitempty" json:"done"`
	// Total is 0 if it is unknown.
	Total int64  `msgpack:"o,omitempty" json:"total,omitempty"`
	Text  string `msgpack:"m,omitempty" json:"text,omitempty"`
	At    int64  `msgpack:"t" json:"at_ms"`
}

// Check returns ErrBadRecord for a progress that can't be.
func (p *ProgressRecord) Check() error {
	if p.Done < 0 || p.Total < 0 || p.Attempt < 1 || len(p.Text) > MaxProgressText {
		return fmt.Errorf("%w: progress %d of %d in attempt %d with a text of %d bytes", ErrBadRecord, p.Done, p.Total,
			p.Attempt, len(p.Text))
	}
	return nil
}

// PastAttempt is an attempt that has ended without a result.
type PastAttempt struct {
	Attempt int         `msgpack:"n,omitempty" json:"attempt"`
	Worker  WorkerID    `msgpack:"w,omitempty" json:"worker,omitempty"`
	Kind    FailureKind `msgpack:"k" json:"kind"`
	Message string      `msgpack:"m,omitempty" json:"message,omitempty"`
	// StartedAt is 0 if the worker did not live to tell.
	StartedAt int64 `msgpack:"b,omitempty" json:"started_at_ms,omitempty"`
	At        int64 `msgpack:"t" json:"at_ms"`
}

// HistoryRecord lists the attempts of a future that have ended, oldest first,
// without its last failure. Only futures with several have it.
type HistoryRecord struct {
	Past []PastAttempt `msgpack:"a" json:"past"`
}

// With returns a history that also has p, without the oldest ones where it would be
// too long. h may be nil, and is not modified.
func (h *HistoryRecord) With(p PastAttempt) *HistoryRecord {
	var past []PastAttempt
	if h != nil {
		past = h.Past[max(0, len(h.Past)+1-MaxHistory):]
	}
	return &HistoryRecord{Past: append(slices.Clone(past), p)}
}

// PastOf returns what is kept of a failure, with its message as it is.
func PastOf(e *Exception) PastAttempt {
	return PastAttempt{
		Attempt: e.Attempt, Worker: e.Worker, Kind: e.Kind, Message: e.Message, StartedAt: e.StartedAt, At: e.At,
	}
}

// Reported returns the progress of the attempt that runs, or of the last one, nil if
// it has told none. That of an attempt that has lost its claim is none.
func (r *Row) Reported() *ProgressRecord {
	p, e := r.Progress, r.Exception
	switch {
	case p == nil:
		return nil
	case r.Claim != nil && r.Claim.Token == p.Token:
		return p
	case r.Claim == nil && e != nil && e.Worker == p.Worker && e.Attempt == p.Attempt:
		return p
	}
	return nil
}

// PastAttempts returns the attempts of a future that have ended, oldest first, as far
// as they are remembered. A future that was realized at once has none.
func (r *Row) PastAttempts() []PastAttempt {
	var past []PastAttempt
	if r.History != nil {
		past = slices.Clone(r.History.Past)
	}
	if e := r.Exception; e != nil && e.Worker != "" {
		// The end of a future that did not run repeats the worker that ran it last.
		repeated := !e.Kind.Retryable() && slices.ContainsFunc(past, func(p PastAttempt) bool {
			return p.Attempt == e.Attempt && p.Worker == e.Worker
		})
		if !repeated {
			past = append(past, PastOf(e))
		}
	}
	slices.SortStableFunc(past, func(a, b PastAttempt) int { return cmp.Compare(a.At, b.At) })
	return past
}

// EndedAttempts is PastAttempts with the attempt that has the result, which has no
// kind, at the end. It is nil for a future that was realized at once.
func (r *Row) EndedAttempts() []PastAttempt {
	all := r.PastAttempts()
	if v := r.Ending().Result; v != nil && len(all) > 0 {
		all = append(all, PastAttempt{
			Attempt: v.Attempt, Worker: v.Worker, StartedAt: v.At - v.RunTime.Milliseconds(), At: v.At,
		})
	}
	return all
}
