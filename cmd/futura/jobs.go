package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/wording"
)

func (a *app) jobsCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "jobs", Short: "Logs of ordered jobs: show progress, append, and settle jobs that were parked",
		Long: "Logs of ordered jobs are consumed by the stages of Go programs (package batch/jobqueue): each job in turn, " +
			"none skipped. These commands show how far the consumers are, append jobs, and settle those that a consumer has " +
			"put aside because they kept failing.",
	}, a.onCluster(&cobra.Command{
		Use: "list [QUEUE]", Short: "List logs of jobs, with the progress of their consumers",
		Long: "list shows each consumer with the index up to which all jobs are done, how many jobs it is behind, how many " +
			"it has parked, and the job that it is stuck at, if one keeps failing. PROCESS is empty if none consumes, and " +
			"may have died a moment ago.",
		Example: "  futura jobs list\n  futura jobs list orders --json",
	}, a.listJobs), a.onCluster(&cobra.Command{
		Use: "show QUEUE", Short: "Show one log of jobs, with the progress of its consumers",
		Long: "show prints the row of a log that list prints.", Example: "  futura jobs show orders --json",
	}, a.listJobs), a.jobsReadCommand(), a.jobsAppendCommand(), a.jobsParkedCommand(),
		a.parkedCommand("retry", "Have parked jobs tried again",
			"retry has the consumer run parked jobs once more, at its next heartbeat and out of the order. One that is done "+
				"is parked no more; one that fails stays, with the new error.", "retrying", (*joblog.Logs).RetryParked),
		a.parkedCommand("drop", "Forget parked jobs: they will not be done",
			"drop removes jobs from the list of those that a consumer has parked. They will not be done, and an attempt that "+
				"is under way has no effects.", "dropped", (*joblog.Logs).DropParked),
		a.jobsRemoveCommand())
}

func (a *app) listJobs(ctx context.Context, c *futures.Client, args []string) error {
	var queues []joblog.Log
	var err error
	if len(args) > 0 {
		queues = make([]joblog.Log, 1)
		queues[0], err = joblog.Of(c.Cluster()).Get(ctx, args[0])
	} else {
		queues, err = joblog.Of(c.Cluster()).List(ctx)
	}
	if err != nil {
		return err
	}
	logs := make([]httpapi.JobLog, len(queues))
	rows := [][]string{{"QUEUE", "JOBS", "CONSUMER", "PROCESSED", "BEHIND", "PARKED", "PROCESS", "STUCK AT"}}
	for i := range queues {
		logs[i] = httpapi.JobLogOf(&queues[i])
		rows = append(rows, jobsRows(&logs[i])...)
	}
	return a.show(map[string]any{"logs": logs}, rows)
}

func jobsRows(log *httpapi.JobLog) (rows [][]string) {
	jobs := "elsewhere"
	switch {
	case log.Last > 0 && log.First > log.Last:
		jobs = "none"
	case log.Last > 0:
		jobs = fmt.Sprintf("%d-%d", log.First, log.Last)
	}
	for _, c := range log.Consumers {
		stuck, behind, parked := "", "", strconv.Itoa(c.Parked)
		if c.Behind != nil {
			behind = strconv.FormatInt(*c.Behind, 10)
		}
		if c.Parked == joblog.MaxParkedCount {
			parked += "+"
		}
		if c.Error != "" {
			stuck = fmt.Sprintf("job %d, %s: %s", c.Failing, wording.Count(c.Attempts, "attempt"), c.Error)
		}
		processed := strconv.FormatInt(c.Processed, 10)
		if c.Unreadable {
			processed = "unreadable"
		}
		rows = append(rows, []string{log.Queue, jobs, c.Name, processed, behind, parked, c.Process,
			stuck})
	}
	if len(log.Consumers) == 0 {
		rows = append(rows, []string{log.Queue, jobs, "", "", "", "", "", ""})
	}
	return rows
}

// jobForm is a job in JSON.
type jobForm struct {
	Index int64 `json:"index"`
	// Value is the job as text, Bytes in base64 if it is no text.
	Value    string `json:"value,omitempty"`
	Bytes    []byte `json:"bytes,omitempty"`
	At       string `json:"at"`
	Attempts int64  `json:"attempts,omitempty"`
	Error    string `json:"error,omitempty"`
	Retrying bool   `json:"retrying,omitempty"`
}

func (f *jobForm) set(value []byte, at int64) {
	f.At = time.UnixMilli(at).UTC().Format(time.RFC3339)
	if utf8.Valid(value) {
		f.Value = string(value)
	} else {
		f.Bytes = value
	}
}

func (f *jobForm) text() string {
	if f.Bytes != nil {
		return fmt.Sprintf("%d bytes", len(f.Bytes))
	}
	return f.Value
}

func (a *app) jobsReadCommand() *cobra.Command {
	var from int64
	var limit int
	cmd := &cobra.Command{
		Use: "read QUEUE", Short: "Print jobs of a log", Args: exactly(1),
		Long:    "read prints jobs in their order, the index and the time of each first.",
		Example: "  futura jobs read orders --from 1000 --limit 20",
		RunE: func(cmd *cobra.Command, args []string) error {
			if from < 0 || limit < 1 {
				return usageError{fmt.Errorf("--from %d, --limit %d: use an index above 0, and a limit above 0", from, limit)}
			}
			return a.open(cmd.Context(), func(c *futures.Client) error {
				return a.readJobs(cmd.Context(), c, args[0], from, limit)
			})
		},
	}
	cmd.Flags().Int64Var(&from, "from", 0, "the index of the first job (default: the first that is in the log)")
	cmd.Flags().IntVar(&limit, "limit", 100, "how many")
	return cmd
}

func (a *app) readJobs(ctx context.Context, c *futures.Client, queue string, from int64, limit int) error {
	q, err := joblog.Of(c.Cluster()).Get(ctx, queue)
	if err != nil {
		return err
	}
	forms, rows := []jobForm{}, [][]string{}
	for at := max(from, q.First, 1); len(forms) < limit; {
		var jobs []joblog.Job
		if jobs, err = joblog.Of(c.Cluster()).Read(ctx, queue, at, limit-len(forms)); err != nil && len(forms) == 0 {
			return err
		}
		if err != nil || len(jobs) == 0 {
			break
		}
		for i := range jobs {
			form := jobForm{Index: jobs[i].Index}
			form.set(jobs[i].Value, jobs[i].At)
			forms = append(forms, form)
			rows = append(rows, []string{strconv.FormatInt(form.Index, 10), form.At, form.text()})
			at = form.Index + 1
		}
	}
	return errors.Join(a.show(map[string]any{"jobs": forms}, rows), err)
}

// consumerArgs are the arguments QUEUE CONSUMER.
func consumerArgs(args []string) joblog.Consumer {
	return joblog.Consumer{Queue: args[0], Name: args[1]}
}

func (a *app) jobsParkedCommand() *cobra.Command {
	var after int64
	var limit int
	cmd := &cobra.Command{
		Use: "parked QUEUE CONSUMER", Short: "List the jobs that a consumer has put aside", Args: exactly(2),
		Long: "parked lists the jobs that a consumer has passed because they kept failing, with their last error. They " +
			"stay until they are done (futura jobs retry) or dropped (futura jobs drop).",
		Example: "  futura jobs parked orders price --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usageError{fmt.Errorf("--limit %d: use a number above 0", limit)}
			}
			return a.open(cmd.Context(), func(c *futures.Client) error {
				return a.listParked(cmd.Context(), c, consumerArgs(args), after, limit)
			})
		},
	}
	cmd.Flags().Int64Var(&after, "after", 0, "list those above this index")
	cmd.Flags().IntVar(&limit, "limit", 100, "how many")
	return cmd
}

func (a *app) listParked(ctx context.Context, c *futures.Client, k joblog.Consumer, after int64, limit int) error {
	forms, rows := []jobForm{}, [][]string{}
	err := eachParked(ctx, c, k, after, func(p *joblog.ParkedJob) bool {
		form := jobForm{Index: p.Index, Attempts: p.Attempts, Error: p.Error, Retrying: p.Retrying}
		form.set(p.Value, p.At)
		note := form.Error
		if p.Retrying {
			note += " (to be tried again)"
		}
		forms = append(forms, form)
		rows = append(rows, []string{strconv.FormatInt(form.Index, 10), wording.Count(p.Attempts, "attempt"), form.At, note})
		return len(forms) < limit
	})
	if err != nil {
		return err
	}
	return a.show(map[string]any{"jobs": forms}, rows)
}

// eachParked calls fn with the parked jobs above an index, until it returns false. It
// returns ErrNotFound for a consumer that does not exist.
func eachParked(ctx context.Context, c *futures.Client, k joblog.Consumer, after int64,
	fn func(*joblog.ParkedJob) bool,
) error {
	const page = 1000
	if err := joblog.Of(c.Cluster()).FindConsumer(ctx, k); err != nil {
		return err
	}
	for {
		parked, err := joblog.Of(c.Cluster()).Parked(ctx, k, after, page)
		if err != nil || len(parked) == 0 {
			return err
		}
		for i := range parked {
			if !fn(&parked[i]) {
				return nil
			}
		}
		after = parked[len(parked)-1].Index
	}
}
