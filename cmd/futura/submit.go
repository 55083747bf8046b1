package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

// submitFlags are what submit takes beside the function.
type submitFlags struct {
	task     futures.Task
	args     string
	argsFile string
	env      []string
	after    []string
	stdinOf  []string
	near     string
	lane     string
	labels   []string
	growth   layout.Growth
	unique   uniqueFlags
	retries  int
	wait     bool
	timeout  time.Duration
	at       string // not before
	deadline string
}

func (a *app) submitCommand() *cobra.Command {
	var f submitFlags
	cmd := &cobra.Command{
		Use:   "submit FUNCTION",
		Short: "Submit a future",
		Long: "submit creates a future and prints its id once it is durable. With --wait it prints the result instead, or " +
			"with --json the future as get does. A store of one process has no other workers, so --wait runs a worker for " +
			"WASM functions here. A future that is not over after --wait-timeout or Ctrl-C goes on: wait for it with await." +
			"\n\nA future can take the results of others. It is blocked until all have one, and fails if one of them fails. " +
			"In JSON arguments {\"$future\": \"ID\"} stands for a result.",
		Example: "  futura submit wasm:count --args-file main.go --wait\n" +
			"  echo hello | futura submit wasm:echo --args-file - --wait\n" +
			"  futura submit go:greet --codec json --args '\"world\"' --wait\n" +
			"  futura submit wasm:report --arg daily --env LEVEL=2 --delay 10m --key report-today\n" +
			"  futura submit wasm:merge --stdin-of 01995b4e-6f3a-7c1e-9d2b-0123456789ab --stdin-of " +
			"01995b4e-6f3a-7c1e-9d2b-0123456789ac\n" +
			"  futura submit go:greet --codec json --args '{\"$future\": \"01995b4e-6f3a-7c1e-9d2b-0123456789ab\"}'\n" +
			"  futura submit wasm:report --unique report --on-conflict return --wait\n" +
			"  futura submit wasm:clean --after 01995b4e-6f3a-7c1e-9d2b-0123456789ab\n" +
			"  futura submit go:send --lane mail/acme --args hello",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkSubmit(cmd.Flags(), "future"); err != nil {
				return err
			}
			if f.task.NoRebuild && !f.task.AsObject {
				return usageError{errors.New("--no-rebuild needs --as-object: other results are in the store, and not lost")}
			}
			f.task.Function = args[0]
			f.task.MaxRetries = &f.retries
			if err := f.unique.apply(&f.task, cmd.Flags()); err != nil {
				return err
			}
			return a.submit(cmd.Context(), &f)
		},
	}
	flags, t := cmd.Flags(), &f.task
	f.addFunction(flags)
	flags.StringArrayVar(&f.stdinOf, "stdin-of", nil,
		"the id of a future whose result is the input; may be repeated: one after the other, each once")
	flags.StringArrayVar(&f.after, "after", nil, "the id of a future to wait for; may be repeated")
	flags.Float64Var(&f.growth.Factor, "grow-ram", 0,
		"after an attempt that had too little memory, so many times as much, up to --max-ram")
	flags.Int64Var(&f.growth.Max, "max-ram", 0, "the most memory that it may need with --grow-ram, in bytes")
	flags.BoolVar(&t.AsObject, "as-object", false,
		"keep the result with the worker that makes it, not in the store (needs a worker with --object-memory)")
	flags.BoolVar(&t.NoRebuild, "no-rebuild", false,
		"with --as-object: fail, rather than run again, if the result is lost")
	flags.StringVar(&f.near, "near", "",
		"the id of a future to wait for: run on the worker that has its result as an object, if that is soon free")
	flags.BoolVar(&t.MustBeNear, "must-be-near", false, "run where the result of --near is, and nowhere else")
	flags.BoolVar(&t.RequireFit, "require-fit", false, "refuse it if no worker could ever run it, and say what is lacking")
	f.addTimes(flags)
	f.unique.add(flags)
	f.addSubmit(flags, "future")
	return cmd
}

// addSubmit adds what all commands take that submit one future, which they call so.
func (f *submitFlags) addSubmit(flags *pflag.FlagSet, what string) {
	t := &f.task
	flags.StringVar(&t.Label, "label", "", "for people, at most 64 bytes; futura list --label finds it")
	flags.StringArrayVar(&t.Tags, "tag", nil, "a tag to list it by; may be repeated, up to 8 times")
	flags.StringVar(&t.Key, "key", "", "idempotency key: the same key and content is the same "+what)
	flags.BoolVar(&t.WaitForRoom, "wait-for-room", false, "wait while a limit of the cluster is exceeded")
	flags.BoolVar(&f.wait, "wait", false, "wait for the result and print it")
	flags.DurationVar(&f.timeout, "wait-timeout", 0, "how long to wait at most, also for room (default: no limit)")
}

// checkSubmit refuses flags of addSubmit that would do nothing.
func (f *submitFlags) checkSubmit(flags *pflag.FlagSet, what string) error {
	if flags.Changed("key") && f.task.Key == "" {
		return usageError{fmt.Errorf("--key is empty: a repeated command would submit another %s", what)}
	}
	if flags.Changed("wait-timeout") && !f.wait && !f.task.WaitForRoom {
		return usageError{errors.New("--wait-timeout needs --wait or --wait-for-room: it bounds how long they wait")}
	}
	return nil
}

// addFunction adds what runs, and where.
func (f *submitFlags) addFunction(flags *pflag.FlagSet) {
	t := &f.task
	flags.StringVar(&f.args, "args", "", "the function's input, as text")
	flags.StringVar(&f.argsFile, "args-file", "", "a file with the function's input, - for standard input")
	flags.StringVar(&t.Codec, "codec", "", "the input's encoding: raw, or json for a typed Go function (default: raw)")
	flags.StringArrayVar(&t.Argv, "arg", nil, "an argument of a WASM function; may be repeated")
	flags.StringArrayVar(&f.env, "env", nil, "NAME=VALUE in a WASM function's environment; may be repeated")
	flags.StringVar(&t.Queue, "queue", "", `the queue (default "default")`)
	flags.Uint8Var(&t.Priority, "priority", 0, "0, the lowest, to 255")
	flags.StringVar(&f.lane, "lane", "", "KIND/KEY: the lane that admits it (see futura lane)")
	flags.Int64Var(&t.Requirements.CPU, "cpu", 0, "the CPU that it needs, in thousandths of a core")
	flags.Int64Var(&t.Requirements.RAM, "ram", 0, "the memory that it needs, in bytes; also the limit of a WASM function")
	flags.Int64Var(&t.Requirements.GPU, "gpu", 0, "the GPU that it needs, in thousandths of a device")
	flags.StringArrayVar(&f.labels, "require-label", nil,
		"NAME=VALUE that the worker must have, such as worker=NAME; may be repeated")
}

// addBounds adds how often and how long it may run.
func (f *submitFlags) addBounds(flags *pflag.FlagSet) {
	addRetries(flags, &f.retries)
	flags.DurationVar(&f.task.Timeout, "timeout", 0, "how long an attempt may run (default: no limit)")
	flags.DurationVar(&f.task.Expires, "expires", 0,
		"how long it may wait: no attempt begins later, and it fails as expired (default: no limit)")
}

// addRetries adds --retries. It has a longer name after the field of the record, see aliases.
func addRetries(flags *pflag.FlagSet, to *int) {
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "max-retries" {
			name = "retries"
		}
		return pflag.NormalizedName(name)
	})
	flags.IntVar(to, "retries", futures.DefaultMaxRetries, "how many attempts may follow the first")
}

func (a *app) submit(ctx context.Context, f *submitFlags) error {
	if err := a.readTask(f); err != nil {
		return err
	}
	return a.openOrMake(ctx, func(c *futures.Client) error {
		return a.submitTask(ctx, c, &f.task, f, map[string]any{})
	})
}

// submitTask submits a task, and prints its result or, with its id, the form of what was made.
func (a *app) submitTask(ctx context.Context, c *futures.Client, t *futures.Task, f *submitFlags, form map[string]any,
) error {
	t.NoNotify = !f.wait
	future, left, err := submitWithin(ctx, c, t, f.timeout)
	if err != nil {
		return err
	}
	sayExisted(a.err, future, t)
	if f.wait {
		return a.await(ctx, c, []futures.ID{future.ID()}, left, false, a.printFirst)
	}
	form["id"], form["existed"] = future.ID(), future.Existed()
	return a.say(form, future.ID())
}

// submitWithin submits a task, for which it waits for room no longer than most. It
// returns what is left of that. 0 is no limit.
func submitWithin(ctx context.Context, c *futures.Client, t *futures.Task, most time.Duration,
) (f *futures.Future, left time.Duration, err error) {
	if most <= 0 || !t.WaitForRoom {
		f, err = c.Submit(ctx, *t)
		return f, most, err
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	f, err = c.Submit(ctx, *t)
	end, _ := ctx.Deadline()
	return f, max(time.Until(end), time.Nanosecond), err
}

func (a *app) readTask(f *submitFlags) (err error) {
	if err := f.readTimes(time.Now()); err != nil {
		return err
	}
	if f.args != "" && f.argsFile != "" {
		return usageError{errors.New("--args and --args-file exclude each other")}
	}
	if f.lane != "" {
		if f.task.Lane, err = parseLane(f.lane); err != nil {
			return err
		}
	}
	if err := f.readInputs(); err != nil {
		return err
	}
	f.task.Args = []byte(f.args)
	if f.argsFile != "" {
		if f.task.Args, err = a.readInput(f.argsFile, layout.MaxPut, ", the most that submit takes as input"); err != nil {
			return err
		}
	}
	if f.task.Requirements.Labels, err = layout.ParseLabels(f.labels); err != nil {
		return usageError{fmt.Errorf("--require-label: %w", err)}
	}
	if f.growth != (layout.Growth{}) {
		f.task.GrowMemory = &f.growth
	}
	environment, err := parseEnvironment(f.env)
	for _, e := range environment {
		if f.task.Env == nil {
			f.task.Env = map[string]string{}
		}
		f.task.Env[e.Name] = e.Value
	}
	return err
}

// addTimes adds when the future may run, and how long.
func (f *submitFlags) addTimes(flags *pflag.FlagSet) {
	t := &f.task
	flags.StringVar(&f.at, "at", "", "not before this time, such as 2026-12-24T08:00:00+01:00")
	flags.StringVar(&f.deadline, "deadline", "", deadlineUsage)
	flags.DurationVar(&t.Delay, "delay", 0, "how long it waits before it may run")
	f.addBounds(flags)
}

// readTimes reads when the future may run, and when it must be over.
func (f *submitFlags) readTimes(now time.Time) (err error) {
	if f.at != "" && f.task.Delay != 0 {
		return usageError{errors.New("--at and --delay exclude each other")}
	}
	if f.task.NotBefore, err = timeFlag("at", f.at); err != nil {
		return err
	}
	f.task.Deadline, err = deadlineFlag(f.deadline, now)
	return err
}

// deadlineUsage is the help of --deadline.
const deadlineUsage = "when it must be over: a time, or how long from now, such as 30m (default: no deadline)"

// deadlineFlag parses the value of --deadline; an empty text is none.
func deadlineFlag(text string, now time.Time) (time.Time, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err == nil && d <= 0:
		return time.Time{}, usageError{fmt.Errorf("--deadline %s: it has passed", text)}
	case err == nil:
		return now.Add(d), nil
	}
	at, err := timeFlag("deadline", text)
	if err != nil {
		err = fmt.Errorf("%w, or how long from now, such as 30m", err)
	}
	return at, err
}

// readInputs reads the ids of futures to wait for.
func (f *submitFlags) readInputs() (err error) {
	if len(f.stdinOf) > 0 && (f.args != "" || f.argsFile != "" || f.task.Codec != "" || len(f.after) > 0) {
		return usageError{errors.New("--stdin-of is the whole input, and excludes --args, --args-file, --codec and --after")}
	}
	if f.task.After, err = parseIDs(f.after); err != nil {
		return fmt.Errorf("--after: %w", err)
	}
	if f.near != "" {
		if f.task.Near, err = layout.ParseID(f.near); err != nil {
			return fmt.Errorf("--near: %w", err)
		}
	} else if f.task.MustBeNear {
		return usageError{errors.New("--must-be-near needs --near ID")}
	}
	if len(f.stdinOf) > 0 {
		if f.task.After, err = parseIDs(f.stdinOf); err != nil {
			return fmt.Errorf("--stdin-of: %w", err)
		}
		f.task.Codec = futures.CodecInputs
	}
	return nil
}

// readInput returns a file of at most most bytes, or standard input for "-". hint
// ends the error for a larger one.
func (a *app) readInput(name string, most int64, hint string) ([]byte, error) {
	in := a.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, usageError{err}
		}
		defer file.Close()
		in = file
	}
	content, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s has more than %d bytes%s", name, most, hint)
	}
	if err != nil {
		return nil, usageError{err}
	}
	return content, nil
}

// parseEnvironment reads the values of --env.
func parseEnvironment(list []string) (environment []batch.EnvVar, err error) {
	for _, e := range list {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			return nil, usageError{fmt.Errorf("--env %.40q: use NAME=VALUE", e)}
		}
		environment = append(environment, batch.EnvVar{Name: name, Value: value})
	}
	return environment, nil
}
