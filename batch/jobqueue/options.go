package jobqueue

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// OnFailure says what becomes of a job that keeps failing.
type OnFailure int

const (
	// Block tries the job again and again, with backoff. The progress can't pass it.
	// It is seen in Status, and in `futura jobs list` for a stage.
	Block OnFailure = iota
	// Park puts the job aside after MaxAttempts, in a durable list, and goes on. A
	// job of that list can be tried again or dropped.
	Park
	// Stop ends the consumer with ErrJobFailed after MaxAttempts. When it is started
	// again, it begins with that job or one before it.
	Stop
)

// String returns the policy's name.
func (o OnFailure) String() string {
	if o < Block || o > Stop {
		return fmt.Sprintf("OnFailure(%d)", int(o))
	}
	return [...]string{"block", "park", "stop"}[o]
}

// Backoff is the wait between two attempts of a job: Base, doubled with each up to
// Max, and spread by half.
type Backoff = layout.Backoff

// Options of a consumer or a stage. The zero value processes one job at a time.
type Options struct {
	// MaxProcessing is how many jobs are processed at a time, at most 100,000. One
	// that failed counts while it waits for its next attempt. Defaults to 1.
	MaxProcessing int
	// MaxSearchAhead is how far beyond the processed index jobs are started, even
	// if fewer than MaxProcessing are. It bounds what is kept in memory behind a slow
	// job. Defaults to 0: no bound.
	MaxSearchAhead uint64
	// Initial is the processed index of a consumer that has none stored: its first
	// job is the one after it. Defaults to 0.
	Initial uint64
	// OnFailure says what becomes of a job that keeps failing. Defaults to Block.
	OnFailure OnFailure
	// MaxAttempts is how often a job is tried until it is parked, or the consumer
	// stops. Block has no such limit. Defaults to 5.
	MaxAttempts int
	// Backoff is the wait between two attempts. Defaults to 1 s, doubled up to 5 min.
	Backoff Backoff
	// OnAdvance is called after the processed index has advanced and was stored, with
	// the new one; never twice at a time. No job starts because of its progress before
	// it returns. Defaults to none.
	OnAdvance func(processed uint64)
	// Look is how often jobs are looked for without a Check. Defaults to never for a
	// consumer, and to the cluster's heartbeat for a stage.
	Look time.Duration
	// Logger receives failed attempts, and errors of the jobs' source and of the
	// progress; those of a stage name it as consumer. Defaults to none.
	Logger *slog.Logger
	// Clock is for tests. Defaults to the machine's, or the cluster's for a stage.
	Clock fdbmodel.Clock
}

const (
	maxMaxProcessing   = 100_000
	defaultMaxAttempts = 5
)

func (o Options) complete() (Options, error) {
	if o.MaxProcessing < 0 || o.MaxProcessing > maxMaxProcessing {
		return o, fmt.Errorf("%w: %d jobs at a time: use 1 to %d", ErrBadOptions, o.MaxProcessing, maxMaxProcessing)
	}
	if o.OnFailure < Block || o.OnFailure > Stop || o.MaxAttempts < 0 || o.Backoff.Base < 0 || o.Backoff.Max < 0 ||
		o.Look < 0 {
		return o, fmt.Errorf("%w: policy %v, %d attempts, backoff %v up to %v, look every %v: none may be negative",
			ErrBadOptions, o.OnFailure, o.MaxAttempts, o.Backoff.Base, o.Backoff.Max, o.Look)
	}
	o.MaxProcessing = cmp.Or(o.MaxProcessing, 1)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, defaultMaxAttempts)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Clock == nil {
		o.Clock = clock.Real{}
	}
	return o, nil
}
