package futures

import (
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Option says something about a future that is submitted: those of a Definition
// come first, those of its Submit after them, and the later one counts. Any
// function that changes a Task is one.
type Option func(*Task)

// Delay makes the future ready when d has passed. Defaults to at once.
func Delay(d time.Duration) Option { return func(t *Task) { t.Delay = d } }

// NotBefore makes the future ready at a time. A Delay above 0 counts instead.
func NotBefore(at time.Time) Option { return func(t *Task) { t.NotBefore = at } }

// Priority is higher for what should run earlier, from 0, the default, to 255. It
// decides among futures of the same requirements in a shard.
func Priority(p uint8) Option { return func(t *Task) { t.Priority = p } }

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

// Key makes the submit repeatable: the same key, of at most 1,024 bytes, and the
// same content is the same future, as long as that is kept, also after it failed
// or was cancelled. A repeated submit changes nothing: its other options count for
// nothing.
func Key(key string) Option { return func(t *Task) { t.Key = key } }

// Queue is the queue that the future waits in. Defaults to "default".
func Queue(name string) Option { return func(t *Task) { t.Queue = name } }

// Label is for people and filters, at most 64 bytes. Defaults to none.
func Label(text string) Option { return func(t *Task) { t.Label = text } }

// Requires says what a worker must have free. Defaults to a slot and nothing else.
func Requires(r Requirements) Option { return func(t *Task) { t.Requirements = r } }

// OnWorker names the only worker that may run the future, until it fails it,
// leaves or dies; see Task.Worker.
func OnWorker(id WorkerID) Option { return func(t *Task) { t.Worker = id } }

// Unawaited says that this client will hardly await the future; see
// Task.NoNotify.
func Unawaited() Option { return func(t *Task) { t.NoNotify = true } }
