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
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

func (a *app) getCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Print what the store knows of a future",
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
				rows := describe(&row)
				if e := row.Exception; e != nil {
					stderr, err := c.Cluster().Stderr(cmd.Context(), row.ID, e.Stderr, e.StderrRef)
					if err != nil {
						return err
					}
					if line := lastLine(stderr); line != "" {
						rows = append(rows, []string{"stderr ends", line + "   (all of it: --json)"})
					}
				}
				return table(a.out, rows)
			})
		},
	}
}

func describe(r *layout.Row) [][]string {
	rows := [][]string{
		{"id", r.ID.String()}, {"state", r.State().String()}, {"function", r.Spec.Function}, {"queue", r.Spec.Queue},
		{"submitted", time.UnixMilli(r.Spec.SubmittedAt).UTC().Format(time.RFC3339)},
		{"attempt", fmt.Sprintf("%d of %d", r.Attempt(), r.Spec.MaxRetries+1)},
		{"arguments", fmt.Sprintf("%d bytes", r.Spec.ArgsSize)},
	}
	if r.Claim != nil {
		rows = append(rows, []string{"worker", string(r.Claim.Worker)})
	}
	if r.Attempts.Due != 0 {
		rows = append(rows, []string{"waits until", time.UnixMilli(r.Attempts.Due).UTC().Format(time.RFC3339)})
	}
	if r.Exception != nil {
		rows = append(rows, []string{"last failure", string(r.Exception.Kind) + ": " + firstLine(r.Exception.Message)})
	}
	if r.State() == layout.Realized {
		rows = append(rows, []string{"result", fmt.Sprintf("%d bytes, ran %v", r.Result.Size, r.Result.RunTime)})
	}
	return rows
}

// lastLine returns the last line of a stream that says something, cut to what a
// terminal shows.
func lastLine(stream []byte) string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(stream), "�")), "\n")
	line := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, lines[len(lines)-1])
	const most = 80
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return line
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
		Long: "list prints futures shard by shard, and in each by their ids, not by the time of their submit. What does\n" +
			"not fit is on the next page: --cursor, as printed at the end.",
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
	cmd.Flags().StringVar(&state, "state", "", "ready, delayed, claimed, realized or failed")
	cmd.Flags().StringVar(&f.Queue, "queue", "", "of this queue")
	cmd.Flags().StringVar(&f.Function, "function", "", "of this function")
	cmd.Flags().StringVar(&cursor, "cursor", "", "go on where an earlier list ended")
	cmd.Flags().IntVar(&limit, "limit", 100, "the most to print, up to 1000")
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
				if a.json {
					return a.printJSON(httpapi.ExplanationOf(&e))
				}
				heading := e.State.String()
				if string(e.Reason) != heading {
					heading += fmt.Sprintf(" (%s)", e.Reason)
				}
				_, err = fmt.Fprintf(a.out, "%s: %s\n", heading, e.Text)
				return err
			})
		},
	}
}

func (a *app) workersCommand() *cobra.Command {
	return &cobra.Command{
		Use: "workers", Short: "List workers", Example: "  futura workers --json", Args: exactly(0),
		Long: "workers prints the workers of the cluster. One that died is alive here until another worker has noticed,\n" +
			"which takes the dead-after time: see how long ago its last heartbeat was, by its own clock.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.open(cmd.Context(), func(c *futures.Client) error {
				members, err := c.Cluster().Workers(cmd.Context())
				if err != nil {
					return err
				}
				if a.json {
					views := make([]httpapi.Worker, len(members))
					for i := range members {
						views[i] = httpapi.WorkerOf(&members[i])
					}
					return a.printJSON(views)
				}
				lines := [][]string{{"WORKER", "NAME", "ALIVE", "HEARTBEAT", "RUNNING", "FREE SLOTS", "QUEUES"}}
				now := c.Cluster().Now()
				for _, m := range members {
					lines = append(lines, []string{
						string(m.ID), m.Name, fmt.Sprint(m.Alive), m.Silence(now).Round(time.Second).String() + " ago",
						fmt.Sprint(m.Heartbeat.Running),
						fmt.Sprintf("%d/%d", m.Heartbeat.Free.Slots, m.Capacity.Slots), strings.Join(m.Queues, ","),
					})
				}
				return table(a.out, lines)
			})
		},
	}
}

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Check every invariant of the cluster", Args: exactly(0),
		Long: "check reads the whole cluster and names each invariant that does not hold, with its keys. It ends with 1\n" +
			"if there is one. It also warns if all shards lie on the same few of many servers.",
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
	_, err := fmt.Fprintf(a.out, "%d futures, %d keys, %d problems, %d reaps pending, %d written by a newer version\n",
		r.Futures, r.Keys, len(r.Problems), r.Pending, r.Newer)
	return err
}
