package layout

import (
	"slices"
	"strconv"
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
	keyHasForks      = "has forks"
	keyHasSteps      = "has steps"
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
	KeyResolve       = "resolve"
)

// Kinds returns the kinds of keys that the model itself has. The rooms above it have others.
func Kinds() []KeyKind {
	return slices.Concat(globalKinds(),
		rowKinds(), placeKinds(), uniqueKinds(), memberKinds())
}

func in(e ...Element) []Element { return e }

func globalKinds() []KeyKind {
	return []KeyKind{
		{KeyAddress, subAddresses, false, in(Text("address")), FormatText, nil, "worker", LeftOut,
			"the worker at an address", "register"},
		{KeyAlias, SubAliases, false, in(Text("name")), FormatRecord, RecordOf[AliasRecord], "", carried,
			"the module that an alias stands for", "modules.Put, SetAlias"},
		{KeyBatch, subBatches, false, in(Fixed(batchByID), Text("batch"), Fixed(batchRecordPart)), FormatRecord,
			RecordOf[BatchRecord], "", carried, "a batch", "its creator, and the operation that ends it"},
		{KeyBatchChunk, subBatches, false, in(Fixed(batchByID), Text("batch"), Fixed(batchChunksPart), Text("chunk")),
			FormatRecord, RecordOf[BatchChunk], "", carried, "the part of a batch that one worker was given",
			"batches.AssignChunk, batches.Move, and the loss of its worker"},
		{KeyBatchTime, subBatches, false, in(Fixed(batchByTime), Number("created_ms"), Text("batch")), FormatEmpty, nil, "",
			carried, "the order of batches", "its creator"},
		{KeyConfig, SubConfig, false, nil, FormatRecord, RecordOf[Config], "", carried,
			"the settings that all processes of the cluster share", "the first process that opens it, configure"},
		{"module", SubModules, false, in(Text("cid"), Fixed(moduleInfo)), FormatRecord, RecordOf[Module], "", carried,
			"a WASM module", "modules.Put"},
		{"module piece", SubModules, false, in(Text("cid"), Fixed(moduleBody), Index("piece")), FormatPiece, nil, "data",
			carried, "90,000 bytes of a module", "modules.Put"},
		{KeyIdle, subIdle, false, in(Text("queue"), Text("worker")), FormatRecord, RecordOf[IdleRecord], "", LeftOut,
			"an idle worker, with its free capacity and its functions", "a worker with nothing to do"},
		{KeyIncoming, subIncoming, false, nil, FormatRecord, RecordOf[IncomingRecord], "", LeftOut,
			"the cluster is being copied into, and can't be opened", "migrate, restore"},
		{KeyJanitor, SubBulletin, false, in(Fixed(bulletinJanitor)), FormatRecord, RecordOf[JanitorRecord], "", LeftOut,
			"the worker whose janitor is at work", "its holder"},
		{KeyLaneKind, subLaneKinds, false, in(Text("kind")), FormatRecord, RecordOf[LaneKind], "", carried,
			"the settings of a kind of lanes", "SetLaneKind; cleared by RemoveLaneKind"},
		{"lane total", SubLaneTotals, false, in(Text("kind")), FormatRecord, RecordOf[LaneTotal], "", carried,
			"how many futures are admitted over all lanes of a kind with a total width", "every admission, and end of one"},
		{KeyLaneTurn, SubLaneTurns, false, in(Text("kind"), Number("incarnation"), Versionstamp(), Number("order")),
			FormatData, nil, "key", carried, "a lane with room that waits for its turn among those of its kind",
			"the transaction that finds no room in the total width; cleared by the one that admits"},
	}
}

func rowKinds() []KeyKind {
	state := func(field string) []Element { return in(Fixed(rowState), Fixed(field)) }
	row := func(name string, elements []Element, format valueFormat, record func() Record, called, holds, writer string,
	) KeyKind {
		return KeyKind{name, SubFutures, true, append(in(futureID().Home()), elements...), format, record, called, carried,
			holds, writer}
	}
	return []KeyKind{
		row("args", in(Fixed(RowArgs)), FormatData, nil, "data", "arguments above 1 KiB, up to 16 KiB", "submit"),
		row("spec", in(Fixed(RowSpec)), FormatRecord, RecordOf[Spec], "",
			"the part of a future that never changes; arguments up to 1 KiB", "submit"),
		row("progress", in(Fixed(rowProgress)), FormatRecord, RecordOf[ProgressRecord], "",
			"the progress that an attempt has told, with the token of its claim",
			"the holder of the claim, at most once a second"),
		row("attempts", state(StateAttempts), FormatRecord, RecordOf[Attempts], "",
			"failed attempts, crashes, deaths of workers, assignment, and the time until which it waits",
			"every transition that changes one"),
		row(PlaceBlocked, state(StateBlocked), FormatRecord, RecordOf[BlockedRecord], "",
			"the future waits for its inputs, and how many of them are linked to it",
			"submit, retry; cleared by the last input"),
		row("cancel", state(StateCancel), FormatRecord, RecordOf[CancelRequest], "",
			"the request to stop a claimed future", "cancel"),
		row("claim", state(StateClaim), FormatStamped, RecordOf[Claim], "",
			"the token of its holder: worker and number of the claim", "claim"),
		row(keyHasDependants, state(stateDependants), FormatMark, nil, "",
			"other futures use its result, or did", "submit of the first one, retry"),
		row("exception", state(StateException), FormatRecord, RecordOf[Exception], "",
			"its last failure", "fail, cancel, reap"),
		row(keyHasForks, state(StateForks), FormatMark, nil, "",
			"the future has forks, or had some", "the first fork"),
		row("history", state(StateHistory), FormatRecord, RecordOf[HistoryRecord], "",
			"ended attempts before its last failure, up to "+strconv.Itoa(MaxHistory), "fail, cancel, reap"),
		row("in line", state(StateLine), FormatStamped, RecordOf[LineRecord], "",
			"the future waits for its lane to admit it, and its place in line",
			"every transition that makes it ready and finds no room; cleared by its admission"),
		row("pins", state(StatePins), FormatRecord, RecordOf[PinsRecord], "",
			"the names that keep the future from being removed", "pin, unpin"),
		row("result", state(StateResult), FormatStamped, RecordOf[Result], "",
			"its result, with the token of its claim", "realize"),
		row(keyHasSteps, state(StateSteps), FormatMark, nil, "",
			"the future has recorded steps", "the first one that is recorded; cleared with all of them"),
		row("subscriber", in(Fixed(rowState), Fixed(stateSubscribers), Text("session")), FormatMark, nil, "",
			"a session that awaits it and did not submit it", "subscribe"),
	}
}

// chunkKinds are the kinds of large values.
var chunkKinds = [...]string{ChunkArgs, ChunkInputs, ChunkResult, ChunkStderr, ChunkStep}

func placeKinds() []KeyKind {
	shard := func(name, sub string, elements []Element, format valueFormat, record func() Record, called string,
		moves carriage, holds, writer string,
	) KeyKind {
		return KeyKind{name, sub, true, elements, format, record, called, moves, holds, writer}
	}
	resources := in(Number("cpu_millis"), Number("ram_bytes"), Number("gpu_millis"))
	ready := append(append(in(Text("queue")), resources...), optional(Text("labels")), Priority(), futureID().Home())
	assigned := append(append(in(Text("worker").Home(), Text("queue"), Text("owner")), resources...), Priority(),
		futureID())
	return []KeyKind{
		shard(PlaceReady, SubReady, ready, FormatText, nil, "function", carried,
			"the function of a future that waits for a worker, and the workers that failed or rejected it",
			"every transition that makes it ready"),
		shard(PlaceAssigned, SubAssigned, assigned, FormatText, nil, "function", carried,
			"the function of a future that waits for one worker", "assign"),
		shard(PlaceHeld, subHeld, in(Text("owner"), Number("failed"), Number("due_ms"), Priority(), futureID().Home()),
			FormatText, nil, "function", carried, "the function of a future that waits to be assigned",
			"every transition that makes it wait"),
		shard("owner wake", SubOwners, in(Text("owner").Home(), Fixed(ownerWake)), FormatStamped, RecordOf[wakeRecord], "",
			LeftOut, "changes when a held future ends, is assigned or waits again, and with the batch", "these transitions"),
		shard(KeyOwnerOpen, SubOwners, in(Text("owner").Home(), Fixed(ownerOpenPart), Text("reason")), FormatCounter, nil,
			"futures", carried, "how many held futures are with workers", "assign, and every end of an assignment, by addition"),
		shard(PlaceDelayed, subDelayed, in(Number("due_ms"), futureID().Home()), FormatEmpty, nil, "", carried,
			"a future that waits for a time", "submit with a delay, unblock, fail, reject, snooze, reap"),
		shard(KeyLane, SubLanes, in(Text("kind"), Text("key").Home()), FormatRecord, RecordOf[LaneRecord], "", carried,
			"a lane that has admitted futures, or others in line", "every admission, and end of one"),
		shard(PlaceLine, SubLine, in(Text("kind"), Text("key").Home(), Priority(), Number("incarnation"), Versionstamp(),
			Number("order")), FormatRecord, RecordOf[LineEntry], "", carried, "a future that waits for its lane to admit it",
			"every transition that makes it ready and finds no room"),
		shard(KeyLaneDue, SubLanesDue, in(Number("due_ms"), Text("kind"), Text("key").Home()), FormatEmpty, nil, "", carried,
			"a lane that its rate holds back", "the transaction that finds the rate used up; cleared by the one that admits"),
		shard(KeyLimit, subLimits, in(Number("ends_ms"), futureID().Home()), FormatMark, nil, "", carried,
			"a future that ends then if it still waits",
			"every transition that has it wait; cleared at its end, or by the janitor that finds it running"),
		shard(KeyInput, subInputs, in(futureID().Home(), FutureID("input")), FormatMark, nil, "", carried,
			"a blocked future with more than "+strconv.Itoa(MaxUnlistedInputs)+" inputs waits for this one",
			"submit; cleared once the input has ended"),
		shard(KeyDependant, subDependants, in(FutureID("input").Home(), futureID()), FormatMark, nil, "", carried,
			"a future that is not over uses the result of this input", "submit; cleared when the future ends"),
		shard(KeyResolve, subResolve, in(futureID().Home()), FormatRecord, RecordOf[ResolveRecord], "", carried,
			"dependencies of the future are to be resolved, and how far that is",
			"submit, retry, every transition that ends it"),
		shard(KeyPendingCheck, subResolve, in(futureID().Home(), Fixed(CheckPart), FutureID("input")), FormatMark, nil, "",
			carried, "this input has ended, and it is to be checked whether the future waits for others",
			"the end of an input; cleared by the check"),
		shard(KeyChunk, subChunks, in(futureID().Home(), Choice("kind", chunkKinds[:]...), Text("token"), Index("piece")),
			FormatPiece, nil, "data", carried, "90,000 bytes of large arguments, a long list of inputs, a large result, "+
				"a long standard error, or what a step returned", "ahead of the record that refers to it"),
		shard("listed failed", SubListed, in(Fixed(listedFailed), Number("age_ms"), futureID().Home()), FormatEmpty, nil, "",
			carried, "a future that has failed, by its age", "every transition that fails it; cleared by retry and removal"),
		shard("listed keyed", SubListed, in(Fixed(listedKeyed), Number("age_ms"), futureID().Home()), FormatEmpty, nil, "",
			carried, "a future whose id says nothing of its age", "submit; cleared by its removal"),
		shard("listed tag", SubListed, in(Fixed(listedTag), Text("tag"), Number("age_ms"), futureID().Home()), FormatEmpty,
			nil, "", carried, "a future with a tag, by its age", "submit; cleared by its removal"),
		shard(KeyCopy, SubResults, in(futureID().Home(), Versionstamp()), FormatRecord, RecordOf[CopyRecord], "", LeftOut,
			"a worker has a copy of the result as an object", "realize, clone; cleared when the copy is found lost"),
		shard("done", subDone, in(Versionstamp()), FormatRecord, RecordOf[DoneEntry], "", Restamped,
			"futures that finished in one transaction", "every transition that ends futures"),
		shard(KeyMail, SubMailbox, in(Text("session").Home(), Versionstamp()), FormatNotices, RecordOf[Notice], "", LeftOut,
			"futures of a session that finished in one transaction", "every transition that ends futures"),
		shard(KeySessionWake, SubWake, in(Text("session").Home()), FormatStamped, RecordOf[wakeRecord], "", LeftOut,
			"changes with the mailbox; the session's only watch", "every transition that ends futures"),
		shard("session", SubSessions, in(Text("session").Home()), FormatRecord, RecordOf[SessionRecord], "", LeftOut,
			"sign of life of a process that awaits", "the session"),
		shard(KeyCount, SubCounts, in(Text("queue"), Text("owner"), Choice("state", stateNames[1:]...)), FormatCounter, nil,
			"futures", carried, "how many futures are in a state", "every transition, by addition"),
	}
}

func memberKinds() []KeyKind {
	worker := func(name string, moves carriage, format valueFormat, record func() Record, holds, writer string,
		elements ...Element,
	) KeyKind {
		return KeyKind{name, SubWorkers, true, append(in(Text("worker").Home()), elements...), format, record, "", moves,
			holds, writer}
	}
	return []KeyKind{
		worker("alive", LeftOut, FormatRecord, RecordOf[WorkerInfo],
			"the worker's description; the fence that a reaper clears", "register", Fixed(WorkerAlive)),
		worker("heartbeat", LeftOut, FormatRecord, RecordOf[Heartbeat], "its change is the worker's sign of life",
			"the worker", Fixed(WorkerHeartbeat)),
		worker("suspect", LeftOut, FormatRecord, RecordOf[SuspectRecord],
			"the worker runs a poison candidate: a future with which another worker died", "the worker, before such a run",
			Fixed(WorkerSuspect), futureID()),
		worker("claims", carried, FormatRecord, RecordOf[ClaimBatch], "the futures that one claim took", "claim",
			Fixed(WorkerClaims), Number("sequence")),
		worker("cancelled", LeftOut, FormatMark, nil, "a future that the worker should stop",
			"cancel; cleared by the worker's heartbeat", Fixed(WorkerCancelled), futureID()),
		worker("assigned", carried, FormatMark, nil, "futures wait, or waited, for this worker alone", "assign",
			Fixed(WorkerAssigned)),
		worker("worker wake", LeftOut, FormatStamped, RecordOf[WorkerWakeRecord],
			"changes when there is work; the worker's only watch", "submit", Fixed(WorkerWake)),
	}
}
