package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
)

// readLog returns the jobs of a log.
func (w *world) readLog(ctx context.Context, log string) (names []string, err error) {
	jobs, err := joblog.Of(w.reader).Read(ctx, log, 1, 2*maxJobs)
	for i := range jobs {
		if jobs[i].Index != int64(i+1) {
			return nil, fmt.Errorf("job %d of log %s comes at place %d", jobs[i].Index, log, i+1)
		}
		names = append(names, string(jobs[i].Value))
	}
	return names, err
}

// checkJobs requires that the logs of the pipeline have what their stages have done: each
// job once, none skipped, those that are not parked in their order; and that the progress
// of none goes back.
func (w *world) checkJobs(ctx context.Context) error {
	if !w.piping {
		return nil
	}
	raw, err := w.readLog(ctx, jobLogs[0])
	if err != nil {
		return err
	}
	if n := len(raw); n < w.jobs.appended || n > w.jobs.appended+w.jobs.pending {
		return fmt.Errorf("log %s has %d jobs: %d were appended, and %d more may be", jobLogs[0], n, w.jobs.appended,
			w.jobs.pending)
	}
	for i, name := range raw {
		if name != string(jobNamed(i+1)) {
			return fmt.Errorf("job %d of log %s is %s", i+1, jobLogs[0], name)
		}
	}
	from := raw
	for stage := range stages() {
		to, err := w.readLog(ctx, jobLogs[stage+1])
		if err == nil {
			err = w.checkStage(ctx, stage, from, to)
		}
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

// checkStage compares what a stage has read and written.
func (w *world) checkStage(ctx context.Context, stage int, from, to []string) error {
	q, err := joblog.Of(w.reader).Get(ctx, jobLogs[stage])
	if errors.Is(err, fdbmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	at := int64(0)
	for _, c := range q.Consumers {
		at = c.Progress.Index
	}
	if before := w.jobs.progress[stage]; at < before {
		return fmt.Errorf("stage %d had come to job %d, and now %d", stage, before, at)
	}
	w.jobs.progress[stage] = at
	if at > int64(len(from)) {
		return fmt.Errorf("stage %d has come to job %d of %d", stage, at, len(from))
	}
	all, err := joblog.Of(w.reader).Parked(ctx, stageOf(stage), 0, maxJobs)
	if err != nil {
		return err
	}
	var done, want []string
	for i, name := range from[:at] {
		index := int64(i + 1)
		n := count(to, name)
		parked := slices.ContainsFunc(all, func(p joblog.ParkedJob) bool { return p.Index == index })
		if !isParked(stage, index) {
			want = append(want, name)
		}
		if n > 1 || (n == 0) != parked {
			return fmt.Errorf("job %d of stage %d was done %d times (it is parked: %t)", index, stage, n, parked)
		}
	}
	for _, name := range to {
		i := slices.Index(from, name)
		if i < 0 || int64(i) >= at {
			return fmt.Errorf("stage %d wrote %s and has come to job %d", stage, name, at)
		}
		if !isParked(stage, int64(i+1)) {
			done = append(done, name)
		}
	}
	if !slices.Equal(done, want) {
		return fmt.Errorf("stage %d has done %v, and not %v", stage, done, want)
	}
	return nil
}

func count(names []string, name string) (n int) {
	for _, other := range names {
		if other == name {
			n++
		}
	}
	return n
}

// jobsAreOver reports whether the last log has all jobs.
func (w *world) jobsAreOver(ctx context.Context) (bool, error) {
	if !w.piping {
		return true, nil
	}
	served, err := w.readLog(ctx, jobLogs[stages()])
	return w.jobs.pending == 0 && len(served) == w.jobs.appended, err
}

// jobBugs are about jobs.
func jobBugs() []plantedBug {
	return []plantedBug{
		{name: "job done twice", text: "a stage writes the next one's jobs and not its progress", tags: []string{tagProgress},
			write: drop(setKey, joblog.KeyProgress)},
		{name: "jobs skipped", text: "a stage advances by one job too many", tags: []string{tagProgress},
			write: alter(joblog.KeyProgress, func(p *joblog.Progress) {
				if p.Index%3 == 0 {
					p.Index++
				}
			})},
		{name: "two leaders", text: "a process that lost its lease goes on", tags: []string{tagProgress, "futura-redo"},
			blind: true},
		{name: "append forgotten", text: "nobody knows what a producer has appended", tags: []string{"futura-append"},
			write: drop(setKey, joblog.KeyProducer)},
		{name: "parked job lost", text: "a job that is parked is on no list", tags: []string{tagProgress},
			write: drop(setKey, joblog.KeyParked)},
	}
}
