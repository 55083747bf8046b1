package audit

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

const (
	repairTag = "futura-repair"
	// repairsAtOnce is how many keys, or futures, are compared again in one transaction.
	repairsAtOnce = 16
)

// Repairs say what a Repair did.
type Repairs struct {
	// Repaired counts the problems that were solved, by invariant. Attempts whose result was
	// unknown are left out.
	Repaired map[Invariant]int64 `json:"repaired"`
	// Gone is how many problems were no longer there when they were to be repaired.
	Gone int64 `json:"gone"`
	// Unsettled names counters that were left as they are: they count too much for one
	// transaction, others interfered, or something that they count can't be read.
	Unsettled []string `json:"unsettled,omitempty"`
}

// Repair changes the keys of a cluster that don't follow from the records of its futures, and
// do so otherwise: those of the invariants of which a Check has reported problems with a Repair. The
// records are the authority: no future, argument or result is changed or removed, but for the
// mark of a future that others use.
//
// It may run while the cluster is in use. Each change is made in a transaction that finds the
// problem anew, and conflicts with all that it was found by; what others have changed meanwhile is
// left alone. Transactions are small but for those of counters, which read all that they
// count. An unknown commit is retried and harmless, and so is a Repair that ends early: call it again. A
// repaired problem may bring another one to light, so Check again.
func Repair(ctx context.Context, c *fdbmodel.Cluster, found Report, o Options) (Repairs, error) {
	k := newChecker(c, Options{Progress: o.Progress})
	k.repairs = &repairs{wanted: map[Invariant]bool{}, report: Repairs{Repaired: map[Invariant]int64{}}}
	for _, kind := range found.Kinds {
		k.repairs.wanted[kind.Invariant] = kind.Repairable > 0
	}
	err := k.repair(ctx)
	k.repairs.report.Unsettled = append(k.repairs.report.Unsettled, k.report.Unsettled...)
	if err != nil {
		err = fmt.Errorf("repair cluster %q: %w", c.Name(), err)
	}
	return k.repairs.report, err
}

// repairs are what one run of Repair is to do, and has done.
type repairs struct {
	wanted  map[Invariant]bool
	report  Repairs
	skipped bool // the counting at hand has left out what can't be read
	// uncounted says that lanes may count less than they have admitted.
	uncounted bool
}

// skip says that something could not be counted. A check goes without.
func (r *repairs) skip() {
	if r != nil {
		r.skipped = true
	}
}

func (r *repairs) done(of Invariant, n int) {
	if n > 0 {
		r.report.Repaired[of] += int64(n)
	}
}

// repair makes counters right before lanes with room are looked at.
func (k *checker) repair(ctx context.Context) error {
	var counts []func(context.Context) error
	if k.repairs.wanted[InvariantCounts] {
		for shard := range k.keys.Shards {
			counts = append(counts, func(ctx context.Context) error { return k.checkCounts(ctx, shard) })
		}
		counts = append(counts, k.checkOpen)
	}
	if k.repairs.wanted[InvariantLane] {
		counts = append(counts, k.checkLanes, k.checkTurns)
	}
	for _, count := range counts {
		if err := count(ctx); err != nil {
			return err
		}
	}
	spans := keyspace.Table().Spans(k.keys)
	for i, span := range spans {
		if err := k.scan(ctx, span); err != nil {
			return err
		}
		k.tell(i+1, len(spans))
	}
	return k.checkDone(ctx)
}

// applyAll repairs what a page has found, some at a time. A check repairs nothing.
func (k *checker) applyAll(ctx context.Context, problems []*found) error {
	if k.repairs == nil {
		return nil
	}
	var at [][]byte
	found := map[string]int64{}
	for _, of := range problems {
		if !k.repairs.wanted[of.Invariant] || len(of.changes) == 0 {
			continue
		}
		if found[string(of.at.key)] == 0 {
			at = append(at, of.at.key)
		}
		found[string(of.at.key)]++
	}
	for some := range slices.Chunk(at, repairsAtOnce) {
		n := int64(0)
		for _, key := range some {
			n += found[string(key)]
		}
		// Changes of one key, such as of a list that lacks several futures, are made one by one.
		for more := true; more && n > 0; {
			done, again, err := k.apply(ctx, some)
			if err != nil {
				return err
			}
			for of, m := range done {
				k.repairs.done(of, m)
				n -= int64(m)
			}
			more = again
		}
		k.repairs.report.Gone += max(0, n)
	}
	return nil
}

// apply compares some keys again, and repairs what it finds, all in one transaction. more says
// that a key needs a further change.
func (k *checker) apply(ctx context.Context, at [][]byte) (done map[Invariant]int, more bool, err error) {
	_, err = k.cluster.Transact(ctx, kv.Options{Tag: repairTag}, func(tx kv.Attempt) error {
		done, more = map[Invariant]int{}, false
		stored, err := readAgain(ctx, tx, at)
		if err != nil {
			return err
		}
		p := k.newPage(tx)
		if err := p.check(ctx, stored); err != nil {
			return err
		}
		written := map[string]bool{}
		for _, of := range p.problems {
			switch {
			case !k.repairs.wanted[of.Invariant] || len(of.changes) == 0:
			case slices.ContainsFunc(of.changes, func(c change) bool { return written[string(c.key)] }):
				more = true
			default:
				for _, c := range of.changes {
					written[string(c.key)] = true
					c.write(tx)
				}
				done[of.Invariant]++
			}
		}
		return nil
	})
	return done, more, err
}

func readAgain(ctx context.Context, tx kv.Reader, at [][]byte) (items []kv.KeyValue, err error) {
	asked := make([]kv.Pending[kv.Page], len(at))
	for i, key := range at {
		r := kv.Range{Begin: key, End: kv.After(key)}
		if parsed := keyspace.Table().Parse(key); isWhole(parsed.Subspace) && bytes.Equal(parsed.Entity(), key) {
			r = kv.Prefix(key)
		}
		asked[i] = tx.GetRange(r, kv.RangeOptions{})
	}
	for i := range asked {
		page, err := asked[i].Wait(ctx)
		if err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
	}
	return items, nil
}

// newPage returns a page of the keys that tx reads.
func (k *checker) newPage(tx kv.Reader) *page {
	p := newPage(k.cluster, tx)
	p.mayAdmit = k.repairs == nil || !k.repairs.uncounted
	return p
}

// found is a problem, with what solves it.
type found struct {
	Problem
	at      subject
	changes []change
}

// by says which changes solve a problem: none if the right answer is not known.
func (f *found) by(changes ...change) *found {
	if f.Repair, f.changes = "", nil; f.at.sealed || len(changes) == 0 {
		return f
	}
	var does []string
	for _, c := range changes {
		if verb := c.verb(); !slices.Contains(does, verb) {
			does = append(does, verb)
		}
	}
	f.Repair, f.changes = strings.Join(does, ", "), changes
	return f
}

// apart says that a problem is solved by comparing all once more, in words.
func (f *found) apart(how string) { f.Repair = how }

// described returns the problem, with what an operator can do unless it can be repaired.
func (f *found) described() Problem {
	p := f.Problem
	if p.Repair == "" {
		p.Instead = instead(p.Invariant)
	}
	return p
}

// count counts a problem among those of its invariant.
func (r *Report) count(p *Problem) {
	at := slices.IndexFunc(r.Kinds, func(k Kind) bool { return k.Invariant == p.Invariant })
	if at < 0 {
		at = len(r.Kinds)
		r.Kinds = append(r.Kinds, Kind{Invariant: p.Invariant})
	}
	kind := &r.Kinds[at]
	kind.Found++
	first := &kind.Left
	if p.Repair != "" {
		kind.Repairable++
		first = &kind.Repaired
	}
	if *first == nil {
		*first = p
	}
}

// Repairable is how many problems Repair solves.
func (r *Report) Repairable() (n int64) {
	for _, kind := range r.Kinds {
		n += kind.Repairable
	}
	return n
}

// change is one write of a repair.
type change struct {
	key, value []byte
	gone       bool // it clears the key
	stamped    bool // the value has a stamp
}

func set(key, value []byte) change   { return change{key: key, value: value} }
func stamp(key, value []byte) change { return change{key: key, value: value, stamped: true} }
func drop(key []byte) change         { return change{key: key, gone: true} }

func (c change) verb() string {
	if c.gone {
		return "clear the key"
	}
	return "write the key"
}

func (c change) write(tx kv.Tx) {
	switch {
	case c.gone:
		tx.Clear(c.key)
	case c.stamped:
		tx.SetVersionstampedValue(c.key, c.value, layout.StampOffset)
	default:
		tx.Set(c.key, c.value)
	}
}

// follow returns changes that follow from the records of a future: none if these contradict each
// other, or some are gone.
func (p *page) follow(r *layout.Row, changes ...change) []change {
	if r.Spec == nil {
		if p.partial[r.ID] {
			return nil
		}
		return changes
	}
	sound, known := p.sound[r.ID]
	if !known {
		alone := newPage(p.cluster, p.tx)
		alone.checkRecords(r)
		sound = len(alone.problems) == 0
		p.sound[r.ID] = sound
	}
	if !sound {
		return nil
	}
	return changes
}

// ofUnreadable returns the change for a value that can't be read and is known without it: a
// counter is counted again, and another worker becomes the janitor.
func ofUnreadable(it *item) []change {
	if it.Kind.Format == layout.FormatCounter || it.Kind.Name == layout.KeyJanitor {
		return []change{drop(it.Raw)}
	}
	return nil
}
