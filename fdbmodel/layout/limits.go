package layout

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of a future, in bytes.
const (
	// MaxArgs is the largest arguments that Submit takes. Larger ones, up to
	// MaxPut, are written ahead with PutArgs.
	MaxArgs = 8 << 20
	// MaxPut is the largest arguments that PutArgs takes, and the largest
	// result.
	MaxPut = 64 << 20
	// MaxPeerArgs is the largest arguments that a peer is sent, as many as fit into a message
	// beside those of others. Workers with access to the store take all.
	MaxPeerArgs = 8 << 20
	// ObjectPiece is the length of each piece of an object but the last.
	ObjectPiece = 512 << 10
	// MaxSubmit is the maximum number of futures in one Submit transaction, and
	// MaxSubmitBytes the maximum size of their specs and inline arguments.
	MaxSubmit      = 100
	MaxSubmitBytes = 500_000
	// MaxPriority is the highest priority; 0 is the lowest.
	MaxPriority = 255

	// MaxInputs is the maximum number of futures that one takes as inputs.
	MaxInputs = 100_000
	// MaxPauseReason is the maximum size of why something is paused, in bytes.
	MaxPauseReason = 256
	// MaxInputsInSpec is how many inputs a spec holds. More are stored apart, and
	// linked after the submit.
	MaxInputsInSpec = 64
	// MaxUnlistedInputs is how many inputs a future has at most that keeps no list of
	// those that it waits for: their own records are read instead.
	MaxUnlistedInputs = 3

	// MaxLaneKinds is the maximum number of kinds of lanes in a cluster.
	MaxLaneKinds = 1000

	// MaxPins is the maximum number of pins of a future.
	MaxPins = 64

	MaxArgsInSpec = 1 << 10
	MaxArgsInKey  = 16 << 10
	MaxMeta       = 32 << 10 // argv, env, trace and labels together
	maxRetries    = 10_000
	maxLabel      = 64
	maxGrowth     = 1000 // factor
)

// CheckLimits returns ErrBadSpec for numbers and names outside of a future's
// limits.
func (s *Spec) CheckLimits() error {
	r := s.Requirements
	switch {
	case r.CPU < 0 || r.RAM < 0 || r.GPU < 0:
		return fmt.Errorf("%w: requirements cpu %d, ram %d, gpu %d: none may be negative", ErrBadSpec, r.CPU, r.RAM, r.GPU)
	case checkLabels(r.Labels, maxLabels) != nil:
		return fmt.Errorf("%w: %v", ErrBadSpec, checkLabels(r.Labels, maxLabels))
	case r.Labels[LabelNear] != "":
		return fmt.Errorf("%w: the label %s can't be required; say what it is to be near", ErrBadSpec, LabelNear)
	case s.MustBeNear && s.Near.IsZero():
		return fmt.Errorf("%w: it must be near an object, and does not say which", ErrBadSpec)
	case s.MaxRetries < 0 || s.MaxRetries > maxRetries:
		return fmt.Errorf("%w: max retries %d: use 0 to %d", ErrBadSpec, s.MaxRetries, maxRetries)
	case s.ExpiresAt < 0 || s.Deadline < 0:
		return fmt.Errorf("%w: it ends at %d, with a deadline of %d: before 1970", ErrBadSpec, s.ExpiresAt, s.Deadline)
	case s.Timeout < 0:
		return fmt.Errorf("%w: timeout %v is negative", ErrBadSpec, s.Timeout)
	case s.Backoff.Base < 0 || s.Backoff.Max < 0:
		return fmt.Errorf("%w: backoff %v up to %v: neither may be negative", ErrBadSpec, s.Backoff.Base, s.Backoff.Max)
	case s.Lapses && s.Owner == "":
		return fmt.Errorf("%w: it lapses, and has no owner that would keep it", ErrBadSpec)
	case s.Parallel < 0 || s.Parallel > 0 && s.Owner == "":
		return fmt.Errorf("%w: parallel %d: use 0 for no bound, or how many of its owner", ErrBadSpec, s.Parallel)
	case s.Growth != nil &&
		(!(s.Growth.Factor > 1 && s.Growth.Factor <= maxGrowth) || r.RAM == 0 || s.Growth.Max < r.RAM):
		return fmt.Errorf("%w: memory of %d bytes that grows by %v up to %d: require some to begin with, use a factor "+
			"above 1 and up to %d, and a maximum that is no less", ErrBadSpec, r.RAM, s.Growth.Factor, s.Growth.Max, maxGrowth)
	case s.Pace != nil && (!(s.Pace.PerSecond > 0) || len(s.Pace.Key) > maxQueueName):
		return fmt.Errorf("%w: pace of %v per second for %.40q: it must be positive, and the key has at most %d bytes",
			ErrBadSpec, s.Pace.PerSecond, s.Pace.Key, maxQueueName)
	case len(s.Owner) > maxQueueName:
		return fmt.Errorf("%w: owner of %d bytes: at most %d", ErrBadSpec, len(s.Owner), maxQueueName)
	case strings.IndexByte(s.Owner, 0) >= 0: // its keys would be among those of the owner that ends before it
		return fmt.Errorf("%w: owner %q: it must have no zero byte", ErrBadSpec, s.Owner)
	case checkTags(s.Tags) != nil:
		return checkTags(s.Tags)
	case len(s.Label) > maxLabel:
		return fmt.Errorf("%w: label of %d bytes: at most %d", ErrBadSpec, len(s.Label), maxLabel)
	case !slices.Contains([]string{CodecMsgpack, CodecJSON, CodecRaw, CodecArgv, CodecInputs}, s.Codec):
		return fmt.Errorf("%w: codec %.20q: use msgpack, json, raw, argv or inputs", ErrBadSpec, s.Codec)
	}
	return nil
}

// CheckNewLabel returns ErrBadSpec unless the label of a future that is submitted has printable characters alone. Older
// futures and schedules have others, and so have forks of them: CheckLimits does not ask.
func CheckNewLabel(label string) error {
	if !IsPrintableLine(label) {
		return fmt.Errorf("%w: label %.80q: use printable characters alone, without line breaks", ErrBadSpec, label)
	}
	return nil
}

// MetaSize returns the approximate size of argv, env, trace and labels
// together, in bytes.
func (s *Spec) MetaSize() int {
	n := 0
	for _, a := range s.Argv {
		n += len(a) + 5
	}
	for _, m := range []map[string]string{s.Env, s.Trace, s.Requirements.Labels} {
		for k, v := range m {
			n += len(k) + len(v) + 10
		}
	}
	return n
}

// Grown returns the memory that a future requires after an attempt that had too
// little, with what attempts before it made of the spec's, or 0.
func (s *Spec) Grown(ram int64) int64 {
	had := max(ram, s.Requirements.RAM)
	if s.Growth == nil || had >= s.Growth.Max {
		return ram
	}
	grown := float64(had) * s.Growth.Factor
	if grown >= float64(s.Growth.Max) { // which may be more than an int64 holds
		return s.Growth.Max
	}
	return max(had+1, int64(grown))
}
