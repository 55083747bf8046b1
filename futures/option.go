package futures

import (
	"maps"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Option sets a property of a future to submit. The options of a Definition are
// applied first, then those of its Submit; the later one wins. Any function
// that changes a Task is an option.
type Option func(*Task)

// Delay makes the future ready after d. Defaults to at once.
func Delay(d time.Duration) Option { return func(t *Task) { t.Delay = d } }

// NotBefore makes the future ready at a time. A Delay above 0 takes precedence.
func NotBefore(at time.Time) Option { return func(t *Task) { t.NotBefore = at } }

// After makes the future wait until others are realized; see Task.After. Their
// results are not passed to it: an Arg does that. With nil the submit returns
// ErrBadSpec.
func After(fs ...Identified) Option {
	return func(t *Task) {
		t.After = slices.Clip(t.After)
		for _, f := range fs {
			var id ID
			if f != nil {
				id = f.ID()
			}
			t.After = append(t.After, id)
		}
	}
}

// AsObject keeps the result with the worker that makes it; see Task.AsObject.
func AsObject() Option { return func(t *Task) { t.AsObject = true } }

// NoRebuild says that the future must not run again if its result is lost; see
// Task.AsObject.
func NoRebuild() Option { return func(t *Task) { t.NoRebuild = true } }

// Identified is a Future, or a Typed one.
type Identified interface{ ID() ID }

// Priority is higher for what should run earlier, from 0, the default, to 255.
// It orders futures with the same requirements within a shard.
func Priority(p uint8) Option { return func(t *Task) { t.Priority = p } }

// InLane names the lane that admits the future; see Task.Lane, and Definition.InLane for a
// key that follows from the input.
func InLane(kind, key string) Option { return func(t *Task) { t.Lane = Lane{Kind: kind, Key: key} } }

// Timeout bounds one attempt. Defaults to no bound.
func Timeout(d time.Duration) Option { return func(t *Task) { t.Timeout = d } }

// Retries is how many attempts may follow a failed first one, at most 10,000.
// Defaults to DefaultMaxRetries.
func Retries(n int) Option { return func(t *Task) { t.MaxRetries = &n } }

// Backoff is the wait between two attempts: base, doubled with each failed one up
// to most, times a random factor between 0.5 and 1.5. Defaults to 1 s and 5 min.
func Backoff(base, most time.Duration) Option {
	return func(t *Task) { t.Backoff = layout.Backoff{Base: base, Max: most} }
}

// Key makes the submit repeatable: the same key, of at most 1,024 bytes, with
// the same content is the same future as long as that is kept, even after it
// failed or was cancelled: Client.Discard frees the key then. A repeated submit changes
// nothing, and Future.Differs says which of its options are not those of the first one. Submit refuses
// an empty key.
func Key(key string) Option { return func(t *Task) { t.Key, t.emptyKey = key, key == "" } }

// Queue names the queue of the future. Defaults to "default".
func Queue(name string) Option { return func(t *Task) { t.Queue = name } }

// Tags adds tags: what lists find the future by; see Task.Tags.
func Tags(tags ...string) Option {
	return func(t *Task) { t.Tags = append(slices.Clip(t.Tags), tags...) }
}

// Label is for people, at most 64 bytes of printable characters; lists find futures by it. Defaults to none.
func Label(text string) Option { return func(t *Task) { t.Label = text } }

// Trace is the context of the trace that the future is part of; see Task.Trace. An empty
// map has it be part of none.
func Trace(carrier map[string]string) Option { return func(t *Task) { t.Trace = carrier } }

// Requires sets the resources that a worker must have free. Defaults to a slot
// and nothing else. It replaces the labels of an earlier RequiresLabel.
func Requires(r Requirements) Option { return func(t *Task) { t.Requirements = r } }

// RequiresLabel adds a label that the worker must have: one from workers.Options,
// or worker=NAME or address=ADDRESS. It may be given up to 16 times; all must be
// there. Defaults to none.
func RequiresLabel(name, value string) Option {
	return func(t *Task) {
		labels := maps.Clone(t.Requirements.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
		t.Requirements.Labels = labels
	}
}

// GrowMemory has an attempt that had too little memory be followed by one that
// requires factor times as much, up to most bytes, and so a worker that has them. It
// needs Requires with some RAM to begin with. Only WASM functions have a limit of
// memory. Retrying by hand begins anew. Defaults to the same memory again.
func GrowMemory(factor float64, most int64) Option {
	return func(t *Task) { t.GrowMemory = &layout.Growth{Factor: factor, Max: most} }
}

// OnWorker names the only worker that may run the future, until an attempt
// fails or the worker leaves or dies; see Task.Worker.
func OnWorker(id WorkerID) Option { return func(t *Task) { t.Worker = id } }

// Near prefers the worker that has the result of a future; see Task.Near. With the zero
// id the submit returns ErrBadSpec.
func Near(id ID) Option {
	return func(t *Task) {
		if t.Near = id; id.IsZero() {
			t.After = append(t.After, id) // which is refused
		}
	}
}

// MustBeNear has the future run where the result of another one is, and nowhere else;
// see Task.MustBeNear.
func MustBeNear(id ID) Option { return func(t *Task) { t.Near, t.MustBeNear = id, true } }

// RequireFit has the submit return ErrUnfit if no registered worker could ever run
// the future; see Task.RequireFit.
func RequireFit() Option { return func(t *Task) { t.RequireFit = true } }

// Unawaited says that this client is unlikely to await the future; see
// Task.NoNotify.
func Unawaited() Option { return func(t *Task) { t.NoNotify = true } }
