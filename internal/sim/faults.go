package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/workers"
)

// workerProcess is one worker with its janitor.
type workerProcess struct {
	agenda
	process *process
	worker  *workers.Worker
	seam    seam.Worker
	address string
	zone    string
	began   time.Time
	paced   map[string]int // starts by key of a pace
	slots   int
	// knowsAll is set if it knows all functions, and leaving once it is to stop.
	knowsAll, leaving bool
}

func (p *workerProcess) step(ctx context.Context, now time.Time) (time.Time, error) {
	next, err := p.seam.Step(ctx, now)
	if p.process.dead && errors.Is(err, context.Canceled) {
		err = nil // it died while it became a member
	}
	return next, err
}

// startWorker starts a worker, at an address that a dead one had or at none.
func (w *world) startWorker(ctx context.Context, address string) error {
	p := &workerProcess{
		address: address, seam: seam.Worker{Manual: true}, zone: w.zone(), began: w.clock.Now(), paced: map[string]int{},
		slots: 1 + w.random.IntN(4), knowsAll: w.healing,
	}
	p.connect()
	p.seam.Linger = w.linger(p)
	p.process = w.newProcess(&p.agenda, func() { p.seam.Vanish() })
	err := w.insist(ctx, func() error {
		err := w.openCluster(ctx, p.process)
		if err != nil {
			return err
		}
		p.worker, err = workers.FromCluster(p.process.cluster, workers.Options{
			Seam: &p.seam, Address: address, Slots: p.slots, CPU: int64(1500 + 500*w.random.IntN(4)),
			Labels: map[string]string{"zone": p.zone}, Objects: workers.ObjectOptions{Memory: w.drawObjectMemory(), Above: -1},
			Policy: layout.Policy{MaxTimeout: longest, MaxOutput: maxOutput},
		})
		return err
	})
	if err != nil {
		return err
	}
	functions := map[string]workers.Function{
		fnUpper: func(_ context.Context, args []byte) ([]byte, error) { return outcomeOf(args), nil },
		fnFlaky: func(_ context.Context, args []byte) ([]byte, error) {
			if w.log.runs(args)%2 == 1 {
				return nil, errors.New("every other run fails")
			}
			return outcomeOf(args), nil
		},
		fnBroken: func(context.Context, []byte) ([]byte, error) { return nil, errors.New("broken") },
		fnPanic:  func(context.Context, []byte) ([]byte, error) { panic("simulated") },
		fnSlow:   w.slow,
		fnPoison: func(_ context.Context, args []byte) ([]byte, error) { return outcomeOf(args), nil },
		fnItem:   w.item,
		fnParent: func(ctx context.Context, args []byte) ([]byte, error) { return w.parent(ctx, p, args) },
	}
	if w.healing {
		functions[fnUnknown] = functions[fnUpper]
	}
	for _, name := range []string{fnUpper, fnFlaky, fnBroken, fnPanic, fnSlow, fnPoison, fnUnknown, fnParent, fnItem} {
		fn, known := functions[name]
		if !known {
			continue
		}
		if err := p.worker.Register(name, w.watched(p, name, fn)); err != nil {
			return err
		}
	}
	err = errors.Join(p.worker.Register(fnTick, w.tick(p)), p.worker.RegisterBundle(fnMember, w.runBundle(p)))
	if err == nil && w.options.Forks > 0 {
		err = p.worker.Register(fnForked, w.runForked)
	}
	if err == nil && w.options.Actors > 0 {
		err = p.worker.Register(fnSent, w.runSent)
	}
	if err != nil {
		return err
	}
	p.agenda = agenda{actor: p, next: w.clock.Now()}
	w.workers = append(w.workers, p)
	return nil
}

// watched is a function of a worker that the checkers watch. There is a chance that
// its worker dies with it.
func (w *world) watched(p *workerProcess, name string, fn workers.Function) workers.Function {
	return func(ctx context.Context, args []byte) ([]byte, error) {
		args = w.takeArguments(ctx, args)
		w.log.ran(args)
		info, _ := workers.InfoFrom(ctx)
		run := w.objects.began(&info)
		w.report.Runs++
		w.checkNoRun(info.ID)
		if name != fnItem {
			defer w.enterLane(ctx, &info)()
			w.checkStart(ctx, &info)
			w.checkPace(ctx, p)
			w.checkLabels(&info, p)
			w.checkNear(ctx, p)
		}
		w.putFrom(ctx, p)
		if !w.healing && (w.random.IntN(25) == 0 || name == fnPoison) {
			// It dies with this future, and with any others that it claimed.
			p.process.die()
		}
		w.tell(ctx, &info, 1)
		value, err := w.attempt(ctx, args, run, func() ([]byte, error) {
			return w.log.failures.watch(p, args, &w.report, func() ([]byte, error) {
				run := func() ([]byte, error) { return fn(ctx, args) }
				if w.takesTurn(name, info.ID) {
					alone := run
					run = func() ([]byte, error) { return w.inTurn(ctx, p, &info, alone) }
				}
				value, err := []byte(nil), error(nil)
				if hasSteps(name) {
					value, err = w.inSteps(ctx, &info, run)
				} else {
					value, err = run()
				}
				if err == nil {
					w.stopBeforeTheEnd(ctx, p)
				}
				w.tell(ctx, &info, 2)
				return value, err
			})
		})
		return w.output(&info, run, value), err
	}
}

// slow takes its time, and either ends early for its timeout or ignores its
// context. Actors that are due meanwhile run late, as on a busy machine.
func (w *world) slow(ctx context.Context, args []byte) ([]byte, error) {
	heeds := w.random.IntN(2) == 0
	for left := time.Duration(w.random.Int64N(int64(slowest))); left > 0; {
		part := min(left, timeout/10)
		w.clock.Advance(part)
		left -= part
		if heeds && ctx.Err() != nil {
			w.report.TimedOut++
			return nil, context.Cause(ctx)
		}
	}
	if ctx.Err() != nil {
		w.report.TimedOut++
	}
	return outcomeOf(args), nil
}

// chaos lets something go wrong now and then.
func (w *world) chaos(ctx context.Context) error {
	for at, p := range w.workers {
		if p.process.dead && w.random.IntN(20) == 0 {
			return w.killAt(ctx, at)
		}
	}
	for at, p := range w.heads {
		if p.process.dead && w.random.IntN(20) == 0 {
			return w.restartHead(ctx, at)
		}
	}
	if w.client.process.dead {
		return w.startClient(ctx)
	}
	switch w.random.IntN(250) {
	case 0, 1, 2:
		return w.killAt(ctx, w.random.IntN(len(w.workers)))
	case 3, 4, 5:
		p := w.workers[w.random.IntN(len(w.workers))]
		p.pausedUntil = w.clock.Now().Add(time.Duration(w.random.IntN(12_000)) * time.Millisecond)
		w.report.Pauses++
		w.options.Log("%v pause until %v", w.clock.Now().Sub(epoch), p.pausedUntil.Sub(epoch))
	case 6:
		w.faults.Recover()
		w.options.Log("%v recovery of the store", w.clock.Now().Sub(epoch))
	case 7:
		return w.crash(ctx)
	case 8, 9, 10, 11, 12:
		w.workers[w.random.IntN(len(w.workers))].process.dieIn = 1 + w.random.IntN(8)
	case 13, 14, 15, 16, 17:
		w.workers[w.random.IntN(len(w.workers))].process.stopIn = 1 + w.random.IntN(8)
	case 18, 19:
		w.client.process.dieIn = 1 + w.random.IntN(4)
	case 20:
		w.client.process.stopIn = 1 + w.random.IntN(4)
	case 21:
		return w.restartHead(ctx, w.random.IntN(len(w.heads)))
	case 22, 23, 24:
		w.heads[w.random.IntN(len(w.heads))].process.dieIn = 1 + w.random.IntN(12)
	case 27, 28, 29, 30:
		w.dropObject()
	case 31, 32, 33, 34:
		return w.declareDead(ctx)
	case 35, 36, 37, 38:
		return w.leaveAt(ctx, w.random.IntN(len(w.workers)))
	case 25, 26:
		w.heads[w.random.IntN(len(w.heads))].process.stopIn = 1 + w.random.IntN(12)
	}
	return nil
}

// killAt ends a worker without a word and starts another, often at its address.
func (w *world) killAt(ctx context.Context, at int) error {
	p := w.workers[at]
	p.process.die()
	w.report.Reaped += int(p.worker.Stats().Reaped)
	w.workers = append(w.workers[:at], w.workers[at+1:]...)
	w.report.Kills++
	w.options.Log("%v kill %s", w.clock.Now().Sub(epoch), p.worker.ID())
	address := p.address
	if address == "" {
		address = fmt.Sprintf("10.0.0.1:%d", w.random.IntN(3))
	}
	if w.random.IntN(2) == 0 {
		address = ""
	}
	return w.startWorker(ctx, address)
}

// crash ends everybody and opens the store from what was synced, and from a
// random part of what was not, or goes on with the store that the run was given.
func (w *world) crash(ctx context.Context) error {
	w.report.Crashes++
	w.options.Log("%v crash", w.clock.Now().Sub(epoch))
	w.client.process.die()
	w.dieJobs()
	for _, p := range w.heads {
		p.process.die()
	}
	for _, p := range w.workers {
		p.process.die()
	}
	if w.options.Database != nil {
		w.faults.Recover()
		return w.boot(ctx, w.disk)
	}
	clone := w.disk.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: w.random.IntN(100),
		RNG:                 rand.New(rand.NewPCG(w.random.Uint64(), 0)), // files say how much is drawn
	})
	_ = w.store.Close()
	return w.boot(ctx, clone)
}
