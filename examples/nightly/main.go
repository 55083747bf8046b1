// Command nightly writes a report of the day before, each night at half past two by
// the clock of a place: a schedule, the function that it runs, and what becomes of
// nights on which nobody was there. docs/guide/schedules.md goes through it.
//
//	go run ./examples/nightly                                # in memory: one report, at once
//	go run ./examples/nightly --store embedded:./nightly --wait   # until it is stopped
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// Report says what is to be reported.
type Report struct {
	Shop string
}

var report = futures.Define[Report, string]("report", futures.Timeout(time.Hour))

func main() {
	store := flag.String("store", "memory:", "where the schedule and its reports are kept")
	wait := flag.Bool("wait", false, "wait for the nights, instead of one report at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *store, *wait, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, store string, wait bool, out io.Writer) (err error) {
	node, err := futura.Open(ctx, store, futura.Function(report.Bind(reportOf)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	schedule, err := nightly()
	if err != nil {
		return err
	}
	planned, err := node.Client.PutSchedule(ctx, schedule)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "the next report is due at", planned.Next[0].Format("15:04"))
	if wait {
		awaitStop(ctx, node)
		return nil
	}
	return reportNow(ctx, node.Client, out)
}

// awaitStop waits until the process is to stop, or until its worker has, as its store failed: Close says why.
func awaitStop(ctx context.Context, node *futura.Node) {
	select {
	case <-ctx.Done():
	case <-node.Ended():
	}
}

// nightly is the same in every process that may put it: putting it again changes
// nothing.
func nightly() (futures.Schedule, error) {
	task, err := report.Task(Report{Shop: "Zurich"}, futures.Retries(5))
	return futures.Schedule{
		Name: "nightly-report", Task: task,
		Cron: "30 2 * * *", Zone: "Europe/Zurich", Except: []string{"12-26", "01-02"}, // the shop was closed the day before
		Missed: futures.MissedCatchUp, CatchUp: 7, // a week without workers loses no report
		Overlap: futures.OverlapQueue, // a long report delays the next one
	}, err
}

// reportOf reports the day before the time that its future stands for, however much
// later it runs.
func reportOf(ctx context.Context, r Report) (string, error) {
	info, _ := workers.InfoFrom(ctx)
	zone, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		return "", workers.Permanent(err)
	}
	day := info.ScheduledAt.In(zone).AddDate(0, 0, -1)
	return fmt.Sprintf("sales of %s on %s", r.Shop, day.Format(time.DateOnly)), nil
}

// reportNow does not wait for the night.
func reportNow(ctx context.Context, client *futures.Client, out io.Writer) error {
	future, err := client.TriggerSchedule(ctx, "nightly-report")
	if err != nil {
		return err
	}
	text, err := report.Of(future).Await(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, text)
	return nil
}
