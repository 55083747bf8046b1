package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/fdbmodel/schedule"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

func (a *app) scheduleCommand() *cobra.Command {
	return group(&cobra.Command{Use: "schedule", Short: "Submit futures at the times of a crontab, or at an interval"},
		a.scheduleAddCommand(), a.onCluster(&cobra.Command{
			Use: "list", Short: "List the schedules", Example: "  futura schedule list",
		}, a.listSchedules), a.onCluster(&cobra.Command{
			Use: "show NAME", Short: "Show a schedule with its next times and its last runs",
			Example: "  futura schedule show nightly",
		}, func(ctx context.Context, c *futures.Client, args []string) error {
			v, err := c.Schedule(ctx, args[0], 5)
			if err != nil {
				return err
			}
			return a.show(httpapi.ScheduleOf(&v), scheduleRows(&v))
		}), a.scheduleNextCommand(), a.schedulePauseCommand(), a.onCluster(&cobra.Command{
			Use: "resume NAME", Short: "Have a paused schedule fire again", Example: "  futura schedule resume nightly",
			Long: "resume has a schedule fire from its next time on. Times that passed while it was paused are left out.",
		}, func(ctx context.Context, c *futures.Client, args []string) error {
			v, err := c.ResumeSchedule(ctx, args[0])
			if err != nil {
				return err
			}
			return a.sayNext(&v)
		}), a.onCluster(&cobra.Command{
			Use: "trigger NAME", Short: "Submit the future of a schedule at once", Example: "  futura schedule trigger nightly",
			Long: "trigger submits the future of a schedule and prints its id, even if the schedule is paused or its former " +
				"future is not over. The times of the schedule stay the same.",
		}, func(ctx context.Context, c *futures.Client, args []string) error {
			f, err := c.TriggerSchedule(ctx, args[0])
			if err != nil {
				return err
			}
			return a.say(map[string]any{"id": f.ID()}, f.ID())
		}), a.onCluster(&cobra.Command{
			Use: "remove NAME", Short: "Remove a schedule", Example: "  futura schedule remove nightly",
			Long: "remove removes a schedule. Its futures stay.",
		}, func(ctx context.Context, c *futures.Client, args []string) error {
			return a.done(c.RemoveSchedule(ctx, args[0]), "removed", "name", args[0])
		}))
}

// scheduleFlags are what add takes beside the name and the function.
type scheduleFlags struct {
	submitFlags
	schedule    futures.Schedule
	from, until string
	replace     bool
}

func (a *app) scheduleAddCommand() *cobra.Command {
	var f scheduleFlags
	cmd := &cobra.Command{
		Use: "add NAME FUNCTION", Short: "Make a schedule, or with --replace change it",
		Long: "add makes a schedule that submits a future at each time of a crontab line, or at an interval, as long as " +
			"a worker runs. Each time fires once, however many workers there are. The same definition again changes " +
			"nothing; another one for a schedule that exists needs --replace, which keeps its history." +
			"\n\nA time of day that the clock jumps over, when summer time begins, fires once at the jump. One that " +
			"exists twice, when it ends, fires the first time. With * as the hour it fires in every hour that passes." +
			"\n\nTimes that no worker looked at for longer than --grace are missed. By default (--missed once) the last of " +
			"them fires when a worker is back, unless a later time is in time.",
		Example: "  futura schedule add nightly go:report --cron '30 2 * * *' --zone Europe/Zurich\n" +
			"  futura schedule add office wasm:mail --cron '0 8 * * mon-fri' --zone America/New_York --except 12-25 " +
			"--except 2026-11-26\n" +
			"  futura schedule add poll go:poll --every 90s --overlap skip\n" +
			"  futura schedule add billing go:bill --cron @monthly --missed catch-up --replace",
		Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.schedule.Name, f.task.Function, f.task.MaxRetries = args[0], args[1], &f.retries
			return a.addSchedule(cmd.Context(), &f)
		},
	}
	flags, s := cmd.Flags(), &f.schedule
	flags.StringVar(&s.Cron, "cron", "", "a crontab line: minute hour day-of-month month day-of-week, or @daily and such")
	flags.StringVar(&s.Zone, "zone", "", "the time zone of the crontab line, such as Europe/Zurich (default: UTC)")
	flags.DurationVar(&s.Every, "every", 0, "an interval, instead of a crontab line; the first time is --from, or now")
	flags.StringVar(&f.from, "from", "", "the first moment, such as 2026-12-01T08:00:00Z; intervals are counted from it")
	flags.StringVar(&f.until, "until", "", "the last moment")
	flags.StringArrayVar(&s.Except, "except", nil, "a date without it: YYYY-MM-DD, or MM-DD; may be repeated")
	flags.StringVar(&s.Missed, "missed", futures.MissedOnce,
		"what happens with times that no worker looked at: once, skip or catch-up")
	flags.IntVar(&s.CatchUp, "catch-up", 0, "with --missed catch-up: the most times to catch up with (default: 100)")
	flags.DurationVar(&s.Grace, "grace", schedule.DefaultGrace, "how late a time may be before it is missed")
	flags.StringVar(&s.Overlap, "overlap", futures.OverlapAllow,
		"what happens while the former future is not over: allow, skip or queue")
	flags.DurationVar(&s.Deadline, "deadline", 0,
		"how long after its submit a future must be over, or it fails as deadline (default: no limit)")
	flags.BoolVar(&f.replace, "replace", false, "change the schedule if there is one with this name")
	f.addTask(flags)
	return cmd
}

// addTask adds what describes the future.
func (f *scheduleFlags) addTask(flags *pflag.FlagSet) {
	t := &f.task
	f.addFunction(flags)
	flags.StringVar(&t.Label, "label", "", "for people, at most 64 bytes")
	f.addBounds(flags)
}

func (a *app) addSchedule(ctx context.Context, f *scheduleFlags) (err error) {
	if err := a.readTask(&f.submitFlags); err != nil {
		return err
	}
	s := &f.schedule
	if s.From, err = timeFlag("from", f.from); err != nil {
		return err
	}
	if s.Until, err = timeFlag("until", f.until); err != nil {
		return err
	}
	s.Task = f.task
	return a.openOrMake(ctx, func(c *futures.Client) error {
		put := c.AddSchedule
		if f.replace {
			put = c.PutSchedule
		}
		view, err := put(ctx, *s)
		if errors.Is(err, futures.ErrExists) {
			return usageError{fmt.Errorf("%w (--replace)", err)}
		}
		if err != nil {
			return err
		}
		return a.sayNext(&view)
	})
}

// timeFlag parses a time; an empty text is none.
func timeFlag(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, usageError{fmt.Errorf("--%s %.40q: use a time such as 2026-12-24T08:00:00Z or 2026-12-24T08:00:00+01:00",
			name, text)}
	}
	return at, nil
}

// sayNext says when a schedule fires next.
func (a *app) sayNext(v *futures.ScheduleView) error {
	return a.say(httpapi.ScheduleOf(v), v.Name, "fires next", nextText(v))
}

func nextText(v *futures.ScheduleView) string {
	switch {
	case !v.PausedAt.IsZero():
		return "never: paused"
	case len(v.Next) == 0:
		return "never: it has ended"
	}
	return v.Next[0].Format(zonedForm)
}

// zonedForm shows a time of a schedule with its offset, which changes with summer time.
const zonedForm = "2006-01-02 15:04:05 -07:00"

func (a *app) listSchedules(ctx context.Context, c *futures.Client, _ []string) error {
	var all []futures.ScheduleView
	for after := ""; ; after = all[len(all)-1].Name {
		page, err := c.Schedules(ctx, after, 0)
		if err != nil {
			return err
		}
		if all = append(all, page...); len(page) == 0 {
			break
		}
	}
	return showAll(a, "schedules", all, httpapi.ScheduleOf, []string{"NAME", "FUNCTION", "WHEN", "NEXT", "FIRED"},
		func(s *futures.ScheduleView) []string {
			return []string{s.Name, s.Function, whenText(s), nextText(s), fmt.Sprint(s.Fired)}
		})
}

func whenText(s *futures.ScheduleView) string {
	if s.Every != 0 {
		return "every " + s.Every.String()
	}
	if s.Zone == "" {
		return s.Cron + " UTC"
	}
	return s.Cron + " " + s.Zone
}

func scheduleRows(v *futures.ScheduleView) [][]string {
	rows := pairs{{"name", v.Name}, {"function", v.Function}, {"queue", v.Queue}, {"when", whenText(v)}}
	add := rows.add
	add(!v.From.IsZero(), "from", "%s", v.From.UTC().Format(time.RFC3339))
	add(!v.Until.IsZero(), "until", "%s", v.Until.UTC().Format(time.RFC3339))
	add(len(v.Except) > 0, "except", "%s", strings.Join(v.Except, " "))
	add(true, "missed", "%s, after %v", v.Missed, v.Grace)
	add(true, "overlap", "%s", v.Overlap)
	add(!v.PausedAt.IsZero(), "paused", "since %s %s", v.PausedAt.UTC().Format(time.RFC3339), v.Reason)
	for _, at := range v.Next {
		add(true, "next", "%s", at.Format(zonedForm))
	}
	add(len(v.Waiting) > 0, "waiting", "%d, for the former future to end", len(v.Waiting))
	add(true, "times", "%d fired, %d missed, %d skipped, %d refused", v.Fired, v.MissedTimes, v.SkippedTimes,
		v.RefusedTimes)
	for _, r := range v.Runs {
		what := r.ID.String()
		if r.ID.IsZero() {
			what = r.Error
		}
		if r.Triggered {
			what += " (triggered)"
		}
		add(true, "run", "%s  %s", r.At.UTC().Format(time.RFC3339), what)
	}
	return rows
}

func (a *app) scheduleNextCommand() *cobra.Command {
	var n int
	cmd := a.onCluster(&cobra.Command{
		Use: "next NAME", Short: "Print the next times of a schedule", Example: "  futura schedule next nightly --count 30",
		Long: "next prints the next times, in the zone of the schedule, one in a line.",
	}, func(ctx context.Context, c *futures.Client, args []string) error {
		v, err := c.Schedule(ctx, args[0], n)
		if err != nil {
			return err
		}
		rows := make([][]string, len(v.Next))
		for i, at := range v.Next {
			rows[i] = []string{at.Format(zonedForm)}
		}
		return a.show(httpapi.ScheduleOf(&v).Next, rows)
	})
	addNumber(cmd, &n, "count", 10, futures.MaxScheduleTimes, "how many")
	return cmd
}

func (a *app) schedulePauseCommand() *cobra.Command {
	var reason string
	cmd := a.onCluster(&cobra.Command{
		Use: "pause NAME", Short: "Keep a schedule from firing until it is resumed",
		Example: "  futura schedule pause nightly --reason 'migration'",
	}, func(ctx context.Context, c *futures.Client, args []string) error {
		v, err := c.PauseSchedule(ctx, args[0], reason)
		if err != nil {
			return err
		}
		return a.say(httpapi.ScheduleOf(&v), v.Name, "is paused")
	})
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, stored with the schedule; at most 256 bytes")
	return cmd
}
