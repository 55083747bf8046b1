package fdbmodel

import (
	"fmt"
	"reflect"
	"strings"
)

// elementType is what an element of a key is.
type elementType uint8

const (
	elementName     elementType = iota + 1 // a fixed text
	elementText                            // text
	elementInt                             // an integer
	elementPriority                        // 255 less a priority
	elementID                              // the id of a future
	elementStamp                           // a versionstamp
)

// keyElement is one element of a key behind its subspace.
type keyElement struct {
	name string
	is   elementType
}

// valueFormat is how a value is laid out.
type valueFormat uint8

const (
	formatRecord  valueFormat = iota + 1 // version and msgpack map
	formatStamped                        // version, versionstamp and msgpack map
	formatNotices                        // version, number of notices and as many msgpack maps
	formatMark                           // version alone
	formatText                           // text
	formatCounter                        // eight bytes, little endian
	formatData                           // bytes as somebody gave them
	formatEmpty                          // nothing
)

var formatNames = [...]string{"", "record", "stamped record", "notices", "mark", "text", "counter", "data", "empty"}

// String returns the format's name.
func (f valueFormat) String() string { return formatNames[f] }

// carriage says what a move to another store does with a kind of key.
type carriage uint8

const (
	carried   carriage = iota + 1 // goes along as it is
	restamped                     // goes along under a versionstamp of the new store
	leftOut                       // stays: it belongs to processes, which make it anew
)

// keyKind is one kind of key.
type keyKind struct {
	name     string
	subspace string
	sharded  bool // behind the number of a shard
	elements []keyElement
	format   valueFormat
	// record makes what a msgpack value decodes into; called names a value that
	// is not msgpack.
	record func() any
	called string
	moves  carriage
	holds  string // for people
	writer string
}

func of[T any]() func() any { return func() any { return new(T) } }

func fixed(name string) keyElement    { return keyElement{name, elementName} }
func text(name string) keyElement     { return keyElement{name, elementText} }
func number(name string) keyElement   { return keyElement{name, elementInt} }
func futureID() keyElement            { return keyElement{"id", elementID} }
func versionstamp() keyElement        { return keyElement{"stamp", elementStamp} }
func priority() keyElement            { return keyElement{"priority", elementPriority} }
func in(e ...keyElement) []keyElement { return e }

// keyKinds is the one table of the keys of a cluster, in the order in which
// they lie in the store.
func keyKinds() []keyKind {
	return append(globalKinds(), append(rowKinds(), append(placeKinds(), memberKinds()...)...)...)
}

func globalKinds() []keyKind {
	return []keyKind{
		{"address", subAddresses, false, in(text("address")), formatText, nil, "worker", leftOut,
			"the worker that is at an address", "register"},
		{"alias", subAliases, false, in(text("name")), formatRecord, of[aliasRecord](), "", carried,
			"the module that an alias stands for", "PutModule"},
		{"batch", subBatches, false, in(fixed(batchByID), text("batch"), fixed(batchRecord)), formatRecord,
			of[BatchRecord](), "", carried, "a batch", "its creator, and whoever ends it"},
		{"batch chunk", subBatches, false, in(fixed(batchByID), text("batch"), fixed(batchChunks), text("chunk")),
			formatRecord, of[BatchChunk](), "", carried, "what a worker was given of a batch", "AssignChunk"},
		{"batch time", subBatches, false, in(fixed(batchByTime), number("created_ms"), text("batch")), formatEmpty, nil, "",
			carried, "the order of batches", "its creator"},
		{"config", subConfig, false, nil, formatRecord, of[Config](), "", carried,
			"what all processes of the cluster agree on", "the first to open the cluster, configure"},
		{"module", subCode, false, in(text("cid"), fixed(codeInfo)), formatRecord, of[Module](), "", carried,
			"a WASM module", "PutModule"},
		{"module piece", subCode, false, in(text("cid"), fixed(codeBody), number("piece")), formatData, nil, "data", carried,
			"90,000 bytes of a module", "PutModule"},
		{"idle", subIdle, false, in(text("queue"), text("worker")), formatRecord, of[idleRecord](), "", leftOut,
			"what an idle worker could take", "a worker with nothing to do"},
		{"incoming", subIncoming, false, nil, formatRecord, of[incomingRecord](), "", leftOut,
			"the cluster is being copied into, and can't be opened", "migrate, restore"},
		{"janitor", subJanitor, false, nil, formatRecord, of[janitorRecord](), "", leftOut,
			"the worker whose janitor is at work", "its holder"},
	}
}

func rowKinds() []keyKind {
	state := func(field string) []keyElement { return in(futureID(), fixed(rowState), fixed(field)) }
	row := func(name string, elements []keyElement, format valueFormat, record func() any, called, holds, writer string,
	) keyKind {
		return keyKind{name, subFutures, true, elements, format, record, called, carried, holds, writer}
	}
	return []keyKind{
		row("args", in(futureID(), fixed(rowArgs)), formatData, nil, "data", "arguments of 1 to 16 KiB", "submit"),
		row("spec", in(futureID(), fixed(rowSpec)), formatRecord, of[Spec](), "",
			"what never changes of a future; arguments below 1 KiB", "submit"),
		row("attempts", state(stateAttempts), formatRecord, of[Attempts](), "",
			"what it has been through, and until when it waits", "whatever ends a claim"),
		row("cancel", state(stateCancel), formatRecord, of[CancelRequest](), "",
			"the request to stop a claimed future", "cancel"),
		row("claim", state(stateClaim), formatStamped, of[Claim](), "",
			"the token of its holder: worker and number of the claim", "claim"),
		row("exception", state(stateException), formatRecord, of[Exception](), "",
			"its last failure", "fail, cancel, reap"),
		row("result", state(stateResult), formatStamped, of[Result](), "",
			"what it came to, with the token of its claim", "realize"),
		row("subscriber", in(futureID(), fixed(rowState), fixed(stateSubscribers), text("session")), formatMark, nil, "",
			"a session that awaits it and did not submit it", "subscribe"),
	}
}

func placeKinds() []keyKind {
	class := in(text("queue"), text("group"), number("cpu_millis"), number("ram_bytes"), number("gpu_millis"))
	shard := func(name, sub string, elements []keyElement, format valueFormat, record func() any, called string,
		moves carriage, holds, writer string,
	) keyKind {
		return keyKind{name, sub, true, elements, format, record, called, moves, holds, writer}
	}
	return []keyKind{
		shard("ready", subReady, append(class, priority(), futureID()), formatText, nil, "function", carried,
			"the function of a future that waits for a worker", "whatever makes it ready"),
		shard("assignment", subAssigned, append(in(text("worker")), append(class, priority(), futureID())...), formatText,
			nil, "function", carried, "the function of a future that waits for one worker", "assign"),
		shard("held", subHeld, in(text("group"), number("failed"), number("due_ms"), priority(), futureID()),
			formatText, nil, "function", carried, "the function of a future that waits to be assigned",
			"whatever makes it ready"),
		shard("group bell", subGroups, in(text("group"), fixed(groupBell)), formatStamped, of[struct{}](), "", leftOut,
			"changes when a held future ends, is assigned, or waits for that, and with the batch", "whatever does that"),
		shard("group open", subGroups, in(text("group"), fixed(groupOpen), text("why")), formatCounter, nil, "futures",
			carried, "how many held futures are with workers", "whatever assigns them or ends that, by addition"),
		shard("delayed", subDelayed, in(number("due_ms"), futureID()), formatEmpty, nil, "", carried,
			"a future that waits for a time", "submit with a delay, fail, put back"),
		shard("chunk", subChunks, in(futureID(), text("kind"), text("token"), number("piece")), formatData, nil, "data",
			carried, "90,000 bytes of large arguments, a large result or a long standard error", "before it counts"),
		shard("done", subDone, in(versionstamp()), formatRecord, of[doneEntry](), "", restamped,
			"futures that finished in one transaction", "whatever ends futures"),
		shard("mail", subMailbox, in(text("session"), versionstamp()), formatNotices, of[Notice](), "", leftOut,
			"futures of a session that finished in one transaction", "whatever ends futures"),
		shard("bell", subBell, in(text("session")), formatStamped, of[struct{}](), "", leftOut,
			"changes with the mailbox; the session's only watch", "whatever ends futures"),
		shard("session", subSessions, in(text("session")), formatRecord, of[sessionRecord](), "", leftOut,
			"sign of life of a process that awaits", "the session"),
		shard("count", subCounts, in(text("queue"), text("group"), text("state")), formatCounter, nil, "futures", carried,
			"how many futures are in a state", "every transition, by addition"),
	}
}

func memberKinds() []keyKind {
	worker := func(name string, moves carriage, format valueFormat, record func() any, holds, writer string,
		elements ...keyElement,
	) keyKind {
		return keyKind{name, subWorkers, true, append(in(text("worker")), elements...), format, record, "", moves, holds,
			writer}
	}
	return []keyKind{
		worker("alive", leftOut, formatRecord, of[WorkerInfo](), "what the worker is; the fence that a reaper clears",
			"register", fixed(workerAlive)),
		worker("heartbeat", leftOut, formatRecord, of[Heartbeat](), "its change is the worker's sign of life", "the worker",
			fixed(workerHeartbeat)),
		worker("claims", carried, formatRecord, of[claimBatch](), "the futures that one claim took", "claim",
			fixed(workerClaims), number("sequence")),
		worker("cancelled", leftOut, formatMark, nil, "a future of the worker that is wanted no more",
			"cancel; cleared by the worker's heartbeat", fixed(workerCancelled), futureID()),
		worker("assigned", carried, formatMark, nil, "futures wait, or waited, for this worker alone", "assign",
			fixed(workerAssigned)),
		worker("wake", leftOut, formatStamped, of[struct{}](), "changes when there is work; the worker's only watch",
			"who submits", fixed(workerWake)),
	}
}

// shape prints the key of a kind, as the package documentation has it.
func (k *keyKind) shape() string {
	var parts []string
	if k.sharded {
		parts = append(parts, "s")
	}
	parts = append(parts, `"`+k.subspace+`"`)
	for _, e := range k.elements {
		switch e.is {
		case elementName:
			parts = append(parts, `"`+e.name+`"`)
		case elementPriority:
			parts = append(parts, "255-PRIORITY")
		default:
			parts = append(parts, strings.ToUpper(e.name))
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// KeyTable prints the table of all keys as Markdown.
func KeyTable() string {
	var b strings.Builder
	b.WriteString("| kind | key | value | holds | written by | in a move |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- |\n")
	moves := map[carriage]string{carried: "copied", restamped: "copied, new stamp", leftOut: "not copied"}
	kinds := keyKinds()
	for i := range kinds {
		k := &kinds[i]
		format := k.format.String()
		if k.called != "" {
			format = k.called
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s |\n", k.name, k.shape(), format, k.holds, k.writer, moves[k.moves])
	}
	return b.String()
}

// KeyKinds returns the names of all kinds of keys, and those of the subspaces
// that they lie in.
func KeyKinds() (kinds, subspaces []string) {
	seen := map[string]bool{}
	for _, k := range keyKinds() {
		kinds = append(kinds, k.name)
		if !seen[k.subspace] {
			seen[k.subspace] = true
			subspaces = append(subspaces, k.subspace)
		}
	}
	return kinds, subspaces
}

// FieldTable prints the short field names of all records as Markdown.
func FieldTable() string {
	var b strings.Builder
	b.WriteString("| kind | fields |\n| --- | --- |\n")
	kinds := keyKinds()
	for i := range kinds {
		if kinds[i].record == nil {
			continue
		}
		if fields := fieldNames(reflect.TypeOf(kinds[i].record()).Elem()); fields != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", kinds[i].name, fields)
		}
	}
	fmt.Fprintf(&b, "| a reference | %s |\n", fieldNames(reflect.TypeFor[ChunkRef]()))
	return b.String()
}

// fieldNames lists a record's fields in their order, with those of structs
// inside it. References and whole records are named by their own rows.
func fieldNames(t reflect.Type) string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		short, _, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
		switch {
		case f.Anonymous && short == "":
			names = append(names, fieldNames(f.Type))
		case short == "" || short == "-":
		case f.Type.Kind() == reflect.Struct:
			names = append(names, fmt.Sprintf("`%s` %s (%s)", short, fullName(f), fieldNames(f.Type)))
		default:
			names = append(names, fmt.Sprintf("`%s` %s", short, fullName(f)))
		}
	}
	return strings.Join(names, " · ")
}
