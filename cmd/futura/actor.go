package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/console"
	"github.com/futura-run/futura/internal/wording"
)

func (a *app) actorCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "actor", Short: "Call actors, which have a state under a key, and look at them",
		Long: "An actor is a state under a TYPE and a KEY. Workers register the methods of a type; calls to one actor run " +
			"one after the other, and each changes the state exactly once. A call is a future: futura explain says what it " +
			"waits for, and futura await, get, cancel and retry take it as any other. A key may have slashes and spaces.",
	}, a.actorListCommand(), a.actorShowCommand(), a.actorPartsCommand(), a.actorCallCommand(), a.actorDeleteCommand(),
		a.actorExportCommand())
}

func (a *app) actorListCommand() *cobra.Command {
	var page afterFlags
	cmd := &cobra.Command{
		Use: "list [TYPE]", Short: "List the types of actors, or the actors of a type",
		Long: "list prints the types of which there are actors, or with a TYPE its actors, without their states. An actor " +
			"is there from the first call that leaves a state. The order is the same each time. The rest is on the next page: " +
			"continue with the --after that is printed at the end.",
		Example: "  futura actor list\n  futura actor list account --limit 20\n" +
			"  futura actor list account --json | jq -r '.actors[].key'",
	}
	page.add(cmd, "key", 1000)
	return a.onCluster(cmd, func(ctx context.Context, c *futures.Client, args []string) error {
		if len(args) == 1 {
			return a.listActors(ctx, c, args[0], page.after, page.limit)
		}
		if page.after != "" {
			return usageError{errors.New("--after needs a TYPE")}
		}
		types, err := c.ActorTypes(ctx)
		if err != nil {
			return err
		}
		return showAll(a, "types", types, func(name *string) string { return *name }, []string{"TYPE"},
			func(name *string) []string { return []string{*name} })
	})
}

func (a *app) listActors(ctx context.Context, c *futures.Client, name, after string, limit int) error {
	list, next, err := c.Actors(ctx, name, after, limit)
	if err != nil {
		return err
	}
	return showPage(a, "actors", list, next, []string{"KEY", "VERSION", "SIZE", "SCHEMA", "CHANGED", "NOTE"}, actorRow)
}

func actorRow(v *futures.ActorView) []string {
	if v.Problem != "" {
		return []string{v.Key, "", "", "", "", v.Problem}
	}
	return []string{v.Key, fmt.Sprint(v.Version), fmt.Sprint(v.Size), fmt.Sprint(v.Schema),
		timeText(v.ChangedAt.UnixMilli()), ""}
}

func (a *app) actorShowCommand() *cobra.Command {
	return a.onCluster(&cobra.Command{
		Use: "show TYPE/KEY", Short: "Show an actor with its state",
		Long: "show prints the present state of an actor as JSON, which call changed it last, and how many calls wait for " +
			"their turn. It waits for none of them. It exits with 3 if the actor has no state.",
		Example: "  futura actor show account/alice\n  futura actor show account/alice --json | jq .state",
	}, func(ctx context.Context, c *futures.Client, args []string) error {
		name, key, err := futures.ParseActor(args[0])
		if err != nil {
			return err
		}
		v, err := c.ActorState(ctx, name, key)
		if err != nil {
			return err
		}
		return a.show(httpapi.ActorOf(&v), actorRows(&v))
	})
}

func actorRows(v *futures.ActorView) [][]string {
	kept := wording.Count(v.Size, "byte") + " of " + v.Codec
	if v.Schema > 0 {
		kept += fmt.Sprintf(", schema %d", v.Schema)
	}
	rows := pairs{{"actor", v.String()}, {"version", fmt.Sprint(v.Version)}, {"size", kept},
		{"created", timeText(v.CreatedAt.UnixMilli())}, {"changed", timeText(v.ChangedAt.UnixMilli())},
		{"by call", v.Call.String()}}
	rows.add(v.Parts, "parts", "it has some, or had: futura actor parts lists them")
	rows.add(!v.Running.IsZero(), "running", "%s", v.Running)
	if v.Waiting > 0 || v.MaxWaiting > 0 {
		waiting := wording.Count(v.Waiting, "call")
		if v.MoreWaiting {
			waiting += " or more"
		}
		if v.MaxWaiting > 0 {
			waiting += fmt.Sprintf(", at most %d", v.MaxWaiting)
		}
		rows.add(true, "waiting", "%s", waiting)
	}
	var state bytes.Buffer
	if text, is := v.JSON(); is && json.Indent(&state, text, "", "  ") == nil {
		return append(rows, []string{"state", state.String()})
	}
	return append(rows, []string{"state", "not shown: it is no JSON; --json has it in base64"})
}

func (a *app) actorPartsCommand() *cobra.Command {
	var page afterFlags
	cmd := &cobra.Command{
		Use: "parts TYPE/KEY", Short: "List the named parts of an actor",
		Long: "parts prints the names and sizes of the parts that an actor has beside its state, in the order of their " +
			"names. The rest is on the next page: continue with the --after that is printed at the end. futura actor export " +
			"prints their values.",
		Example: "  futura actor parts order/7\n  futura actor parts order/7 --limit 20 --after line/019",
	}
	page.add(cmd, "name", futures.MaxPartList)
	return a.onCluster(cmd, func(ctx context.Context, c *futures.Client, args []string) error {
		name, key, err := futures.ParseActor(args[0])
		if err != nil {
			return err
		}
		list, next, err := c.ActorParts(ctx, name, key, page.after, page.limit)
		if err != nil {
			return err
		}
		return showPage(a, "parts", list, next, []string{"NAME", "SIZE", "SCHEMA", "NOTE"},
			func(p *futures.PartView) []string {
				return []string{p.Name, fmt.Sprint(p.Size), fmt.Sprint(p.Schema), p.Problem}
			})
	})
}

func (a *app) actorCallCommand() *cobra.Command {
	var f submitFlags
	cmd := &cobra.Command{
		Use: "call TYPE/KEY METHOD [JSON]", Short: "Call a method of an actor",
		Long: "call submits a call to an actor and prints its id once it is durable. JSON is the input, - that of standard " +
			"input, null by default; put -- before one that begins with a minus. With --wait it prints the result instead, " +
			"or with --json the future as get does. A method that workers have as a reader runs beside other calls. It exits " +
			"with 3 if no worker knows the method. wasm:NAME or wasm:NAME/EXPORT as METHOD is a stored WASM module.",
		Example: "  futura actor call account/alice deposit 5 --wait\n" +
			"  futura actor call account/alice deposit --wait -- -5\n" +
			"  futura actor call counter/visits wasm:counter 5 --wait\n" +
			"  futura actor call order/2026-17 ship '{\"To\": \"Basel\"}' --key ship-17\n" +
			"  futura actor call account/alice close - < reason.json",
		Args: usage(cobra.RangeArgs(2, 3)),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.task.MaxRetries = &f.retries
			return a.callActor(cmd.Context(), &f, args, cmd.Flags())
		},
	}
	flags, t := cmd.Flags(), &f.task
	flags.StringVar(&t.Queue, "queue", "", `the queue (default "default")`)
	flags.Uint8Var(&t.Priority, "priority", 0, "0, the lowest, to 255: higher ones are earlier in line")
	flags.BoolVar(&t.RequireFit, "require-fit", false, "refuse it if no worker could ever run it, and say what is lacking")
	f.addTimes(flags)
	f.addSubmit(flags, "call")
	return cmd
}

func (a *app) callActor(ctx context.Context, f *submitFlags, args []string, flags *pflag.FlagSet) (err error) {
	if err := f.checkSubmit(flags, "call"); err != nil {
		return err
	}
	name, key, err := futures.ParseActor(args[0])
	if err != nil {
		return err
	}
	if len(args) == 3 {
		if args[2] == "-" {
			f.argsFile = "-"
		} else {
			f.args = args[2]
		}
	}
	if err := a.readTask(f); err != nil {
		return err
	}
	if len(args) == 3 && !json.Valid(f.task.Args) {
		return usageError{errors.New(`the input is not JSON: quote a text, as '"yes"'`)}
	}
	return a.open(ctx, func(c *futures.Client) error {
		t, err := c.ActorTask(ctx, name, key, args[1], f.task)
		if err != nil {
			return err
		}
		return a.submitTask(ctx, c, &t, f, map[string]any{})
	})
}

func (a *app) actorDeleteCommand() *cobra.Command {
	return a.onCluster(&cobra.Command{
		Use: "delete TYPE/KEY", Short: "Remove the state of an actor, and its parts",
		Long: "delete removes the state of an actor and its parts for good. A call that runs sees that, and runs again; " +
			"it and those that wait begin with an actor without a state. It exits with 3 if there is none.",
		Example: "  futura actor delete account/alice",
	}, func(ctx context.Context, c *futures.Client, args []string) error {
		name, key, err := futures.ParseActor(args[0])
		if err != nil {
			return err
		}
		return a.done(c.DeleteActor(ctx, name, key), "deleted", "actor", args[0])
	})
}

func (a *app) actorExportCommand() *cobra.Command {
	return a.onCluster(&cobra.Command{
		Use: "export TYPE", Short: "Print all actors of a type with their states, as lines of JSON",
		Long: "export prints an object per line, with the key, the version and the state of an actor. Its parts follow, " +
			"one a line, with its key and their names. What calls change meanwhile is in it or not; the states of one turn " +
			"over several actors, and the parts of one, may be of different times. What can't be read is named on standard " +
			"error, and the exit code is 1 at the end.",
		Example: "  futura actor export account > accounts.jsonl\n" +
			"  futura actor export account | jq -c 'select(.state.Balance < 0) | .key'",
	}, func(ctx context.Context, c *futures.Client, args []string) error {
		return a.exportActors(ctx, c, args[0])
	})
}

// exportPage is how many actors an export reads at a time, at most.
const exportPage = 500

func (a *app) exportActors(ctx context.Context, c *futures.Client, name string) error {
	var bar *progressbar.ProgressBar
	lines := json.NewEncoder(a.out)
	lines.SetEscapeHTML(false)
	exported, broken := 0, 0
	for after, more := "", true; more; {
		page, next, err := c.ActorStates(ctx, name, after, exportPage)
		if err != nil {
			return err
		}
		for i := range page {
			if page[i].Problem != "" {
				broken++
				fmt.Fprintf(a.err, "futura: %s\n", console.Printable(page[i].Problem))
				continue
			}
			if err := lines.Encode(exportedOf(&page[i])); err != nil {
				return err
			}
			if page[i].Parts {
				lost, err := a.exportParts(ctx, c, lines, &page[i])
				if err != nil {
					return err
				}
				broken += lost
			}
			exported++
		}
		more, after = next != "", next
		if more && bar == nil && console.Terminal(a.err) != nil && a.width() == console.Unbounded {
			bar = console.Stage(a.err, "actors", 0)
			defer bar.Clear()
		}
		if bar != nil {
			_ = bar.Set(exported)
		}
	}
	if broken > 0 {
		return fmt.Errorf("%w: %s of actors of type %s can't be read, see futura check", errBroken,
			wording.Count(broken, "record"), name)
	}
	return nil
}

// exportedActor is a line of an export.
type exportedActor struct {
	Key     string          `json:"key"`
	Version int64           `json:"version"`
	Schema  int             `json:"schema,omitempty"`
	State   json.RawMessage `json:"state,omitempty"`
	Bytes   *httpapi.Bytes  `json:"bytes,omitempty"`
}

func exportedOf(v *futures.ActorView) exportedActor {
	a := httpapi.ActorOf(v)
	return exportedActor{a.Key, a.Version, a.Schema, a.State, a.Bytes}
}

// exportedPart is a line of an export.
type exportedPart struct {
	Key    string          `json:"key"`
	Part   string          `json:"part"`
	Schema int             `json:"schema,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
	Bytes  *httpapi.Bytes  `json:"bytes,omitempty"`
}

// exportParts prints the parts of an actor, and returns how many can't be read.
func (a *app) exportParts(ctx context.Context, c *futures.Client, lines *json.Encoder, v *futures.ActorView,
) (broken int, err error) {
	for after, more := "", true; more; {
		page, next, err := c.ActorParts(ctx, v.Type, v.Key, after, futures.MaxPartList)
		if err != nil {
			return broken, err
		}
		for i := range page {
			p := &page[i]
			if p.Problem != "" {
				broken++
				fmt.Fprintf(a.err, "futura: %s\n", console.Printable(p.Problem))
				continue
			}
			one := exportedPart{Key: v.Key, Part: p.Name, Schema: p.Schema}
			text, is := p.JSON()
			one.Value, one.Bytes = httpapi.JSONOrBytes(text, is, p.Value)
			if err := lines.Encode(one); err != nil {
				return broken, err
			}
		}
		more, after = next != "", next
	}
	return broken, nil
}
