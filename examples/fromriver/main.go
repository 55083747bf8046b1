// Command fromriver sorts strings in a job, as River's quickstart does, and makes
// the job in one transaction with a row of the program. docs/start/from-river.md
// goes through it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures"
)

var sortJob = futures.Define[[]string, []string]("sort")

func sortWords(_ context.Context, words []string) ([]string, error) {
	return slices.Sorted(slices.Values(words)), nil
}

func main() {
	if err := run(context.Background(), "embedded:./data", os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, store string, out io.Writer) (err error) {
	node, err := futura.Open(ctx, store, futura.Function(sortJob.Bind(sortWords)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	job, err := insert(ctx, node, []string{"whale", "tiger", "bear"})
	if err != nil {
		return err
	}
	words, err := job.Await(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, words)
	return err
}

// insert makes the job in one transaction with a row of the program's own: both
// are there, or neither.
func insert(ctx context.Context, node *futura.Node, words []string) (*futures.Typed[[]string], error) {
	task, err := sortJob.Task(words, futures.Key("sort/1"))
	if err != nil {
		return nil, err
	}
	var made *futures.TxFutures
	result, err := kv.Transact(ctx, node.Store, kv.Retry{}, func(tx kv.Attempt) (err error) {
		tx.Set([]byte("lists/1"), []byte("to be sorted"))
		made, err = node.Client.SubmitTx(ctx, tx, []futures.Task{task})
		return err
	})
	if err != nil {
		return nil, err
	}
	made.Committed(ctx, result.Version)
	return sortJob.Of(made.Futures[0]), nil
}
