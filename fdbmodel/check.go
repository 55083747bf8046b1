package fdbmodel

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Invariant names a rule that the keys of a cluster obey.
type Invariant string

// The invariants that Check knows.
const (
	InvariantPlace    Invariant = "place"     // an unclaimed future is in exactly the place that its records say
	InvariantStray    Invariant = "stray"     // an index key leads to a future that waits there
	InvariantClaim    Invariant = "claim"     // a claimed future is in the list of the worker that holds it
	InvariantRecords  Invariant = "records"   // the records of a future agree with each other
	InvariantChunks   Invariant = "chunks"    // what a record refers to is there
	InvariantArgs     Invariant = "args"      // arguments with a key of their own are there, and only those
	InvariantCounts   Invariant = "counts"    // the counters are what can be counted
	InvariantFence    Invariant = "fence"     // a worker without its record holds nothing, once it was reaped
	InvariantReadable Invariant = "readable"  // every record can be read
	InvariantKnown    Invariant = "known_key" // every key is one that this version knows
	InvariantModule   Invariant = "module"    // an alias leads to a module whose pieces are there
	InvariantNewer    Invariant = "newer"     // not broken: written by a newer version, and not looked at
)

// Problem is one invariant that does not hold.
type Problem struct {
	Invariant Invariant `json:"invariant"`
	Keys      []string  `json:"keys"`
	Text      string    `json:"text"`
}

// CheckReport is what Check found.
type CheckReport struct {
	Futures  int64     `json:"futures"`
	Keys     int64     `json:"keys"`
	Problems []Problem `json:"problems"`
	// Pending are dead workers whose claims are still to be taken back.
	Pending int `json:"pending_reaps"`
}

// CheckOptions bound a Check. The zero value is right for most.
type CheckOptions struct {
	// Problems is the most to report. Defaults to 1,000.
	Problems int
}

// errEnough ends a check that has found enough.
var errEnough = errors.New("enough problems")

// Check reads a whole cluster in pages and names every invariant that does not
// hold, with its keys. It may run beside everything else: what looks broken at
// one moment is read again, whole, in one transaction before it is reported.
// Counters are compared only where a shard can be read in one transaction.
func (c *Cluster) Check(ctx context.Context, o CheckOptions) (CheckReport, error) {
	if o.Problems == 0 {
		o.Problems = 1000
	}
	k := &checker{cluster: c, limit: o.Problems, report: CheckReport{Problems: []Problem{}}}
	err := k.run(ctx)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return k.report, err
}

// checker is one check under way.
type checker struct {
	cluster *Cluster
	limit   int
	report  CheckReport
}

func (k *checker) run(ctx context.Context) error {
	for shard := range k.cluster.config.Shards {
		if err := k.shard(ctx, shard); err != nil {
			return err
		}
	}
	return k.global(ctx)
}

func (k *checker) add(i Invariant, text string, keys ...[]byte) error {
	names := make([]string, len(keys))
	for n, key := range keys {
		names[n] = tuple.String(key)
	}
	k.report.Problems = append(k.report.Problems, Problem{Invariant: i, Keys: names, Text: text})
	if len(k.report.Problems) >= k.limit {
		return errEnough
	}
	return nil
}

// shard looks at each key of a shard, and asks each future that it meets, by
// whatever key, once.
func (k *checker) shard(ctx context.Context, shard int) error {
	c := k.cluster
	prefix := tuple.AppendInt(append([]byte(nil), c.keys.prefix...), int64(shard))
	var last ID
	err := c.eachKey(ctx, kv.Prefix(prefix), func(item kv.KeyValue) error {
		k.report.Keys++
		rest := tuple.NewReader(item.Key[len(prefix):])
		switch sub := rest.Text(); sub {
		case subFutures:
			if id := ID(rest.UUID()); rest.Err() == nil && id != last {
				last = id
				k.report.Futures++
				return k.future(ctx, id)
			}
			return k.readable(item, rest.Err())
		case subReady, subDelayed:
			return k.index(ctx, sub, item, rest)
		case subWorkers:
			return k.worker(ctx, item, rest)
		case subCounts:
			_, _, err := parseCount(c.keys.countsOf(shard), item)
			return k.readable(item, err)
		case subDone:
			return k.readable(item, decodeRecord(item.Key, item.Value, new(doneEntry)))
		case subMailbox:
			_, err := appendNotices(nil, item)
			return k.readable(item, err)
		case subChunks, subBell, subSessions:
			return nil
		default:
			return k.add(InvariantKnown, "nothing writes such a key", item.Key)
		}
	})
	if err != nil {
		return err
	}
	return k.counts(ctx, shard)
}

// readable reports a record that can't be read.
func (k *checker) readable(item kv.KeyValue, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNewerRecord):
		return k.add(InvariantNewer, err.Error(), item.Key)
	default:
		return k.add(InvariantReadable, err.Error(), item.Key)
	}
}

// finding is what looks broken; it is reported if it is broken still.
type finding struct {
	invariant Invariant
	text      string
	keys      [][]byte
}

// reporter takes note of a finding.
type reporter func(i Invariant, text string, keys ...[]byte)

// future checks everything of one future in one transaction.
func (k *checker) future(ctx context.Context, id ID) error {
	var found []finding
	err := k.cluster.view(ctx, func(tx kv.Attempt) error {
		var err error
		found, err = k.futureIn(ctx, tx.Snapshot(), id)
		return err
	})
	if err != nil {
		return err
	}
	for _, f := range found {
		if err := k.add(f.invariant, f.text, f.keys...); err != nil {
			return err
		}
	}
	return nil
}

func (k *checker) futureIn(ctx context.Context, tx kv.Reader, id ID) (found []finding, err error) {
	keys := k.cluster.keys
	broken := func(i Invariant, text string, list ...[]byte) {
		found = append(found, finding{i, fmt.Sprintf("future %s: %s", id, text), list})
	}
	row, present, err := keys.askRecord(tx, id).wait(ctx)
	if errors.Is(err, ErrNewerRecord) {
		broken(InvariantNewer, err.Error(), keys.spec(id))
		return found, nil
	}
	if errors.Is(err, ErrBadRecord) {
		broken(InvariantReadable, err.Error(), keys.spec(id))
		return found, nil
	}
	if err != nil || !present {
		return found, err
	}
	if row.Spec == nil {
		broken(InvariantRecords, "it has a state and no spec", keys.spec(id))
		return found, nil
	}
	ready, delayed := tx.Get(keys.ready(id, row.Spec)), tx.Get(keys.delayed(id, row.Attempts.Due))
	args := tx.Get(keys.args(id))
	inReady, err := ready.Wait(ctx)
	if err != nil {
		return nil, err
	}
	inDelayed, err := delayed.Wait(ctx)
	if err != nil {
		return nil, err
	}
	state := row.State()
	if (inReady != nil) != (state == Ready) {
		broken(InvariantPlace, fmt.Sprintf("it is %v and its ready key is there: %t", state, inReady != nil),
			keys.ready(id, row.Spec))
	}
	if state == Ready && inReady != nil && string(inReady) != row.Spec.Function {
		broken(InvariantPlace, "its ready key names another function", keys.ready(id, row.Spec))
	}
	if (inDelayed != nil) != (state == Delayed) {
		broken(InvariantPlace, fmt.Sprintf("it is %v and its delayed key is there: %t", state, inDelayed != nil),
			keys.delayed(id, row.Attempts.Due))
	}
	own, err := args.Wait(ctx)
	if err != nil {
		return nil, err
	}
	if (own != nil) != row.Spec.ArgsKey || (own != nil && int64(len(own)) != row.Spec.ArgsSize) {
		broken(InvariantArgs, fmt.Sprintf("arguments of %d bytes, in a key of their own: %t", len(own), own != nil),
			keys.args(id))
	}
	for _, text := range row.disagreements() {
		broken(InvariantRecords, text, keys.stateOf(id))
	}
	if err := k.claimIn(ctx, tx, &row, broken); err != nil {
		return nil, err
	}
	return found, k.chunksIn(ctx, tx, &row, broken)
}

// disagreements are records of a future that can't stand beside each other.
func (r *Row) disagreements() (texts []string) {
	say := func(bad bool, text string) {
		if bad {
			texts = append(texts, text)
		}
	}
	s := r.State()
	a := r.Attempts
	say(a.Failed < 0 || a.Crashes < 0 || a.PutBack < 0 || a.Due < 0, "a count is negative")
	say(a.Crashes > maxCrashes, "more crashes than a future survives")
	say(s != Delayed && a.Due != 0 && s != Claimed, "it is not delayed and has a due time")
	say(r.Cancel != nil && s != Claimed, "a cancel is asked of a future that nobody holds")
	say(s == Failed && r.Exception.Kind.Retryable() && a.Failed == 0, "it failed without an attempt")
	say(r.Exception != nil && r.Exception.Final && r.Claim != nil, "it has failed for good and is claimed")
	say(r.Result != nil && r.Claim == nil, "it has a result and no claim")
	return texts
}

func (k *checker) claimIn(ctx context.Context, tx kv.Reader, row *Row, broken reporter) error {
	if row.State() != Claimed {
		return nil
	}
	key := k.cluster.keys.claims(row.Claim.Worker, row.Claim.Sequence)
	value, err := tx.Get(key).Wait(ctx)
	if err != nil {
		return err
	}
	var batch claimBatch
	if value != nil {
		if err := decodeRecord(key, value, &batch); err != nil {
			broken(InvariantReadable, err.Error(), key)
			return nil
		}
	}
	for _, id := range unpackIDs(batch.IDs) {
		if id == row.ID {
			return nil
		}
	}
	broken(InvariantClaim, fmt.Sprintf("it is claimed by %s, whose list does not have it", row.Claim.Worker),
		k.cluster.keys.state(row.ID, stateClaim), key)
	return nil
}

func (k *checker) chunksIn(ctx context.Context, tx kv.Reader, row *Row, broken reporter) error {
	refs := []*ChunkRef{row.Spec.ArgsRef}
	if row.Result != nil {
		refs = append(refs, row.Result.ValueRef, row.Result.StderrRef)
	}
	if row.Exception != nil {
		refs = append(refs, row.Exception.StderrRef)
	}
	for _, ref := range refs {
		if ref == nil {
			continue
		}
		prefix := k.cluster.keys.chunks(row.ID, *ref)
		page, err := tx.GetRange(kv.Prefix(prefix), kv.RangeOptions{Limit: pieces(MaxPut) + 1}).Wait(ctx)
		if err != nil {
			return err
		}
		size := int64(0)
		for _, item := range page.Items {
			size += int64(len(item.Value))
		}
		if size != ref.Size || len(page.Items) != ref.Count {
			broken(InvariantChunks, fmt.Sprintf("%s of %d bytes in %d chunks has %d bytes in %d",
				ref.Kind, ref.Size, ref.Count, size, len(page.Items)), prefix)
		}
	}
	return nil
}

// index checks that a key of the index leads to a future that waits there.
func (k *checker) index(ctx context.Context, sub string, item kv.KeyValue, rest tuple.Reader) error {
	c := k.cluster
	if sub == subReady {
		rest.Text()
		rest.Text()
		for range 4 {
			rest.Int()
		}
	} else {
		rest.Int()
	}
	id := ID(rest.UUID())
	if err := rest.Done(); err != nil {
		return k.add(InvariantReadable, err.Error(), item.Key)
	}
	stray := false
	err := c.view(ctx, func(tx kv.Attempt) error {
		stray = false
		still := tx.Snapshot().Get(item.Key)
		row, _, err := c.keys.askRecord(tx.Snapshot(), id).wait(ctx)
		if errors.Is(err, ErrNewerRecord) {
			return nil
		}
		if err != nil && !errors.Is(err, ErrBadRecord) {
			return err
		}
		value, err := still.Wait(ctx)
		if err != nil || value == nil {
			return err
		}
		switch {
		case row.Spec == nil:
			stray = true
		case sub == subReady:
			stray = row.State() != Ready || string(c.keys.ready(id, row.Spec)) != string(item.Key)
		default:
			stray = row.State() != Delayed || string(c.keys.delayed(id, row.Attempts.Due)) != string(item.Key)
		}
		return nil
	})
	if err != nil || !stray {
		return err
	}
	return k.add(InvariantStray, fmt.Sprintf("future %s does not wait here", id), item.Key)
}

// worker checks a worker's records.
func (k *checker) worker(ctx context.Context, item kv.KeyValue, rest tuple.Reader) error {
	id, field := WorkerID(rest.Text()), rest.Text()
	switch field {
	case workerAlive:
		return k.readable(item, decodeRecord(item.Key, item.Value, new(WorkerInfo)))
	case workerHeartbeat:
		if err := k.readable(item, decodeRecord(item.Key, item.Value, new(Heartbeat))); err != nil {
			return err
		}
		return k.fence(ctx, id, item.Key, "a heartbeat without the worker's record")
	case workerClaims:
		alive, err := k.alive(ctx, id)
		if err == nil && !alive {
			k.report.Pending++
		}
		return errors.Join(err, k.readable(item, decodeRecord(item.Key, item.Value, new(claimBatch))))
	case workerWake, workerCancelled:
		return nil
	default:
		return k.add(InvariantKnown, "nothing writes such a key of a worker", item.Key)
	}
}

func (k *checker) alive(ctx context.Context, id WorkerID) (bool, error) {
	alive := false
	err := k.cluster.view(ctx, func(tx kv.Attempt) error {
		value, err := tx.Snapshot().Get(k.cluster.keys.worker(id, workerAlive)).Wait(ctx)
		alive = value != nil
		return err
	})
	return alive, err
}

// fence reports a key that only a living worker has, if it is still there and
// the worker's record is not.
func (k *checker) fence(ctx context.Context, id WorkerID, key []byte, text string) error {
	broken := false
	err := k.cluster.view(ctx, func(tx kv.Attempt) error {
		value, alive := tx.Snapshot().Get(key), tx.Snapshot().Get(k.cluster.keys.worker(id, workerAlive))
		there, err := value.Wait(ctx)
		if err != nil {
			return err
		}
		record, err := alive.Wait(ctx)
		broken = there != nil && record == nil
		return err
	})
	if err != nil || !broken {
		return err
	}
	return k.add(InvariantFence, fmt.Sprintf("worker %s: %s", id, text), key, k.cluster.keys.worker(id, workerAlive))
}

// countLimit is the most keys of a shard whose counters are compared.
const countLimit = 50_000

// counts compares a shard's counters with its rows in one transaction.
func (k *checker) counts(ctx context.Context, shard int) error {
	c := k.cluster
	var wrong []finding
	err := c.view(ctx, func(tx kv.Attempt) error {
		wrong = nil
		rows := tx.Snapshot().GetRange(kv.Prefix(c.keys.futuresOf(shard)), kv.RangeOptions{Limit: countLimit})
		kept := tx.Snapshot().GetRange(kv.Prefix(c.keys.countsOf(shard)), kv.RangeOptions{})
		page, err := rows.Wait(ctx)
		if err != nil || page.More {
			return err
		}
		counted, ok := k.countRows(page, len(c.keys.futuresOf(shard)))
		if !ok {
			return nil
		}
		counters, err := kept.Wait(ctx)
		if err != nil {
			return err
		}
		for _, item := range counters.Items {
			key, n, err := parseCount(c.keys.countsOf(shard), item)
			if err != nil {
				return nil // reported where it was met
			}
			if counted[key] != n {
				wrong = append(wrong, finding{InvariantCounts,
					fmt.Sprintf("%d futures are counted as %d", counted[key], n), [][]byte{item.Key}})
			}
			delete(counted, key)
		}
		for key, n := range counted {
			wrong = append(wrong, finding{InvariantCounts, fmt.Sprintf("%d futures have no counter", n),
				[][]byte{c.keys.count(shard, key.Queue, key.Group, key.State)}})
		}
		return nil
	})
	if err != nil {
		return err
	}
	sort.Slice(wrong, func(i, j int) bool { return string(wrong[i].keys[0]) < string(wrong[j].keys[0]) })
	for _, f := range wrong {
		if err := k.add(f.invariant, f.text, f.keys...); err != nil {
			return err
		}
	}
	return nil
}

// countRows counts whole rows; ok is false if one can't be read.
func (k *checker) countRows(page kv.Page, skip int) (counted Counts, ok bool) {
	counted = Counts{}
	var row Row
	count := func() {
		if row.Spec != nil {
			counted[CountKey{row.Spec.Queue, row.Spec.Group, row.State()}]++
		}
	}
	for _, item := range page.Items {
		rest := tuple.NewReader(item.Key[skip:])
		id := ID(rest.UUID())
		if id != row.ID {
			count()
			row = Row{ID: id}
		}
		if err := row.add(item, rest); err != nil {
			return nil, false
		}
	}
	count()
	return counted, true
}

// global checks what lies outside of the shards.
func (k *checker) global(ctx context.Context) error {
	c := k.cluster
	first := tuple.AppendString(append([]byte(nil), c.keys.prefix...), "")
	r := kv.Range{Begin: first[:len(first)-1], End: tuple.AppendInt(append([]byte(nil), c.keys.prefix...), 0)}
	return c.eachKey(ctx, r, func(item kv.KeyValue) error {
		k.report.Keys++
		rest := tuple.NewReader(item.Key[len(c.keys.prefix):])
		switch sub := rest.Text(); sub {
		case subConfig:
			return k.readable(item, decodeRecord(item.Key, item.Value, new(Config)))
		case subJanitor:
			return k.readable(item, decodeRecord(item.Key, item.Value, new(janitorRecord)))
		case subIdle:
			rest.Text()
			return k.fence(ctx, WorkerID(rest.Text()), item.Key, "it is in the ring of idle workers without its record")
		case subAliases:
			return k.alias(ctx, item)
		case subAddresses, subCode:
			return nil
		default:
			return k.add(InvariantKnown, "nothing writes such a key", item.Key)
		}
	})
}

func (k *checker) alias(ctx context.Context, item kv.KeyValue) error {
	var record aliasRecord
	if err := decodeRecord(item.Key, item.Value, &record); err != nil {
		return k.readable(item, err)
	}
	_, err := k.cluster.GetModule(ctx, record.CID)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrBadRecord) {
		return k.add(InvariantModule, err.Error(), item.Key)
	}
	return err
}
