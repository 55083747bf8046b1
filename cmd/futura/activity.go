package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

func (a *app) activityCommand() *cobra.Command {
	var last, by string
	cmd := &cobra.Command{
		Use: "activity", Short: "Print what happened in a cluster lately, by function, and by minute or hour",
		Long: "activity prints what ended within a span up to now, as workers have told with their last heartbeats: " +
			"futures that succeeded, attempts that failed, and futures that failed for good; how long attempts ran and had " +
			"waited for their start, half of them and 99 of 100 at most, to a factor of two; then the same by minute or " +
			"hour, with the futures that waited and ran when the cluster counted them. It keeps minutes for two hours, and " +
			"hours for eight days.",
		Example: "  futura activity\n  futura activity --last 24h\n  futura activity --last 7d --json",
	}
	flags := cmd.Flags()
	flags.StringVar(&last, "last", "1h", "the span: 1h, 2h, 24h or 7d")
	flags.StringVar(&by, "by", "", "the step: minute, for up to 2h, or hour (default: the smallest one)")
	return a.onCluster(cmd, func(ctx context.Context, c *futures.Client, _ []string) error {
		span, step, err := httpapi.ActivitySpan(last, by)
		if err != nil {
			return usageError{errors.New(strings.NewReplacer("by=", "--by ", "last=", "--last ").Replace(err.Error()))}
		}
		view, err := httpapi.ReadActivity(ctx, c, span, step)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(view)
		}
		functions := make([]string, len(view.Functions))
		for i := range functions {
			functions[i] = view.Functions[i].Function
		}
		aliases, err := aliasesOf(ctx, c.Cluster(), functions)
		if err != nil {
			return err
		}
		if err := a.table(activityFunctions(view, aliases)); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.out); err != nil {
			return err
		}
		return a.table(activityPoints(view))
	})
}

func activityFunctions(v *httpapi.ActivityView, aliases map[string]string) [][]string {
	rows := [][]string{{"FUNCTION", "QUEUE", "DONE", "ERRORS", "FAILED", "RUN", "99%", "WAIT", "99%"}}
	for i := range v.Functions {
		f := &v.Functions[i]
		row := append([]string{functionText(f.Function, aliases), f.Queue}, endTexts(&f.ActivityEnds)...)
		for _, ms := range []float64{f.RunP50MS, f.RunP99MS, f.WaitP50MS, f.WaitP99MS} {
			row = append(row, shortTime(ms))
		}
		rows = append(rows, row)
	}
	return rows
}

// activityPoints are the rows of the steps in which something happened, or was to be done.
func activityPoints(v *httpapi.ActivityView) [][]string {
	rows := [][]string{{"FROM", "DONE", "ERRORS", "FAILED", "WAITING", "RUNNING"}}
	for i := range v.Points {
		p := &v.Points[i]
		if p.ActivityEnds == (httpapi.ActivityEnds{}) && (p.Waiting == nil || *p.Waiting+*p.Running == 0) {
			continue
		}
		row := append([]string{p.At.Format("2006-01-02 15:04Z")}, endTexts(&p.ActivityEnds)...)
		rows = append(rows, append(row, countText(p.Waiting), countText(p.Running)))
	}
	return rows
}

func endTexts(e *httpapi.ActivityEnds) []string {
	return []string{strconv.FormatInt(e.Succeeded, 10), strconv.FormatInt(e.FailedAttempts, 10),
		strconv.FormatInt(e.Failed, 10)}
}

func countText(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

// shortTime is a time in milliseconds, to two digits or so; a dash for none.
func shortTime(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case ms == 0:
		return "-"
	case d < time.Second:
		return fmt.Sprintf("%.3gms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.2gs", d.Seconds())
	case d < 10*time.Hour:
		return fmt.Sprintf("%.3gmin", d.Minutes())
	default:
		return fmt.Sprintf("%.3gh", d.Hours())
	}
}
