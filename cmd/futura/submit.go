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

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

// submitFlags are what submit takes beside the function.
type submitFlags struct {
	task     futures.Task
	args     string
	argsFile string
	env      []string
	retries  int
	wait     bool
	timeout  time.Duration
}

func (a *app) submitCommand() *cobra.Command {
	var f submitFlags
	cmd := &cobra.Command{
		Use:   "submit FUNCTION",
		Short: "Submit a future",
		Long: "submit makes a future and prints its id once it is durable. With --wait it prints the result instead,\n" +
			"with --json the future as get does. A store of one process has no other workers, so --wait runs a worker for\n" +
			"WASM functions here. A future that is not over after --wait-timeout, or Ctrl-C, stays: await goes on with it.",
		Example: "  futura submit wasm:count --args-file main.go --wait\n" +
			"  echo hello | futura submit wasm:echo --args-file - --wait\n" +
			"  futura submit go:greet --codec json --args '\"world\"' --wait\n" +
			"  futura submit wasm:report --arg daily --env LEVEL=2 --delay 10m --key report-today",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("key") && f.task.Key == "" {
				return usageError{errors.New("--key is empty: a submit that is repeated would make another future")}
			}
			f.task.Function = args[0]
			f.task.MaxRetries = &f.retries
			return a.submit(cmd.Context(), &f)
		},
	}
	flags, t := cmd.Flags(), &f.task
	flags.StringVar(&f.args, "args", "", "the function's input, as text")
	flags.StringVar(&f.argsFile, "args-file", "", "a file with the function's input, - for standard input")
	flags.StringVar(&t.Codec, "codec", "", "what the input is: raw, or json for a typed Go function (default raw)")
	flags.StringArrayVar(&t.Argv, "arg", nil, "an argument of a WASM function; may be repeated")
	flags.StringArrayVar(&f.env, "env", nil, "NAME=VALUE in a WASM function's environment; may be repeated")
	flags.StringVar(&t.Queue, "queue", "", `the queue (default "default")`)
	flags.Uint8Var(&t.Priority, "priority", 0, "0, the lowest, to 255")
	flags.Int64Var(&t.Requirements.CPU, "cpu", 0, "thousandths of a core that it needs")
	flags.Int64Var(&t.Requirements.RAM, "ram", 0, "bytes of memory that it needs, and the most that a WASM function gets")
	flags.Int64Var(&t.Requirements.GPU, "gpu", 0, "thousandths of a GPU that it needs")
	flags.IntVar(&f.retries, "max-retries", futures.DefaultMaxRetries, "attempts after the first")
	flags.DurationVar(&t.Timeout, "timeout", 0, "the longest that an attempt may run (default: no limit)")
	flags.DurationVar(&t.Delay, "delay", 0, "not before this much time has passed")
	flags.StringVar(&t.Key, "key", "", "idempotency key: the same key and content is the same future")
	flags.BoolVar(&f.wait, "wait", false, "wait for the result and print it")
	flags.DurationVar(&f.timeout, "wait-timeout", 0, "the longest to wait (default: no limit)")
	return cmd
}

func (a *app) submit(ctx context.Context, f *submitFlags) error {
	if err := a.readTask(f); err != nil {
		return err
	}
	return a.openOrMake(ctx, func(c *futures.Client) error {
		f.task.NoNotify = !f.wait
		future, err := c.Submit(ctx, f.task)
		if err != nil {
			return err
		}
		if f.wait {
			return a.await(ctx, c, []futures.ID{future.ID()}, f.timeout, a.printFirst)
		}
		if a.json {
			return a.printJSON(map[string]any{"id": future.ID(), "existed": future.Existed()})
		}
		_, err = fmt.Fprintln(a.out, future.ID())
		return err
	})
}

func (a *app) readTask(f *submitFlags) error {
	if f.args != "" && f.argsFile != "" {
		return usageError{errors.New("--args and --args-file exclude each other")}
	}
	f.task.Args = []byte(f.args)
	if f.argsFile != "" {
		in := a.in
		if f.argsFile != "-" {
			file, err := os.Open(f.argsFile)
			if err != nil {
				return usageError{err}
			}
			defer file.Close()
			in = file
		}
		input, err := io.ReadAll(io.LimitReader(in, layout.MaxPut+1))
		if err != nil {
			return usageError{err}
		}
		if len(input) > layout.MaxPut {
			return usageError{fmt.Errorf("%s has more than %d bytes, the most that submit takes as input",
				f.argsFile, layout.MaxPut)}
		}
		f.task.Args = input
	}
	for _, e := range f.env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			return usageError{fmt.Errorf("--env %q: use NAME=VALUE", e)}
		}
		if f.task.Env == nil {
			f.task.Env = map[string]string{}
		}
		f.task.Env[name] = value
	}
	return nil
}
