package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

func (a *app) promiseCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "promise", Short: "Make promises, which somebody completes, and complete them",
		Long: "A promise is a future that no worker runs: it waits until it is resolved with a value, or rejected. Others " +
			"await it, or take its value as an input. Who may change futures completes it by its ID, and whoever has its " +
			"TOKEN without any other right, here or by POST /api/v1/promises/TOKEN. Everyone on this machine sees the " +
			"arguments of a command while it runs: give - for a TOKEN that is the first line of standard input.\n\n" +
			"futura cancel, retry, await, get and explain take promises as any futures.",
	}, a.promiseNewCommand(), a.promiseResolveCommand(), a.promiseRejectCommand(), a.promiseTokenCommand(),
		a.promiseListCommand())
}

func (a *app) promiseNewCommand() *cobra.Command {
	var t futures.Task
	var u uniqueFlags
	var deadline string
	cmd := &cobra.Command{
		Use: "new", Short: "Make a promise, and print its id and its token",
		Long: "new makes a promise and prints its id and its token: the token is stored nowhere, and shown once. With " +
			"--key a repeated call finds the same promise, and prints its id alone.",
		Example: "  futura promise new --label 'order 7' --expires 72h\n" +
			"  futura promise new --key payment-7 --json | jq -r .path\n" +
			"  id=$(futura promise new | head -1); futura submit go:ship --after $id",
		Args: exactly(0),
	}
	flags := cmd.Flags()
	flags.StringVar(&t.Key, "key", "", "idempotency key: the same key is the same promise")
	flags.StringVar(&t.Label, "label", "", "a label for people; who has the token sees it too")
	flags.StringArrayVar(&t.Tags, "tag", nil, "a tag to list it by; may be repeated, up to 8 times")
	flags.StringVar(&t.Queue, "queue", "", `the queue that it is counted in (default "default")`)
	flags.DurationVar(&t.Expires, "expires", 0, "how long it may wait (default: for ever)")
	flags.StringVar(&deadline, "deadline", "", deadlineUsage)
	flags.BoolVar(&t.WaitForRoom, "wait-for-room", false, "wait while a limit of the cluster is exceeded")
	u.add(flags)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if flags.Changed("key") && t.Key == "" {
			return usageError{errors.New("--key is empty: a repeated call would make another promise")}
		}
		if t.Deadline, err = deadlineFlag(deadline, time.Now()); err != nil {
			return err
		}
		if err := u.apply(&t, flags); err != nil {
			return err
		}
		t.NoNotify = true
		return a.openOrMake(cmd.Context(), func(c *futures.Client) error {
			f, token, err := c.Promise(cmd.Context(), t)
			if err != nil {
				return err
			}
			sayExisted(a.err, f, &t)
			return a.sayPromise(f.ID(), f.Existed(), token)
		})
	}
	return cmd
}

// sayPromise prints a promise, and its token on a line of its own if there is a new one.
func (a *app) sayPromise(id futures.ID, existed bool, token string) error {
	made := httpapi.MadePromiseOf(httpapi.Submitted{ID: id, Existed: existed}, token)
	if token == "" {
		return a.say(made, id)
	}
	return a.say(made, id.String()+"\n"+token)
}

func (a *app) promiseResolveCommand() *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use: "resolve ID|TOKEN|- VALUE|-", Short: "Give a promise its value, once",
		Long: "resolve gives a promise its value: JSON, or with --raw bytes as they are; - is standard input. The same " +
			"value again is a success that says so. It exits with 64 if the promise has another value, was rejected or " +
			"cancelled, or has expired, and with 3 if there is none, or the token opens none.",
		Example: `  futura promise resolve 01995b4e-6f3a-7c1e-9d2b-0123456789ab '{"approved": true}'` + "\n" +
			"  futura promise resolve 01995b4e-6f3a-7c1e-9d2b-0123456789ab - --raw < answer.bin\n" +
			"  futura promise resolve - true < token.txt",
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "the value is bytes as they are")
	return a.onCluster(cmd, func(ctx context.Context, c *futures.Client, args []string) error {
		who, text := args[0], []byte(args[1])
		if who == "-" && args[1] == "-" {
			return usageError{errors.New("the token and the value can't both be standard input: give one of them")}
		}
		if args[1] == "-" {
			var err error
			if text, err = a.readInput("-", layout.MaxPut, ", the most that a promise takes"); err != nil {
				return err
			}
		}
		v := futures.PromiseValue{Bytes: text, Codec: futures.CodecJSON}
		if raw {
			v.Codec = futures.CodecRaw
		} else if !json.Valid(text) {
			return usageError{errors.New(`the value is not JSON: quote a text, as '"yes"', or give --raw`)}
		}
		return a.complete(who, futures.Realized,
			func(id futures.ID) (bool, error) { return c.Resolve(ctx, id, v) },
			func(token string) (bool, error) { return c.ResolveBy(ctx, token, v) })
	})
}

func (a *app) promiseRejectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "reject ID|TOKEN|- [MESSAGE]", Short: "Fail a promise for good, with a message",
		Long: "reject fails a promise: who awaits it gets the message. The same message again is a success that says so. " +
			"futura retry has the promise wait again, by the same token. Its exit codes are those of resolve.",
		Example: "  futura promise reject 01995b4e-6f3a-7c1e-9d2b-0123456789ab 'too dear'\n" +
			"  futura promise reject - < token.txt",
	}
	return a.onCluster(cmd, func(ctx context.Context, c *futures.Client, args []string) error {
		message := strings.Join(args[1:], "")
		return a.complete(args[0], futures.Failed,
			func(id futures.ID) (bool, error) { return c.Reject(ctx, id, message) },
			func(token string) (bool, error) { return c.RejectBy(ctx, token, message) })
	})
}

// complete completes a promise by its id or by its token, and says what has become of it.
func (a *app) complete(who string, to futures.State, byID func(futures.ID) (bool, error),
	byToken func(string) (bool, error),
) error {
	if who == "-" {
		line, err := bufio.NewReader(io.LimitReader(a.in, 1<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		who = strings.TrimSpace(line)
	}
	var already bool
	done := struct {
		Outcome string      `json:"outcome"`
		ID      *futures.ID `json:"id,omitempty"`
		Already bool        `json:"already"`
	}{Outcome: to.String()}
	id, err := futures.ParseID(who)
	switch {
	case strings.HasPrefix(who, futures.PromiseTokenPrefix):
		already, err = byToken(who)
	case err != nil:
		return usageError{errors.New("name a promise by its id, or by its token, which begins with " +
			futures.PromiseTokenPrefix)}
	default:
		done.ID = &id
		already, err = byID(id)
	}
	if err != nil {
		return err
	}
	if done.Already = already; already {
		return a.say(done, done.Outcome, "already")
	}
	return a.say(done, done.Outcome)
}

func (a *app) promiseTokenCommand() *cobra.Command {
	return a.onFutures(&cobra.Command{
		Use: "token ID", Short: "Draw another token of a promise, and print it",
		Long:    "token draws another token of a promise that waits. The former one opens nothing from then on.",
		Example: "  futura promise token 01995b4e-6f3a-7c1e-9d2b-0123456789ab",
	}, func(ctx context.Context, c *futures.Client, ids []futures.ID) error {
		token, err := c.NewPromiseToken(ctx, ids[0])
		if err != nil {
			return err
		}
		return a.say(httpapi.MadePromiseOf(httpapi.Submitted{ID: ids[0], Existed: true}, token), token)
	})
}

func (a *app) promiseListCommand() *cobra.Command {
	var f listFlags
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the promises that wait, the newest first",
		Long: "list prints the promises that wait, or with --all those that are over too. futura list --function promise " +
			"has more filters.",
		Example: "  futura promise list\n  futura promise list --all --tag approval --json", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.filter.Function = futures.FunctionPromise
			if !all {
				f.filter.State = futures.Blocked
			}
			return a.list(cmd.Context(), &f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "with those that are over")
	onceVar(flags, &f.filter.Tag, "tag", "only those with this tag")
	flags.StringVar(&f.cursor, "cursor", "", "continue where an earlier list ended, with the same flags")
	f.addLimit(cmd)
	return cmd
}

// isRefused reports whether a promise can't be completed as was asked, or a future not be forked so.
func isRefused(err error) bool {
	return slices.ContainsFunc([]error{
		futures.ErrPromiseConflict, futures.ErrPromiseExpired, futures.ErrPromiseCancelled, futures.ErrNoPromise,
		futures.ErrUnforkable, futures.ErrNoStep, futures.ErrNothingFailed, futures.ErrAmbiguousStep, futures.ErrForked,
	}, func(refusal error) bool { return errors.Is(err, refusal) })
}
