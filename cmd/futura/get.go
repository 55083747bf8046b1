package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/console"
	"github.com/futura-run/futura/internal/wording"
)

func (a *app) getCommand() *cobra.Command {
	var file string
	cmd := a.onFutures(&cobra.Command{
		Use: "get ID", Short: "Print what the store knows about a future",
		Long: "get prints a future's task, its times, its last failed attempt and its result. Arguments and result are cut " +
			"to a line, and those of typed Go functions shown as JSON: await prints a whole result, and --json what is up to " +
			"64 KiB. With --output it writes the bytes of the result instead, whatever their size, and exits with 1 if the " +
			"future failed, and with 5 if it is not over. A file is there once it is whole; after an interruption the same " +
			"call goes on where it ended.",
		Example: "  futura get 01995b4e-6f3a-7c1e-9d2b-0123456789ab --json\n" +
			"  futura get 01995b4e-6f3a-7c1e-9d2b-0123456789ab --output counts.json",
		PreRunE: func(*cobra.Command, []string) error {
			if file == "-" && a.json {
				return usageError{errors.New("--output - prints the result, and excludes --json")}
			}
			return nil
		},
	}, func(ctx context.Context, c *futures.Client, ids []futures.ID) error {
		if file != "" {
			return a.writeResult(ctx, c, ids[0], file)
		}
		return a.get(ctx, c, ids[0])
	})
	cmd.Flags().StringVar(&file, "output", "", "write the result to this file, - for standard output")
	return cmd
}

func (a *app) get(ctx context.Context, c *futures.Client, id futures.ID) error {
	row, err := c.Cluster().Get(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		view, err := httpapi.View(ctx, c.Cluster(), &row)
		if err != nil {
			return err
		}
		return a.printJSON(&view)
	}
	ending := row.Ending()
	ending.Failure = row.Exception
	if err := results.Of(c.Cluster()).LoadUpTo(ctx, &ending, shownValue); err != nil {
		return err
	}
	d := description{row: &row, ending: &ending}
	if row.Spec.ArgsSize <= shownValue {
		if d.args, err = c.Cluster().Args(ctx, row.ID, row.Spec); err != nil {
			return err
		}
	}
	if d.names, err = aliasesOf(ctx, c.Cluster(), []string{row.Spec.Function}); err != nil {
		return err
	}
	if d.edges, err = httpapi.EdgesOf(ctx, c.Cluster(), &row); err != nil {
		return err
	}
	return a.table(d.rows())
}

const (
	// shownValue is the most bytes of arguments or of a result that are looked at to
	// show their beginning.
	shownValue = 64 << 10
	// shownText is how many characters of them are shown.
	shownText = 60
)

// description is what get says of a future.
type description struct {
	row    *layout.Row
	ending *layout.Ending
	args   []byte
	names  map[string]string
	edges  httpapi.Edges
}

func (d *description) rows() [][]string {
	r, spec := d.row, d.row.Spec
	rows := pairs{
		{"id", r.ID.String()}, {"state", d.state()}, {"function", spec.Function}, {"queue", spec.Queue},
		{"submitted", timeText(spec.SubmittedAt)},
	}
	add := rows.add
	add(r.Attempt() > 0 || !r.State().Terminal(), "attempt", "%d of %d", r.Attempt(), spec.MaxRetries+1)
	add(true, "arguments", "%s", valueLine(spec.ArgsSize, spec.Codec, d.args))
	inputs := spec.CountInputs()
	add(inputs > 0, "inputs", "%d: %s", inputs, someIDs(d.edges.Inputs, inputs > shownIDs))
	add(len(d.edges.WaitsFor) > 0, "waits for", "%s", someIDs(d.edges.WaitsFor, d.edges.MoreWaitsFor))
	add(len(d.edges.Dependants) > 0, "used by", "%s", someIDs(d.edges.Dependants, d.edges.MoreDependants))
	if u := spec.Unique; u != nil {
		add(true, "unique", "by %.60q", cmp.Or(u.Key, string(u.Name)))
	}
	add(r.Steps, "steps", "recorded: futura steps %s", r.ID)
	if of := futures.ForkOf(r); of != nil {
		add(true, "forked from", "%s, %s", of.Source, of.From)
	}
	add(r.Forks, "forks", "futura forks %s", r.ID)
	if r.Pins != nil {
		add(true, "pinned by", "%s", strings.Join(r.Pins.Holders, ", "))
	}
	if n := r.Attempts.Refused.Len(); n > 0 {
		last := &r.Attempts.Refused[n-1]
		add(true, "rejected", "%s, last by worker %s at %s", wording.Count(int64(r.Attempts.Rejected), "time"), last.Worker,
			timeText(last.At))
	}
	if r.Object() != "" {
		add(true, "held by", "%s", heldBy(d.edges.HeldBy))
	}
	id, _, _ := layout.SplitWasm(spec.Function)
	add(d.names[id] != "", "alias", "%s, at present", d.names[id])
	add(len(spec.Argv) > 0, "argv", "%q", spec.Argv)
	add(spec.Owner != "", "batch", "%s", spec.Owner)
	if !spec.Lane.IsZero() {
		place := ""
		if r.InLine() {
			place = ", in line"
		}
		add(true, "lane", "%s%s", spec.Lane, place)
	}
	if !r.Attempts.Lifted {
		add(spec.ExpiresAt != 0, "expires", "%s, if it waits", timeText(spec.ExpiresAt))
		add(spec.Deadline != 0, "deadline", "%s", timeText(spec.Deadline))
	}
	add(r.Attempts.Snoozed > 0, "snoozed", "%d times", r.Attempts.Snoozed)
	add(spec.Schedule != "", "schedule", "%s, for %s", spec.Schedule, timeText(spec.ScheduledAt))
	add(len(spec.Tags) > 0, "tags", "%s", strings.Join(spec.Tags, ", "))
	add(spec.Label != "", "label", "%s", spec.Label)
	add(spec.Priority != 0, "priority", "%d", spec.Priority)
	add(spec.Timeout != 0, "timeout", "%v", spec.Timeout)
	need := r.Needs().Requirements
	add(need.CPU != 0, "cpu", "%d thousandths of a core", need.CPU)
	add(need.RAM != 0, "memory", "%s", wording.Count(need.RAM, "byte"))
	add(need.GPU != 0, "gpu", "%d thousandths of a device", need.GPU)
	add(len(need.Labels) > 0, "labels", "%s", layout.LabelText(need.Labels))
	add(r.Claim != nil, "worker", "%s", d.worker())
	add(r.Attempts.Due != 0, "waits until", "%s", timeText(r.Attempts.Due))
	add(r.Attempts.Deaths.Len() > 0, "deaths", "%s", deathsLine(r.Attempts.Deaths))
	add(r.Attempts.Crashes > 0, "crashes", "%d of %d that fail it", r.Attempts.Crashes, fdbmodel.MaxCrashes)
	if p := r.Reported(); p != nil {
		add(true, "progress", "%s", progressLine(p.Done, p.Total, p.Text)+", at "+timeText(p.At))
	}
	if r.Cancel != nil {
		add(true, "asked to stop", "at %s: %s", timeText(r.Cancel.At), firstLine(r.Cancel.Reason))
	}
	return append(rows, d.endingRows()...)
}

// deathsLine names the workers that died while they held the future. It runs again after
// each, which is no attempt more.
func deathsLine(deaths layout.Deaths) string {
	var names []string
	for _, d := range deaths[:deaths.Len()] {
		name := "worker " + string(d.Worker)
		if d.Crash {
			name += " (counts as a crash)"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ") + " died with it"
}

// shownIDs is how many connected futures are named.
const shownIDs = 3

// someIDs names the first of futures, of which there may be more.
func someIDs(ids []futures.ID, more bool) string {
	var names []string
	for _, id := range ids[:min(len(ids), shownIDs)] {
		names = append(names, id.String())
	}
	if more || len(ids) > shownIDs {
		names = append(names, "… (more: futura graph)")
	}
	return strings.Join(names, ", ")
}

// heldBy names the workers that have a result.
func heldBy(workers []futures.WorkerID) string {
	if len(workers) == 0 {
		return "no worker any more"
	}
	var names []string
	for _, w := range workers {
		names = append(names, string(w))
	}
	return strings.Join(names, ", ")
}

// state is the state, which tells those that were cancelled from others that failed.
func (d *description) state() string {
	ending := d.row.Ending()
	if ending.Cancelled() {
		return d.row.State().String() + " (cancelled)"
	}
	return d.row.State().String()
}

func (d *description) worker() string {
	if d.row.Claim == nil {
		return ""
	}
	return string(d.row.Claim.Worker)
}

// failureLine says of which attempt a failure is, if there was one.
func failureLine(attempt int, at int64, kind layout.FailureKind, message string) string {
	text := fmt.Sprintf("at %s, %s: %s", timeText(at), kind, firstLine(message))
	if attempt == 0 {
		return text
	}
	return fmt.Sprintf("attempt %d %s", attempt, text)
}

// endingRows are the last failed attempt and the result.
func (d *description) endingRows() (rows [][]string) {
	failure := d.ending.Failure
	if failure != nil {
		rows = append(rows, []string{"last failure", failureLine(failure.Attempt, failure.At, failure.Kind, failure.Message)})
	}
	if past := d.row.PastAttempts(); len(past) > 1 {
		for _, p := range past[:len(past)-1] {
			rows = append(rows, []string{"earlier", failureLine(p.Attempt, p.At, p.Kind, p.Message)})
		}
	}
	if result := d.ending.Result; result != nil {
		rows = append(rows, []string{"result", valueLine(result.Size, result.Codec, result.Value)},
			[]string{"ended", fmt.Sprintf("%s, ran %v", timeText(result.At), result.RunTime.Round(time.Microsecond))})
	}
	if failure != nil {
		if line := lastLine(failure.Stderr); line != "" {
			rows = append(rows, []string{"stderr ends", line + "   (all of it: --json)"})
		}
	}
	return rows
}

// valueLine is the size of a value and how it begins, where that is known: that of a typed function as
// JSON, if it can be read so.
func valueLine(size int64, codec string, value []byte) string {
	text := wording.Count(size, "byte")
	if len(value) == 0 {
		return text
	}
	if codec == layout.CodecMsgpack && int64(len(value)) == size {
		if shown, err := inspect.MsgpackAsJSON(value); err == nil {
			value, text = shown, text+" of msgpack"
		}
	}
	begin := strings.Join(strings.Fields(console.Printable(string(value[:min(len(value), 4*shownText)]))), " ")
	return text + ": " + console.Cut(begin, shownText)
}
