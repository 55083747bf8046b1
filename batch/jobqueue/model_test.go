package jobqueue_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/internal/bubble"
)

// model is what a consumer should be doing: a naive one that looks at all jobs.
type model struct {
	max       int
	ahead     uint64
	park      bool
	pushed    uint64
	processed uint64
	next      uint64          // the lowest job that was not started
	busy      map[uint64]bool // that run, or wait for their second attempt
	waiting   map[uint64]bool
	done      map[uint64]bool
	poisoned  map[uint64]bool // of those that are done: they are parked as the progress passes them
	parked    map[uint64]bool
}

func (m *model) restart() {
	m.next, m.busy, m.waiting, m.done = m.processed+1, map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}
	m.poisoned = map[uint64]bool{}
	m.fill()
}

// fill starts what may be started, after the progress has advanced.
func (m *model) fill() {
	for m.done[m.processed+1] {
		m.processed++
		delete(m.done, m.processed)
		if m.poisoned[m.processed] {
			m.parked[m.processed] = true
		}
	}
	for m.next <= m.pushed && len(m.busy) < m.max && (m.ahead == 0 || m.next <= m.processed+m.ahead) {
		m.busy[m.next] = true
		m.next++
	}
}

// end ends a job that runs or waits.
func (m *model) end(index uint64) {
	delete(m.busy, index)
	delete(m.waiting, index)
	m.done[index] = true
	m.fill()
}

// step is one operation of a program, on the job that n picks.
type step struct {
	what string
	n    int
}

// program runs steps on a consumer and on the model, and says how they differ.
type program struct {
	model
	jobs     source
	progress progress
	worker   passing
	attempts map[uint64]int
	consumer *jobqueue.Consumer[uint64]
}

func (p *program) start() error {
	o := jobqueue.Options{MaxProcessing: p.max, MaxSearchAhead: p.ahead, MaxAttempts: 2,
		Backoff: jobqueue.Backoff{Base: time.Second, Max: time.Second}}
	if p.park {
		o.OnFailure = jobqueue.Park
	}
	var err error
	if p.consumer, err = jobqueue.New(&p.jobs, &p.progress, &p.worker, o); err != nil {
		return err
	}
	p.attempts = map[uint64]int{}
	p.restart()
	return p.consumer.Start(context.Background())
}

func (p *program) crash() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.consumer.Stop(ended)
	<-p.consumer.Done()
}

// pick returns one of the jobs that were started and are not done, 0 if none is.
func (p *program) pick(n int, of map[uint64]bool) uint64 {
	if len(of) == 0 {
		return 0
	}
	return slices.Sorted(maps.Keys(of))[n%len(of)]
}

func (p *program) do(s step) error {
	switch s.what {
	case "push":
		p.jobs.push(s.n)
		p.consumer.Check()
		p.pushed += uint64(s.n)
		p.fill()
	case "done":
		if index := p.pick(s.n, p.busy); index > 0 {
			p.consumer.NotifyJobIsDone(index)
			p.end(index)
		}
	case "done again":
		p.consumer.NotifyJobIsDone(uint64(s.n))
		if index := uint64(s.n); p.busy[index] {
			p.end(index)
		}
	case "fail":
		p.fail(p.pick(s.n, p.busy))
	case "fail twice":
		index := p.pick(s.n, p.busy)
		p.fail(index)
		p.wait()
		p.fail(index)
	case "wait":
		p.wait()
	case "crash":
		p.crash()
		return p.start()
	}
	return nil
}

// wait lets all jobs that wait begin their next attempt.
func (p *program) wait() {
	elapse(2 * time.Second)
	clear(p.waiting)
}

// fail has a job fail that runs.
func (p *program) fail(index uint64) {
	if !p.busy[index] || p.waiting[index] {
		return
	}
	p.attempts[index]++
	p.consumer.NotifyJobFailed(jobqueue.Job[uint64]{Index: index, Value: index, Attempt: p.attempts[index]}, errPoison)
	if p.park && p.attempts[index] == 2 {
		p.poisoned[index] = true
		p.end(index)
		return
	}
	p.waiting[index] = true
}

// differs says how the consumer differs from the model.
func (p *program) differs() error {
	synctest.Wait()
	status := p.consumer.Status()
	got := fmt.Sprint(p.progress.at(), p.consumer.LastProcessedIndex(), status.Processing, status.Waiting, status.Ended,
		len(p.progress.parked), p.consumer.Size())
	want := fmt.Sprint(p.processed, p.processed, len(p.busy)-len(p.waiting), len(p.waiting), len(p.done), len(p.parked),
		int(p.next-p.processed-1))
	if got != want {
		return fmt.Errorf("the consumer has %s, the model %s", got, want)
	}
	if !slices.IsSorted(p.progress.history) {
		return fmt.Errorf("the progress went back: %v", p.progress.history)
	}
	return nil
}

// TestConsumerFollowsTheModel runs random programs.
func TestConsumerFollowsTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := &program{model: model{
			max: rapid.IntRange(1, 6).Draw(rt, "max processing"), ahead: rapid.Uint64Range(0, 10).Draw(rt, "search ahead"),
			park: rapid.Bool().Draw(rt, "park"), parked: map[uint64]bool{},
		}}
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			what := []string{"push", "push", "done", "done", "done", "done again", "fail", "fail twice", "wait", "crash"}
			return step{rapid.SampledFrom(what).Draw(rt, "step"), rapid.IntRange(1, 20).Draw(rt, "n")}
		}), 1, 60).Draw(rt, "steps")
		var problem error
		bubble.Test(t, func(*testing.T) {
			if problem = p.start(); problem != nil {
				return
			}
			defer p.crash()
			for i, s := range steps {
				if problem = p.do(s); problem == nil {
					problem = p.differs()
				}
				if problem != nil {
					problem = fmt.Errorf("after step %d, %v: %w", i, s, problem)
					return
				}
			}
		})
		if problem != nil {
			rt.Fatal(problem)
		}
	})
}
