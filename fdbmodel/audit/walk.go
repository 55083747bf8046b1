package audit

import (
	"bytes"
	"context"
	"maps"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// checker is one run of Check.
type checker struct {
	cluster  *fdbmodel.Cluster
	keys     layout.Keyspace
	limit    int
	progress func(done, all int)
	report   Report
	met      facts           // not settled yet
	repairs  *repairs        // nil unless it repairs
	unread   map[string]bool // kinds with lanes that can't be read
}

func newChecker(c *fdbmodel.Cluster, o Options) *checker {
	return &checker{cluster: c, keys: c.Keys(), limit: o.Problems, progress: o.Progress, met: newFacts(),
		report: Report{Problems: []Problem{}, Notes: []Problem{}}, unread: map[string]bool{}}
}

// facts are what is compared across pages.
type facts struct {
	counted    map[layout.ShardCount]int64 // futures of the shard at hand
	opened     map[layout.OpenKey]int64    // held futures that are with workers
	slots      map[layout.Lane]int64       // futures that lanes have admitted
	turns      map[string]int64            // of a kind, lanes that wait for their turn less turns
	terminals  map[layout.ID]int64         // finished futures not found in a done list, and when they finished
	large      []largeValue                // that futures refer to
	damaged    map[int]bool                // shards with futures that can't be read
	configured bool
}

func newFacts() facts {
	return facts{counted: map[layout.ShardCount]int64{}, opened: map[layout.OpenKey]int64{},
		slots: map[layout.Lane]int64{}, turns: map[string]int64{},
		terminals: map[layout.ID]int64{}, damaged: map[int]bool{}}
}

func (f *facts) add(of *facts) {
	for key, n := range of.counted {
		f.counted[key] += n
	}
	for key, n := range of.opened {
		f.opened[key] += n
	}
	for lane, n := range of.slots {
		f.slots[lane] += n
	}
	for kind, n := range of.turns {
		f.turns[kind] += n
	}
	maps.Copy(f.terminals, of.terminals)
	maps.Copy(f.damaged, of.damaged)
	f.large = append(f.large, of.large...)
	f.configured = f.configured || of.configured
}

// run checks one span of keys after the other, and each shard's counters right
// after its futures.
func (k *checker) run(ctx context.Context) error {
	shard := -1
	spans := keyspace.Table().Spans(k.keys)
	for i, span := range spans {
		if span.Shard > shard && shard >= 0 {
			if err := k.checkCounts(ctx, shard); err != nil {
				return err
			}
		}
		shard = span.Shard
		if err := k.scan(ctx, span); err != nil {
			return err
		}
		k.tell(i+1, len(spans))
	}
	if !k.met.configured {
		var f findings
		f.broken(InvariantConfig, k.keys.Config(), "the cluster has no config")
		k.take(&f)
	}
	if err := k.checkDone(ctx); err != nil {
		return err
	}
	if err := k.checkOpen(ctx); err != nil {
		return err
	}
	if err := k.checkLanes(ctx); err != nil {
		return err
	}
	return k.checkTurns(ctx)
}

func (k *checker) tell(done, all int) {
	if k.progress != nil {
		k.progress(done, all)
	}
}

// scan checks a span page by page.
func (k *checker) scan(ctx context.Context, span layout.Span) error {
	for more := true; more; {
		var p *page
		next := span
		err := k.cluster.View(ctx, func(tx kv.Attempt) (err error) {
			p = k.newPage(tx.Snapshot())
			var items []kv.KeyValue
			if items, next.Begin, more, err = readWhole(ctx, p.tx, span); err != nil {
				return err
			}
			return p.check(ctx, items)
		})
		if err != nil {
			return err
		}
		span = next
		k.take(&p.findings)
		if err := k.applyAll(ctx, p.problems); err != nil {
			return err
		}
		if err := k.relieve(ctx); err != nil {
			return err
		}
	}
	return nil
}

// isWhole reports whether the keys of a subspace that share their first part
// are checked together.
func isWhole(subspace string) bool {
	return subspace == layout.SubFutures || subspace == layout.SubWorkers || subspace == layout.SubModules
}

// readWhole reads a page that doesn't end within keys that are checked
// together. It returns where the next page begins.
func readWhole(ctx context.Context, tx kv.Reader, span layout.Span) (items []kv.KeyValue, next []byte, more bool,
	err error,
) {
	for limit := span.Page; ; limit *= 2 {
		page, err := tx.GetRange(span.Range, kv.RangeOptions{Limit: limit}).Wait(ctx)
		if err != nil || !page.More {
			return page.Items, nil, false, err
		}
		n := len(page.Items)
		last := keyspace.Table().Parse(page.Items[n-1].Key)
		if !isWhole(last.Subspace) {
			return page.Items, kv.After(last.Raw), true, nil
		}
		for entity := last.Entity(); n > 0 && bytes.HasPrefix(page.Items[n-1].Key, entity); {
			n--
		}
		if n > 0 {
			return page.Items[:n], last.Entity(), true, nil
		}
	}
}

// take keeps the findings of a page, once its transaction has succeeded.
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
	for _, of := range f.problems {
		p := of.described()
		r.count(&p)
		if len(r.Problems) < k.limit {
			r.Problems = append(r.Problems, p)
		}
	}
	r.Notes = append(r.Notes, f.notes[:min(len(f.notes), k.limit-len(r.Notes))]...)
	r.Futures += f.futures
	r.Keys += f.read
	k.met.add(&f.facts)
}

// relieve settles the facts that would use too much memory.
func (k *checker) relieve(ctx context.Context) error {
	if k.repairs != nil {
		k.met.large = nil // what lacks a piece is not repaired
	}
	for _, value := range k.met.large {
		if err := k.checkPieces(ctx, value); err != nil {
			return err
		}
	}
	k.met.large = k.met.large[:0]
	if len(k.met.terminals) >= maxTerminals {
		return k.checkDone(ctx)
	}
	return nil
}
