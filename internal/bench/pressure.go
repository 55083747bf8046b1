package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/transfer"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/workers"
)

// Pressure is the rate beside something else, and its ratio to the mean of those before and
// after. BackMS is how long after the end of that the rate was 0.9 of the one before again, in
// milliseconds, measured over a fifth of a second. Each is the median of several rounds, since a checkpoint of the
// store may fall into a period or not. Ratios are those of all rounds, the lowest first.
type Pressure struct {
	Name             string    `json:"name"`
	FuturesPerSecond float64   `json:"futures_per_second"`
	Ratio            float64   `json:"ratio"`
	BackMS           float64   `json:"back_ms"`
	Ratios           []float64 `json:"ratios,omitempty"`
}

const pressureRounds = 5

// backWindow is what the rate is measured over until it is back, backMost how often at most.
const (
	backWindow = 200 * time.Millisecond
	backMost   = 50
)

// pressure keeps a backlog and has something else happen beside it, one thing at a time.
func pressure(ctx context.Context, r *run) error {
	pending, w := r.futures(100_000), r.workers(2)
	r.config = layout.Config{Heartbeat: 250 * time.Millisecond, DeadAfter: time.Second}
	return r.within(ctx, func() error {
		r.begin("fill", pending)
		if err := r.feed(ctx, pending); err != nil {
			return err
		}
		f := newFeeders(pending)
		return working(ctx, r.client.Cluster(), w, workers.Options{}, f.count, func() error {
			feeding, stop := context.WithCancel(ctx)
			fed := make(chan error, 1)
			go func() { fed <- f.run(ctx, feeding, r) }()
			err := r.pressures(ctx, f)
			stop()
			return firstError([]error{err, <-fed})
		})
	})
}

// pressures measures one thing after the other, and the undisturbed rate between them. The first period
// does not count.
func (r *run) pressures(ctx context.Context, f *feeders) error {
	ended := &f.ended
	before, first := r.mark(), ended.Load()
	rate := func(d time.Duration) float64 {
		start, first := time.Now(), ended.Load()
		_ = clock.Sleep(ctx, clock.Real{}, d)
		return perSecond(int(ended.Load()-first), time.Since(start))
	}
	r.begin("undisturbed", 0)
	rate(r.period())
	alone := rate(r.period())
	r.report.FuturesPerSecond = alone
	asides := []aside{
		{"nothing", func(context.Context) error { return nil }}, // how much the rate varies by itself
		{"a slow reader", r.readSlowly},
		{"a slow backup", r.backUp},
		{"an await of as many", func(ctx context.Context) error { return r.awaitAside(ctx, f) }},
		{"a worker that dies", r.die},
		{"a worker that restarts", func(ctx context.Context) error { return r.restart(ctx, f.count) }},
	}
	rounds := make([][]Pressure, len(asides))
	for range pressureRounds {
		for i, a := range asides {
			r.begin("beside "+a.name, 0)
			p, after, err := r.beside(ctx, a, alone, rate)
			if err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			rounds[i], alone = append(rounds[i], p), after
		}
	}
	for _, all := range rounds {
		r.report.Pressures = append(r.report.Pressures, medianOf(all))
	}
	r.spent(before, int(ended.Load()-first))
	return ctx.Err()
}

// aside is what happens beside futures.
type aside struct {
	name string
	run  func(ctx context.Context) error
}

// beside takes the rate beside something, whose context ends with the measurement, and the undisturbed one after it.
func (r *run) beside(ctx context.Context, a aside, before float64, rate func(time.Duration) float64,
) (p Pressure, after float64, err error) {
	within, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- a.run(within) }()
	p = Pressure{Name: a.name, FuturesPerSecond: rate(r.period())}
	early := len(done) > 0
	stop()
	if err = <-done; err != nil && (early || ctx.Err() != nil) {
		return p, before, err
	}
	over := time.Now()
	for i := 0; i < backMost && rate(backWindow) < 0.9*before; i++ {
		p.BackMS = round(time.Since(over).Seconds()*1000, 0)
	}
	r.begin("undisturbed", 0)
	after = rate(r.period())
	p.Ratio = round(2*p.FuturesPerSecond/(before+after), 3)
	return p, after, nil
}

// medianOf takes the median of each figure.
func medianOf(all []Pressure) Pressure {
	median := func(of func(*Pressure) float64) (float64, []float64) {
		values := make([]float64, len(all))
		for i := range all {
			values[i] = of(&all[i])
		}
		slices.Sort(values)
		return values[len(values)/2], values
	}
	p := Pressure{Name: all[0].Name}
	p.FuturesPerSecond, _ = median(func(p *Pressure) float64 { return p.FuturesPerSecond })
	p.BackMS, _ = median(func(p *Pressure) float64 { return p.BackMS })
	p.Ratio, p.Ratios = median(func(p *Pressure) float64 { return p.Ratio })
	return p
}

// readSlowly reads through the cluster, a page in a tenth of a second, each transaction for as long as it may.
func (r *run) readSlowly(ctx context.Context) error {
	all := r.client.Cluster().Keys().All()
	rest := all
	for ctx.Err() == nil {
		tx := r.db.Database.Begin(kv.Options{})
		err := error(nil)
		for err == nil {
			var page kv.Page
			if page, err = tx.Snapshot().GetRange(rest, kv.RangeOptions{Limit: 100}).Wait(ctx); err == nil {
				if rest = all; page.More {
					rest.Begin = kv.After(page.Items[len(page.Items)-1].Key)
				}
				err = clock.Sleep(ctx, clock.Real{}, 100*time.Millisecond)
			}
		}
		tx.Cancel()
		if !errors.Is(err, kv.ErrTooOld) {
			return err
		}
	}
	return ctx.Err()
}

// slowFile takes 10 MB a second, as across a network.
type slowFile struct {
	*os.File
	ctx context.Context
}

func (f slowFile) Write(p []byte) (int, error) {
	if err := clock.Sleep(f.ctx, clock.Real{}, time.Duration(len(p))*100*time.Nanosecond); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// backUp writes backups, one after the other, that are given up because the cluster changes.
func (r *run) backUp(ctx context.Context) error {
	file, err := os.CreateTemp("", "futura-bench-backup-*")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }()
	for ctx.Err() == nil {
		_, err := transfer.Backup(ctx, r.db.Database, r.name, slowFile{file, ctx}, transfer.Options{IgnoreLive: true})
		if err != nil && !errors.Is(err, transfer.ErrChanged) {
			return err
		}
	}
	return ctx.Err()
}

// awaitAside awaits as many futures as are pending, which it submits in the place of feeders: how many are
// pending stays the same.
func (r *run) awaitAside(ctx context.Context, f *feeders) error {
	for ctx.Err() == nil {
		all := make([]*futures.Future, 0, r.report.Futures)
		for len(all) < cap(all) {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-f.due:
			}
			some, err := r.submitTasks(ctx, int(f.batch), task)
			if err != nil {
				return err
			}
			all = append(all, some...)
		}
		if _, err := r.client.AwaitAll(ctx, all); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// die claims a thousand futures, and gives no sign of life.
func (r *run) die(ctx context.Context) error {
	const claims = 1000
	free := layout.Resources{Slots: claims}
	reg, err := r.client.Cluster().Register(ctx, layout.WorkerInfo{Functions: []string{"go:" + noop}, Capacity: free})
	if err != nil {
		return err
	}
	_, err = reg.Claim(ctx, fdbmodel.ClaimRequest{Free: free, Max: claims})
	return err
}

// restart has a worker come, work for half a second, and go, again and again.
func (r *run) restart(ctx context.Context, fn workers.Function) error {
	for ctx.Err() == nil {
		life, end := context.WithTimeout(ctx, 500*time.Millisecond)
		w, err := workers.FromCluster(r.client.Cluster(), workers.Options{Name: "bench-again"})
		if err == nil {
			err = w.Register(noop, fn)
		}
		if err == nil {
			if err = w.Run(life); errors.Is(err, context.DeadlineExceeded) {
				err = nil
			}
		}
		end()
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
