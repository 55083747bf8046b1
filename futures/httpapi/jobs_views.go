package httpapi

import (
	"time"

	"github.com/futura-run/futura/fdbmodel/joblog"
)

// JobLog is a log of ordered jobs.
type JobLog struct {
	Queue     string        `json:"queue"`
	First     int64         `json:"first" doc:"The lowest index that was not removed"`
	Last      int64         `json:"last" doc:"The highest index; 0 for jobs that are elsewhere"`
	Consumers []JobConsumer `json:"consumers"`
}

// JobConsumer is how far a consumer of jobs has come.
type JobConsumer struct {
	Name       string    `json:"name"`
	Processed  int64     `json:"processed" doc:"All jobs up to this index are done or parked"`
	At         time.Time `json:"at" doc:"When the progress was stored"`
	Behind     *int64    `json:"behind,omitempty" doc:"Jobs of the log that it has not done; left out for jobs elsewhere"`
	Unreadable bool      `json:"unreadable,omitempty" doc:"Its progress, or where it runs, can't be read; it is zero here"`
	Parked     int       `json:"parked" doc:"Jobs put aside, counted up to 1,000"`
	Process    string    `json:"process,omitempty" doc:"Where it runs, or ran if that process has died"`
	Failing    int64     `json:"failing,omitempty" doc:"The lowest job that failed and is tried again"`
	Attempts   int64     `json:"attempts,omitempty" doc:"How often that one failed"`
	Error      string    `json:"error,omitempty" doc:"Why"`
}

// JobLogOf returns the view of a log of jobs.
func JobLogOf(q *joblog.Log) JobLog {
	log := JobLog{Queue: q.Name, First: q.First, Last: q.Last, Consumers: []JobConsumer{}}
	for i := range q.Consumers {
		s := &q.Consumers[i]
		c := JobConsumer{Name: s.Name, Processed: s.Progress.Index, Parked: s.Parked, Unreadable: s.Unreadable,
			At: timeOf(s.Progress.At).Truncate(time.Second)}
		if q.Last > 0 && !s.Unreadable {
			behind := q.Last - s.Progress.Index
			c.Behind = &behind
		}
		if l := s.Lease; l != nil {
			c.Process, c.Failing, c.Attempts, c.Error = l.About, l.Failing, l.Attempts, l.Error
		}
		log.Consumers = append(log.Consumers, c)
	}
	return log
}

// Job is a job of a log.
type Job struct {
	Index int64     `json:"index"`
	Value *Bytes    `json:"value,omitempty" doc:"Left out if it is empty"`
	At    time.Time `json:"at" doc:"When it was appended"`
}

// ParkedJob is a job that a consumer has put aside.
type ParkedJob struct {
	Index    int64     `json:"index"`
	Value    *Bytes    `json:"value,omitempty" doc:"Left out for jobs that are elsewhere"`
	At       time.Time `json:"at" doc:"When it was put aside"`
	Attempts int64     `json:"attempts"`
	Error    string    `json:"error,omitempty" doc:"Why the last attempt failed"`
	Retrying bool      `json:"retrying,omitempty" doc:"It is to be tried again"`
}

func parkedOf(p *joblog.ParkedJob) ParkedJob {
	return ParkedJob{Index: p.Index, Value: bytesOf(p.Value), At: timeOf(p.At), Attempts: p.Attempts,
		Error: p.Error, Retrying: p.Retrying}
}
