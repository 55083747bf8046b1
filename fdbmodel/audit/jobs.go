package audit

import (
	"bytes"

	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// checkJobs checks one key of a log of jobs.
func (p *page) checkJobs(it *item) {
	queue := it.Text("queue")
	before := p.lastJob
	p.lastJob = nil
	switch it.Kind.Name {
	case joblog.KeyJob:
		p.lastJob = it.Raw
		p.checkJob(it, queue, before)
	case joblog.KeyHead:
		if head := it.Record.(*joblog.Head); it.err == nil {
			p.checkEnd(it, queue, head.Last)
		}
	case joblog.KeyFirst:
		if first := it.Record.(*joblog.First); it.err == nil {
			p.log(queue, func(last, _ int64) {
				if first.First < 1 || first.First > last+1 {
					p.broken(InvariantJobs, it.Raw, "log %s begins with job %d, and ends with job %d", queue, first.First, last)
				}
			})
		}
	case joblog.KeyProducer:
		if made := it.Record.(*joblog.Producer); it.err == nil {
			p.atMost(it, queue, made.First+made.Count-1, "was given by a producer job")
		}
	case joblog.KeyProgress:
		if progress := it.Record.(*joblog.Progress); it.err == nil {
			p.checkProgress(it, queue, progress.Index)
		}
	case joblog.KeyLease:
		consumer := it.Text("consumer")
		p.require(joblog.Keys(p.keys).Progress(queue, consumer), func() {
			p.broken(InvariantJobs, it.Raw, "consumer %s of log %s runs and has no progress", consumer, queue)
		})
	case joblog.KeyParked:
		p.checkParked(it, queue)
	case joblog.KeyRetry:
		consumer, index := it.Text("consumer"), it.Int("index")
		p.require(joblog.Keys(p.keys).Parked(queue, consumer, index), func() {
			p.broken(InvariantJobs, it.Raw, "job %d of log %s is to be tried again, and consumer %s has not parked it", index,
				queue, consumer).by(drop(it.Raw))
		})
	}
}

// log requests the ends of a log, and has them judged if they can be read.
func (p *page) log(queue string, judge func(last, first int64)) {
	headKey, firstKey := joblog.Keys(p.keys).Head(queue), joblog.Keys(p.keys).First(queue)
	var head joblog.Head
	readable := true
	p.get(headKey, func(value []byte) {
		readable = value == nil || layout.Decode(headKey, value, &head) == nil
	})
	p.get(firstKey, func(value []byte) {
		first := joblog.First{First: 1}
		if readable && (value == nil || layout.Decode(firstKey, value, &first) == nil) {
			judge(head.Last, first.First)
		}
	})
}

// atMost reports an index that is beyond the end of its log.
func (p *page) atMost(it *item, queue string, index int64, what string) {
	p.log(queue, func(last, _ int64) {
		if index > last || index < 0 {
			p.broken(InvariantJobs, it.Raw, "log %s %s %d, and ends with job %d", queue, what, index, last)
		}
	})
}

// checkProgress compares how far a consumer has come with the end of its log. The
// jobs of one without a log are elsewhere.
func (p *page) checkProgress(it *item, queue string, index int64) {
	p.get(joblog.Keys(p.keys).Head(queue), func(head []byte) {
		if head != nil {
			p.atMost(it, queue, index, "has a consumer that has done job")
		}
	})
}

// checkJob looks for the job before one, and for the ends of its log, unless the key
// before is that job.
func (p *page) checkJob(it *item, queue string, before []byte) {
	index := it.Int("index")
	if index > 1 && bytes.Equal(before, joblog.Keys(p.keys).Job(queue, index-1)) {
		return
	}
	p.log(queue, func(last, first int64) {
		if index < first || index > last {
			p.broken(InvariantJobs, it.Raw, "job %d is outside of log %s, from %d to %d", index, queue, first, last)
			return
		}
		if index > first {
			p.require(joblog.Keys(p.keys).Job(queue, index-1), func() {
				p.broken(InvariantJobs, it.Raw, "log %s has job %d and not job %d", queue, index, index-1)
			})
		}
	})
}

// checkEnd looks for the last job of a log, and for one behind it.
func (p *page) checkEnd(it *item, queue string, last int64) {
	p.get(joblog.Keys(p.keys).Job(queue, last+1), func(value []byte) {
		if value != nil {
			p.broken(InvariantJobs, it.Raw, "log %s ends with job %d, and has job %d", queue, last, last+1)
		}
	})
	p.log(queue, func(_, first int64) {
		if first > last {
			return
		}
		p.require(joblog.Keys(p.keys).Job(queue, last), func() {
			p.broken(InvariantJobs, it.Raw, "log %s ends with job %d, which is not there", queue, last)
		})
	})
}

// checkParked compares a parked job with the progress of its consumer.
func (p *page) checkParked(it *item, queue string) {
	consumer, index := it.Text("consumer"), it.Int("index")
	key := joblog.Keys(p.keys).Progress(queue, consumer)
	p.get(key, func(value []byte) {
		var progress joblog.Progress
		if value != nil && layout.Decode(key, value, &progress) != nil {
			return
		}
		if progress.Index < index {
			p.broken(InvariantJobs, it.Raw, "consumer %s of log %s has parked job %d, and done the jobs up to %d", consumer,
				queue, index, progress.Index)
		}
	})
}
