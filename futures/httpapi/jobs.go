package httpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

const (
	jobsPath     = "/api/v1/jobs"
	jobLogPath   = jobsPath + "/{queue}"
	consumerPath = jobLogPath + "/consumers/{consumer}"
	parkedPath   = consumerPath + "/parked"
)

func (s *server) registerJobs() {
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, jobsPath, "list-jobs", "List the logs of jobs",
		"With the progress of their consumers, in the order of their names."), s.listJobs)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, jobLogPath, "get-jobs", "Get a log of jobs",
		"With the progress of its consumers."), s.getJobs)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, jobLogPath+"/log", "read-jobs", "Read jobs of a log",
		"From an index on, up to limit and to about 1 MiB, or to one that can't be read: unreadable says why. The next page "+
			"begins after the last index of this one."),
		s.readJobs)
	stack.Register(s.Stack, stack.Submit, operation(http.MethodPost, jobLogPath+":append", "append-jobs", "Append jobs",
		"All or none. The log is made by its first job. With producer and sequence the request can be repeated."),
		s.appendJobs)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodDelete, jobLogPath, "remove-jobs", "Remove a log of jobs",
		"With its jobs and its consumers. Refused while a process consumes, unless force is set."), s.removeJobs)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodDelete, consumerPath, "remove-job-consumer",
		"Remove a consumer of jobs", "With its progress and its parked jobs. Refused while a process consumes, unless force "+
			"is set."), s.removeJobConsumer)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, parkedPath, "list-parked-jobs",
		"List the jobs that a consumer has put aside", "Because they kept failing, lowest first."), s.listParked)
	stack.Register(s.Stack, stack.Submit, operation(http.MethodPost, parkedPath+":retry", "retry-parked-jobs",
		"Have parked jobs tried again", "Once more, at the next heartbeat of the consumer and out of the order."),
		s.retryParked)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodPost, parkedPath+":drop", "drop-parked-jobs",
		"Forget parked jobs", "They will not be done. An attempt that is under way has no effects."), s.dropParked)
}

type listJobsInput struct {
	After string `query:"after" maxLength:"64" doc:"The name of the last log of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type jobLogsOutputBody struct {
	Logs []JobLog `json:"logs"`
}

func (s *server) listJobs(ctx context.Context, in *listJobsInput) (*body[jobLogsOutputBody], error) {
	if err := stack.Reserve(ctx, int64(in.Limit)*jobLogBytes); err != nil {
		return nil, err
	}
	queues, err := joblog.Of(s.client.Cluster()).Page(ctx, in.After, in.Limit)
	return answerWith(jobLogsOutputBody{viewsOf(queues, JobLogOf)}, err)
}

type jobLogInput struct {
	Queue string `path:"queue"`
}

func (s *server) getJobs(ctx context.Context, in *jobLogInput) (*body[JobLog], error) {
	return viewed(JobLogOf)(joblog.Of(s.client.Cluster()).Get(ctx, in.Queue))
}

type readJobsInput struct {
	Queue string `path:"queue"`
	From  int64  `query:"from" minimum:"0" doc:"The index of the first job. Default: the first that is in the log"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type jobsOutputBody struct {
	Jobs       []Job  `json:"jobs"`
	Unreadable string `json:"unreadable,omitempty" doc:"Why the job behind these can't be read. Others may follow it"`
}

func (s *server) readJobs(ctx context.Context, in *readJobsInput) (*body[jobsOutputBody], error) {
	if err := stack.Reserve(ctx, min(int64(in.Limit), readJobsMost)*jobBytes); err != nil {
		return nil, err
	}
	logs := joblog.Of(s.client.Cluster())
	q, err := logs.Get(ctx, in.Queue)
	if err != nil {
		return nil, err
	}
	jobs, err := logs.Read(ctx, in.Queue, max(in.From, q.First), in.Limit)
	page := jobsOutputBody{Jobs: viewsOf(jobs, func(j *joblog.Job) Job {
		return Job{j.Index, bytesOf(j.Value), timeOf(j.At)}
	})}
	if n := len(jobs); err == nil && 0 < n && n < in.Limit && jobs[n-1].Index < q.Last {
		_, behind := logs.Read(ctx, in.Queue, jobs[n-1].Index+1, 1)
		if errors.Is(behind, layout.ErrNewerRecord) || errors.Is(behind, layout.ErrBadRecord) {
			page.Unreadable = behind.Error()
		}
	}
	return answerWith(page, err)
}

// AppendJobs are jobs to append to a log.
type AppendJobs struct {
	_ struct{} `additionalProperties:"false"` // reject misspelt fields

	Input    json.RawMessage `json:"input,omitempty" doc:"An array of up to 1,000 jobs, as logs of Go types expect them"`
	Values   []string        `json:"values,omitempty" maxItems:"1000" doc:"Or jobs as strings"`
	Encoding string          `json:"encoding,omitempty" enum:"text,base64" doc:"Of values alone; text by default"`
	Producer string          `json:"producer,omitempty" maxLength:"64" doc:"Names the append, together with sequence"`
	Sequence int64           `json:"sequence,omitempty" minimum:"0" doc:"Above 0, higher with each append of a producer"`
}

// jobs returns the jobs as they are stored.
func (b *AppendJobs) jobs() ([][]byte, error) {
	if (len(b.Input) == 0) == (len(b.Values) == 0) {
		return nil, stack.BadRequest("say input or values, one of them, with 1 to %d jobs", joblog.MaxAppend)
	}
	if (b.Producer == "") != (b.Sequence == 0) {
		return nil, stack.BadRequest("say both producer and sequence, above 0, or none of them")
	}
	if len(b.Input) > 0 {
		if b.Encoding != "" {
			return nil, stack.BadRequest("encoding is that of values, and input is JSON: leave out encoding, or send values")
		}
		return jobsOf(b.Input)
	}
	jobs := make([][]byte, 0, len(b.Values))
	for i, value := range b.Values {
		job := []byte(value)
		if b.Encoding == "base64" {
			var err error
			if job, err = base64.StdEncoding.DecodeString(value); err != nil {
				return nil, stack.BadRequest("values[%d] is no base64", i)
			}
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// jobsOf returns the values of an array of JSON, no more than one append takes.
func jobsOf(array []byte) (jobs [][]byte, err error) {
	d := json.NewDecoder(bytes.NewReader(array))
	if token, err := d.Token(); err != nil || token != json.Delim('[') {
		return nil, stack.BadRequest("input: use an array of jobs")
	}
	for d.More() {
		if len(jobs) == joblog.MaxAppend {
			return nil, stack.BadRequest("input: use at most %d jobs", joblog.MaxAppend)
		}
		var job json.RawMessage
		if err := d.Decode(&job); err != nil {
			return nil, stack.BadRequest("input[%d] is no JSON", len(jobs))
		}
		jobs = append(jobs, job)
	}
	if len(jobs) == 0 {
		return nil, stack.BadRequest("input: use an array of 1 to %d jobs", joblog.MaxAppend)
	}
	return jobs, nil
}

type appendJobsInput struct {
	Queue string `path:"queue"`
	Key   string `header:"Idempotency-Key" maxLength:"1024" doc:"Refused: use producer and sequence"`
	Body  AppendJobs
}

// Appended says what an append has done.
type Appended struct {
	Queue    string `json:"queue"`
	Appended int    `json:"appended" doc:"0 if the producer has appended this sequence, or a higher one, before"`
	First    int64  `json:"first" doc:"The index of the first job; 0 if that is known no more"`
}

func (s *server) appendJobs(ctx context.Context, in *appendJobsInput) (*body[Appended], error) {
	if in.Key != "" {
		return nil, stack.BadRequest("an append is not repeated by an Idempotency-Key: leave it out, and say producer " +
			"and sequence")
	}
	jobs, err := in.Body.jobs()
	if err != nil {
		return nil, err
	}
	a := joblog.Append{
		Queue: in.Queue, Jobs: jobs, Producer: in.Body.Producer, Sequence: in.Body.Sequence, Keep: true,
	}
	if a.Producer == "" {
		p, err := s.producers.take(s.client.Cluster())
		if err != nil {
			return nil, err
		}
		defer s.producers.put(p)
		a.Producer, a.Sequence, a.Keep = p.name, p.sequence, false
	}
	first, isNew, err := joblog.Of(s.client.Cluster()).Append(ctx, a)
	done := Appended{Queue: in.Queue, First: first}
	if isNew {
		done.Appended = len(jobs)
	}
	return answerWith(done, err)
}

// producers are the names under which the server appends for requests without one. Each
// is for one request at a time, and the log forgets it a day after its last append.
type producers struct {
	mu   sync.Mutex
	free []*producer
}

type producer struct {
	name     string
	sequence int64
}

func (p *producers) take(cluster *fdbmodel.Cluster) (*producer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.free) - 1; last >= 0 {
		taken := p.free[last]
		p.free = p.free[:last]
		taken.sequence++
		return taken, nil
	}
	name, err := cluster.DrawWorkerID()
	return &producer{string(name), 1}, err
}

func (p *producers) put(used *producer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, used)
}

type removeJobsInput struct {
	Queue string `path:"queue"`
	Force bool   `query:"force" doc:"Even if a process consumes, or did until it died"`
}

func (s *server) removeJobs(ctx context.Context, in *removeJobsInput) (*struct{}, error) {
	return nil, joblog.Of(s.client.Cluster()).Drop(ctx, in.Queue, "", in.Force)
}

type removeConsumerInput struct {
	Queue    string `path:"queue"`
	Consumer string `path:"consumer"`
	Force    bool   `query:"force" doc:"Even if a process consumes, or did until it died"`
}

func (s *server) removeJobConsumer(ctx context.Context, in *removeConsumerInput) (*struct{}, error) {
	return nil, joblog.Of(s.client.Cluster()).Drop(ctx, in.Queue, in.Consumer, in.Force)
}

type listParkedInput struct {
	Queue    string `path:"queue"`
	Consumer string `path:"consumer"`
	After    int64  `query:"after" minimum:"0" doc:"The last index of the page before"`
	Limit    int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type parkedOutputBody struct {
	Jobs []ParkedJob `json:"jobs"`
}

func (s *server) listParked(ctx context.Context, in *listParkedInput) (*body[parkedOutputBody], error) {
	parked, err := s.parked(ctx, joblog.Consumer{Queue: in.Queue, Name: in.Consumer}, in.After, in.Limit)
	return answerWith(parkedOutputBody{viewsOf(parked, parkedOf)}, err)
}

// jobBytes is what a job, parked or not, and its view hold in memory, at most.
const jobBytes = 2 * joblog.MaxJob

// readJobsMost is how many of the largest jobs one read returns: it ends at about 1 MiB.
const readJobsMost = 128

// jobLogBytes is what a log and its view hold in memory with a few consumers.
const jobLogBytes = 4 << 10

func (s *server) parked(ctx context.Context, k joblog.Consumer, after int64, limit int,
) ([]joblog.ParkedJob, error) {
	if err := stack.Reserve(ctx, int64(limit)*jobBytes); err != nil {
		return nil, err
	}
	if err := joblog.Of(s.client.Cluster()).FindConsumer(ctx, k); err != nil {
		return nil, err
	}
	return joblog.Of(s.client.Cluster()).Parked(ctx, k, after, limit)
}

// SettleJobs names parked jobs.
type SettleJobs struct {
	_ struct{} `additionalProperties:"false"` // reject misspelt fields

	Indexes []int64 `json:"indexes,omitempty" maxItems:"1000" doc:"The jobs"`
	All     bool    `json:"all,omitempty" doc:"Or all of them, the first 1,000 above after"`
	After   int64   `json:"after,omitempty" minimum:"0" doc:"With all: the last index of the answer before"`
}

type settleInput struct {
	Queue    string `path:"queue"`
	Consumer string `path:"consumer"`
	Body     SettleJobs
}

// SettledJobs are parked jobs that were retried or dropped.
type SettledJobs struct {
	Queue    string  `json:"queue"`
	Consumer string  `json:"consumer"`
	Indexes  []int64 `json:"indexes" doc:"Those that were parked"`
	Missing  []int64 `json:"missing,omitempty" doc:"Those that were not"`
	More     bool    `json:"more,omitempty" doc:"With all: there may be others above the last index"`
}

func (s *server) retryParked(ctx context.Context, in *settleInput) (*body[SettledJobs], error) {
	return s.settle(ctx, in, joblog.Of(s.client.Cluster()).RetryParked)
}

func (s *server) dropParked(ctx context.Context, in *settleInput) (*body[SettledJobs], error) {
	return s.settle(ctx, in, joblog.Of(s.client.Cluster()).DropParked)
}

// maxSettled is how many parked jobs one request settles.
const maxSettled = 1000

// settle does the same to parked jobs. Those that are gone don't keep it from the
// others.
func (s *server) settle(ctx context.Context, in *settleInput,
	do func(context.Context, joblog.Consumer, int64) error,
) (*body[SettledJobs], error) {
	k, indexes := joblog.Consumer{Queue: in.Queue, Name: in.Consumer}, in.Body.Indexes
	if in.Body.All == (len(indexes) > 0) {
		return nil, stack.BadRequest("say indexes or all, one of them")
	}
	if in.Body.After != 0 && !in.Body.All {
		return nil, stack.BadRequest("after is for all: leave out after, or say all and no indexes")
	}
	out := &body[SettledJobs]{SettledJobs{Queue: k.Queue, Consumer: k.Name, Indexes: []int64{}}}
	if !in.Body.All {
		if err := joblog.Of(s.client.Cluster()).FindConsumer(ctx, k); err != nil {
			return nil, err
		}
	} else {
		parked, err := s.parked(ctx, k, in.Body.After, maxSettled)
		if err != nil {
			return nil, err
		}
		out.Body.More = len(parked) == maxSettled
		for i := range parked {
			indexes = append(indexes, parked[i].Index)
		}
	}
	for _, index := range slices.Compact(slices.Sorted(slices.Values(indexes))) {
		switch err := do(ctx, k, index); {
		case errors.Is(err, fdbmodel.ErrNotFound):
			out.Body.Missing = append(out.Body.Missing, index)
		case err != nil:
			return nil, fmt.Errorf("after %d jobs: %w", len(out.Body.Indexes), err)
		default:
			out.Body.Indexes = append(out.Body.Indexes, index)
		}
	}
	return out, nil
}
