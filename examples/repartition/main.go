// Command repartition divides a data set anew among workers that hold it in memory:
// each partition is split into parts, the parts move to the workers that are to have
// them, and are joined there. No client holds any of it, and nothing of it is in the
// store of the cluster. docs/guide/datasets.md goes through it.
//
//	go run ./examples/repartition
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// Rows are a partition: which customer spent how much.
type Rows []Row

// Row is one sale.
type Row struct {
	Customer, Cents int
}

// Days are sales, from the first day up to the last.
type Days struct{ From, To int }

// Split says which partition is to be split into how many parts.
type Split struct {
	Of   futures.Arg[Rows]
	Into int
}

// What join makes can't be made again, since its parts are removed.
var (
	load  = futures.Define[Days, Rows]("load", futures.AsObject())
	split = futures.Define[Split, []futures.ID]("split")
	join  = futures.Define[[]futures.Arg[Rows], Rows]("join", futures.AsObject(), futures.NoRebuild())
	sum   = futures.Define[futures.Arg[Rows], map[int]int]("sum")
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	client, err := futures.New(ctx, embedded.OpenMemory(embedded.Options{}), futures.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(ctx)) }()
	var ids []futures.WorkerID
	for range 3 {
		id, stop, err := startWorker(ctx, client)
		if err != nil {
			return err
		}
		defer stop()
		ids = append(ids, id)
	}
	byDay, err := load.Map(ctx, client, []Days{{0, 40}, {40, 80}, {80, 120}})
	if err != nil {
		return err
	}
	byCustomer, err := repartition(ctx, client, byDay, ids)
	if err != nil {
		return err
	}
	return report(ctx, client, byCustomer, out)
}

// startWorker starts a worker that holds up to 64 MiB of results.
func startWorker(ctx context.Context, client *futures.Client) (id futures.WorkerID, stop func(), err error) {
	w, err := workers.New(client, workers.Options{
		Slots: 2, Objects: workers.ObjectOptions{Memory: 64 << 20, Above: -1}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return id, nil, err
	}
	if err := errors.Join(
		w.Register(load.Bind(loadDays)), w.Register(split.Bind(splitRows)),
		w.Register(join.Bind(joinRows)), w.Register(sum.Bind(sumUp)),
	); err != nil {
		return id, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	<-w.Ready()
	return w.ID(), func() {
		cancel()
		<-ended
	}, nil
}

// repartition divides partitions into one for each of some workers, which have it from
// then on. What there was before is removed.
func repartition(
	ctx context.Context, client *futures.Client, old []*futures.Typed[Rows], to []futures.WorkerID,
) ([]*futures.Typed[Rows], error) {
	splits := make([]*futures.Typed[[]futures.ID], len(old))
	for i, partition := range old {
		var err error
		// A function runs where its data is, rather than that the data goes to it.
		splits[i], err = split.Submit(ctx, client, Split{futures.From(partition), len(to)}, futures.Near(partition.ID()))
		if err != nil {
			return nil, err
		}
	}
	parts, err := futures.AwaitAll(ctx, splits)
	if err != nil {
		return nil, err
	}
	joined := make([]*futures.Typed[Rows], len(to))
	moves, moving := errgroup.WithContext(ctx)
	for p, worker := range to {
		moves.Go(func() (err error) {
			joined[p], err = joinAt(moving, client, worker, column(parts, p))
			return err
		})
	}
	if err := moves.Wait(); err != nil {
		return nil, err
	}
	return joined, discard(ctx, client, old, parts)
}

// joinAt moves parts to a worker, and makes one partition of them there.
func joinAt(
	ctx context.Context, client *futures.Client, worker futures.WorkerID, parts []futures.ID,
) (*futures.Typed[Rows], error) {
	inputs := make([]futures.Arg[Rows], len(parts))
	moves, moving := errgroup.WithContext(ctx)
	for i, part := range parts {
		inputs[i] = futures.FromID[Rows](part)
		moves.Go(func() error {
			_, err := client.Transfer(moving, part, futures.CopyOptions{To: worker})
			return err
		})
	}
	if err := moves.Wait(); err != nil {
		return nil, err
	}
	joined, err := join.Submit(ctx, client, inputs, futures.MustBeNear(parts[0]))
	if err != nil {
		return nil, err
	}
	stream, err := joined.Open(ctx) // waits for the partition and leaves it where it is
	if err != nil {
		return nil, err
	}
	return joined, stream.Close()
}

// column returns the parts that belong to one partition.
func column(parts [][]futures.ID, p int) (of []futures.ID) {
	for _, row := range parts {
		of = append(of, row[p])
	}
	return of
}

// discard removes what was split, and the parts.
func discard(ctx context.Context, client *futures.Client, old []*futures.Typed[Rows], parts [][]futures.ID) error {
	ids := slices.Concat(parts...)
	for _, partition := range old {
		ids = append(ids, partition.ID())
	}
	for _, id := range ids {
		if err := client.Discard(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// loadDays would read files. Here a day has a sale to each of 100 customers.
func loadDays(_ context.Context, d Days) (rows Rows, _ error) {
	for day := d.From; day < d.To; day++ {
		for customer := range 100 {
			rows = append(rows, Row{customer, 100*day + customer})
		}
	}
	return rows, nil
}

// splitRows puts each part where it runs, as a future that is over.
func splitRows(ctx context.Context, s Split) ([]futures.ID, error) {
	client, err := futures.FromContext(ctx)
	if err != nil {
		return nil, err
	}
	parts := make([]Rows, s.Into)
	for _, row := range s.Of.Get() {
		p := row.Customer % s.Into
		parts[p] = append(parts[p], row)
	}
	ids := make([]futures.ID, s.Into)
	for p, part := range parts {
		put, err := futures.PutValue(ctx, client, part, futures.PutOptions{AsObject: true})
		if err != nil {
			return nil, err
		}
		ids[p] = put.ID()
	}
	return ids, nil
}

func joinRows(_ context.Context, parts []futures.Arg[Rows]) (all Rows, _ error) {
	for _, part := range parts {
		all = append(all, part.Get()...)
	}
	return all, nil
}

// sumUp needs no other partition: each customer is in one alone.
func sumUp(_ context.Context, rows futures.Arg[Rows]) (map[int]int, error) {
	total := map[int]int{}
	for _, row := range rows.Get() {
		total[row.Customer] += row.Cents
	}
	return total, nil
}

func report(ctx context.Context, client *futures.Client, parts []*futures.Typed[Rows], out io.Writer) error {
	for p, partition := range parts {
		totals, err := sum.Call(ctx, client, futures.From(partition), futures.Near(partition.ID()))
		if err != nil {
			return err
		}
		all := 0
		for cents := range maps.Values(totals) {
			all += cents
		}
		fmt.Fprintf(out, "partition %d: %d customers spent %d.%02d\n", p, len(totals), all/100, all%100)
	}
	return nil
}
