package layout

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

// FullName returns a field's name in JSON, or one derived from its Go name.
func FullName(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
		return name
	}
	var b strings.Builder
	for i, r := range f.Name {
		if i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(rune(f.Name[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// elementType is the type of an element of a key.
type elementType uint8

const (
	elementName     elementType = iota + 1 // a fixed text
	elementText                            // text
	elementChoice                          // one of some texts
	elementInt                             // an integer
	elementIndex                           // an integer from 0
	elementPriority                        // 255 less a priority
	elementID                              // the id of a future
	elementStamp                           // a versionstamp
)

// keyElement is one element of a key after its subspace.
type keyElement struct {
	name string
	is   elementType
	// home marks the element that determines the shard of a key. A key without
	// one may lie in any shard.
	home     bool
	optional bool     // a text that some keys lack, before an element of another type
	encoded  []byte   // of a fixed text
	among    []string // the texts of a choice
}

// valueFormat is how a value is laid out.
type valueFormat uint8

const (
	FormatRecord  valueFormat = iota + 1 // version and msgpack map
	FormatStamped                        // version, versionstamp and msgpack map
	FormatNotices                        // version, number of notices and as many msgpack maps
	formatMark                           // version alone
	FormatText                           // text
	FormatCounter                        // eight bytes, little endian
	FormatData                           // bytes as the caller gave them
	FormatPiece                          // up to ChunkSize of such bytes
	formatEmpty                          // nothing
)

var formatNames = [...]string{"", "record", "stamped record", "notices", "mark", "text", "counter", "data", "data",
	"empty"}

// Versioned reports whether values of the format begin with a version.
func (f valueFormat) Versioned() bool { return f >= FormatRecord && f <= formatMark }

// String returns the format's name.
func (f valueFormat) String() string { return formatNames[f] }

// carriage says whether and how a kind of key is copied to another store.
type carriage uint8

const (
	carried   carriage = iota + 1 // copied unchanged
	Restamped                     // copied under a versionstamp of the new store
	LeftOut                       // not copied: it belongs to processes, which create it again
)

// Names of kinds of keys that are not those of places or of records of futures
// and workers.
const (
	KeyAddress       = "address"
	KeyAlias         = "alias"
	KeyBatch         = "batch"
	KeyBatchChunk    = "batch chunk"
	KeyBatchTime     = "batch time"
	KeySessionWake   = "session wake"
	KeyDependant     = "dependant"
	KeyChunk         = "chunk"
	KeyConfig        = "config"
	KeyCopy          = "copy"
	KeyCount         = "count"
	keyHasDependants = "has dependants"
	KeyIdle          = "idle"
	KeyIncoming      = "incoming"
	KeyInput         = "input"
	KeyJanitor       = "janitor"
	KeyLane          = "lane"
	KeyLaneDue       = "lane due"
	KeyLaneKind      = "lane kind"
	KeyLaneTurn      = "lane turn"
	KeyPendingCheck  = "pending check"
	KeyMail          = "mail"
	KeyOwnerOpen     = "owner open"
	KeySchedule      = "schedule"
	KeyScheduleState = "schedule state"
	KeyScheduleTime  = "schedule time"
	KeyResolve       = "resolve"

	KeyJob         = "job"
	KeyJobLease    = "job lease"
	KeyJobProducer = "job producer"
	KeyJobProgress = "job progress"
	KeyJobRetry    = "job retry"
	KeyJobsFirst   = "jobs first"
	KeyJobsHead    = "jobs head"
	KeyParkedJob   = "parked job"
)

// KeyKind is one kind of key.
type KeyKind struct {
	Name     string
	Subspace string
	Sharded  bool // after the number of a shard
	elements []keyElement
	Format   valueFormat
	// record returns the record that a msgpack value decodes into; called names
	// a value that is not msgpack.
	Record func() Record
	Called string
	Moves  carriage
	holds  string // for display
	writer string
}

// futureName is the name of the element that is the future which a key belongs to.
const futureName = "id"

func of[T any]() func() Record {
	return func() Record { return new(T) }
}

func fixed(name string) keyElement {
	return keyElement{name: name, is: elementName, encoded: tuple.AppendString(nil, name)}
}

func text(name string) keyElement { return keyElement{name: name, is: elementText} }

func choice(name string, among ...string) keyElement {
	return keyElement{name: name, is: elementChoice, among: among}
}

func number(name string) keyElement { return keyElement{name: name, is: elementInt} }

func index(name string) keyElement { return keyElement{name: name, is: elementIndex} }

func futureID() keyElement { return keyElement{name: futureName, is: elementID} }

func inputID() keyElement { return keyElement{name: "input", is: elementID} }

func versionstamp() keyElement { return keyElement{name: "stamp", is: elementStamp} }

func priority() keyElement { return keyElement{name: "priority", is: elementPriority} }

func home(e keyElement) keyElement {
	e.home = true
	return e
}

func optional(e keyElement) keyElement {
	e.optional = true
	return e
}

func in(e ...keyElement) []keyElement { return e }

// Table returns all kinds of keys of a cluster, in the order of the store.
func Table() []KeyKind {
	return slices.Concat(activityKinds(), globalKinds(), limitKinds(), meteredKinds(),
		rowKinds(), placeKinds(), uniqueKinds(), memberKinds(), jobKinds())
}

func globalKinds() []KeyKind {
	return []KeyKind{
		{KeyAddress, subAddresses, false, in(text("address")), FormatText, nil, "worker", LeftOut,
			"the worker at an address", "register"},
		{KeyAlias, SubAliases, false, in(text("name")), FormatRecord, of[AliasRecord](), "", carried,
			"the module that an alias stands for", "modules.Put, SetAlias"},
		{KeyBatch, subBatches, false, in(fixed(batchByID), text("batch"), fixed(batchRecordPart)), FormatRecord,
			of[BatchRecord](), "", carried, "a batch", "its creator, and the operation that ends it"},
		{KeyBatchChunk, subBatches, false, in(fixed(batchByID), text("batch"), fixed(batchChunksPart), text("chunk")),
			FormatRecord, of[BatchChunk](), "", carried, "the part of a batch that one worker was given",
			"batches.AssignChunk, batches.Move, and the loss of its worker"},
		{KeyBatchTime, subBatches, false, in(fixed(batchByTime), number("created_ms"), text("batch")), formatEmpty, nil, "",
			carried, "the order of batches", "its creator"},
		{KeyConfig, SubConfig, false, nil, FormatRecord, of[Config](), "", carried,
			"the settings that all processes of the cluster share", "the first process that opens it, configure"},
		{"module", SubModules, false, in(text("cid"), fixed(ModuleInfo)), FormatRecord, of[Module](), "", carried,
			"a WASM module", "modules.Put"},
		{"module piece", SubModules, false, in(text("cid"), fixed(ModuleBody), index("piece")), FormatPiece, nil, "data",
			carried, "90,000 bytes of a module", "modules.Put"},
		{KeyIdle, subIdle, false, in(text("queue"), text("worker")), FormatRecord, of[IdleRecord](), "", LeftOut,
			"an idle worker, with its free capacity and its functions", "a worker with nothing to do"},
		{KeyIncoming, subIncoming, false, nil, FormatRecord, of[IncomingRecord](), "", LeftOut,
			"the cluster is being copied into, and can't be opened", "migrate, restore"},
		{KeyJanitor, subJanitor, false, nil, FormatRecord, of[JanitorRecord](), "", LeftOut,
			"the worker whose janitor is at work", "its holder"},
		{KeySchedule, SubSchedules, false, in(fixed(scheduleByName), text("schedule"), fixed(scheduleIs)), FormatRecord,
			of[ScheduleRecord](), "", carried, "when a schedule fires, and the future that it submits", "PutSchedule"},
		{KeyScheduleState, SubSchedules, false, in(fixed(scheduleByName), text("schedule"), fixed(scheduleHas)),
			FormatRecord, of[ScheduleState](), "", carried, "the next time of a schedule, and its last ones",
			"the janitor that fires it, pause, resume, trigger"},
		{KeyScheduleTime, SubSchedules, false, in(fixed(scheduleByTime), number("due_ms"), text("schedule")), formatMark,
			nil, "", carried, "a schedule that is not paused is due", "every change of its state"},
		{"pause", SubPauses, false, in(choice("what", PauseFunction, PauseQueue), text("name")), FormatRecord,
			of[PauseRecord](), "", carried, "no worker takes futures of a function, or of a queue",
			"Pause; cleared by Resume"},
		{"pace", subPaces, false, in(text("key")), FormatRecord, of[PaceRecord](), "", LeftOut,
			"until when the starts at a pace of the whole cluster are given out",
			"the worker that starts futures at this pace, several at a time"},
		{KeyLaneKind, subLaneKinds, false, in(text("kind")), FormatRecord, of[LaneKind](), "", carried,
			"the settings of a kind of lanes", "SetLaneKind; cleared by RemoveLaneKind"},
		{"lane total", SubLaneTotals, false, in(text("kind")), FormatRecord, of[LaneTotal](), "", carried,
			"how many futures are admitted over all lanes of a kind with a total width", "every admission, and end of one"},
		{KeyLaneTurn, SubLaneTurns, false, in(text("kind"), number("incarnation"), versionstamp(), number("order")),
			FormatText, nil, "key", carried, "a lane with room that waits for its turn among those of its kind",
			"the transaction that finds no room in the total width; cleared by the one that admits"},
	}
}

func rowKinds() []KeyKind {
	state := func(field string) []keyElement { return in(fixed(rowState), fixed(field)) }
	row := func(name string, elements []keyElement, format valueFormat, record func() Record, called, holds, writer string,
	) KeyKind {
		return KeyKind{name, SubFutures, true, append(in(home(futureID())), elements...), format, record, called, carried,
			holds, writer}
	}
	return []KeyKind{
		row("args", in(fixed(RowArgs)), FormatData, nil, "data", "arguments of 1 to 16 KiB", "submit"),
		row("spec", in(fixed(RowSpec)), FormatRecord, of[Spec](), "",
			"the part of a future that never changes; arguments below 1 KiB", "submit"),
		row("progress", in(fixed(rowProgress)), FormatRecord, of[ProgressRecord](), "",
			"the progress that an attempt has told, with the token of its claim",
			"the holder of the claim, at most once a second"),
		row("attempts", state(StateAttempts), FormatRecord, of[Attempts](), "",
			"failed attempts, crashes, deaths of workers, assignment, and the time until which it waits",
			"every transition that changes one"),
		row(PlaceBlocked, state(StateBlocked), FormatRecord, of[BlockedRecord](), "",
			"the future waits for its inputs, and how many of them are linked to it",
			"submit, retry; cleared by the last input"),
		row("cancel", state(StateCancel), FormatRecord, of[CancelRequest](), "",
			"the request to stop a claimed future", "cancel"),
		row("claim", state(StateClaim), FormatStamped, of[Claim](), "",
			"the token of its holder: worker and number of the claim", "claim"),
		row(keyHasDependants, state(stateDependants), formatMark, nil, "",
			"other futures use its result, or did", "submit of the first one, retry"),
		row("exception", state(StateException), FormatRecord, of[Exception](), "",
			"its last failure", "fail, cancel, reap"),
		row("history", state(StateHistory), FormatRecord, of[HistoryRecord](), "",
			"ended attempts before its last failure, up to "+strconv.Itoa(MaxHistory), "fail, cancel, reap"),
		row("in line", state(StateLine), FormatStamped, of[LineRecord](), "",
			"the future waits for its lane to admit it, and its place in line",
			"every transition that makes it ready and finds no room; cleared by its admission"),
		row("pins", state(StatePins), FormatRecord, of[PinsRecord](), "",
			"the names that keep the future from being removed", "pin, unpin"),
		row("result", state(StateResult), FormatStamped, of[Result](), "",
			"its result, with the token of its claim", "realize"),
		row("subscriber", in(fixed(rowState), fixed(stateSubscribers), text("session")), formatMark, nil, "",
			"a session that awaits it and did not submit it", "subscribe"),
	}
}

func placeKinds() []KeyKind {
	shard := func(name, sub string, elements []keyElement, format valueFormat, record func() Record, called string,
		moves carriage, holds, writer string,
	) KeyKind {
		return KeyKind{name, sub, true, elements, format, record, called, moves, holds, writer}
	}
	resources := in(number("cpu_millis"), number("ram_bytes"), number("gpu_millis"))
	ready := append(append(in(text("queue")), resources...), optional(text("labels")), priority(), home(futureID()))
	assigned := append(append(in(home(text("worker")), text("queue"), text("owner")), resources...), priority(),
		futureID())
	return []KeyKind{
		shard(PlaceReady, SubReady, ready, FormatText, nil, "function", carried,
			"the function of a future that waits for a worker, and the workers that failed or rejected it",
			"every transition that makes it ready"),
		shard(PlaceAssigned, SubAssigned, assigned, FormatText, nil, "function", carried,
			"the function of a future that waits for one worker", "assign"),
		shard(PlaceHeld, subHeld, in(text("owner"), number("failed"), number("due_ms"), priority(), home(futureID())),
			FormatText, nil, "function", carried, "the function of a future that waits to be assigned",
			"every transition that makes it wait"),
		shard("owner wake", SubOwners, in(home(text("owner")), fixed(ownerWake)), FormatStamped, of[WakeRecord](), "",
			LeftOut, "changes when a held future ends, is assigned or waits again, and with the batch", "these transitions"),
		shard(KeyOwnerOpen, SubOwners, in(home(text("owner")), fixed(ownerOpenPart), text("reason")), FormatCounter, nil,
			"futures", carried, "how many held futures are with workers", "assign, and every end of an assignment, by addition"),
		shard(PlaceDelayed, subDelayed, in(number("due_ms"), home(futureID())), formatEmpty, nil, "", carried,
			"a future that waits for a time", "submit with a delay, unblock, fail, reject, snooze, reap"),
		shard(KeyLane, SubLanes, in(text("kind"), home(text("key"))), FormatRecord, of[LaneRecord](), "", carried,
			"a lane that has admitted futures, or others in line", "every admission, and end of one"),
		shard(PlaceLine, SubLine, in(text("kind"), home(text("key")), priority(), number("incarnation"), versionstamp(),
			number("order")), FormatRecord, of[LineEntry](), "", carried, "a future that waits for its lane to admit it",
			"every transition that makes it ready and finds no room"),
		shard(KeyLaneDue, SubLanesDue, in(number("due_ms"), text("kind"), home(text("key"))), formatEmpty, nil, "", carried,
			"a lane that its rate holds back", "the transaction that finds the rate used up; cleared by the one that admits"),
		shard(KeyLimit, subLimits, in(number("ends_ms"), home(futureID())), formatMark, nil, "", carried,
			"a future that ends then if it still waits",
			"every transition that has it wait; cleared at its end, or by the janitor that finds it running"),
		shard(KeyInput, subInputs, in(home(futureID()), inputID()), formatMark, nil, "", carried,
			"a blocked future with more than "+strconv.Itoa(MaxUnlistedInputs)+" inputs waits for this one",
			"submit; cleared once the input has ended"),
		shard(KeyDependant, subDependants, in(home(inputID()), futureID()), formatMark, nil, "", carried,
			"a future that is not over uses the result of this input", "submit; cleared when the future ends"),
		shard(KeyResolve, subResolve, in(home(futureID())), FormatRecord, of[ResolveRecord](), "", carried,
			"dependencies of the future are to be resolved, and how far that is",
			"submit, retry, every transition that ends it"),
		shard(KeyPendingCheck, subResolve, in(home(futureID()), fixed(CheckPart), inputID()), formatMark, nil, "", carried,
			"this input has ended, and it is to be checked whether the future waits for others",
			"the end of an input; cleared by the check"),
		shard(KeyChunk, subChunks, in(home(futureID()), choice("kind", ChunkArgs, ChunkInputs, ChunkResult, ChunkStderr),
			text("token"), index("piece")), FormatPiece, nil, "data", carried,
			"90,000 bytes of large arguments, a long list of inputs, a large result or a long standard error",
			"ahead of the record that refers to it"),
		shard("listed failed", SubListed, in(fixed(listedFailed), number("age_ms"), home(futureID())), formatEmpty, nil, "",
			carried, "a future that has failed, by its age", "every transition that fails it; cleared by retry and removal"),
		shard("listed keyed", SubListed, in(fixed(listedKeyed), number("age_ms"), home(futureID())), formatEmpty, nil, "",
			carried, "a future whose id says nothing of its age", "submit; cleared by its removal"),
		shard("listed tag", SubListed, in(fixed(listedTag), text("tag"), number("age_ms"), home(futureID())), formatEmpty,
			nil, "", carried, "a future with a tag, by its age", "submit; cleared by its removal"),
		shard(KeyCopy, SubResults, in(home(futureID()), versionstamp()), FormatRecord, of[CopyRecord](), "", LeftOut,
			"a worker has a copy of the result as an object", "realize, clone; cleared when the copy is found lost"),
		shard("done", subDone, in(versionstamp()), FormatRecord, of[DoneEntry](), "", Restamped,
			"futures that finished in one transaction", "every transition that ends futures"),
		shard(KeyMail, SubMailbox, in(home(text("session")), versionstamp()), FormatNotices, of[Notice](), "", LeftOut,
			"futures of a session that finished in one transaction", "every transition that ends futures"),
		shard(KeySessionWake, SubWake, in(home(text("session"))), FormatStamped, of[WakeRecord](), "", LeftOut,
			"changes with the mailbox; the session's only watch", "every transition that ends futures"),
		shard("session", SubSessions, in(home(text("session"))), FormatRecord, of[SessionRecord](), "", LeftOut,
			"sign of life of a process that awaits", "the session"),
		shard(KeyCount, SubCounts, in(text("queue"), text("owner"), choice("state", stateNames[1:]...)), FormatCounter, nil,
			"futures", carried, "how many futures are in a state", "every transition, by addition"),
	}
}

func memberKinds() []KeyKind {
	worker := func(name string, moves carriage, format valueFormat, record func() Record, holds, writer string,
		elements ...keyElement,
	) KeyKind {
		return KeyKind{name, SubWorkers, true, append(in(home(text("worker"))), elements...), format, record, "", moves,
			holds, writer}
	}
	return []KeyKind{
		worker("alive", LeftOut, FormatRecord, of[WorkerInfo](), "the worker's description; the fence that a reaper clears",
			"register", fixed(WorkerAlive)),
		worker("heartbeat", LeftOut, FormatRecord, of[Heartbeat](), "its change is the worker's sign of life", "the worker",
			fixed(WorkerHeartbeat)),
		worker("suspect", LeftOut, FormatRecord, of[SuspectRecord](),
			"the worker runs a poison candidate: a future with which another worker died", "the worker, before such a run",
			fixed(WorkerSuspect), futureID()),
		worker("claims", carried, FormatRecord, of[ClaimBatch](), "the futures that one claim took", "claim",
			fixed(WorkerClaims), number("sequence")),
		worker("cancelled", LeftOut, formatMark, nil, "a future that the worker should stop",
			"cancel; cleared by the worker's heartbeat", fixed(WorkerCancelled), futureID()),
		worker("assigned", carried, formatMark, nil, "futures wait, or waited, for this worker alone", "assign",
			fixed(WorkerAssigned)),
		worker("worker wake", LeftOut, FormatStamped, of[WorkerWakeRecord](),
			"changes when there is work; the worker's only watch", "submit", fixed(WorkerWake)),
	}
}

// Shape returns the key of a kind as the package documentation shows it.
func (k *KeyKind) Shape() string {
	var parts []string
	if k.Sharded {
		parts = append(parts, "s")
	}
	parts = append(parts, `"`+k.Subspace+`"`)
	for _, e := range k.elements {
		switch {
		case e.optional:
			parts = append(parts, "["+strings.ToUpper(e.name)+"]")
		case e.is == elementName:
			parts = append(parts, `"`+e.name+`"`)
		case e.is == elementPriority:
			parts = append(parts, "255-PRIORITY")
		default:
			parts = append(parts, strings.ToUpper(e.name))
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// KeyKinds returns the names of all kinds of keys and of their subspaces.
func KeyKinds() (kinds, subspaces []string) {
	seen := map[string]bool{}
	for _, k := range Table() {
		kinds = append(kinds, k.Name)
		if !seen[k.Subspace] {
			seen[k.Subspace] = true
			subspaces = append(subspaces, k.Subspace)
		}
	}
	return kinds, subspaces
}
