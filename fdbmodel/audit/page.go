package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/internal/fork"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/internal/step"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/schedule"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// item is a key with its value, both decoded as the key table says.
type item struct {
	layout.Key
	layout.Value
	stored []byte
	err    error // of the value
}

// Errors of keys.
var (
	errUnknownKey = errors.New("unknown key")
	errWrongShard = errors.New("the key belongs in another shard")
)

// newItem decodes a key and its value. It returns an error for a key that the
// key table does not have or that lies in the wrong shard.
func newItem(keys layout.Keyspace, stored kv.KeyValue) (it item, err error) {
	it.Key, it.stored = keyspace.Table().Parse(stored.Key), stored.Value
	switch {
	case it.Kind == nil:
		return it, errUnknownKey
	case !keys.Holds(&it.Key):
		return it, errWrongShard
	}
	it.Value, it.err = it.Kind.Decode(stored.Key, stored.Value)
	return it, nil
}

// findings are the results of one page. They are kept once its transaction
// succeeded.
type findings struct {
	facts
	futures, read int64 // futures and keys
	problems      []*found
	notes         []Problem
	at            subject // what is judged
}

// subject is what a page compares with others: one key, or those that are checked together.
type subject struct {
	key []byte // the key, or the beginning of all
	// sealed says that a part of it can't be read. Nothing follows from the rest then.
	sealed bool
}

func (f *findings) broken(invariant Invariant, key []byte, format string, args ...any) *found {
	of := &found{Problem: problem(invariant, key, format, args), at: f.at}
	f.problems = append(f.problems, of)
	return of
}

func (f *findings) note(invariant Invariant, key []byte, format string, args ...any) {
	f.notes = append(f.notes, problem(invariant, key, format, args))
}

func problem(invariant Invariant, key []byte, format string, args []any) Problem {
	return Problem{Invariant: invariant, Keys: []string{tuple.String(key)}, Text: fmt.Sprintf(format, args...)}
}

// page is a part of the cluster that is checked at one version. The key table
// says whether a key and its value have the right form. The functions named
// check… compare them with others: they request those, and judge the answers
// once all requests of the page are made.
type page struct {
	findings
	cluster *fdbmodel.Cluster
	keys    layout.Keyspace
	tx      kv.Reader
	asked   map[string]bool
	lastJob []byte // the last key that was compared, if it is a job
	judges  []func(context.Context) error

	foreign map[string]bool    // what has keys that the key table does not have
	partial map[layout.ID]bool // futures without a spec of which other keys exist
	sound   map[layout.ID]bool // whether the records of a future agree
	// numbered are the steps of the page by their numbers.
	numbered map[numberedStep]string
	// mayAdmit says that lanes count what they have admitted, so that they may admit more.
	mayAdmit bool
}

func newPage(c *fdbmodel.Cluster, tx kv.Reader) *page {
	return &page{findings: findings{facts: newFacts()}, cluster: c, keys: c.Keys(), tx: tx, asked: map[string]bool{},
		foreign: map[string]bool{}, partial: map[layout.ID]bool{}, sound: map[layout.ID]bool{},
		numbered: map[numberedStep]string{}}
}

func (p *page) check(ctx context.Context, stored []kv.KeyValue) error {
	p.read = int64(len(stored))
	items := make([]item, 0, len(stored))
	for _, s := range stored {
		it, err := newItem(p.keys, s)
		switch {
		case err != nil:
			p.broken(InvariantKey, s.Key, "%v", err)
			p.foreign[string(it.Entity())] = true
			continue
		case errors.Is(it.err, layout.ErrNewerRecord):
			p.note(InvariantNewer, s.Key, "%v", it.err)
		case it.err != nil:
			p.at = subject{key: s.Key}
			p.broken(InvariantRecord, s.Key, "%v", it.err).by(ofUnreadable(&it)...)
		}
		items = append(items, it)
	}
	for len(items) > 0 {
		n := 1
		if isWhole(items[0].Subspace) {
			for entity := items[0].Entity(); n < len(items) && bytes.HasPrefix(items[n].Raw, entity); {
				n++
			}
		}
		p.at = p.subjectOf(items[:n])
		p.compare(items[:n])
		items = items[n:]
	}
	for i := 0; i < len(p.judges); i++ { // a judge may request more
		if err := p.judges[i](ctx); err != nil {
			return err
		}
	}
	return nil
}

// subjectOf returns what items are that are checked together.
func (p *page) subjectOf(items []item) subject {
	of := subject{key: items[0].Raw, sealed: slices.ContainsFunc(items, func(it item) bool { return it.err != nil })}
	if isWhole(items[0].Subspace) {
		of.key = items[0].Entity()
		of.sealed = of.sealed || p.foreign[string(of.key)]
	}
	return of
}

// later has something judged once all requests are made, as part of what is compared now.
func (p *page) later(judge func(context.Context) error) {
	at := p.at
	p.judges = append(p.judges, func(ctx context.Context) error {
		p.at = at
		return judge(ctx)
	})
}

// compareSubspace checks the invariants of all keys of a subspace alike.
func (p *page) compareSubspace(it *item, items []item) {
	switch it.Subspace {
	case layout.SubFutures:
		p.checkFuture(items)
	case layout.SubWorkers:
		p.checkWorker(items)
	case layout.SubModules:
		p.checkModule(items)
	case schedule.Subspace:
		p.checkSchedules(it)
	case joblog.Subspace:
		p.checkJobs(it)
	case meter.SubMetered:
		p.checkMetered(it)
	case meter.SubActivity:
		p.checkActivity(it)
	case step.Subspace:
		p.checkSteps(it)
	case fork.Subspace:
		p.checkForkKey(it)
	case actors.Subspace:
		p.checkActors(it)
	}
}

// compare checks the invariants of one key, or of keys that are checked together.
func (p *page) compare(items []item) {
	it := &items[0]
	p.compareSubspace(it, items)

	switch it.Kind.Name {
	case pause.KeyPause:
		p.checkPause(it)
	case layout.KeyAddress:
		p.checkAddress(it)
	case layout.KeyAlias:
		p.checkAlias(it)
	case layout.KeyBatch:
		p.checkBatch(it)
	case layout.KeyBatchChunk, layout.KeyBatchTime:
		p.checkPartOfBatch(it)
	case layout.KeySessionWake:
		p.checkSessionWake(it)
	case layout.KeyChunk:
		p.checkChunk(it)
	case layout.KeyConfig, quota.KeyLimits:
		p.checkSettings(it)
	case layout.KeyCopy:
		p.checkCopy(it)
	case layout.KeyDependant:
		p.checkDependant(it)
	case layout.KeyInput:
		p.checkInput(it)
	case layout.KeyLaneKind:
		p.checkLaneKind(it)
	case layout.KeyLane:
		p.checkLane(it)
	case layout.KeyLaneDue:
		p.checkLaneDue(it)
	case layout.KeyLaneTurn:
		p.checkLaneTurn(it)
	case layout.PlaceLine:
		if entry, readable := it.Record.(*layout.LineEntry); readable && it.err == nil {
			it.ID = entry.ID
		}
		p.checkLine(it)
	case layout.KeyResolve:
		p.checkResolve(it)
	case layout.KeyPendingCheck:
		p.note(InvariantEdge, it.Raw, "input %s of future %s has ended, and whether it waits for others is to be looked at",
			it.Future("input"), it.ID)
	case layout.KeyIdle:
		p.checkIdle(it)
	case layout.KeyLimit:
		p.checkLimitKey(it)
	case layout.KeyIncoming:
		p.note(InvariantIncoming, it.Raw, "the cluster is being copied from elsewhere")
	case layout.KeyMail:
		p.checkMail(it)
	case layout.KeyUnique:
		p.checkUnique(it)
	case layout.KeyUniqueDue:
		p.checkUniqueDue(it)
	}
	p.compareIndex(it)
}

// compareIndex checks a key that leads to a future.
func (p *page) compareIndex(it *item) {
	switch {
	case layout.IsPlace(it.Kind.Name):
		p.checkWaiting(it)
	case it.Subspace == layout.SubListed:
		p.checkListedKey(it)
	}
}

// first reports whether the page asks for a key for the first time.
func (p *page) first(key []byte) bool {
	if p.asked[string(key)] {
		return false
	}
	p.asked[string(key)] = true
	return true
}

// get requests a value, and has it judged. It is nil if the key is absent.
func (p *page) get(key []byte, judge func(value []byte)) {
	asked := p.tx.Get(key)
	p.later(func(ctx context.Context) error {
		value, err := asked.Wait(ctx)
		if err == nil {
			judge(value)
		}
		return err
	})
}

// require requests a key that has to exist, and calls missing if it doesn't.
func (p *page) require(key []byte, missing func()) {
	p.get(key, func(value []byte) {
		if value == nil {
			missing()
		}
	})
}

// row requests a future without its arguments, and has it judged if it can be
// read: its records are checked with their own keys.
func (p *page) row(id layout.ID, judge func(row *layout.Row)) {
	asked := read.Record(p.tx, p.keys, id)
	p.later(func(ctx context.Context) error {
		row, found, err := asked.Wait(ctx)
		if layout.IsUnreadable(err) {
			return nil
		}
		if err == nil {
			if found && row.Spec == nil {
				p.partial[id] = true
			}
			judge(&row)
		}
		return err
	})
}

// worker requests the record of a worker, and has it judged if it can be read.
// It is nil if the worker is not registered.
func (p *page) worker(id layout.WorkerID, judge func(info *layout.WorkerInfo)) {
	key := p.keys.Worker(id, layout.WorkerAlive)
	p.get(key, func(value []byte) {
		info := new(layout.WorkerInfo)
		if value == nil {
			judge(nil)
		} else if layout.Decode(key, value, info) == nil {
			judge(info)
		}
	})
}
