package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/futures"
)

// Hints compare the time from a submit to its result with hints and without, one
// future at a time, between a client and an idle worker of another process. The two
// take turns.
type Hints struct {
	With    HintTimes `json:"with"`
	Without HintTimes `json:"without"`
	// Ratio is that of the medians, with hints to without.
	Ratio float64 `json:"ratio"`
}

// HintTimes are those of one side. Submit is that part of them, until the client has
// its answer. The requests to the store are those of this process, and, if it serves
// the store, those of the worker too.
type HintTimes struct {
	P50                   float64 `json:"p50_ms"`
	P99                   float64 `json:"p99_ms"`
	SubmitP50             float64 `json:"submit_p50_ms"`
	TransactionsPerFuture float64 `json:"transactions_per_future"`
	MutationsPerFuture    float64 `json:"mutations_per_future"`
	ReadsPerFuture        float64 `json:"reads_per_future"`
}

// hintPause is how long the worker has to go idle before the next future.
const hintPause = 5 * time.Millisecond

// hints measures with a worker in another process, which reaches the store itself,
// or through this process if that has it open.
func hints(ctx context.Context, r *run) (err error) {
	n := max(r.futures(1000), 2) // one of each side
	r.report.Futures, r.report.Workers = n, 1
	dir, err := os.MkdirTemp("", "futura-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return r.served(ctx, dir, func(name string, db kv.Database) error {
		worker, err := startWorkChild(ctx, name, r.name)
		if err != nil {
			return err
		}
		if err = worker.begin(); err == nil {
			err = worker.expect(isWorking)
		}
		if err == nil {
			err = r.compareHints(ctx, n, db)
		}
		return errors.Join(err, worker.stop())
	})
}

// served calls fn with the name at which other processes reach the store, and with
// the store as one of them has it.
func (r *run) served(ctx context.Context, dir string, fn func(name string, db kv.Database) error) (err error) {
	if !kv.TraitsOf(r.db).Exclusive {
		return fn(r.options.Store, r.db)
	}
	path := filepath.Join(dir, "store")
	l, err := remote.ListenUnix(path)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- remote.Serve(ctx, l, r.db, remote.ServerOptions{}) }()
	defer func() { cancel(); err = errors.Join(err, <-ended) }()
	name := "remote:unix:" + path
	db, err := kvopen.Open(ctx, name, kvopen.Options{})
	if err != nil {
		return err
	}
	return errors.Join(fn(name, db), db.Close())
}

// side is a client with hints or without.
type side struct {
	client *futures.Client
	times  []time.Duration
	submit []time.Duration
	usage  Usage
}

// compareHints has two clients take turns.
func (r *run) compareHints(ctx context.Context, n int, db kv.Database) (err error) {
	sides := make([]side, 2)
	for i := range sides {
		o := futures.Options{Cluster: r.name, NoHints: i == 1}
		if sides[i].client, err = futures.New(ctx, db, o); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sides[i].client.Close(ctx)) }()
	}
	const warm = 40
	r.begin("one at a time", n+warm)
	before := r.mark()
	for i := range n + warm {
		if i == warm {
			before = r.mark()
			for s := range sides {
				sides[s] = side{client: sides[s].client}
			}
		}
		if err := r.oneOf(ctx, &sides[i%2], i); err != nil {
			return err
		}
		r.step(1)
	}
	r.spent(before, n)
	h := &Hints{With: sides[0].report(), Without: sides[1].report()}
	h.Ratio = round(h.With.P50/h.Without.P50, 3)
	r.report.Hints = h
	return nil
}

// oneOf submits a future, awaits it, and lets the worker go idle.
func (r *run) oneOf(ctx context.Context, s *side, i int) error {
	usage, start := r.db.Usage(), time.Now()
	f, err := s.client.Submit(ctx, task(i))
	submitted := time.Since(start)
	if err == nil {
		_, err = f.Await(ctx)
	}
	if err != nil {
		return err
	}
	s.times, s.submit = append(s.times, time.Since(start)), append(s.submit, submitted)
	timer := time.NewTimer(hintPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	now := r.db.Usage().minus(usage)
	s.usage.Commits += now.Commits
	s.usage.Mutations += now.Mutations
	s.usage.Reads += now.Reads
	return nil
}

func (s *side) report() (t HintTimes) {
	n := float64(len(s.times))
	t.P50, t.P99 = quantiles(s.times)
	t.SubmitP50, _ = quantiles(s.submit)
	t.TransactionsPerFuture = round(float64(s.usage.Commits)/n, 3)
	t.MutationsPerFuture = round(float64(s.usage.Mutations)/n, 3)
	t.ReadsPerFuture = round(float64(s.usage.Reads)/n, 3)
	return t
}
