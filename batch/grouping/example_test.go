package grouping_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/batch/grouping"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// Row is a row to be written to a table.
type Row struct{ Table, Value string }

// Rows of one table are written together, whoever submits them.
func ExampleHandler() {
	ctx, cancel := context.WithCancel(context.Background())
	db := embedded.OpenMemory(embedded.Options{})
	client, err := futures.New(ctx, db, futures.Options{})
	if err != nil {
		panic(err)
	}
	worker, err := workers.New(client, workers.Options{})
	if err != nil {
		panic(err)
	}
	writes := grouping.Define[Row, int]("write", func(r Row) string { return r.Table }, grouping.Settings{Most: 50})
	err = worker.RegisterBundle(writes.Bind(
		func(_ context.Context, table string, tasks []grouping.Task[Row]) ([]grouping.Outcome[int], error) {
			outcomes := make([]grouping.Outcome[int], len(tasks))
			for i := range tasks { // one INSERT of all rows
				if outcomes[i].Out = len(tasks[i].In.Value); outcomes[i].Out == 0 {
					outcomes[i].Err = workers.Permanent(errors.New("an empty row"))
				}
			}
			return outcomes, nil
		}))
	if err != nil {
		panic(err)
	}
	if err := writes.Setup(ctx, client); err != nil {
		panic(err)
	}
	ended := make(chan error)
	go func() { ended <- worker.Run(ctx) }()

	tasks, err := writes.SubmitAll(ctx, client, []Row{{"users", "ada"}, {"orders", "book"}, {"users", ""}})
	if err != nil {
		panic(err)
	}
	for _, task := range tasks {
		size, err := task.Await(ctx)
		var failed *futures.FailedError
		status, _ := grouping.StatusOf(ctx, client, task.ID())
		fmt.Println(size, errors.As(err, &failed), status)
	}
	cancel()
	if err := errors.Join(<-ended, client.Close(context.Background()), db.Close()); err != nil {
		panic(err)
	}
	// Output:
	// 3 false succeeded
	// 4 false succeeded
	// 0 true failed
}
