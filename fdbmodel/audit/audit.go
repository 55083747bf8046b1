package audit

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
)

// Options limit a Check.
type Options struct {
	// Problems is the maximum number of problems, and of notes, that are
	// described; all are counted. Defaults to 1,000.
	Problems int
	// Progress is told how many of all ranges of keys were read. Defaults to nothing.
	Progress func(done, all int)
}

const defaultProblems = 1000

// Invariant names a rule that the keys of a cluster follow at every version. The
// kind of each place where futures wait, such as layout.PlaceReady, is one: the
// place holds the futures that wait there, each once, under its key and with its
// value, and nothing else. A worker with assignments is marked as such.
type Invariant string

// The invariants other than those of places.
const (
	// InvariantKey: every key is of a kind in the documentation of package
	// layout, and in the right shard.
	InvariantKey Invariant = "key"
	// InvariantRecord: every value can be read.
	InvariantRecord Invariant = "record"
	// InvariantNewer: a record that only a newer version of Futura can read. It
	// appears in notes only.
	InvariantNewer Invariant = "newer"
	// InvariantConfig: the cluster's config exists and is the one in use, and its limits
	// are valid.
	InvariantConfig Invariant = "config"
	// InvariantSpec: every future has a spec.
	InvariantSpec Invariant = "spec"
	// InvariantClaim: a claimed future is in the list of the claim that took
	// it, and a future that a worker is recorded to run is claimed by it.
	InvariantClaim Invariant = "claim"
	// InvariantResult: a future has a result if it is realized, or claimed
	// anew since.
	InvariantResult Invariant = "result"
	// InvariantException: the last exception is final if the future has
	// failed, and only then; it fits what was counted.
	InvariantException Invariant = "exception"
	// InvariantAttempts: attempts are within their bounds, crashes are deaths on
	// record, and a due time is set for delayed futures only.
	InvariantAttempts Invariant = "attempts"
	// InvariantBlocked: a future is blocked while it waits for inputs, or is to be
	// linked to them.
	InvariantBlocked Invariant = "blocked"
	// InvariantEdge: a future that is not over is known to its inputs, and waits
	// for those that have not notified it of their end. Dependencies that are to be
	// resolved are a note.
	InvariantEdge Invariant = "edge"
	// InvariantLane: a lane has admitted the futures that it counts; none is in line for
	// a lane that has room, unless it is paused, is held back, or waits for its turn;
	// and what is in line or has a slot is in a lane.
	InvariantLane Invariant = "lane"
	// InvariantCopy: a copy of a result is that of a realized future. Its worker may
	// be dead.
	InvariantCopy Invariant = "copy"
	// InvariantPins: the pins of a future have names, in order, and belong to one
	// without an owner.
	InvariantPins Invariant = "pins"
	// InvariantProgress: progress is within its bounds, and that of a claim.
	InvariantProgress Invariant = "progress"
	// InvariantHistory: the history of a future has ended attempts, within its bounds.
	InvariantHistory Invariant = "history"
	// InvariantSteps: a recorded step is that of a future that is marked as one with steps, and no
	// other one of it has its number.
	InvariantSteps Invariant = "steps"
	// InvariantForks: a fork is listed with the future that it was made from, as long as that is
	// kept, and that one is marked as one with forks.
	InvariantForks Invariant = "forks"
	// InvariantUnique: a unique future that is not over has its name, and no other
	// future has it. One that is over has it for ever, or until it is to be freed.
	InvariantUnique Invariant = "unique"
	// InvariantListed: each future that has failed, has a tag, or an id that says nothing
	// of its age, has a key by which lists find it, and no other has one.
	InvariantListed Invariant = "listed"
	// InvariantCancel: only claimed futures have a cancel request.
	InvariantCancel Invariant = "cancel"
	// InvariantArgs: arguments are in one place, and as long as the spec says.
	InvariantArgs Invariant = "args"
	// InvariantChunks: all pieces of a large value exist, and no others.
	InvariantChunks Invariant = "chunks"
	// InvariantCounts: the counters match the number of futures.
	InvariantCounts Invariant = "counts"
	// InvariantDone: every finished future but the held ones is in the done
	// list, so that it is eventually removed.
	InvariantDone Invariant = "done"
	// InvariantMail: a mailbox with mail has a wake key, and both belong to a
	// session.
	InvariantMail Invariant = "mail"
	// InvariantWorker: a worker has a record, a heartbeat and its address, or
	// none of them and is being reaped.
	InvariantWorker Invariant = "worker"
	// InvariantIdle: only registered workers are in the ring of idle workers.
	InvariantIdle Invariant = "idle"
	// InvariantAddress: an address leads to a registered worker with that
	// address.
	InvariantAddress Invariant = "address"
	// InvariantModule: all pieces of a stored module exist.
	InvariantModule Invariant = "module"
	// InvariantBatch: a batch is in the list of batches, and chunks belong to
	// an existing batch.
	InvariantBatch Invariant = "batch"
	// InvariantAlias: an alias stands for a stored module.
	InvariantAlias Invariant = "alias"
	// InvariantJobs: the indexes of a log of jobs are contiguous up to its head, its
	// consumers have come no further, and what they have parked they have passed.
	InvariantJobs Invariant = "jobs"
	// InvariantLimit: a future that waits and must not do so for ever has one key at the
	// time when it ends; no future that is over has one.
	InvariantLimit Invariant = "limit"
	// InvariantSchedule: a schedule has a state, and unless it is paused or over one
	// key at the time at which it is due.
	InvariantSchedule Invariant = "schedule"
	// InvariantPromise: a promise waits without inputs, or is over, and has what a token that
	// completes it is compared with; other futures have none.
	InvariantPromise Invariant = "promise"
	// InvariantActor: an actor has a head and a state of the size that it says, or neither. It has parts
	// only if the head says so.
	InvariantActor Invariant = "actor"
	// InvariantPause: what is paused is a queue or a function.
	InvariantPause Invariant = "pause"
	// InvariantMetered: what was used is no less than nothing, and on a day.
	InvariantMetered Invariant = "metered"
	// InvariantActivity: a record of activity begins with its minute or hour, and has nothing
	// below 0 and no more than it may.
	InvariantActivity Invariant = "activity"
	// InvariantIncoming: a cluster that is being copied from elsewhere. It
	// appears in notes only.
	InvariantIncoming Invariant = "incoming"
)

// Problem is an invariant that does not hold, or a note.
type Problem struct {
	Invariant Invariant `json:"invariant"`
	// Keys are the keys that show the problem, in readable form.
	Keys []string `json:"keys"`
	Text string   `json:"text"`
	// Repair is what Repair does about the problem, empty if the right answer does not
	// follow from the records. Instead is then what an operator can do. Notes have neither.
	Repair  string `json:"repair,omitempty"`
	Instead string `json:"instead,omitempty"`
}

// Kind counts the problems of one invariant.
type Kind struct {
	Invariant  Invariant `json:"invariant"`
	Found      int64     `json:"found"`
	Repairable int64     `json:"repairable"`
	// Repaired and Left are the first problem that Repair solves, and the first that it
	// does not. Each is nil if there is none.
	Repaired *Problem `json:"-"`
	Left     *Problem `json:"-"`
}

// Report holds the findings of a check.
type Report struct {
	Futures int64 `json:"futures"`
	Keys    int64 `json:"keys"`
	// Problems are the broken invariants that were found first, and Broken
	// counts all. They are caused by a bug, or by foreign writes into the
	// cluster.
	Problems []Problem `json:"problems"`
	Broken   int64     `json:"broken"`
	// Kinds counts all problems by invariant, in the order in which they were found.
	Kinds []Kind `json:"kinds,omitempty"`
	// Notes are findings that are not problems: leftovers that a janitor
	// removes in time, such as the claims of a worker that was declared dead,
	// counted by Pending; and records that a newer version of Futura wrote,
	// counted by Newer.
	Notes   []Problem `json:"notes"`
	Pending int64     `json:"pending"`
	Newer   int64     `json:"newer"`
	// Unsettled names checks that could not be decided, because the data is too
	// large to be read at one version.
	Unsettled []string `json:"unsettled,omitempty"`
}

// Check reads a whole cluster and reports everything wrong in it. It may run
// while the cluster is in use: each finding rests on keys that were read at one
// version, so a busy cluster causes no false alarms. It reads in pages and uses
// bounded memory, whatever the size of the cluster, but for some bytes for each lane
// that has admitted futures. Counters that seem wrong
// are compared once more at one version; if they count too much for that, the
// report says so in Unsettled. Large values are read too.
func Check(ctx context.Context, c *fdbmodel.Cluster, o Options) (Report, error) {
	if o.Problems <= 0 {
		o.Problems = defaultProblems
	}
	k := newChecker(c, o)
	if err := k.run(ctx); err != nil {
		return k.report, fmt.Errorf("check cluster %q: %w", c.Name(), err)
	}
	return k.report, nil
}
