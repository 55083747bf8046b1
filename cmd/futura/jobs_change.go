package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/wording"
)

func (a *app) jobsAppendCommand() *cobra.Command {
	var producer string
	cmd := &cobra.Command{
		Use: "append QUEUE [JOB ...]", Short: "Append jobs, or one per line of standard input",
		Args: usage(cobra.MinimumNArgs(1)),
		Long: "append gives each job, or line, the next index of the log, which is made if it does not exist, and prints " +
			"how many there were. Stages of a typed log expect JSON; a line has at most 16 KiB. Consumers are woken." +
			"\n\nWith --producer the log remembers how many lines it has of that name, and the command passes over as many: " +
			"run it again after an interruption, or with a file that has grown, and each line is there once. One command at a " +
			"time may use a name.",
		Example: "  futura jobs append orders '{\"id\": 17}'\n  futura jobs append orders < orders.ndjson\n" +
			"  futura jobs append orders --producer monday.ndjson < monday.ndjson",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.openOrMake(cmd.Context(), func(c *futures.Client) error {
				return a.appendJobs(cmd.Context(), c, args[0], args[1:], producer)
			})
		},
	}
	onceVar(cmd.Flags(), &producer, "producer", "append each line once under this name, such as the file's")
	return cmd
}

// appended is what append prints in JSON.
type appended struct {
	Queue    string `json:"queue"`
	Appended int64  `json:"appended"`
	// Skipped counts lines that were there before.
	Skipped int64 `json:"skipped"`
	// First is the index of the first job that was appended, 0 if none was.
	First uint64 `json:"first"`
}

// lines gathers lines of the input for a log.
type lines struct {
	logs     *joblog.Logs
	producer string
	named    bool  // the producer was named by the caller, and the log remembers it
	number   int64 // of the last line that was read, which grows with each append
	jobs     [][]byte
	size     int
	result   appended
}

func (a *app) appendJobs(ctx context.Context, c *futures.Client, queue string, jobs []string, producer string) error {
	if producer != "" && len(jobs) > 0 {
		return usageError{errors.New("--producer counts lines of standard input: give it the jobs there")}
	}
	if err := layout.CheckName("queue", queue); err != nil {
		return err
	}
	l := &lines{logs: joblog.Of(c.Cluster()), producer: producer, named: producer != "", result: appended{Queue: queue}}
	before, err := l.begin(ctx, c.Cluster())
	if err != nil {
		return err
	}
	for _, job := range jobs {
		l.number++
		if err := l.add(ctx, job); err != nil {
			return a.appendedSoFar(l, err)
		}
	}
	var source io.Reader = strings.NewReader("")
	if len(jobs) == 0 {
		source = a.in
	}
	in := bufio.NewScanner(source)
	in.Buffer(make([]byte, 0, 64<<10), joblog.MaxJob+2)
	for in.Scan() {
		if l.number++; l.number <= before {
			l.result.Skipped++
			continue
		}
		if err := l.add(ctx, in.Text()); err != nil {
			return a.appendedSoFar(l, err)
		}
	}
	err = in.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = usageError{fmt.Errorf("line %d: %w: a job has at most %d bytes", l.number+1, fdbmodel.ErrTooLarge,
			joblog.MaxJob)}
	}
	if failed := l.flush(ctx); failed != nil {
		err = failed
	}
	if err != nil {
		return a.appendedSoFar(l, err)
	}
	return a.say(l.result, "appended", wording.Count(l.result.Appended, "job")+";", l.result.Skipped, "were there")
}

// appendedSoFar adds to an error what was appended before it.
func (a *app) appendedSoFar(l *lines, err error) error {
	return fmt.Errorf("appended %s, and then: %w", wording.Count(l.result.Appended, "job"), err)
}

// begin returns how many lines the log has of the producer, or draws one for this command.
func (l *lines) begin(ctx context.Context, cluster *fdbmodel.Cluster) (before int64, err error) {
	if !l.named {
		drawn, err := cluster.DrawWorkerID()
		l.producer = string(drawn)
		return 0, err
	}
	last, err := l.logs.Producer(ctx, l.result.Queue, l.producer)
	if errors.Is(err, fdbmodel.ErrNotFound) {
		return 0, nil
	}
	return last.Sequence, err
}

// add takes one more line.
func (l *lines) add(ctx context.Context, line string) error {
	if len(line) > joblog.MaxJob {
		l.number--
		if err := l.flush(ctx); err != nil {
			return err
		}
		return usageError{fmt.Errorf("line %d: %w: %d bytes, a job has at most %d", l.number+1, fdbmodel.ErrTooLarge,
			len(line), joblog.MaxJob)}
	}
	if len(l.jobs) == joblog.MaxAppend || l.size+len(line) > joblog.MaxAppendBytes {
		l.number--
		err := l.flush(ctx)
		if l.number++; err != nil {
			return err
		}
	}
	l.jobs, l.size = append(l.jobs, []byte(line)), l.size+len(line)
	return nil
}

// flush appends the lines that were gathered, up to the last that was read.
func (l *lines) flush(ctx context.Context) error {
	if len(l.jobs) == 0 {
		return nil
	}
	first, isNew, err := l.logs.Append(ctx, joblog.Append{
		Queue: l.result.Queue, Jobs: l.jobs, Producer: l.producer, Sequence: l.number, Keep: l.named,
	})
	if err == nil && !isNew {
		err = usageError{fmt.Errorf("another command appends as producer %s: run one at a time", l.producer)}
	}
	if err != nil {
		return err
	}
	l.result.First = cmp.Or(l.result.First, uint64(first))
	l.result.Appended += int64(len(l.jobs))
	l.jobs, l.size = nil, 0
	return nil
}

// parkedCommand makes a command for parked jobs that are named by their indexes, or
// all.
func (a *app) parkedCommand(verb, short, long, outcome string,
	do func(*joblog.Logs, context.Context, joblog.Consumer, int64) error,
) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: verb + " QUEUE CONSUMER INDEX... | --all", Short: short, Long: long,
		Example: fmt.Sprintf("  futura jobs %s orders price 17 23\n  futura jobs %s orders price --all", verb, verb),
		Args:    usage(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 2) {
				return usageError{errors.New("give the indexes of parked jobs, or --all")}
			}
			indexes, err := jobIndexes(args[2:])
			if err != nil {
				return err
			}
			return a.open(cmd.Context(), func(c *futures.Client) error {
				return a.changeParked(cmd.Context(), c, consumerArgs(args), indexes, outcome, do)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all jobs that the consumer has parked")
	return cmd
}

func jobIndexes(args []string) ([]int64, error) {
	indexes := make([]int64, len(args))
	for i, arg := range args {
		var err error
		if indexes[i], err = strconv.ParseInt(arg, 10, 64); err != nil || indexes[i] < 1 {
			return nil, usageError{fmt.Errorf("index %.40q: use a number above 0", arg)}
		}
	}
	return indexes, nil
}

// changeParked does the same to parked jobs, all of them if no index is given, and says to
// how many also if one fails. Those that are gone don't keep it from the others.
func (a *app) changeParked(ctx context.Context, c *futures.Client, k joblog.Consumer, indexes []int64,
	outcome string, do func(*joblog.Logs, context.Context, joblog.Consumer, int64) error,
) error {
	given := len(indexes) > 0
	if !given {
		err := eachParked(ctx, c, k, 0, func(p *joblog.ParkedJob) bool {
			indexes = append(indexes, p.Index)
			return true
		})
		if err != nil {
			return err
		}
	}
	changed := []int64{}
	var failed error
	for _, index := range indexes {
		err := do(joblog.Of(c.Cluster()), ctx, k, index)
		gone := errors.Is(err, fdbmodel.ErrNotFound)
		if err == nil {
			changed = append(changed, index)
		} else if given || !gone {
			failed = errors.Join(failed, err)
		}
		if err != nil && !gone {
			break
		}
	}
	form := map[string]any{"queue": k.Queue, "consumer": k.Name, "outcome": outcome, "indexes": changed}
	return errors.Join(failed, a.say(form, outcome, wording.Count(len(changed), "job")))
}

func (a *app) jobsRemoveCommand() *cobra.Command {
	var consumer string
	var force bool
	cmd := a.onCluster(&cobra.Command{
		Use: "remove QUEUE", Short: "Remove a log with its jobs and consumers, or one consumer",
		Long: "remove removes a log of jobs with everything that belongs to it; with --consumer, the progress and the " +
			"parked jobs of that consumer alone, which then begins anew. A log stays long as long as a consumer that no " +
			"longer runs has not done its jobs: remove that one.",
		Example: "  futura jobs remove orders --consumer old\n  futura jobs remove orders --force",
	}, func(ctx context.Context, c *futures.Client, args []string) error {
		err := joblog.Of(c.Cluster()).Drop(ctx, args[0], consumer, force)
		return a.done(err, "removed", "queue", args[0], "consumer", consumer)
	})
	onceVar(cmd.Flags(), &consumer, "consumer", "remove this consumer alone")
	cmd.Flags().BoolVar(&force, "force", false, "even if a process consumes, or did until it died")
	return cmd
}
