package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Options limit a Check.
type Options struct {
	// Problems is the maximum number of problems, and of notes, that are
	// described; all are counted. Defaults to 1,000.
	Problems int
}

const (
	defaultProblems = 1000
	CheckPage       = 500     // keys of one page
	CheckLargePage  = 10      // keys of one page if values are large
	checkTerminals  = 500_000 // finished futures that are compared with the done lists at a time
)

// Invariant names a rule that the keys of a cluster follow at every version.
type Invariant string

// The invariants.
const (
	// InvariantKey: every key is of a kind in the documentation of package
	// layout, and in the right shard.
	InvariantKey Invariant = "key"
	// InvariantRecord: every value can be read.
	InvariantRecord Invariant = "record"
	// InvariantNewer: a record that only a newer version of Futura can read. It
	// appears in notes only.
	InvariantNewer Invariant = "newer"
	// InvariantConfig: the cluster's config exists and is the one in use.
	InvariantConfig Invariant = "config"
	// InvariantSpec: every future has a spec.
	InvariantSpec Invariant = "spec"
	// InvariantReady: the ready index holds the ready futures that are neither
	// assigned nor held, each once, in its place and with its function, and
	// nothing else.
	InvariantReady Invariant = layout.PlaceReady
	// InvariantAssigned: likewise the assignments hold the ready futures that
	// are assigned, each to a worker that is marked as having assignments.
	InvariantAssigned Invariant = layout.PlaceAssigned
	// InvariantHeld: likewise the list of held futures holds those that wait to
	// be assigned.
	InvariantHeld Invariant = layout.PlaceHeld
	// InvariantDelayed: likewise the list of delayed futures holds those that
	// are delayed.
	InvariantDelayed Invariant = layout.PlaceDelayed
	// InvariantClaim: a claimed future is in the list of the claim that took
	// it.
	InvariantClaim Invariant = "claim"
	// InvariantResult: a future has a result if it is realized, or claimed
	// anew since.
	InvariantResult Invariant = "result"
	// InvariantException: the last exception is final if the future has
	// failed, and only then; it fits what was counted.
	InvariantException Invariant = "exception"
	// InvariantAttempts: attempts are within their bounds and a due time is set
	// for delayed futures only.
	InvariantAttempts Invariant = "attempts"
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
	// InvariantMail: a mailbox with mail has a bell, and both belong to a
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
// bounded memory, whatever the size of the cluster. Counters that seem wrong
// are compared once more at one version; if they count too much for that, the
// report says so in Unsettled. Large values are read too.
func Check(ctx context.Context, c *fdbmodel.Cluster, o Options) (Report, error) {
	if o.Problems <= 0 {
		o.Problems = defaultProblems
	}
	k := &checker{cluster: c, keys: c.Keys(), limit: o.Problems, opened: map[layout.OpenKey]int64{},
		terminals: map[layout.ID]int64{}}
	k.report.Problems, k.report.Notes = []Problem{}, []Problem{}
	if err := k.run(ctx); err != nil {
		return k.report, fmt.Errorf("check cluster %q: %w", c.Name(), err)
	}
	return k.report, nil
}

// checker is one run of Check.
type checker struct {
	cluster *fdbmodel.Cluster
	keys    layout.Keyspace
	limit   int
	report  Report

	counted    map[layout.ShardCount]int64 // futures of the shard at hand
	unreadable bool                        // the shard has futures that can't be read
	opened     map[layout.OpenKey]int64    // held futures that are with workers
	blind      bool                        // some shard has futures that can't be read
	refs       []heldRef
	terminals  map[layout.ID]int64 // finished futures not yet found in a done list, and when they finished
}

// heldRef is a reference to a large value, found in a future.
type heldRef struct {
	id  layout.ID
	ref layout.ChunkRef
}

// findings are the results of one page. They are kept once its transaction
// succeeded.
type findings struct {
	problems   []Problem
	notes      []Problem
	futures    int64
	keys       int64
	counted    map[layout.ShardCount]int64
	opened     map[layout.OpenKey]int64
	unreadable bool
	refs       []heldRef
	terminals  map[layout.ID]int64
}

func problem(invariant Invariant, key []byte, format string, args []any) Problem {
	return Problem{invariant, []string{tuple.String(key)}, fmt.Sprintf(format, args...)}
}

func (f *findings) broken(invariant Invariant, key []byte, format string, args ...any) {
	f.problems = append(f.problems, problem(invariant, key, format, args))
}

func (f *findings) pending(invariant Invariant, key []byte, format string, args ...any) {
	f.notes = append(f.notes, problem(invariant, key, format, args))
}

// decoded records the error of reading a value, and reports whether there was
// none.
func (f *findings) decoded(key []byte, err error) bool {
	switch {
	case errors.Is(err, layout.ErrNewerRecord):
		f.notes = append(f.notes, problem(InvariantNewer, key, "%v", []any{err}))
	case err != nil:
		f.broken(InvariantRecord, key, "%v", err)
	}
	return err == nil
}

func (k *checker) take(f *findings) {
	r := &k.report
	r.Broken += int64(len(f.problems))
	for _, note := range f.notes {
		if note.Invariant == InvariantNewer {
			r.Newer++
		} else {
			r.Pending++
		}
	}
	r.Problems = append(r.Problems, f.problems[:min(len(f.problems), k.limit-len(r.Problems))]...)
	r.Notes = append(r.Notes, f.notes[:min(len(f.notes), k.limit-len(r.Notes))]...)
	k.report.Futures += f.futures
	k.report.Keys += f.keys
	for key, n := range f.counted {
		k.counted[key] += n
	}
	for key, n := range f.opened {
		k.opened[key] += n
	}
	k.unreadable = k.unreadable || f.unreadable
	k.blind = k.blind || f.unreadable
	k.refs = append(k.refs, f.refs...)
	for id, at := range f.terminals {
		k.terminals[id] = at
	}
}

// look checks one page of keys at the version of tx.
type look func(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error

// part is a range of keys and how it is checked.
type part struct {
	name string
	// page is how many keys are read at a time.
	page int
	// length is the number of elements after name that identify one entity,
	// whose keys are checked together; 0 if each key is an entity.
	length int
	look   look
}

func (k *checker) run(ctx context.Context) error {
	if err := k.parts(ctx, k.keys.Prefix, tuple.AppendInt(k.clusterKey(), 0), k.globalParts()); err != nil {
		return err
	}
	for shard := range k.keys.Shards {
		k.counted, k.unreadable = map[layout.ShardCount]int64{}, false
		prefix := tuple.AppendInt(k.clusterKey(), int64(shard))
		if err := k.parts(ctx, prefix, kv.AfterPrefix(prefix), k.shardParts(shard)); err != nil {
			return err
		}
		if err := k.checkCounts(ctx, shard); err != nil {
			return err
		}
	}
	if err := k.settleTerminals(ctx); err != nil {
		return err
	}
	if err := k.checkOpen(ctx); err != nil {
		return err
	}
	last := tuple.AppendInt(k.clusterKey(), int64(k.keys.Shards)-1)
	return k.scan(ctx, kv.Range{Begin: kv.AfterPrefix(last), End: k.keys.All().End}, unknownPart, 0)
}

func (k *checker) clusterKey() []byte { return bytes.Clone(k.keys.Prefix) }

// unknownPart is a range where no key may lie.
var unknownPart = part{page: CheckPage, look: lookUnknown}

func lookUnknown(_ context.Context, _ kv.Reader, items []kv.KeyValue, f *findings) error {
	for _, item := range items {
		f.broken(InvariantKey, item.Key, "unknown key")
	}
	return nil
}

// parts checks everything from prefix to end: the parts, and the ranges between
// them.
func (k *checker) parts(ctx context.Context, prefix, end []byte, parts []part) error {
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.name, b.name) })
	at := prefix
	for _, p := range parts {
		own := kv.Prefix(tuple.AppendString(bytes.Clone(prefix), p.name))
		if err := k.scan(ctx, kv.Range{Begin: at, End: own.Begin}, unknownPart, 0); err != nil {
			return err
		}
		if err := k.scan(ctx, own, p, len(own.Begin)); err != nil {
			return err
		}
		at = own.End
	}
	return k.scan(ctx, kv.Range{Begin: at, End: end}, unknownPart, 0)
}

// scan checks a range page by page. skip is the length of the key before the
// entities.
func (k *checker) scan(ctx context.Context, r kv.Range, p part, skip int) error {
	for !r.Empty() {
		var items []kv.KeyValue
		var f findings
		more := false
		err := k.cluster.View(ctx, func(tx kv.Attempt) error {
			var err error
			f = findings{}
			if items, more, err = readWhole(ctx, tx.Snapshot(), r, p, skip); err != nil {
				return err
			}
			f.keys = int64(len(items))
			return p.look(ctx, tx.Snapshot(), items, &f)
		})
		if err != nil {
			return err
		}
		k.take(&f)
		if err := k.relieve(ctx); err != nil || !more {
			return err
		}
		last := items[len(items)-1].Key
		if r.Begin = kv.After(last); p.length > 0 {
			r.Begin = kv.AfterPrefix(entityOf(last, skip, p.length))
		}
	}
	return nil
}

// readWhole reads a page that ends with an entity.
func readWhole(ctx context.Context, tx kv.Reader, r kv.Range, p part, skip int) ([]kv.KeyValue, bool, error) {
	for limit := p.page; ; limit *= 2 {
		page, err := tx.GetRange(r, kv.RangeOptions{Limit: limit}).Wait(ctx)
		if err != nil || !page.More || p.length == 0 {
			return page.Items, page.More, err
		}
		last := entityOf(page.Items[len(page.Items)-1].Key, skip, p.length)
		n := len(page.Items)
		for n > 0 && bytes.HasPrefix(page.Items[n-1].Key, last) {
			n--
		}
		if n > 0 {
			return page.Items[:n], true, nil
		}
	}
}

// entityOf returns the beginning of a key that all keys of the entity share.
func entityOf(key []byte, skip, length int) []byte {
	rest := tuple.NewReader(key[skip:])
	for range length {
		rest.Any()
	}
	if rest.Err() != nil {
		return key
	}
	return key[:len(key)-len(rest.Rest())]
}

// eachEntity calls fn with the items of each entity.
func eachEntity(items []kv.KeyValue, skip, length int, fn func(entity []kv.KeyValue) error) error {
	for len(items) > 0 {
		prefix := entityOf(items[0].Key, skip, length)
		n := 1
		for n < len(items) && bytes.HasPrefix(items[n].Key, prefix) {
			n++
		}
		if err := fn(items[:n]); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

// relieve settles the findings that would use too much memory.
func (k *checker) relieve(ctx context.Context) error {
	for _, held := range k.refs {
		if err := k.checkPieces(ctx, held); err != nil {
			return err
		}
	}
	k.refs = k.refs[:0]
	if len(k.terminals) >= checkTerminals {
		return k.settleTerminals(ctx)
	}
	return nil
}
