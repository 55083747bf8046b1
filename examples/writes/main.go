// Command writes groups writes to a database: rows that come one by one, from anywhere,
// are written together, those of one table in one statement. docs/guide/grouping.md goes
// through it.
//
//	go run ./examples/writes
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/batch/grouping"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// Row is a row to be written to a table.
type Row struct{ Table, Value string }

// writes are the tasks: at most 50 rows in a statement, and one statement per table at a
// time. The result is how many rows were written together.
var writes = grouping.Define[Row, int]("write", func(r Row) string { return r.Table },
	grouping.Settings{Most: 50, Target: "/Table", InPlace: 1, InPlaceWait: 100 * time.Millisecond}, futures.Retries(5))

func main() {
	store := flag.String("store", "memory:", "where futures are kept")
	flag.Parse()
	if err := run(context.Background(), *store, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, store string, out io.Writer) (err error) {
	node, err := serve(ctx, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	return submit(ctx, node.Client, out)
}

// serve runs a worker that writes rows, until the node is closed.
func serve(ctx context.Context, store string) (*futura.Node, error) {
	node, err := futura.Open(ctx, store, futura.Bundle(writes.Bind(insert)))
	if err != nil {
		return nil, err
	}
	if err := writes.Setup(ctx, node.Client); err != nil {
		return nil, errors.Join(err, node.Close())
	}
	return node, nil
}

// insert writes rows to one table, and says of each what became of it. A statement that
// fails as a whole would return an error instead, and each row would be tried again.
func insert(_ context.Context, _ string, rows []grouping.Task[Row]) ([]grouping.Outcome[int], error) {
	outcomes := make([]grouping.Outcome[int], len(rows))
	for i := range rows {
		if rows[i].In.Value == "" {
			outcomes[i].Err = workers.Permanent(errors.New("the row is empty"))
			continue
		}
		outcomes[i].Out = len(rows)
	}
	return outcomes, nil
}

// submit submits rows of two tables, and awaits each.
func submit(ctx context.Context, client *futures.Client, out io.Writer) error {
	rows := []Row{{"users", "ada"}, {"orders", "tea"}, {"users", "grace"}, {"users", ""}, {"orders", "milk"}}
	tasks, err := writes.SubmitAll(ctx, client, rows)
	if err != nil {
		return err
	}
	for i, task := range tasks {
		together, err := task.Await(ctx)
		var failed *futures.FailedError
		switch {
		case errors.As(err, &failed):
			fmt.Fprintf(out, "%s: %s\n", rows[i].Table, failed.Message)
		case err != nil:
			return err
		default:
			fmt.Fprintf(out, "%s: %s, one of %d\n", rows[i].Table, rows[i].Value, together)
		}
	}
	return nil
}
