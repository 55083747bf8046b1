package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

func (a *app) scheduleCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "schedule", Short: "Submit futures at the times of a crontab, or at an interval"}
	cmd.AddCommand(a.scheduleAddCommand(), a.scheduleListCommand(), a.scheduleShowCommand(), a.scheduleNextCommand(),
		a.schedulePauseCommand(), a.scheduleResumeCommand(), a.scheduleTriggerCommand(), a.scheduleRemoveCommand())
	return needsCommand(cmd)
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
	flags.DurationVar(&s.Grace, "grace", layout.DefaultScheduleGrace, "how late a time may be before it is missed")
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
	flags.StringVar(&f.args, "args", "", "the function's input, as text")
	flags.StringVar(&f.argsFile, "args-file", "", "a file with the function's input, - for standard input")
	flags.StringVar(&t.Codec, "codec", "", "the input's encoding: raw, or json for a typed Go function (default: raw)")
	flags.StringArrayVar(&t.Argv, "arg", nil, "an argument of a WASM function; may be repeated")
	flags.StringArrayVar(&f.env, "env", nil, "NAME=VALUE in a WASM function's environment; may be repeated")
	flags.StringVar(&t.Queue, "queue", "", `the queue (default "default")`)
	flags.StringVar(&t.Label, "label", "", "for people, at most 64 bytes")
	flags.Uint8Var(&t.Priority, "priority", 0, "0, the lowest, to 255")
	flags.StringVar(&f.lane, "lane", "", "KIND/KEY: the lane that admits it (see futura lane)")
	flags.Int64Var(&t.Requirements.CPU, "cpu", 0, "the CPU that it needs, in thousandths of a core")
	flags.Int64Var(&t.Requirements.RAM, "ram", 0, "the memory that it needs, in bytes; also the limit of a WASM function")
	flags.Int64Var(&t.Requirements.GPU, "gpu", 0, "the GPU that it needs, in thousandths of a device")
	flags.StringArrayVar(&f.labels, "require-label", nil,
		"NAME=VALUE that the worker must have, such as worker=NAME; may be repeated")
	addRetries(flags, &f.retries)
	flags.DurationVar(&t.Timeout, "timeout", 0, "how long an attempt may run (default: no limit)")
	flags.DurationVar(&t.Expires, "expires", 0,
		"how long it may wait: no attempt begins later, and it fails as expired (default: no limit)")
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

// onSchedule makes a command that takes the name of a schedule.
func (a *app) onSchedule(use, short, long, example string,
	do func(ctx context.Context, c *futures.Client, name string) error,
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.open(cmd.Context(), func(c *futures.Client) error { return do(cmd.Context(), c, args[0]) })
		},
	}
}

func (a *app) scheduleListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the schedules", Example: "  futura schedule list", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.open(cmd.Context(), func(c *futures.Client) error {
				views := []httpapi.Schedule{}
				rows := [][]string{{"NAME", "FUNCTION", "WHEN", "NEXT", "FIRED"}}
				for after := ""; ; {
					page, err := c.Schedules(cmd.Context(), after, 0)
					if err != nil {
						return err
					}
					for i := range page {
						s := &page[i]
						views, after = append(views, httpapi.ScheduleOf(s)), s.Name
						rows = append(rows, []string{s.Name, s.Function, whenText(s), nextText(s), fmt.Sprint(s.Fired)})
					}
					if len(page) == 0 {
						return a.show(views, rows)
					}
				}
			})
		},
	}
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

func (a *app) scheduleShowCommand() *cobra.Command {
	return a.onSchedule("show NAME", "Show a schedule with its next times and its last runs", "",
		"  futura schedule show nightly", func(ctx context.Context, c *futures.Client, name string) error {
			v, err := c.Schedule(ctx, name, 5)
			if err != nil {
				return err
			}
			return a.show(httpapi.ScheduleOf(&v), scheduleRows(&v))
		})
}

func scheduleRows(v *futures.ScheduleView) [][]string {
	rows := [][]string{{"name", v.Name}, {"function", v.Function}, {"queue", v.Queue}, {"when", whenText(v)}}
	add := func(known bool, name, format string, args ...any) {
		if known {
			rows = append(rows, []string{name, fmt.Sprintf(format, args...)})
		}
	}
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
	cmd := a.onSchedule("next NAME", "Print the next times of a schedule",
		"next prints the next times, in the zone of the schedule, one in a line.",
		"  futura schedule next nightly --count 30", func(ctx context.Context, c *futures.Client, name string) error {
			if n < 1 || n > futures.MaxScheduleTimes {
				return usageError{fmt.Errorf("--count %d: use 1 to %d", n, futures.MaxScheduleTimes)}
			}
			v, err := c.Schedule(ctx, name, n)
			if err != nil {
				return err
			}
			rows := make([][]string, len(v.Next))
			for i, at := range v.Next {
				rows[i] = []string{at.Format(zonedForm)}
			}
			return a.show(httpapi.ScheduleOf(&v).Next, rows)
		})
	cmd.Flags().IntVar(&n, "count", 10, "how many")
	return cmd
}

func (a *app) schedulePauseCommand() *cobra.Command {
	var reason string
	cmd := a.onSchedule("pause NAME", "Keep a schedule from firing until it is resumed", "",
		"  futura schedule pause nightly --reason 'migration'",
		func(ctx context.Context, c *futures.Client, name string) error {
			v, err := c.PauseSchedule(ctx, name, reason)
			if err != nil {
				return err
			}
			return a.say(httpapi.ScheduleOf(&v), v.Name, "is paused")
		})
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, stored with the schedule; at most 256 bytes")
	return cmd
}

func (a *app) scheduleResumeCommand() *cobra.Command {
	return a.onSchedule("resume NAME", "Have a paused schedule fire again",
		"resume has a schedule fire from its next time on. Times that passed while it was paused are left out.",
		"  futura schedule resume nightly", func(ctx context.Context, c *futures.Client, name string) error {
			v, err := c.ResumeSchedule(ctx, name)
			if err != nil {
				return err
			}
			return a.sayNext(&v)
		})
}

func (a *app) scheduleTriggerCommand() *cobra.Command {
	return a.onSchedule("trigger NAME", "Submit the future of a schedule at once",
		"trigger submits the future of a schedule and prints its id, even if the schedule is paused or its former future "+
			"is not over. The times of the schedule stay the same.",
		"  futura schedule trigger nightly", func(ctx context.Context, c *futures.Client, name string) error {
			f, err := c.TriggerSchedule(ctx, name)
			if err != nil {
				return err
			}
			return a.say(map[string]any{"id": f.ID()}, f.ID())
		})
}

func (a *app) scheduleRemoveCommand() *cobra.Command {
	return a.onSchedule("remove NAME", "Remove a schedule", "remove removes a schedule. Its futures stay.",
		"  futura schedule remove nightly", func(ctx context.Context, c *futures.Client, name string) error {
			if err := c.RemoveSchedule(ctx, name); err != nil {
				return err
			}
			return a.say(map[string]string{"name": name, "outcome": "removed"}, "removed", name)
		})
}
