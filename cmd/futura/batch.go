package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/internal/console"
)

const (
	batchesPath     = "/api/v1/batches"
	batchSubmitPath = "/api/v1/functions/execute/batch"
)

// errItemsFailed is returned for a batch that is over without being done.
var errItemsFailed = errors.New("not every item is done")

// batchView is a batch as a head describes it.
type batchView struct{ rest.BatchView }

// over is how many items have come to their end.
func (v *batchView) over() int { return v.Progress.Done + v.Progress.PermanentlyFailed }

// stage is the state of the batch, as far as its items show it: its record follows them.
func (v *batchView) stage() string {
	switch {
	case v.Status.Over():
		return v.State
	case v.Items > 0 && v.over() >= v.Items:
		return "finishing"
	case v.State == "created" && v.over()+v.Progress.InProgress > 0:
		return "running"
	}
	return v.State
}

// failure is errItemsFailed for a batch that is over without being done.
func (v *batchView) failure() error {
	if !v.Status.Over() || v.State == "done" || v.State == "empty" {
		return nil
	}
	return fmt.Errorf("batch %s: %w: %s", v.ID, errItemsFailed, v.Message)
}

// function is the function's id, with the method if there is one.
func (v *batchView) function() string {
	if v.Method == "" {
		return v.FunctionID
	}
	return v.FunctionID + "/" + v.Method
}

func (v *batchView) rows() [][]string {
	p := &v.Progress
	rows := pairs{
		{"id", v.ID}, {"function", v.function()}, {"state", v.stage()},
		{"created", v.CreatedAt.UTC().Format(time.RFC3339)},
		{"items", fmt.Sprintf("%d: %d wait, %d are with workers, %d to be tried again, %d done, %d failed for good",
			v.Items, p.Created, p.InProgress, p.Failed, p.Done, p.PermanentlyFailed)},
	}
	rows.add(v.Message != "", "message", "%s", v.Message)
	rows.add(v.Rate > 0, "rate", "%.1f items per second", v.Rate)
	if v.SecondsLeft != nil {
		left := time.Duration(min(*v.SecondsLeft, 1e8) * float64(time.Second)).Round(time.Second)
		rows.add(true, "time left", "about %v", left)
	}
	return rows
}

func (a *app) batchCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "batch", Short: "Run a function on many lists of arguments, through a head",
		Example: "  futura batch submit --function ID --method echo.wasm --file urls.csv --wait\n  futura batch list",
	}, a.batchSubmitCommand(), a.oneBatch(&cobra.Command{
		Use: "status ID", Short: "Print the state of a batch", Example: "  futura batch status ID --json",
	}, func(cmd *cobra.Command, c *headClient, id string) error {
		return printAnswer(a, cmd, c, http.MethodGet, batchesPath+"/"+id, nil, (*batchView).rows)
	}), a.batchResultCommand(), a.batchWatchCommand(), a.batchCancelCommand(), a.batchListCommand(),
		a.batchChunksCommand(), a.batchRetryCommand(), a.oneBatch(&cobra.Command{
			Use: "delete ID", Short: "Remove a batch that is over, with its results", Example: "  futura batch delete ID",
		}, func(cmd *cobra.Command, c *headClient, id string) error {
			return a.done(c.call(cmd.Context(), http.MethodDelete, batchesPath+"/"+id, nil, nil), "deleted", "id", id)
		}))
}

func (a *app) batchSubmitCommand() *cobra.Command {
	var f batchFlags
	cmd := &cobra.Command{
		Use: "submit [ARGUMENT...]", Short: "Create a batch",
		Long: "submit creates a batch from a function and lists of arguments: one list for each ARGUMENT, each record of " +
			"a CSV file, or each line of an NDJSON file. A JSON file contains the whole request, as the API takes it.",
		Example: "  futura batch submit --function ID --method echo.wasm --nodes 4 --file urls.csv --wait\n" +
			"  futura batch submit --file request.json\n  futura batch submit --function ID a b c",
		RunE: func(cmd *cobra.Command, args []string) error { return a.batchSubmit(cmd, &f, args) },
	}
	flags := cmd.Flags()
	f.head.add(flags)
	flags.StringVar(&f.file, "file", "", "the request (JSON) or lists of arguments (CSV, NDJSON); - is standard input")
	flags.StringVar(&f.format, "format", "", "json, csv or ndjson (default: from the file's name or content)")
	flags.BoolVar(&f.skipHeader, "skip-header", false, "skip the first record of the file")
	flags.StringVar(&f.function, "function", "", "the function's id, or a module's CID or alias")
	flags.StringVar(&f.method, "method", "", "the function's method, such as echo.wasm")
	flags.StringVar(&f.topic, "topic", "", "the queue whose workers run the items (default: the default queue)")
	flags.IntVar(&f.config.Nodes, "nodes", 0, "how many workers take part; -1 for all (default: 1)")
	flags.Uint64Var(&f.attempts, "max-attempts", 0, "how often an item is tried at most (default: the operator's limit)")
	flags.IntVar(&f.config.Timeout, "timeout", 0, "seconds that one attempt may take (default: no limit)")
	flags.IntVar(&f.config.Concurrency, "concurrency", 0, "how many items a worker runs at a time (default: 1)")
	flags.Float64Var(&f.config.RatePerHost, "rate-per-host", 0,
		"items that all workers together start per second for one host (default: no limit)")
	flags.StringArrayVar(&f.environment, "env", nil, "NAME=VALUE for the function; may be repeated")
	flags.StringVar(&f.stdin, "stdin-file", "", "a file with the standard input of each item")
	flags.StringVar(&f.key, "key", "", "an idempotency key (default: a new one)")
	flags.BoolVar(&f.wait, "wait", false, "watch the batch until it is over")
	return cmd
}

func (a *app) batchSubmit(cmd *cobra.Command, f *batchFlags, args []string) error {
	ctx := cmd.Context()
	f.given = cmd.Flags().Changed
	if f.has("key") && f.key == "" {
		return usageError{errors.New("--key is empty: a repeated command would make another batch")}
	}
	body, err := f.body(a, args)
	if err != nil {
		return err
	}
	c, err := a.connect(&f.head)
	if err != nil {
		return err
	}
	key := cmp.Or(f.key, uuid.NewString())
	var made struct {
		ID string `json:"request_id"`
	}
	// With a key the request makes one batch however often it is sent.
	err = repeat(ctx, func() error {
		return c.call(ctx, http.MethodPost, batchSubmitPath+"?answer=id", body, &made, idempotencyKey, key)
	})
	var problem *apiError
	switch {
	case err != nil && (f.key != "" || errors.As(err, &problem) && problem.Status < http.StatusInternalServerError):
		return err
	case err != nil:
		return unsettled(ctx, err, "the batch may have been made: the same command finds it, or makes it, with --key "+key)
	case !f.wait:
		return a.say(made, made.ID)
	}
	if err = a.watchBatch(ctx, c, made.ID); err != nil && !errors.Is(err, errItemsFailed) {
		return unsettled(ctx, err, fmt.Sprintf("batch %s goes on: follow it with futura batch watch %[1]s", made.ID))
	}
	return err
}

// unsettled says how to go on after an error that leaves open what has become of a request.
func unsettled(ctx context.Context, err error, how string) error {
	if err == ctx.Err() {
		return errors.New("interrupted: " + how)
	}
	return fmt.Errorf("%w; %s", err, how)
}

// oneBatch is a command about one batch.
func (a *app) oneBatch(cmd *cobra.Command, fn func(cmd *cobra.Command, c *headClient, id string) error) *cobra.Command {
	f := &headFlags{}
	f.add(cmd.Flags())
	cmd.Args = exactly(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := uuid.Parse(args[0]); err != nil {
			return usageError{fmt.Errorf("%.60q is not the id of a batch: %w", args[0], err)}
		}
		c, err := a.connect(f)
		if err != nil {
			return err
		}
		return fn(cmd, c, args[0])
	}
	return cmd
}

// printAnswer prints what a head answers: as it is, or as rows.
func printAnswer[T any](a *app, cmd *cobra.Command, c *headClient, method, path string, body []byte,
	rows func(*T) [][]string,
) error {
	var answer json.RawMessage
	if err := c.call(cmd.Context(), method, path, body, &answer); err != nil {
		return err
	}
	var of T
	if err := json.Unmarshal(answer, &of); err != nil {
		return err
	}
	return a.show(answer, rows(&of))
}

// withMore adds to the rows of a page where the next one begins, if there is one.
func withMore(rows [][]string, next string) [][]string {
	if next == "" {
		return rows
	}
	return append(rows, []string{"more: --after " + next})
}

func (a *app) batchCancelCommand() *cobra.Command {
	var reason string
	cmd := a.oneBatch(&cobra.Command{
		Use: "cancel ID", Short: "Cancel a batch", Example: "  futura batch cancel ID --reason 'the list was wrong'",
	}, func(cmd *cobra.Command, c *headClient, id string) error {
		body, err := json.Marshal(map[string]string{"reason": reason})
		if err != nil {
			return err
		}
		return printAnswer(a, cmd, c, http.MethodPost, batchesPath+"/"+id+":cancel", body, (*batchView).rows)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, stored with the batch")
	return cmd
}

// retriedBatch is what a head answers to a retry.
type retriedBatch struct {
	Items int       `json:"items"`
	Batch batchView `json:"batch"`
}

func (r *retriedBatch) rows() [][]string {
	return append([][]string{{"retried", strconv.Itoa(r.Items)}}, r.Batch.rows()...)
}

func (a *app) batchRetryCommand() *cobra.Command {
	return a.oneBatch(&cobra.Command{
		Use: "retry ID", Short: "Run the items that failed for good again", Example: "  futura batch retry ID",
	}, func(cmd *cobra.Command, c *headClient, id string) error {
		return printAnswer(a, cmd, c, http.MethodPost, batchesPath+"/"+id+":retry", nil, (*retriedBatch).rows)
	})
}

func (a *app) batchListCommand() *cobra.Command {
	var f headFlags
	var page pageFlags
	var active bool
	cmd := &cobra.Command{
		Use: "list", Short: "List batches", Example: "  futura batch list --active", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect(&f)
			if err != nil {
				return err
			}
			path := batchesPath + page.query() + "&active=" + strconv.FormatBool(active)
			return printAnswer(a, cmd, c, http.MethodGet, path, nil, listRows)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&active, "active", false, "only those that are not over")
	page.add(cmd.Flags())
	return cmd
}

func listRows(list *rest.BatchList) [][]string {
	rows := [][]string{{"ID", "STATE", "DONE", "FAILED", "ITEMS", "CREATED", "FUNCTION"}}
	for i := range list.Batches {
		v := &batchView{list.Batches[i]}
		rows = append(rows, []string{
			v.ID, v.stage(), strconv.Itoa(v.Progress.Done), strconv.Itoa(v.Progress.PermanentlyFailed), strconv.Itoa(v.Items),
			v.CreatedAt.UTC().Format(time.RFC3339), v.function(),
		})
	}
	return withMore(rows, list.Next)
}

// cellEscapes are how a piped line writes what would end it or its cells.
var cellEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// inLine is a text as a cell of a line: the first line of it in a terminal, cut, and whole
// where it is piped.
func (a *app) inLine(text string) string {
	if a.width() == console.Unbounded {
		return cellEscapes.Replace(text)
	}
	line, _, more := strings.Cut(strings.TrimRight(text, "\r\n"), "\n")
	if more {
		line += "…"
	}
	return console.Printable(console.Cut(line, max((a.width()-24)/2, console.LeastColumn)))
}
