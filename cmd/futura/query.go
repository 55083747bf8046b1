package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable(cell)
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

func (a *app) getCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Print what the store knows about a future",
		Example: "  futura get 01995b4e-6f3a-7c1e-9d2b-0123456789ab --json", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return a.open(cmd.Context(), func(c *futures.Client) error {
				row, err := c.Cluster().Get(cmd.Context(), ids[0])
				if err != nil {
					return err
				}
				if a.json {
					view, err := httpapi.View(cmd.Context(), c.Cluster(), &row)
					if err != nil {
						return err
					}
					return a.printJSON(&view)
				}
				last := layout.Ending{ID: row.ID, Failure: row.Exception}
				if err := c.Cluster().Load(cmd.Context(), &last); err != nil {
					return err
				}
				return table(a.out, describe(&row, last.Failure))
			})
		},
	}
}

// describe returns what is said of a future and its last failed attempt.
func describe(r *layout.Row, failure *layout.Exception) [][]string {
	rows := [][]string{
		{"id", r.ID.String()}, {"state", r.State().String()}, {"function", r.Spec.Function}, {"queue", r.Spec.Queue},
		{"submitted", time.UnixMilli(r.Spec.SubmittedAt).UTC().Format(time.RFC3339)},
		{"attempt", fmt.Sprintf("%d of %d", r.Attempt(), r.Spec.MaxRetries+1)},
		{"arguments", some(r.Spec.ArgsSize, "byte")},
	}
	if r.Claim != nil {
		rows = append(rows, []string{"worker", string(r.Claim.Worker)})
	}
	if r.Attempts.Due != 0 {
		rows = append(rows, []string{"waits until", time.UnixMilli(r.Attempts.Due).UTC().Format(time.RFC3339)})
	}
	if failure != nil {
		rows = append(rows, []string{"last failure", string(failure.Kind) + ": " + firstLine(failure.Message)})
	}
	if result := r.Ending().Result; result != nil {
		rows = append(rows, []string{"result", fmt.Sprintf("%s, ran %v", some(result.Size, "byte"), result.RunTime)})
	}
	if failure != nil {
		if line := lastLine(failure.Stderr); line != "" {
			rows = append(rows, []string{"stderr ends", line + "   (all of it: --json)"})
		}
	}
	return rows
}

// lastLine returns the last line of a stream that says something, cut to what a
// terminal shows.
func lastLine(stream []byte) string {
	lines := strings.Split(strings.TrimSpace(printable(string(stream))), "\n")
	return cut(lines[len(lines)-1], 81)
}

// printable replaces by spaces what a terminal would obey rather than show, apart
// from the ends of lines.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, "�"))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func (a *app) listCommand() *cobra.Command {
	var f inspect.Filter
	var state, cursor string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List futures",
		Long: "list prints futures shard by shard, and within a shard by id, not by the time they were submitted. The " +
			"rest is on the next page: continue with the --cursor that is printed at the end.",
		Example: "  futura list --state failed --limit 20\n  futura list --function wasm:count --json", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if state != "" {
				if f.State, err = layout.ParseState(state); err != nil {
					return err
				}
			}
			from, err := hex.DecodeString(cursor)
			if err != nil {
				return usageError{fmt.Errorf("--cursor %q is invalid: use one that an earlier list printed", cursor)}
			}
			if limit < 1 || limit > inspect.MaxList {
				return usageError{fmt.Errorf("--limit %d: use 1 to %d", limit, inspect.MaxList)}
			}
			return a.open(cmd.Context(), func(c *futures.Client) error {
				if f.Function != "" {
					if f.Function, err = c.Cluster().ResolveFunction(cmd.Context(), f.Function); err != nil {
						return err
					}
				}
				rows, next, err := inspect.List(cmd.Context(), c.Cluster(), f, from, limit)
				if err != nil {
					return err
				}
				return a.printList(rows, next)
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only those that are "+layout.AnyOf(layout.States()))
	cmd.Flags().StringVar(&f.Queue, "queue", "", "only those of this queue")
	cmd.Flags().StringVar(&f.Function, "function", "", "only those of this function")
	cmd.Flags().StringVar(&cursor, "cursor", "", "continue where an earlier list ended")
	cmd.Flags().IntVar(&limit, "limit", 100, "how many to print, at most 1000")
	return cmd
}

func (a *app) printList(rows []layout.Row, next []byte) error {
	if a.json {
		views := make([]httpapi.Future, len(rows))
		for i := range rows {
			views[i] = httpapi.ListView(&rows[i])
		}
		return a.printJSON(map[string]any{"futures": views, "cursor": hex.EncodeToString(next)})
	}
	lines := [][]string{{"ID", "STATE", "TRY", "FUNCTION"}}
	for i := range rows {
		function := rows[i].Spec.Function
		if len(function) > 24 {
			function = function[:12] + "…" + function[len(function)-10:]
		}
		r := &rows[i]
		lines = append(lines, []string{r.ID.String(), r.State().String(), fmt.Sprint(r.Attempt()), function})
	}
	if err := table(a.out, lines); err != nil {
		return err
	}
	if len(next) > 0 {
		fmt.Fprintf(a.err, "more: --cursor %x\n", next)
	}
	return nil
}

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "explain ID", Short: "Say why a future is not running",
		Example: "  futura explain 01995b4e-6f3a-7c1e-9d2b-0123456789ab", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return a.open(cmd.Context(), func(c *futures.Client) error {
				e, err := c.Explain(cmd.Context(), ids[0])
				if err != nil {
					return err
				}
				heading := e.State.String()
				if string(e.Reason) != heading {
					heading += fmt.Sprintf(" (%s)", e.Reason)
				}
				return a.say(httpapi.ExplanationOf(&e), heading+": "+e.Text)
			})
		},
	}
}

func (a *app) workersCommand() *cobra.Command {
	return &cobra.Command{
		Use: "workers", Short: "List workers", Example: "  futura workers --json", Args: exactly(0),
		Long: "workers prints the registered workers. A worker that died is shown as alive until another one notices, " +
			"after the dead-after time; the age of its last heartbeat, by its own clock, shows it sooner.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.open(cmd.Context(), func(c *futures.Client) error {
				members, err := c.Cluster().Workers(cmd.Context())
				if err != nil {
					return err
				}
				views := make([]httpapi.Worker, len(members))
				lines := [][]string{{"WORKER", "NAME", "ALIVE", "HEARTBEAT", "RUNNING", "FREE SLOTS", "QUEUES"}}
				now := c.Cluster().Now()
				for i, m := range members {
					views[i] = httpapi.WorkerOf(&m)
					lines = append(lines, []string{
						string(m.ID), m.Name, fmt.Sprint(m.Alive), m.Silence(now).Round(time.Second).String() + " ago",
						fmt.Sprint(m.Heartbeat.Running),
						fmt.Sprintf("%d/%d", m.Heartbeat.Free.Slots, m.Capacity.Slots), strings.Join(m.Queues, ","),
					})
				}
				return a.show(views, lines)
			})
		},
	}
}

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Check every invariant of the cluster", Args: exactly(0),
		Long: "check reads the whole cluster and names each invariant that does not hold, with its keys. It then exits " +
			"with 1. It also warns if all shards are on the same few of many servers.",
		Example: "  futura check\n  futura check --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.open(cmd.Context(), func(c *futures.Client) error {
				report, err := audit.Check(cmd.Context(), c.Cluster(), audit.Options{})
				if err != nil {
					return err
				}
				spread, err := c.Cluster().Spread(cmd.Context())
				if err != nil {
					// What was checked counts all the same.
					spread.Warning = err.Error()
				}
				if a.json {
					err = a.printJSON(struct {
						*audit.Report
						Spread fdbmodel.Spread `json:"spread"`
					}{&report, spread})
				} else {
					err = a.printCheck(&report, &spread)
				}
				if err == nil && len(report.Problems) > 0 {
					err = errBroken
				}
				return err
			})
		},
	}
}

// errBroken is returned when an invariant does not hold.
var errBroken = errors.New("the cluster has problems")

func (a *app) printCheck(r *audit.Report, s *fdbmodel.Spread) error {
	if s.Warning != "" {
		fmt.Fprintf(a.err, "warning: %s; see docs/operating/foundationdb.md\n", s.Warning)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(a.out, "%s: %s\n", p.Invariant, p.Text)
		for _, key := range p.Keys {
			fmt.Fprintf(a.out, "    %s\n", key)
		}
	}
	for _, note := range r.Notes {
		if note.Invariant == audit.InvariantNewer {
			fmt.Fprintf(a.out, "%s: %s\n", note.Invariant, note.Text)
		}
	}
	_, err := fmt.Fprintf(a.out, "%s, %s, %s, %s, %s of a newer version\n", some(r.Futures, "future"), some(r.Keys, "key"),
		some(len(r.Problems), "problem"), some(r.Pending, "pending reap"), some(r.Newer, "record"))
	return err
}

// some counts things: "1 key", "2 keys".
func some[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
