package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
)

// Bounds of jobs.
const (
	maxJobs       = 40
	jobsTogether  = 4
	jobDeadAfter  = 3 * time.Second
	jobHeartbeat  = time.Second
	parkedOf      = 5 // one of so many jobs is parked, and tried again
	jobProducer   = "client"
	stageWorkers  = 2 // processes of each stage
	jobConsumerOf = "stage"
)

// jobLogs are the logs of a pipeline: each stage writes the jobs of the next one.
var jobLogs = []string{"raw", "cooked", "served"}

// stages are those that a pipeline has.
func stages() int { return len(jobLogs) - 1 }

func stageOf(n int) joblog.Consumer {
	return joblog.Consumer{Queue: jobLogs[n], Name: jobConsumerOf}
}

// jobLog is what is known of jobs outside of the store.
type jobLog struct {
	// appended is how many are known to be in the first log, and pending how many more
	// may be.
	appended, pending int
	// progress is how far the stages were seen to have come.
	progress [2]int64
}

// drawJobs draws whether a run has a pipeline.
func (w *world) drawJobs() bool {
	return rand.New(rand.NewPCG(w.options.Seed, 0x10b5)).IntN(3) == 0
}

// jobProcess is a process of a stage: it consumes the jobs of one log, if no other does.
type jobProcess struct {
	agenda
	world    *world
	process  *process
	stage    int
	lease    *joblog.Lease
	at       int64     // its progress
	beat     time.Time // when its next heartbeat is due
	observed []byte    // the present holder's sign of life, since a time
	since    time.Time
}

// startJobs starts the processes of a pipeline, and forgets those there were.
func (w *world) startJobs(ctx context.Context) error {
	w.dieJobs()
	w.stages = nil
	for n := range stages() * stageWorkers {
		if !w.piping {
			break
		}
		p := &jobProcess{world: w, stage: n % stages()}
		if err := p.restart(ctx); err != nil {
			return err
		}
		w.stages = append(w.stages, p)
	}
	return nil
}

func (w *world) dieJobs() {
	for _, p := range w.stages {
		p.process.die()
	}
}

func (p *jobProcess) restart(ctx context.Context) (err error) {
	p.lease, p.observed = nil, nil
	p.process, err = p.world.startProcess(ctx, &p.agenda, p)
	return err
}

// step does what a consumer does: it takes the lease, beats, and commits some jobs.
func (p *jobProcess) step(ctx context.Context, now time.Time) (time.Time, error) {
	w := p.world
	next := now.Add(time.Duration(100+w.random.IntN(900)) * time.Millisecond)
	if p.process.dead {
		w.report.JobKills++
		return next, p.restart(ctx)
	}
	if !w.healing {
		switch w.random.IntN(25) {
		case 0:
			p.process.dieIn = 1 + w.random.IntN(3)
		case 1:
			p.process.stopIn = 1 + w.random.IntN(3)
		case 2:
			p.pausedUntil = now.Add(time.Duration(w.random.IntN(8000)) * time.Millisecond)
		}
	}
	err := p.work(ctx, now)
	if errors.Is(err, joblog.ErrLeaseLost) {
		w.report.LeasesLost++
		p.lease, p.observed, err = nil, nil, nil
	}
	return next, err
}

func (p *jobProcess) work(ctx context.Context, now time.Time) error {
	if p.lease == nil {
		if err := p.take(ctx, now); err != nil || p.lease == nil {
			return err
		}
	}
	if !now.Before(p.beat) {
		p.beat = now.Add(jobHeartbeat)
		retries, err := p.lease.Beat(ctx, joblog.Trouble{}, jobsTogether)
		if err != nil {
			return err
		}
		for _, job := range retries {
			err := p.lease.Redo(ctx, job.Index, nil, p.effects([][]byte{job.Value}))
			if err != nil && !errors.Is(err, fdbmodel.ErrNotFound) {
				return err
			}
			p.world.report.JobRetries++
		}
	}
	jobs, err := joblog.Of(p.process.cluster).Read(ctx, jobLogs[p.stage], p.at+1, jobsTogether)
	if err != nil || len(jobs) == 0 {
		return err
	}
	var values [][]byte
	var parked []joblog.ParkedJob
	for i := range jobs {
		if jobs[i].Index != p.at+1+int64(i) {
			return fmt.Errorf("job %d of log %s was read behind %d", jobs[i].Index, jobLogs[p.stage], p.at+int64(i))
		}
		if isParked(p.stage, jobs[i].Index) {
			parked = append(parked, joblog.ParkedJob{Index: jobs[i].Index, Value: jobs[i].Value, Attempts: 1})
			continue
		}
		values = append(values, jobs[i].Value)
	}
	to := jobs[len(jobs)-1].Index
	if err := p.lease.Commit(ctx, p.at, to, parked, p.effects(values)); err != nil {
		p.lease = nil // another one, or this one, finds out how far it has come
		return err
	}
	p.at = to
	return nil
}

// isParked reports whether a job fails when it is its turn.
func isParked(stage int, index int64) bool { return stage == 0 && index%parkedOf == 0 }

func (p *jobProcess) effects(values [][]byte) joblog.Effects {
	if len(values) == 0 {
		return joblog.Effects{}
	}
	return joblog.Effects{Emits: []joblog.Emit{{Queue: jobLogs[p.stage+1], Jobs: values}}}
}

// take takes the lease if it is free, or if its holder shows no sign of life.
func (p *jobProcess) take(ctx context.Context, now time.Time) error {
	t := joblog.Take{About: "simulated"}
	if p.observed != nil && now.Sub(p.since) >= jobDeadAfter {
		t.Observed = p.observed
	}
	lease, present, err := joblog.Of(p.process.cluster).Take(ctx, stageOf(p.stage), t)
	if err != nil {
		return err
	}
	if lease != nil {
		p.world.report.Leases++
		p.lease, p.at, p.beat, p.observed = lease, lease.Progress, now, nil
		return nil
	}
	if !bytes.Equal(present, p.observed) {
		p.observed, p.since = present, now
	}
	return nil
}

// appendJobs appends some jobs now and then, the same ones until that is done, and asks
// for the retry of those that are parked.
func (c *clientProcess) appendJobs(ctx context.Context) error {
	w := c.world
	if !w.piping {
		return nil
	}
	l := w.jobs
	if l.pending == 0 && !w.healing && l.appended < maxJobs && w.random.IntN(8) == 0 {
		l.pending = 1 + w.random.IntN(jobsTogether)
	}
	if l.pending > 0 {
		var jobs [][]byte
		for i := range l.pending {
			jobs = append(jobs, jobNamed(l.appended+1+i))
		}
		first, _, err := joblog.Of(c.cluster).Append(ctx, joblog.Append{
			Queue: jobLogs[0], Jobs: jobs, Producer: jobProducer, Sequence: int64(l.appended + 1),
		})
		if err != nil {
			return err
		}
		if first != int64(l.appended+1) {
			return fmt.Errorf("jobs from %d on were appended at %d", l.appended+1, first)
		}
		w.report.Jobs += l.pending
		l.appended, l.pending = l.appended+l.pending, 0
	}
	if w.random.IntN(10) > 0 {
		return nil
	}
	parked, err := joblog.Of(c.cluster).Parked(ctx, stageOf(0), 0, jobsTogether)
	for i := range parked {
		if err == nil {
			err = joblog.Of(c.cluster).RetryParked(ctx, stageOf(0), parked[i].Index)
		}
	}
	if errors.Is(err, fdbmodel.ErrNotFound) {
		return nil // it was done meanwhile
	}
	return err
}

func jobNamed(n int) []byte { return fmt.Appendf(nil, "job-%d", n) }
