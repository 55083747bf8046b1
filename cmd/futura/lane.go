package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

func (a *app) laneCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "lane", Short: "Limit how many futures of a key run at a time, in which order, and how often",
		Long: "A lane is what futures share that are submitted with --lane KIND/KEY. The settings are those of the kind, " +
			"and hold for each key: how many futures of it are admitted at a time, whichever worker runs them, and how many " +
			"in a time. The others wait in line: higher priorities first, then in the order of their commits.",
	}, a.laneSetCommand(), a.onCluster(&cobra.Command{
		Use: "list", Short: "List the kinds of lanes", Example: "  futura lane list",
	}, a.listLaneKinds), a.laneShowCommand(), a.onLane(&cobra.Command{
		Use: "pause KIND [KEY]", Short: "Keep a lane, or all lanes of a kind, from admitting futures",
		Long: "pause keeps a lane, or all lanes of a kind, from admitting futures until it is resumed. What is admitted " +
			"runs.",
		Example: "  futura lane pause mail\n  futura lane pause mail acme",
	}, "paused", (*futures.Client).PauseLaneKind, (*futures.Client).PauseLane), a.onLane(&cobra.Command{
		Use: "resume KIND [KEY]", Short: "Have a lane, or the lanes of a kind, admit futures again",
		Long:    "resume ends a pause. Lanes that were paused themselves stay so when their kind is resumed.",
		Example: "  futura lane resume mail\n  futura lane resume mail acme",
	}, "resumed", (*futures.Client).ResumeLaneKind, (*futures.Client).ResumeLane), a.onCluster(&cobra.Command{
		Use: "remove KIND", Short: "Remove a kind of lanes", Example: "  futura lane remove mail",
		Long: "remove removes a kind of lanes. It is refused while futures of it are admitted or in line; lanes that are " +
			"only paused go with it.",
	}, func(ctx context.Context, c *futures.Client, args []string) error {
		return a.done(mistaken(c.RemoveLaneKind(ctx, args[0])), "removed", "kind", args[0])
	}))
}

// parseRate parses N/TIME, where TIME is a duration or a unit of one; "0" is no rate.
func parseRate(text string) (n int, every time.Duration, err error) {
	if text == "0" {
		return 0, 0, nil
	}
	count, per, found := strings.Cut(text, "/")
	if found {
		if n, err = strconv.Atoi(count); err == nil {
			if every, err = time.ParseDuration(per); err != nil {
				every, err = time.ParseDuration("1" + per)
			}
		}
	}
	if !found || err != nil || n < 1 || every <= 0 {
		return 0, 0, usageError{fmt.Errorf("--rate %.40q: use a number in a time, such as 10/s, 100/m or 5/250ms, or 0 for "+
			"none", text)}
	}
	return n, every, nil
}

func (a *app) laneSetCommand() *cobra.Command {
	var s futures.LaneSettings
	var rate string
	cmd := &cobra.Command{
		Use: "set KIND", Short: "Make a kind of lanes, or change its settings",
		Long: "set makes a kind of lanes, or changes the settings that are given of one that exists. All processes obey " +
			"them at once. What is admitted stays so: a narrower lane admits none until enough of them have ended." +
			"\n\nWith --total the lanes of the kind take turns, and all their admissions conflict with one another: it is " +
			"for kinds whose futures take long. It can only be set or lifted while no future of the kind is admitted or in " +
			"line.\n\nWith --max-waiting a submit is refused, as a whole, that would have more futures in line for one " +
			"lane. For actors, whose lanes are of the kind actor.TYPE, it bounds the calls that wait.",
		Example: "  futura lane set mail --width 1\n  futura lane set crawl --width 2 --rate 10/s --aside\n" +
			"  futura lane set export --total 20\n  futura lane set crawl --rate 0\n" +
			"  futura lane set actor.account --max-waiting 1000\n" +
			"  futura lane set write --bundle go:write --target /table --most 50 --linger 100ms",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if isSet(cmd.Flags(), "rate") {
				if s.Rate, s.Every, err = parseRate(rate); err != nil {
					return err
				}
			}
			return a.setLaneKind(cmd.Context(), cmd.Flags(), args[0], s)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&s.Width, "width", 1, "how many futures of one lane are admitted at a time")
	flags.IntVar(&s.Total, "total", 0,
		"how many futures of all lanes of the kind are admitted at a time; the lanes take turns (default: no bound)")
	flags.StringVar(&rate, "rate", "",
		"how many futures of one lane are admitted in a time, such as 10/s; up to --width of them may start together once "+
			"workers are back (default: no bound)")
	flags.BoolVar(&s.Aside, "aside", false,
		"a future that waits for its next attempt lets the next in line go first, instead of keeping its slot")
	flags.IntVar(&s.MaxWaiting, "max-waiting", 0,
		"how many futures may be in line for one lane: a submit of more is refused (default: no bound)")
	flags.StringVar(&s.Bundle, "bundle", "",
		"the function, as go:NAME, that runs futures of a lane together; workers register it for bundles (default: none)")
	flags.IntVar(&s.Most, "most", 0, "how many futures a bundle has at most (default 100, which is the most)")
	flags.Int64Var(&s.Bytes, "bytes", 0, "how many bytes of arguments a bundle has at most (default 1 MB, at most 4 MiB)")
	flags.DurationVar(&s.Linger, "linger", 0,
		"how long a bundle with more than one future waits for others, at most a minute (default 0)")
	flags.StringVar(&s.Target, "target", "",
		"where the JSON input of a future has its key, as a pointer such as /table, for futura tasks and HTTP")
	return cmd
}

// setLaneKind changes what the flags name, and nothing else.
func (a *app) setLaneKind(ctx context.Context, flags *pflag.FlagSet, name string, s futures.LaneSettings) error {
	return a.openOrMake(ctx, func(c *futures.Client) error {
		was, err := c.LaneKind(ctx, name)
		switch {
		case err == nil:
			eachFlag(flags, false, map[string]func(){
				"width": func() { s.Width = was.Width }, "total": func() { s.Total = was.Total },
				"rate":  func() { s.Rate, s.Every = was.Rate, was.Every },
				"aside": func() { s.Aside = was.Aside }, "max-waiting": func() { s.MaxWaiting = was.MaxWaiting },
			})
			keepBundle(&s, &was, flags)
		case !errors.Is(err, futures.ErrNotFound):
			return err
		}
		if isSet(flags, "width") && s.Width < 1 {
			return usageError{fmt.Errorf("--width %d: use 1 or more, or futura lane pause", s.Width)}
		}
		if err := c.SetLaneKind(ctx, name, s); err != nil {
			return mistaken(err)
		}
		k, err := c.LaneKind(ctx, name)
		if err != nil {
			return err
		}
		return a.say(httpapi.LaneKindOf(&k), name+":", describeKind(&k))
	})
}

// keepBundle keeps what the flags don't change about bundles. Without a function for them
// there is nothing to keep.
func keepBundle(s *futures.LaneSettings, was *futures.LaneKind, flags *pflag.FlagSet) {
	if !isSet(flags, "bundle") {
		s.Bundle = was.Bundle
	}
	if s.Bundle == "" {
		return
	}
	eachFlag(flags, false, map[string]func(){
		"most": func() { s.Most = was.Most }, "bytes": func() { s.Bytes = was.Bytes },
		"linger": func() { s.Linger = was.Linger }, "target": func() { s.Target = was.Target },
	})
}

// mistaken marks what the caller can cure by calling otherwise, or later.
func mistaken(err error) error {
	if errors.Is(err, futures.ErrBadConfig) || errors.Is(err, futures.ErrInUse) {
		return usageError{err}
	}
	return err
}

// describeKind says in a line what a kind of lanes obeys.
func describeKind(k *futures.LaneKind) string {
	text := phrases{fmt.Sprintf("width %d", k.Width)}
	text.add(k.Total > 0, "%d over all lanes", k.Total)
	text.add(k.Rate > 0, "%d in %v", k.Rate, k.Every)
	text.add(k.Aside, "retries step aside")
	text.add(k.MaxWaiting > 0, "at most %d in line", k.MaxWaiting)
	text.add(k.Bundle != "", "%s runs up to %d together, of %d bytes", k.Bundle, k.Most, k.Bytes)
	text.add(k.Target != "", "by %s", k.Target)
	text.add(k.Linger > 0, "which waits %v for more", k.Linger)
	text.add(k.Paused, "paused")
	return text.String()
}

func (a *app) listLaneKinds(ctx context.Context, c *futures.Client, _ []string) error {
	kinds, err := c.LaneKinds(ctx)
	if err != nil && len(kinds) == 0 {
		return err
	}
	return errors.Join(showAll(a, "kinds", kinds, httpapi.LaneKindOf, []string{"KIND", "SETTINGS"},
		func(k *futures.LaneKind) []string { return []string{k.Name, describeKind(k)} }), err)
}

func (a *app) laneShowCommand() *cobra.Command {
	var limit int
	cmd := a.onCluster(&cobra.Command{
		Use: "show KIND [KEY]", Short: "Show a kind with its lanes, or one lane with its line",
		Long: "show prints the settings of a kind and the lanes of it that futures use, or that are paused. With a key it " +
			"prints that lane, and the first futures in line.",
		Example: "  futura lane show mail\n  futura lane show mail acme --limit 50 --json",
	}, func(ctx context.Context, c *futures.Client, args []string) error {
		k, err := c.LaneKind(ctx, args[0])
		if err != nil {
			return err
		}
		if len(args) == 2 {
			return a.showLane(ctx, c, &k, args[1], limit)
		}
		return a.showLaneKind(ctx, c, &k, limit)
	})
	addNumber(cmd, &limit, "limit", 20, 1000, "how many lanes, or futures in line")
	return cmd
}

func (a *app) showLaneKind(ctx context.Context, c *futures.Client, k *futures.LaneKind, limit int) error {
	list, err := c.Lanes(ctx, k.Name, "", limit)
	if err != nil {
		return err
	}
	form := struct {
		httpapi.LaneKind
		Lanes []httpapi.LaneView `json:"lanes"`
		More  bool               `json:"more,omitempty"`
	}{LaneKind: httpapi.LaneKindOf(k), Lanes: []httpapi.LaneView{}}
	rows := [][]string{{"kind", k.Name}, {"settings", describeKind(k)}}
	for i := range list {
		form.Lanes = append(form.Lanes, httpapi.LaneOf(&list[i]))
		rows = append(rows, []string{"lane", list[i].Key + ": " + describeLane(&list[i])})
	}
	if n := len(list); n == limit {
		behind, err := c.Lanes(ctx, k.Name, list[n-1].Key, 1)
		if err != nil {
			return err
		}
		if form.More = len(behind) > 0; form.More {
			rows = append(rows, []string{"", "and others"})
		}
	}
	return a.show(form, rows)
}

// describeLane says in a line what a lane does.
func describeLane(v *futures.LaneView) string {
	text := phrases{fmt.Sprintf("%d admitted", v.Open)}
	text.add(v.MaxWaiting > 0, "%d of at most %d in line", v.Waiting, v.MaxWaiting)
	text.add(v.MaxWaiting <= 0 && v.Lined, "others in line")
	text.add(v.Paused, "paused")
	text.add(v.InTurn, "waits for its turn")
	text.add(!v.HeldUntil.IsZero(), "held by its rate until %s", v.HeldUntil.UTC().Format(time.RFC3339Nano))
	return text.String()
}

func (a *app) showLane(ctx context.Context, c *futures.Client, k *futures.LaneKind, key string, limit int) error {
	v, err := c.Lane(ctx, futures.Lane{Kind: k.Name, Key: key}, limit)
	if err != nil {
		return err
	}
	rows := [][]string{{"lane", v.String()}, {"settings", describeKind(k)}, {"state", describeLane(&v)}}
	for i, id := range v.Line {
		rows = append(rows, []string{fmt.Sprintf("in line %d", i+1), id.String()})
	}
	if v.More {
		rows = append(rows, []string{"", "and others"})
	}
	return a.show(httpapi.LaneOf(&v), rows)
}

// onLane does something with a kind, or with one lane of it.
func (a *app) onLane(cmd *cobra.Command, said string, kind func(*futures.Client, context.Context, string) error,
	lane func(*futures.Client, context.Context, futures.Lane) error,
) *cobra.Command {
	return a.onCluster(cmd, func(ctx context.Context, c *futures.Client, args []string) error {
		form := map[string]string{"kind": args[0], "outcome": said}
		var err error
		if len(args) == 2 {
			form["key"] = args[1]
			err = lane(c, ctx, futures.Lane{Kind: args[0], Key: args[1]})
		} else {
			err = kind(c, ctx, args[0])
		}
		if err != nil {
			return err
		}
		return a.say(form, said, strings.Join(args, "/"))
	})
}
