package modeltest

import (
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/internal/fork"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/internal/step"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/promises"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/fdbmodel/schedule"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// GoldenID is the future of the golden keys and records.
var GoldenID = layout.ID{1, 2, 3, 4, 5, 6, 0x77, 8, 0x89, 10, 11, 12, 13, 14, 15, 3}

var goldenUsage = layout.Usage{CPUUser: time.Second, CPUSys: time.Millisecond, Memory: 9}

var goldenRefusals = layout.Refusals{{Worker: "w", Peer: "p", At: 7, Until: 8}, {Worker: "v", At: 9, Until: 10}}

// GoldenRecord is one kind of value, with every field set.
type GoldenRecord struct {
	Name    string
	Record  layout.Record
	Stamped bool
	Empty   func() layout.Record
}

func empty[T any]() func() layout.Record {
	return func() layout.Record { return new(T) }
}

// GoldenRecords returns a record of each kind, with every field set, and the
// smallest spec.
func GoldenRecords() []GoldenRecord {
	token := layout.Token{Worker: "0123456789abcdef", Sequence: 7}
	ref := &layout.ChunkRef{Kind: layout.ChunkResult, Token: token.String(), Size: 100_000, Count: 2}
	return append([]GoldenRecord{
		{"spec", goldenSpec(ref), false, empty[layout.Spec]()},
		{"smallest spec", &layout.Spec{Function: "go:f"}, false, empty[layout.Spec]()},
		{"claim", &layout.Claim{Token: token}, true, empty[layout.Claim]()},
		{"attempts", &layout.Attempts{Failed: 1, Crashes: 2, Rejected: 3, Rebuilt: 5, Due: 4, RAM: 8, Assigned: "w",
			Reason: "y", Near: "w", NearWait: time.Second, Unplaceable: true, Slot: true, Taken: true, Snoozed: 6, Lifted: true,
			Deaths: layout.Deaths{{Worker: token.Worker, Crash: true}, {Worker: "w"}}, Refused: goldenRefusals}, false,
			empty[layout.Attempts]()},
		{"cancel", &layout.CancelRequest{Reason: "r", At: 5}, false, empty[layout.CancelRequest]()},
		{"exception", &layout.Exception{
			Kind: layout.KindExit, Message: "m", Attempt: 2, Worker: token.Worker, Final: true, Permanent: true, At: 6,
			ExitCode: 7, StartedAt: 4, Usage: &goldenUsage,
			Stdout: []byte("o"), Stderr: []byte("e"), StderrRef: ref, Truncated: true, FailedOn: []layout.WorkerID{"v", "w"},
		}, false, empty[layout.Exception]()},
		{"result", &layout.Result{
			Token: token, Codec: layout.CodecRaw, Value: []byte("v"), ValueRef: ref, Object: "h", Size: 1, ExitCode: 2,
			Stderr: []byte("e"), StderrRef: ref, Truncated: true, Attempt: 3, RunTime: time.Second, At: 8, Usage: &goldenUsage,
		}, true, empty[layout.Result]()},
		{"claims", &layout.ClaimBatch{IDs: layout.PackIDs([]layout.ID{GoldenID})}, false,
			empty[layout.ClaimBatch]()},
		{"suspect", &layout.SuspectRecord{Sequence: 7, Deaths: 1}, false, empty[layout.SuspectRecord]()},
		{"done", &layout.DoneEntry{At: 1, IDs: layout.PackIDs([]layout.ID{GoldenID, GoldenID})}, false,
			empty[layout.DoneEntry]()},
		{"session", &layout.SessionRecord{Count: 1, At: 2, Opening: "o"}, false,
			empty[layout.SessionRecord]()},
		{"janitor", &layout.JanitorRecord{Worker: "w", Count: 1, Opening: "o", Connection: "c"}, false,
			empty[layout.JanitorRecord]()},
		{"incoming", &layout.IncomingRecord{Writer: "w", Batch: 1, At: 2, Rows: true}, false,
			empty[layout.IncomingRecord]()},
		{"module", &layout.Module{Size: 1, StoredAt: 2, Retired: 3}, false, empty[layout.Module]()},
		{"alias", &layout.AliasRecord{CID: "c", At: 1}, false, empty[layout.AliasRecord]()},
		{"batch", &layout.BatchRecord{
			Template: []byte("{}"), Queue: "q", MaxAttempts: 1, Items: 2, Status: 3, Reason: "r", Made: true, CreatedAt: 4,
			FinishedAt: 5, Maker: "m", Digest: []byte("d"), CancelledAt: 6,
		}, false, empty[layout.BatchRecord]()},
		{"batch chunk", &layout.BatchChunk{Worker: "w", Items: 1, Status: 2, CreatedAt: 3, Peer: "p", FinishedAt: 4, Lost: 5,
			Moved: 6}, false, empty[layout.BatchChunk]()},
		{"config", &layout.Config{
			Format: 3, Shards: 16, Heartbeat: 5 * time.Second, DeadAfter: 15 * time.Second, Retention: time.Hour,
			InfeasibleAfter: time.Minute, Incarnation: 1,
			Policy: layout.Policy{DefaultTimeout: time.Minute, MaxTimeout: time.Hour, DefaultMemory: 1, MaxMemory: 2,
				MaxPriority: 3, MaxOutput: 4},
		}, false, empty[layout.Config]()},
		{"copy", &layout.CopyRecord{Worker: "w", Object: "h", Size: 1, At: 2, Away: 3}, false, empty[layout.CopyRecord]()},
		{"pins", &layout.PinsRecord{Holders: []string{"a", "b"}, Sessions: []string{"", "s"}}, false,
			empty[layout.PinsRecord]()},
		{"blocked", &layout.BlockedRecord{Linked: 1, Objects: true}, false, empty[layout.BlockedRecord]()},
		{"progress", &layout.ProgressRecord{Token: token, Attempt: 2, Done: 3, Total: 4, Text: "m", At: 5}, false,
			empty[layout.ProgressRecord]()},
		{"history", &layout.HistoryRecord{Past: []layout.PastAttempt{
			{Attempt: 1, Worker: "w", Kind: layout.KindError, Message: "m", StartedAt: 2, At: 3},
		}}, false, empty[layout.HistoryRecord]()},
		{"resolve", &layout.ResolveRecord{Notified: GoldenID, Released: 2}, false, empty[layout.ResolveRecord]()},
	}, slices.Concat(goldenLanes(), goldenUnique(), goldenMembers(), goldenJobs(), goldenSchedules(), goldenSteps(ref))...)
}

// goldenSpec has every field set.
func goldenSpec(ref *layout.ChunkRef) *layout.Spec {
	return &layout.Spec{
		Function: "go:f", Codec: layout.CodecMsgpack, Args: []byte("abc"), ArgsSize: 3, ArgsRef: ref, ArgsKey: true,
		Argv: []string{"a", "b"}, Inputs: layout.PackIDs([]layout.ID{GoldenID}), InputsRef: ref,
		Env: map[string]string{"K": "v"}, Queue: "q", Owner: "g", Lapses: true, Parallel: 2,
		Pace:   &layout.Pace{Key: "example.com", PerSecond: 0.5, Shared: true},
		Growth: &layout.Growth{Factor: 2, Max: 1 << 31},
		Label:  "t", Tags: []string{"a:1", "b"}, Priority: 200,
		Requirements: layout.Requirements{CPU: 1500, RAM: 1 << 30, GPU: 500, Labels: map[string]string{"zone": "a"}},
		MaxRetries:   3, Backoff: layout.Backoff{Base: time.Second, Max: time.Minute}, Timeout: time.Hour,
		Unique: &layout.Unique{Name: "0123", Key: "k", Until: layout.UntilClaim, For: time.Hour},
		Near:   GoldenID, MustBeNear: true, AllowReconstruction: true, AsObject: true, Session: "fedcba9876543210",
		Later: true, Trace: map[string]string{"traceparent": "00"}, Lane: layout.Lane{Kind: "k", Key: "y"}, Aside: true,
		Member: true, Bundle: true, SubmittedAt: 19e11, Schedule: "sc", ScheduledAt: 9, ExpiresAt: 10,
		Deadline: 11,
		Fork:     &layout.Fork{From: GoldenID, Step: "charge", After: "b", Copied: 2, Set: 1, Given: "01", Name: "fix"},
	}
}

// goldenSteps are the records of steps.
func goldenSteps(ref *layout.ChunkRef) []GoldenRecord {
	return []GoldenRecord{
		{"step", &step.Record{Token: layout.Token{Worker: "0123456789abcdef", Sequence: 7}, Number: 1, Attempt: 2,
			Codec: layout.CodecMsgpack, Value: []byte("v"), ValueRef: ref, Size: 3, Wake: 4, StartedAt: 5, At: 6,
			Origin: step.OriginCopied}, false,
			empty[step.Record]()},
		{"unused steps", &step.UnusedRecord{Attempt: 1, Names: []string{"a", "b"}, All: true}, false,
			empty[step.UnusedRecord]()},
	}
}

// goldenJobs are the records of logs of jobs.
func goldenJobs() []GoldenRecord {
	return []GoldenRecord{
		{"jobs head", &joblog.Head{Last: 9, CreatedAt: 1}, false, empty[joblog.Head]()},
		{"jobs first", &joblog.First{First: 3}, false, empty[joblog.First]()},
		{"job", &joblog.Job{Value: []byte("v"), At: 1}, false, empty[joblog.Job]()},
		{"job producer", &joblog.Producer{Sequence: 1, First: 2, Count: 3, At: 4, Keep: true}, false,
			empty[joblog.Producer]()},
		{"job progress", &joblog.Progress{Index: 5, At: 1}, false, empty[joblog.Progress]()},
		{"job lease", &joblog.LeaseRecord{Holder: "h", Count: 1, About: "host 7", Opening: "o", Connection: "x", At: 2,
			Failing: 6, Attempts: 3, Error: "e"}, false, empty[joblog.LeaseRecord]()},
		{"parked job", &joblog.ParkedJob{Value: []byte("v"), Attempts: 2, Error: "e", At: 3}, false,
			empty[joblog.ParkedJob]()},
	}
}

// goldenLanes are the records of lanes and of pauses.
func goldenLanes() []GoldenRecord {
	return []GoldenRecord{
		{"actor", &actors.HeadRecord{Head: actors.Head{Version: 2, Call: GoldenID,
			Token: layout.Token{Worker: "0123456789abcdef", Sequence: 7}, Schema: 1, Codec: layout.CodecMsgpack, Size: 3,
			Parts: true, CreatedAt: 4, At: 5}, State: []byte("sss")}, false, empty[actors.HeadRecord]()},
		{"actor part", &actors.PartRecord{Schema: 1, Codec: layout.CodecMsgpack, Value: []byte("v")}, false,
			empty[actors.PartRecord]()},
		{"promise", &promises.Record{Digest: []byte("0123456789abcdef0123456789abcdef"), At: 1}, false,
			empty[promises.Record]()},
		{"pause", &pause.Record{At: 1, Reason: "r"}, false, empty[pause.Record]()},
		{"pace", &quota.PaceRecord{Next: 1}, false, empty[quota.PaceRecord]()},
		{"lane kind", &layout.LaneKind{
			Width: 1, Total: 2, Rate: 3, Every: time.Second, Aside: true, Paused: true, Sweep: 4,
			Bundle: "go:b", Most: 5, Bytes: 6, Linger: 7, Target: "/t", MaxWaiting: 8,
		}, false, empty[layout.LaneKind]()},
		{"lane total", &layout.LaneTotal{Open: 1, Lined: true}, false, empty[layout.LaneTotal]()},
		{"lane", &layout.LaneRecord{Open: 1, Lined: true, Paused: true, Due: 2, Spent: 3, Turn: true, Called: 4,
			Counted: 5, CountedAt: 6}, false, empty[layout.LaneRecord]()},
		{"line", &layout.LineEntry{ID: GoldenID}, false, empty[layout.LineEntry]()},
		{"in line", &layout.LineRecord{Order: 1, Incarnation: 2}, true, empty[layout.LineRecord]()},
	}
}

// goldenUnique are the records of unique futures, and of limits.
func goldenUnique() []GoldenRecord {
	return []GoldenRecord{
		{"unique", &layout.UniqueRecord{Until: layout.UntilEver, FreeAt: 1, Key: "k"}, false, empty[layout.UniqueRecord]()},
		{"cluster limits", &quota.Limits{Pending: 1, Running: 2, Bytes: 3, PerSecond: 0.5}, false, empty[quota.Limits]()},
		{"rate", &quota.RateRecord{Tokens: 0.5, At: 1}, false, empty[quota.RateRecord]()},
		{"metered", &meter.Metered{Items: 1, Failed: 2, RunTime: 3, CPU: 4, In: 5, Out: 6, Memory: 7}, false,
			empty[meter.Metered]()},
		{"activity", &meter.Activity{Pairs: []meter.Pair{{
			Function: "go:f", Queue: "q", Succeeded: 1, FailedAttempts: 2, Failed: 3, RunTime: 4, Runs: []int64{5},
			Waits: []int64{0, 6},
		}}, CountedAt: 7, Counts: []meter.QueueCounts{{
			Queue: "q", Blocked: 1, Ready: 2, Delayed: 3, Claimed: 4, Realized: 5, Failed: 6,
		}}}, false, empty[meter.Activity]()},
		{"usage", &quota.UsageRecord{Bytes: 1, At: 2}, false, empty[quota.UsageRecord]()},
	}
}

// goldenMembers are the records of workers.
func goldenMembers() []GoldenRecord {
	return []GoldenRecord{
		{"worker", &layout.WorkerInfo{
			Address: "10.0.0.1:1", Name: "n", Queues: []string{"q"}, Functions: []string{"go:f", layout.AnyModule},
			Capacity: layout.Resources{Slots: 4, CPU: 4000, RAM: 1 << 33, GPU: 1000}, StartedAt: 9, Opening: "o",
			Process: 10, Version: "v", Connection: "x", Labels: map[string]string{"zone": "a"}, Objects: "o",
			Secret: "s", Leaving: true, Readers: []string{"go:f"},
		}, false, empty[layout.WorkerInfo]()},
		{"heartbeat", &layout.Heartbeat{
			Count: 1, Free: layout.Resources{Slots: 2}, Running: 3, At: 4, Awaiting: 5, Full: []string{"go:f"},
			Stored: 6, Room: 7, NoRoom: true, Draining: true,
			Awaits: []layout.Await{{ID: GoldenID, For: GoldenID, Count: 8, Since: 9}},
		}, false, empty[layout.Heartbeat]()},
		{"idle", &layout.IdleRecord{
			Resources: layout.Resources{Slots: 1, CPU: 2, RAM: 3, GPU: 4}, Functions: []string{"go:f"},
			Labels: map[string]string{"zone": "a"}, NoRoom: true,
		}, false,
			empty[layout.IdleRecord]()},
	}
}

// goldenSchedules are the records of schedules.
func goldenSchedules() []GoldenRecord {
	return []GoldenRecord{
		{"schedule", &schedule.Record{
			ID: GoldenID, Cron: "0 2 * * *", Zone: "Europe/Zurich", Every: time.Hour, From: 1, Until: 2,
			Except: []string{"12-25"}, Missed: schedule.MissedCatchUp, CatchUp: 3, Grace: time.Minute,
			Overlap: schedule.OverlapQueue, Expires: time.Hour, Spec: layout.Spec{Function: "go:f"}, Args: []byte("a"),
			CreatedAt: 4, UpdatedAt: 5, Deadline: 2 * time.Hour,
		}, false, empty[schedule.Record]()},
		{"schedule state", &schedule.State{
			Next: 1, Line: []int64{2, 3}, PausedAt: 4, Reason: "r", Fired: 5, Missed: 6, Skipped: 7, Refused: 8,
			Runs: []schedule.Run{{At: 1, FiredAt: 2, ID: GoldenID, Trigger: true}, {At: 3, FiredAt: 4, Error: "e"}},
		}, false, empty[schedule.State]()},
	}
}

// Encode returns the record as a value.
func (g *GoldenRecord) Encode() []byte {
	if g.Stamped {
		return layout.EncodeStamped(g.Record)
	}
	return layout.Encode(g.Record)
}

// Decode reads a value of the same kind.
func (g *GoldenRecord) Decode(value []byte, into layout.Record) error {
	if g.Stamped {
		_, err := layout.DecodeStamped([]byte("\x02key\x00"), value, into)
		return err
	}
	return layout.Decode([]byte("\x02key\x00"), value, into)
}

// NamedKey is a key of each kind.
type NamedKey struct {
	Name string
	Key  []byte
}

// GoldenKeys returns a key of each kind.
func GoldenKeys(k layout.Keyspace) []NamedKey {
	ref := layout.ChunkRef{Kind: layout.ChunkResult, Token: "w.7"}
	lane := layout.Lane{Kind: "k", Key: "y"}
	spec := &layout.Spec{Queue: "q", Owner: "g", Priority: 5, Requirements: layout.Requirements{CPU: 1, RAM: 2, GPU: 3}}
	return []NamedKey{
		{"args", k.Args(GoldenID)}, {"spec", k.Spec(GoldenID)}, {"attempts", k.State(GoldenID, layout.StateAttempts)},
		{"blocked", k.State(GoldenID, layout.StateBlocked)}, {"has dependants", k.HasDependants(GoldenID)},
		{"input", k.Input(GoldenID, layout.ID{15: 9})}, {"dependant", k.Dependant(layout.ID{15: 9}, GoldenID)},
		{"resolve", k.Resolve(GoldenID)}, {"pending check", k.PendingCheck(GoldenID, layout.ID{15: 9})},
		{"cluster limits", quota.Keys(k).Limits()}, {"rate", quota.Keys(k).Rate()}, {"usage", quota.Keys(k).Usage()},
		{"metered", meter.Keys(k).Metered(meter.MeteredKey{Day: "2026-01-31", Kind: meter.Peer, Name: "p", Membership: "w"})},
		{"activity", meter.Keys(k).Activity(meter.ActivityKey{Step: meter.Minutes, At: 60, Membership: "w"})},
		{"unique", k.Unique("0123", GoldenID)}, {"unique due", k.UniqueDue(7, "0123", GoldenID)},
		{"copy", tuple.AppendStamp(k.CopiesOf(GoldenID), [10]byte{1}, 0)},
		{"cancel", k.State(GoldenID, layout.StateCancel)}, {"claim", k.State(GoldenID, layout.StateClaim)},
		{"exception", k.State(GoldenID, layout.StateException)}, {"pins", k.State(GoldenID, layout.StatePins)},
		{"listed failed", layout.Listed(k.ListedFailed(3), layout.Age{Millis: 7, ID: GoldenID})},
		{"listed keyed", layout.Listed(k.ListedKeyed(3), layout.Age{Millis: 7, ID: GoldenID})},
		{"listed tag", layout.Listed(k.ListedTag(3, "t"), layout.Age{Millis: 7, ID: GoldenID})},
		{"progress", k.Progress(GoldenID)}, {"history", k.State(GoldenID, layout.StateHistory)},
		{"result", k.State(GoldenID, layout.StateResult)},
		{"has steps", k.State(GoldenID, layout.StateSteps)}, {"step", step.Keys(k).Step(GoldenID, "charge")},
		{"unused steps", step.Keys(k).Unused(GoldenID)}, {"has forks", k.State(GoldenID, layout.StateForks)},
		{"fork", fork.Keys(k).Fork(layout.ID{15: 9}, GoldenID)},
		{"subscriber", k.Subscriber(GoldenID, "s")}, {"ready", k.Ready(GoldenID, spec)},
		{"assignment", k.Assigned("w", GoldenID, spec)},
		{"held", k.Held(&layout.Row{ID: GoldenID, Spec: spec, Attempts: layout.Attempts{Failed: 3}})},
		{"promise", promises.Keys(k).Promise(GoldenID)},
		{"actor", actors.Keys(k).Head(actors.Ref{Type: "account", Key: "y"})},
		{"actor state", actors.Keys(k).State(actors.Ref{Type: "account", Key: "y"})},
		{"actor part", actors.Keys(k).Part(actors.Ref{Type: "account", Key: "y"}, "n")},
		{"pause", pause.Keys(k).Pause(pause.Queue, "q")},
		{"pace", quota.Keys(k).Pace("example.com")},
		{"lane kind", k.LaneKind("k")}, {"lane total", k.LaneTotal("k")}, {"lane", k.Lane(lane)},
		{"lane turn", tuple.AppendInt(tuple.AppendStamp(tuple.AppendInt(k.LaneTurnsOf("k"), 1), [10]byte{1}, 0), 2)},
		{"lane due", k.LaneDue(lane, 9)}, {"in line", k.State(GoldenID, layout.StateLine)},
		{"line", tuple.AppendInt(tuple.AppendStamp(k.LineAt(lane, 5, 1), [10]byte{1}, 0), 2)},
		{"owner wake", k.OwnerWake("g")}, {"owner open", k.OwnerOpen("g", "y")},
		{"assigned", k.Worker("w", layout.WorkerAssigned)}, {"delayed", k.Delayed(GoldenID, 9)},
		{"deadline", k.Limit(GoldenID, 9)},
		{"chunk", k.Chunk(GoldenID, ref, 1)}, {"done", tuple.AppendStamp(k.DoneOf(2), [10]byte{1}, 0)},
		{"mailbox", tuple.AppendStamp(k.Mailbox("s"), [10]byte{1}, 0)}, {"session wake", k.SessionWake("s")},
		{"session", k.Session("s")},
		{"alive", k.Worker("w", layout.WorkerAlive)}, {"heartbeat", k.Worker("w", layout.WorkerHeartbeat)},
		{"claims", k.Claims("w", 7)}, {"suspect", k.Suspect("w", GoldenID)},
		{"cancelled", k.Cancelled("w", GoldenID)}, {"worker wake", k.Worker("w", layout.WorkerWake)},
		{"count", k.Count(1, "q", "g", layout.Ready)},
		{"idle", k.Idle("q", "w")}, {"address", k.Address("10.0.0.1:1")}, {"janitor", k.Janitor()},
		{"incoming", k.Incoming()}, {"config", k.Config()},
		{"module", k.ModuleInfo("c")}, {"module piece", k.ModulePiece("c", 1)}, {"alias", k.Alias("a")},
		{"batch", k.BatchRecord("b")}, {"batch chunk", k.BatchChunk("b", "w")}, {"batch time", k.BatchAt(7, "b")},
		{"jobs first", joblog.Keys(k).First("q")}, {"jobs head", joblog.Keys(k).Head("q")},
		{"job lease", joblog.Keys(k).Lease("q", "c")}, {"job", joblog.Keys(k).Job("q", 4)},
		{"parked job", joblog.Keys(k).Parked("q", "c", 2)},
		{"job producer", joblog.Keys(k).Producer("q", "p")},
		{"job progress", joblog.Keys(k).Progress("q", "c")},
		{"job retry", joblog.Keys(k).Retry("q", "c", 2)},
		{"schedule", schedule.Keys(k).Definition("s")},
		{"schedule state", schedule.Keys(k).State("s")},
		{"schedule time", schedule.Keys(k).At(7, "s")},
	}
}

// KeyOfRecord returns a key that holds such a record.
func KeyOfRecord(k layout.Keyspace, name string) []byte {
	names := map[string]string{"smallest spec": "spec", "worker": "alive"}
	if other, ok := names[name]; ok {
		name = other
	}
	for _, c := range GoldenKeys(k) {
		if c.Name == name {
			return c.Key
		}
	}
	return nil
}
