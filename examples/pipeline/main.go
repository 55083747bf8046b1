// Command pipeline takes orders through two stages: one prices them, and one adds
// them up per customer. Each order is priced and added once, in its order, whatever
// dies meanwhile. docs/guide/pipelines.md goes through it.
//
//	go run ./examples/pipeline                               # in memory
//	go run ./examples/pipeline --store embedded:./orders     # on disk
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures"
)

// Order is what customers send.
type Order struct {
	Customer, Item string
	Count          int
}

// Priced is an order with its price.
type Priced struct {
	Customer string
	Amount   int
}

func main() {
	store := flag.String("store", "memory:", "where orders and accounts are kept")
	flag.Parse()
	if err := run(context.Background(), *store, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, store string, out io.Writer) (err error) {
	node, err := futura.Open(ctx, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	p, err := newPipeline(node.Client.Cluster())
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.start(); err != nil {
		return err
	}
	if err := send(ctx, p.orders); err != nil {
		return err
	}
	if err := p.wait(ctx, 4); err != nil {
		return err
	}
	if err := p.stop(ctx); err != nil {
		return err
	}
	return p.report(ctx, out)
}

// pipeline has a log before each of its stages. Any number of processes may run it.
type pipeline struct {
	cluster *futures.Cluster
	orders  *jobqueue.Log[Order]
	priced  *jobqueue.Log[Priced]
	price   *jobqueue.Stage[Order]
	account *jobqueue.Stage[Priced]
	done    chan uint64
}

func newPipeline(cluster *futures.Cluster) (*pipeline, error) {
	p := &pipeline{cluster: cluster, done: make(chan uint64, 1)}
	var errs [4]error
	p.orders, errs[0] = jobqueue.NewLog(cluster, "orders", jobqueue.LogOptions[Order]{})
	p.priced, errs[1] = jobqueue.NewLog(cluster, "priced", jobqueue.LogOptions[Priced]{})
	p.price, errs[2] = jobqueue.NewStage(cluster, p.orders, "price", priceInto(p.priced), jobqueue.StageOptions{
		Options: jobqueue.Options{
			MaxProcessing: 8, MaxSearchAhead: 1000,
			OnFailure: jobqueue.Park, MaxAttempts: 3,
			Backoff: jobqueue.Backoff{Base: 10 * time.Millisecond, Max: time.Second},
		},
	})
	p.account, errs[3] = jobqueue.NewStage(cluster, p.priced, "account", addToAccount, jobqueue.StageOptions{
		Options: jobqueue.Options{MaxProcessing: 8, MaxSearchAhead: 1000, OnAdvance: p.advanced},
	})
	return p, errors.Join(errs[:]...)
}

// priceInto may run more than once for an order. What it emits is appended once.
func priceInto(priced *jobqueue.Log[Priced]) jobqueue.Handler[Order] {
	prices := map[string]int{"tea": 3, "cake": 5}
	return func(_ context.Context, job jobqueue.Job[Order], out *jobqueue.Output) error {
		each, found := prices[job.Value.Item]
		if !found {
			return jobqueue.Permanent(fmt.Errorf("%s is sold out", job.Value.Item))
		}
		return priced.Emit(out, Priced{job.Value.Customer, each * job.Value.Count})
	}
}

// addToAccount adds to a row of the program's own, in the transaction that advances
// the progress over the job.
func addToAccount(_ context.Context, job jobqueue.Job[Priced], out *jobqueue.Output) error {
	out.Apply(func(ctx context.Context, tx kv.Tx) error {
		key, total := []byte("accounts/"+job.Value.Customer), 0
		row, err := tx.Get(key).Wait(ctx)
		if err != nil {
			return err
		}
		if row != nil {
			if err := json.Unmarshal(row, &total); err != nil {
				return err
			}
		}
		row, err = json.Marshal(total + job.Value.Amount)
		tx.Set(key, row)
		return err
	})
	return nil
}

// advanced keeps the last index that the second stage has come to.
func (p *pipeline) advanced(processed uint64) {
	select {
	case <-p.done:
	default:
	}
	p.done <- processed
}

func (p *pipeline) start() error { return errors.Join(p.price.Start(), p.account.Start()) }

// send appends orders. A program that reads them from elsewhere repeats AppendOnce
// after a crash: what was appended is not appended again.
func send(ctx context.Context, orders *jobqueue.Log[Order]) error {
	if _, err := orders.Append(ctx, Order{"ada", "tea", 2}, Order{"bob", "cake", 1}); err != nil {
		return err
	}
	for range 2 {
		_, appended, err := orders.AppendOnce(ctx, "shop", 1,
			Order{"ada", "coal", 9}, Order{"bob", "tea", 4}, Order{"ada", "cake", 2})
		if err != nil || !appended {
			return err
		}
	}
	return nil
}

// wait waits until the second stage has added n orders.
func (p *pipeline) wait(ctx context.Context, n uint64) error {
	for {
		select {
		case processed := <-p.done:
			if processed >= n {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *pipeline) stop(ctx context.Context) error {
	return errors.Join(p.price.Stop(ctx), p.account.Stop(ctx))
}

func (p *pipeline) close() {
	p.orders.Close()
	p.priced.Close()
}

// report prints the accounts, and the orders that were put aside.
func (p *pipeline) report(ctx context.Context, out io.Writer) error {
	for _, customer := range []string{"ada", "bob"} {
		err := p.cluster.View(ctx, func(tx kv.Attempt) error {
			row, err := tx.Get([]byte("accounts/" + customer)).Wait(ctx)
			fmt.Fprintf(out, "%s owes %s\n", customer, row)
			return err
		})
		if err != nil {
			return err
		}
	}
	parked, err := p.price.ParkedJobs(ctx, 0, 10)
	for _, job := range parked {
		fmt.Fprintf(out, "order %d is parked: %v\n", job.Index, job.Err)
	}
	return err
}
