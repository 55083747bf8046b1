package kvtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/anomaly"
	"github.com/stretchr/testify/require"
)

const (
	appenders = 10
	// activeLists are those in use at a time; a list that has listLimit elements makes room for another one.
	activeLists = 4
	listLimit   = 40
)

// appendTurns is how many transactions each goroutine of the workload plans.
func appendTurns() int {
	if long() {
		return 2000
	}
	return 80
}

// Appends is a workload of transactions that append to lists and read them, and what they saw. Lists are stored in
// several forms, so that single keys, ranges and stamps are met; see listForm.
type Appends struct {
	prefix []byte
	// now orders beginnings and ends.
	now      atomic.Int64
	elements atomic.Int64
	done     atomic.Int64
	// half is closed when half of the turns of one Run are over.
	half chan struct{}

	mu   sync.Mutex
	txs  []anomaly.Tx
	size map[int]int // elements of a list, at least
	from int         // the first list in use
}

// NewAppends returns a workload whose keys begin with prefix.
func NewAppends(prefix []byte) *Appends {
	return &Appends{prefix: prefix, size: map[int]int{}, half: make(chan struct{})}
}

// Run has goroutines run transactions until each has done its share, or its store is closed. Several stores, such as
// clients of one server, share them. An error is one that no contract allows.
func (a *Appends) Run(ctx context.Context, stores ...kv.Database) error {
	failures := make(chan error, appenders)
	a.done.Store(0)
	var all sync.WaitGroup
	for i := range appenders {
		all.Go(func() {
			p := appender{Appends: a, process: i, db: stores[i%len(stores)], random: rand.New(rand.NewPCG(rand.Uint64(), 0))}
			for range appendTurns() {
				if err := p.turn(ctx); err != nil {
					failures <- err
					return
				}
				if a.done.Add(1) == int64(appenders*appendTurns()/2) {
					a.reachHalf()
				}
			}
		})
	}
	all.Wait()
	a.reachHalf()
	close(failures)
	for err := range failures {
		if !errors.Is(err, kv.ErrClosed) {
			return err
		}
	}
	return nil
}

func (a *Appends) reachHalf() {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.half:
	default:
		close(a.half)
	}
}

// Half is closed when half of the first Run is over, or it has ended early.
func (a *Appends) Half() <-chan struct{} { return a.half }

// Now returns the place in the history that has been reached.
func (a *Appends) Now() int64 { return a.now.Add(1) }

// Doubt makes the results unknown that came after a place in the history, as those of a store of which an earlier image
// is opened.
func (a *Appends) Doubt(after int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, t := range a.txs {
		if t.End > after && t.Outcome == anomaly.OK {
			a.txs[i].Outcome = anomaly.Unknown
		}
	}
}

// Check reads all lists from db and returns the anomalies of all that ran.
func (a *Appends) Check(ctx context.Context, db kv.Database) ([]anomaly.Finding, error) {
	p := appender{Appends: a, process: appenders, db: db, random: rand.New(rand.NewPCG(0, 0))}
	for list := range a.from + activeLists {
		for {
			outcome, err := p.attempt(ctx, []plan{{list: list}}, false)
			if err != nil {
				return nil, err
			}
			if outcome == anomaly.OK {
				break
			}
		}
	}
	return anomaly.Check(a.txs), nil
}

// Require fails the test if an anomaly is found in what ran, or too little of that was committed to find one.
func (a *Appends) Require(ctx context.Context, t testing.TB, db kv.Database) {
	t.Helper()
	found, err := a.Check(ctx, db)
	require.NoError(t, err)
	for _, f := range found {
		t.Errorf("%s", f)
	}
	outcomes := map[anomaly.Outcome]int{}
	for _, tx := range a.txs {
		outcomes[tx.Outcome]++
	}
	t.Logf("%d transactions were committed, %d failed, %d are unknown", outcomes[anomaly.OK], outcomes[anomaly.Failed],
		outcomes[anomaly.Unknown])
	require.Greater(t, outcomes[anomaly.OK], appenders)
}

// concurrentAppends looks for anomalies in what concurrent transactions saw.
func concurrentAppends(b *bundle) {
	a := NewAppends(b.prefix)
	require.NoError(b, a.Run(b.ctx, b.db))
	a.Require(b.ctx, b, b.db)
}

// reopenAppends is concurrentAppends on a store that is closed and opened meanwhile.
func reopenAppends(b *bundle) {
	a, ended := NewAppends(b.prefix), make(chan error, 1)
	if b.o.Reopen != nil {
		first := b.db
		go func() { ended <- a.Run(b.ctx, first) }()
		<-a.Half()
	}
	b.reopen()
	require.NoError(b, <-ended)
	require.NoError(b, a.Run(b.ctx, b.db))
	a.Require(b.ctx, b, b.db)
}

// plan is one operation of a transaction.
type plan struct {
	list    int
	appends bool
}

// appender is a goroutine of the workload.
type appender struct {
	*Appends
	process int
	db      kv.Database
	random  *rand.Rand
}

// turn runs one planned transaction, and again with new elements after a failure, but not always.
func (p *appender) turn(ctx context.Context) error {
	plans, readOnly := p.plans()
	for {
		outcome, err := p.attempt(ctx, plans, readOnly)
		if err != nil || outcome == anomaly.OK || p.random.IntN(4) == 0 {
			return err
		}
	}
}

func (p *appender) plans() (plans []plan, readOnly bool) {
	p.mu.Lock()
	from := p.from
	p.mu.Unlock()
	readOnly = p.random.IntN(4) == 0
	for range 1 + p.random.IntN(6) {
		// The smaller of two is the hotter one.
		list := from + min(p.random.IntN(activeLists), p.random.IntN(activeLists))
		plans = append(plans, plan{list, !readOnly && p.random.IntN(2) == 0})
	}
	return plans, readOnly
}

// attempt runs a transaction once and records it. An error is one after which the store is not used any more.
func (p *appender) attempt(ctx context.Context, plans []plan, readOnly bool) (anomaly.Outcome, error) {
	tx := anomaly.Tx{Process: p.process, Outcome: anomaly.Failed, Begin: p.now.Add(1)}
	noSync := p.random.IntN(8) == 0
	run := &listTx{appender: p, Tx: p.db.Begin(kv.Options{NoSync: noSync}), recorded: &tx,
		stamps: map[int]byte{}, snapshot: readOnly && p.random.IntN(2) == 0}
	defer run.Cancel()
	err := run.operate(ctx, plans)
	if err == nil && p.random.IntN(20) > 0 {
		if _, err = run.Commit(ctx); err == nil {
			tx.Outcome = anomaly.OK
		} else if kv.MaybeCommitted(err) || !kv.Retryable(err) {
			tx.Outcome = anomaly.Unknown
		}
	}
	if noSync && tx.Outcome == anomaly.OK && run.wrote {
		tx.Outcome = anomaly.Unknown // what is not synced may come to light later than its answer
	}
	p.record(tx)
	switch {
	case err == nil:
		return tx.Outcome, nil
	case !kv.Retryable(err):
		return tx.Outcome, fmt.Errorf("process %d: %w", p.process, err)
	case errors.Is(err, kv.ErrUnavailable):
		return tx.Outcome, p.awaitStore(ctx)
	}
	runtime.Gosched()
	return tx.Outcome, nil
}

func (p *appender) record(tx anomaly.Tx) {
	tx.End = p.now.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	tx.ID = len(p.txs)
	p.txs = append(p.txs, tx)
}

// awaitStore waits until the store answers.
func (p *appender) awaitStore(ctx context.Context) error {
	_, err := kv.Transact(ctx, p.db, kv.Retry{}, func(a kv.Attempt) error {
		_, err := a.Get(p.prefix).Wait(ctx)
		return err
	})
	return err
}

// draw returns a new element of a list.
func (p *appender) draw(list int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size[list]++; p.size[list] > listLimit && list == p.from {
		p.from++
	}
	return int(p.elements.Add(1))
}
