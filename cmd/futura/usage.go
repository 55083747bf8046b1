package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/console"
)

func (a *app) usageCommand() *cobra.Command {
	var from, to, by string
	cmd := &cobra.Command{
		Use: "usage", Short: "Print what the work of a cluster has used, by day or by worker", Args: exactly(0),
		Long: "usage adds up what attempts have used that ended with a result or failed: their run time, processor time " +
			"and memory as far as they are known, and the bytes of arguments and results. Days are those of UTC. A worker is " +
			"named by its --name, a peer by its libp2p peer id, of which the table has the end and --json the whole. " +
			"Workers tell it with their heartbeats; what one had not told when it died is missing. A worker that runs no " +
			"code outside of this process knows the processor time and memory of modules alone.",
		Example: "  futura usage\n  futura usage --by worker --from 2026-01-01 --to 2026-01-31\n  futura usage --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if by != "day" && by != "worker" {
				return usageError{fmt.Errorf("--by %.40q: use day or worker", by)}
			}
			return a.open(cmd.Context(), func(c *futures.Client) error { return a.usage(cmd.Context(), c, from, to, by) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "the first day, such as 2026-01-31 (default: 29 days before the last)")
	flags.StringVar(&to, "to", "", "the last day, at most 399 days later (default: today)")
	flags.StringVar(&by, "by", "day", "a row for each day, or for each worker")
	return cmd
}

func (a *app) usage(ctx context.Context, c *futures.Client, from, to, by string) error {
	first, last, err := httpapi.UsageDays(from, to, c.Cluster().Now())
	if err != nil {
		return usageError{err}
	}
	view, err := httpapi.ReadUsage(ctx, c, first, last, by, func() error { return nil })
	if err != nil {
		return err
	}
	if err = a.show(view, usageRows(view)); err == nil && view.Incomplete != "" {
		err = errors.New("the sums are too low: " + view.Incomplete)
	}
	return err
}

// usageRows are the rows of a view, each within the width of a terminal.
func usageRows(v *httpapi.UsageView) [][]string {
	head := "DAY"
	if v.By == "worker" {
		head = "WORKER"
	}
	rows := [][]string{{head, "ITEMS", "FAILED", "RUN TIME", "CPU", "IN", "OUT", "MEMORY"}}
	row := func(name string, u *httpapi.Used) {
		rows = append(rows, []string{name, strconv.FormatInt(u.Items, 10), strconv.FormatInt(u.Failed, 10), span(u.RunMS),
			span(u.CPUMS), bytesText(u.BytesIn), bytesText(u.BytesOut), bytesText(u.MemoryMax)})
	}
	for i := range v.Rows {
		r := &v.Rows[i]
		name := r.Day
		switch {
		case v.By != "worker":
		case r.Kind == "peer":
			name = "peer " + shortPeer(r.Worker)
		default:
			name = console.Cut(r.Worker, maxUsageName)
		}
		row(name, &r.Used)
	}
	row("total", &v.Total)
	return rows
}

const maxUsageName = 18

// span is a time in milliseconds, to three digits or so; a dash for none.
func span(millis int64) string {
	d := time.Duration(millis) * time.Millisecond
	switch {
	case millis == 0:
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%.3gs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%.3gmin", d.Minutes())
	default:
		return fmt.Sprintf("%.1fh", d.Hours())
	}
}

// bytesText is a number of bytes, to three digits or so; a dash for none.
func bytesText(n int64) string {
	const step, units = 1024, "KMGTPE"
	switch {
	case n == 0:
		return "-"
	case n < step:
		return fmt.Sprintf("%dB", n)
	}
	size, unit := float64(n)/step, 0
	for ; size >= 999.5 && unit < len(units)-1; unit++ {
		size /= step
	}
	return fmt.Sprintf("%.3g%ciB", size, units[unit])
}
