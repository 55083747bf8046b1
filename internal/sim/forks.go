package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/forks"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/steps"
	"github.com/futura-run/futura/internal/taskcontext"
	"github.com/futura-run/futura/workers"
)

const (
	// forkers are how many processes submit futures that fail, and fork them.
	forkers = 2
	// fnForked records two steps and fails for good.
	fnForked = "forked"
	forkName = "sim"
)

// simFork is a future that is to be forked once it has failed.
type simFork struct {
	id        layout.ID
	submitted bool
	// made is set once somebody was told that the fork exists, and refused that it can't be made.
	made, refused bool
}

// from is where the future is forked from.
func (s *simFork) from() forks.Point {
	if s.id[14]%2 == 0 {
		return forks.FromStep("b")
	}
	return forks.FromFailed()
}

// forking are the processes that fork, and the futures that they fork.
type forking struct {
	processes []*forkProcess
	all       []*simFork
}

func (f *forking) agendas() (all []*agenda) {
	for _, p := range f.processes {
		all = append(all, &p.agenda)
	}
	return all
}

// forkProcess is a process that forks the futures of all.
type forkProcess struct {
	agenda
	world   *world
	process *process
}

// startForkers starts the processes that fork, in runs that have some.
func (w *world) startForkers(ctx context.Context) error {
	for _, p := range w.forking.processes {
		p.process.die()
	}
	w.forking.processes = nil
	for range forkers {
		if w.options.Forks == 0 {
			break
		}
		p := &forkProcess{world: w}
		if err := p.restart(ctx); err != nil {
			return err
		}
		w.forking.processes = append(w.forking.processes, p)
	}
	return nil
}

func (p *forkProcess) restart(ctx context.Context) (err error) {
	p.process, err = p.world.startProcess(ctx, &p.agenda, p)
	return err
}

// step submits a future, or forks one that is over.
func (p *forkProcess) step(ctx context.Context, now time.Time) (time.Time, error) {
	w := p.world
	next := now.Add(time.Duration(100+w.random.IntN(900)) * time.Millisecond)
	if p.process.dead {
		return next, p.restart(ctx)
	}
	if !w.healing && w.random.IntN(6) == 0 {
		p.process.dieIn = 1 + w.random.IntN(3)
	}
	if len(w.forking.all) < w.options.Forks && !w.healing && w.random.IntN(3) == 0 {
		ids, err := p.process.cluster.DrawIDs(1)
		if err != nil {
			return next, err
		}
		w.forking.all = append(w.forking.all, &simFork{id: ids[0]})
	}
	if len(w.forking.all) == 0 {
		return next, nil
	}
	if !w.healing {
		return next, p.advance(ctx, w.forking.all[w.random.IntN(len(w.forking.all))])
	}
	for _, one := range w.forking.all {
		if err := p.advance(ctx, one); err != nil {
			return next, err
		}
	}
	return next, nil
}

// advance submits a future, and forks it once it has failed.
func (p *forkProcess) advance(ctx context.Context, one *simFork) error {
	if !one.submitted {
		fails := fdbmodel.Submission{ID: one.id, Spec: layout.Spec{Function: "go:" + fnForked}}
		_, err := p.process.cluster.Submit(ctx, []fdbmodel.Submission{fails})
		one.submitted = err == nil
		return err
	}
	if one.refused || one.made && p.world.random.IntN(4) > 0 {
		return nil
	}
	row, err := p.process.cluster.Get(ctx, one.id)
	if errors.Is(err, fdbmodel.ErrNotFound) && p.world.expires {
		one.refused, err = !one.made, nil
		return err
	}
	if err != nil || !row.State().Terminal() {
		return err
	}
	made, err := forks.Of(p.process.cluster).Make(ctx, []forks.Request{{Source: one.id, From: one.from(), Name: forkName}})
	if err != nil {
		return err
	}
	switch err := made[0].Err; {
	case err == nil:
		one.made = true
	case errors.Is(err, fdbmodel.ErrNotFound) && p.world.expires:
		one.refused = !one.made
	case errors.Is(err, forks.ErrNothingFailed) && !row.Steps, errors.Is(err, forks.ErrNoStep):
		one.refused = true // its workers died before it recorded them
	default:
		p.world.broken = append(p.world.broken, fmt.Errorf("future %s is not forked: %w", one.id, err))
	}
	return nil
}

// runForked records two steps, unless a fork has copies of them, and fails.
func (w *world) runForked(ctx context.Context, _ []byte) ([]byte, error) {
	log := ctx.Value(taskcontext.StepsKey{}).(taskcontext.Steps)
	info, _ := workers.InfoFrom(ctx)
	for _, name := range []string{"a", "b"} {
		full, recorded, err := log.Ask(ctx, name)
		if err != nil {
			return nil, err
		}
		if recorded != nil {
			continue
		}
		if of := w.forkWith(info.ID); of != nil && (name == "a" || of.from() == forks.FromFailed()) {
			w.broken = append(w.broken, fmt.Errorf("step %s of fork %s runs again", name, info.ID))
		}
		value := []byte(fmt.Sprintf("%s by %s", name, info.Token))
		err = log.Record(ctx, full, taskcontext.RecordedStep{Codec: layout.CodecRaw, Value: value, Started: log.Now()})
		if err != nil {
			return nil, err
		}
	}
	return nil, workers.Permanent(errors.New("forked"))
}

// forkWith returns the future whose fork has an id, nil for none.
func (w *world) forkWith(id layout.ID) *simFork {
	for _, one := range w.forking.all {
		if forks.Of(w.reader).IDOf(forkName, one.id) == id {
			return one
		}
	}
	return nil
}

// forksAreOver reports whether all futures were forked, or can't be, and have ended with their forks.
func (w *world) forksAreOver(ctx context.Context) (bool, error) {
	for _, one := range w.forking.all {
		if !one.submitted || !one.made && !one.refused {
			return false, nil
		}
		rows, err := w.reader.GetMany(ctx, []layout.ID{one.id, forks.Of(w.reader).IDOf(forkName, one.id)})
		if err != nil {
			return false, err
		}
		for i := range rows {
			if !rows[i].State().Terminal() {
				return false, nil
			}
		}
	}
	return true, nil
}

// checkForks requires that each future has the one fork that was made of it, with its steps.
func (w *world) checkForks(ctx context.Context) error {
	defer w.calm()()
	var problems []error
	for _, one := range w.forking.all {
		if !one.made || w.expires {
			continue
		}
		id := forks.Of(w.reader).IDOf(forkName, one.id)
		all, _, err := forks.Of(w.reader).List(ctx, one.id, layout.ID{}, 0)
		if err != nil || len(all) != 1 || all[0].ID != id {
			problems = append(problems, fmt.Errorf("future %s has the forks %v: %w", one.id, all, err))
			continue
		}
		source, err := steps.Of(w.reader).List(ctx, one.id)
		fork, failed := steps.Of(w.reader).List(ctx, id)
		if err := errors.Join(err, failed); err != nil {
			problems = append(problems, err)
			continue
		}
		for i := range all[0].Fork.Copied {
			if i >= len(fork) || fork[i].Name != source[i].Name || string(fork[i].Value) != string(source[i].Value) {
				problems = append(problems, fmt.Errorf("fork %s has not step %s of %s", id, source[i].Name, one.id))
			}
		}
	}
	return errors.Join(problems...)
}

// forkBugs are about forks. They need runs that have some: Options.Forks.
func forkBugs() []plantedBug {
	tags := []string{"futura-fork"}
	return []plantedBug{
		{name: "fork without a mark", text: "a fork does not look for its steps", tags: tags,
			write: drop(setKey, "has steps")},
		{name: "fork without steps", text: "the steps of a fork are not copied", tags: tags, write: drop(setKey, steps.Key)},
		{name: "fork not listed", text: "a fork is not listed with its source", tags: tags, write: drop(setKey, "fork")},
		{name: "fork of another value", text: "a fork has another value of a step", tags: tags,
			write: swapStep()},
		{name: "forks without conflicts", text: "who forks does not see what others do meanwhile", tags: tags,
			blind: true},
		{name: "fork counted twice", text: "a fork is counted twice", tags: tags, write: twice(change, layout.KeyCount)},
	}
}
