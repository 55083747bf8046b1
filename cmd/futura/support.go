package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

// supportRows is how many futures, schedules and logs an archive has of each at most.
const supportRows = 100

// supportPart is a file of the archive.
type supportPart struct {
	name, what string
	read       func(ctx context.Context, c *futures.Client) (any, error)
}

func (a *app) supportCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "support", Short: "Write what a maintainer needs to understand a cluster, into a file",
		Long: "support writes an archive to send to whoever helps you: versions, settings, counts, workers, what " +
			"happened in the last day, lanes, schedules, job logs, limits, and the last futures that failed or wait. It " +
			"contains names of functions, queues, workers, kinds of lanes and schedules. It contains no arguments, results, " +
			"errors, outputs, job values, reasons, tags, labels, keys of lanes, tokens or addresses. Look at it before you " +
			"send it: README.txt in it lists its files.",
		Example: "  futura support\n  futura support --output monday.zip",
	}
	cmd.Flags().StringVar(&output, "output", "", "the file, which must not exist (default futura-support-TIME.zip)")
	return a.onCluster(cmd, func(ctx context.Context, c *futures.Client, _ []string) error {
		if output == "" {
			output = "futura-support-" + time.Now().UTC().Format("20060102T150405Z") + ".zip"
		}
		if err := writeSupport(ctx, c, output); err != nil {
			return err
		}
		return a.done(nil, "written", "file", output)
	})
}

// writeSupport writes the archive, whole or not at all. What can't be read is named in it.
func writeSupport(ctx context.Context, c *futures.Client, path string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return usageError{err}
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	archive := zip.NewWriter(f)
	about := []string{"What this archive of a Futura cluster contains:", ""}
	for _, part := range supportParts() {
		line := fmt.Sprintf("%-16s %s", part.name, part.what)
		found, failed := part.read(ctx, c)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case failed != nil && !layout.IsUnreadable(failed):
			about = append(about, line+": could not be read: "+failed.Error())
			continue
		case failed != nil:
			line += ": some could not be read: " + failed.Error() // found is the rest
		}
		about = append(about, line)
		text, err := json.MarshalIndent(found, "", "  ")
		if err != nil {
			return err
		}
		if err := addFile(archive, part.name, text); err != nil {
			return err
		}
	}
	if err := addFile(archive, "README.txt", []byte(strings.Join(about, "\n")+"\n")); err != nil {
		return err
	}
	return archive.Close()
}

func addFile(archive *zip.Writer, name string, content []byte) error {
	w, err := archive.Create(name)
	if err == nil {
		_, err = w.Write(content)
	}
	return err
}

// supportParts are the files of an archive.
func supportParts() []supportPart {
	return []supportPart{
		{"about.json", "versions and the machine", func(context.Context, *futures.Client) (any, error) {
			return map[string]any{"futura": version, "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH,
				"processors": runtime.NumCPU(), "at": time.Now().UTC()}, nil
		}},
		{"cluster.json", "settings, and how many futures there are by queue and state", supportCluster},
		{"workers.json", "workers, without labels and addresses", supportWorkers},
		{"hour.json", "what happened in the last hour, by minute", supportActivity(time.Hour, time.Minute)},
		{"day.json", "what happened in the last day, by hour", supportActivity(24*time.Hour, time.Hour)},
		{"failed.json", "the last failed futures, without messages", supportFailed},
		{"waiting.json", "the last futures that wait, with the reason of each", supportWaiting},
		{"pauses.json", "pauses, without reasons", func(ctx context.Context, c *futures.Client) (any, error) {
			pauses, err := c.Pauses(ctx)
			for i := range pauses {
				pauses[i].Reason = ""
			}
			return pauses, err
		}},
		{"lanes.json", "kinds of lanes, without keys", func(ctx context.Context, c *futures.Client) (any, error) {
			return c.LaneKinds(ctx)
		}},
		{"schedules.json", "schedules, without what they submit", supportSchedules},
		{"jobs.json", "job logs and their consumers, without jobs and errors", supportJobs},
		{"limits.json", "limits, and what is used of them", func(ctx context.Context, c *futures.Client) (any, error) {
			limits, used, err := c.Limits(ctx)
			return httpapi.LimitsOf(limits, used), err
		}},
	}
}

func supportCluster(ctx context.Context, c *futures.Client) (any, error) {
	counts, err := c.Counts(ctx)
	return httpapi.ClusterOf(c.Cluster().Name(), c.Cluster().Config(), counts), err
}

func supportWorkers(ctx context.Context, c *futures.Client) (any, error) {
	members, err := c.Cluster().Workers(ctx)
	workers := make([]httpapi.Worker, len(members))
	for i := range members {
		workers[i] = httpapi.WorkerOf(&members[i])
		workers[i].Labels, workers[i].Address = nil, ""
	}
	return workers, err
}

func supportActivity(span, step time.Duration) func(context.Context, *futures.Client) (any, error) {
	return func(ctx context.Context, c *futures.Client) (any, error) {
		return httpapi.ReadActivity(ctx, c, span, step)
	}
}

// supportFuture is a future without anything that its user has written but names.
type supportFuture struct {
	ID, State, Function, Queue string
	Attempt, Deaths, Rejected  int
	Submitted, Ended           time.Time
	Why                        string `json:",omitempty"`
}

func supportFutureOf(v *futures.View) supportFuture {
	f := supportFuture{
		ID: v.ID.String(), State: v.State.String(), Function: v.Function, Queue: v.Queue, Attempt: v.Attempt,
		Deaths: v.Deaths, Rejected: v.Rejected, Submitted: v.SubmittedAt.UTC(), Ended: v.FinishedAt.UTC(),
	}
	if v.Failure != nil {
		f.Why = string(v.Failure.Kind)
	}
	return f
}

func supportFutures(ctx context.Context, c *futures.Client, state layout.State, most int) ([]supportFuture, error) {
	views, _, err := c.List(ctx, inspect.Filter{State: state, Newest: true}, nil, most)
	found := make([]supportFuture, len(views))
	for i := range views {
		found[i] = supportFutureOf(&views[i])
	}
	return found, err
}

func supportFailed(ctx context.Context, c *futures.Client) (any, error) {
	return supportFutures(ctx, c, layout.Failed, supportRows)
}

// supportWaiting names the reason of each, not its text, which may have labels.
func supportWaiting(ctx context.Context, c *futures.Client) (any, error) {
	found, err := supportFutures(ctx, c, layout.Ready, 20)
	for i := range found {
		id, bad := layout.ParseID(found[i].ID)
		why, failed := c.Explain(ctx, id)
		if bad == nil && failed == nil {
			found[i].Why = string(why.Reason)
		}
	}
	return found, err
}

func supportSchedules(ctx context.Context, c *futures.Client) (any, error) {
	list, err := c.Schedules(ctx, "", supportRows)
	views := make([]httpapi.Schedule, len(list))
	for i := range list {
		views[i] = httpapi.ScheduleOf(&list[i])
		views[i].Reason = ""
		for j := range views[i].Runs {
			views[i].Runs[j].Error = ""
		}
	}
	return views, err
}

func supportJobs(ctx context.Context, c *futures.Client) (any, error) {
	logs, err := joblog.Of(c.Cluster()).Page(ctx, "", supportRows)
	views := make([]httpapi.JobLog, len(logs))
	for i := range logs {
		views[i] = httpapi.JobLogOf(&logs[i])
		views[i].Consumers = slices.Clone(views[i].Consumers)
		for j := range views[i].Consumers {
			views[i].Consumers[j].Error, views[i].Consumers[j].Process = "", ""
		}
	}
	return views, err
}
