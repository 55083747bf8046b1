package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// childCrowd makes a process work with others once it is told to.
const childCrowd = "FUTURA_BENCH_CROWD"

// processes compares futures that contend for the same rows with plain ones, where each worker is a
// process of its own: calls of 1,000 lanes of width 1, members of 100 lanes of width 10, and layers
// of a graph.
func processes(ctx context.Context, r *run) error {
	n, w := r.futures(40_000), r.workers(2)
	inLanes := func(width, keys int) func(context.Context) ([]*futures.Future, int, error) {
		return func(ctx context.Context) ([]*futures.Future, int, error) {
			if err := r.client.SetLaneKind(ctx, "bench", futures.LaneSettings{Width: width}); err != nil {
				return nil, 0, err
			}
			all, err := r.submitTasks(ctx, n, func(i int) futures.Task {
				t := task(i)
				t.Lane = futures.Lane{Kind: "bench", Key: fmt.Sprint(i % keys)}
				return t
			})
			return all, 0, err
		}
	}
	for _, s := range []struct {
		name  string
		build func(context.Context) ([]*futures.Future, int, error)
	}{
		{"plain", func(ctx context.Context) ([]*futures.Future, int, error) {
			all, err := r.submitAll(ctx, n)
			return all, 0, err
		}},
		{"100 of width 10", inLanes(10, 100)},
		{"1,000 of width 1", inLanes(1, manyActors)},
		{"layers of a graph", func(ctx context.Context) ([]*futures.Future, int, error) { return r.layers(ctx, n) }},
	} {
		shape, usage, err := r.shapeOfProcesses(ctx, s.name, w, s.build)
		if err != nil {
			return err
		}
		r.report.Lanes = append(r.report.Lanes, costOfLane(s.name, &shape, &usage))
	}
	r.report.FuturesPerSecond = r.report.Lanes[1].FuturesPerSecond
	r.report.Ratio = round(r.report.FuturesPerSecond/r.report.Lanes[0].FuturesPerSecond, 3)
	return nil
}

// shapeOfProcesses submits futures in a fresh cluster, and then has w processes run them.
func (r *run) shapeOfProcesses(ctx context.Context, name string, w int,
	build func(context.Context) ([]*futures.Future, int, error),
) (s Shape, usage Usage, err error) {
	dir, err := os.MkdirTemp("", "futura-")
	if err != nil {
		return s, usage, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	err = r.within(ctx, func() error {
		return r.served(ctx, dir, func(store string, _ kv.Database) error {
			crowd := make([]*crowdChild, w)
			for i := range crowd {
				c, err := startCrowdChild(ctx, store, r.name)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, c.stop()) }()
				crowd[i] = c
			}
			before, start := r.mark(), time.Now()
			r.begin("submit "+name, 0)
			all, edges, err := build(ctx)
			if err != nil {
				return err
			}
			s = Shape{Name: name, Futures: len(all), Edges: edges, SubmitMS: millis(time.Since(start))}
			r.begin("run "+name, 0)
			start = time.Now()
			for _, c := range crowd {
				if _, err := io.WriteString(c.in, "go\n"); err != nil {
					return err
				}
			}
			_, err = r.client.AwaitAll(ctx, all)
			took := time.Since(start)
			s.RunMS, s.FuturesPerSecond = millis(took), perSecond(len(all), took)
			usage = r.mark().usage.minus(before.usage)
			if err != nil || kv.TraitsOf(r.db).Exclusive {
				return err // what this process serves, it has counted
			}
			for _, c := range crowd {
				theirs, err := c.usage()
				if err != nil {
					return err
				}
				usage = usage.plus(theirs)
			}
			return nil
		})
	})
	return s, usage, err
}

// crowdChild is a process with a worker that begins when it is told to.
type crowdChild struct {
	*child
	lines *bufio.Reader
}

func startCrowdChild(ctx context.Context, store, cluster string) (*crowdChild, error) {
	other, err := startChild(ctx, childCrowd+"="+store, childCluster+"="+cluster)
	if err != nil {
		return nil, err
	}
	c := &crowdChild{other, bufio.NewReader(other.out)}
	line, err := c.lines.ReadString('\n')
	if err == nil && strings.TrimSpace(line) != "ready" {
		err = fmt.Errorf("bench: the worker says %.100q", line)
	}
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// usage asks for what the process has asked of the store since it began.
func (c *crowdChild) usage() (u Usage, err error) {
	if _, err = io.WriteString(c.in, "usage\n"); err != nil {
		return u, err
	}
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		return u, err
	}
	return u, json.Unmarshal(line, &u)
}

// crowdWork runs a worker from the first line of in until in ends. It answers each further line with
// its usage of the store.
func crowdWork(store, cluster string, in io.Reader, out io.Writer) (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	opened, err := kvopen.Open(ctx, store, kvopen.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	db := NewMeter(opened)
	client, err := futures.New(ctx, db, futures.Options{Cluster: cluster})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(context.Background())) }()
	w, err := workers.New(client, workers.Options{Name: "bench"})
	if err != nil {
		return err
	}
	if err := w.Register(noop, func(_ context.Context, args []byte) ([]byte, error) {
		return args[:min(len(args), argsSize)], nil
	}); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	told := bufio.NewScanner(in)
	if !told.Scan() {
		return told.Err()
	}
	before, ended := db.Usage(), make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for told.Scan() {
		if err := json.NewEncoder(out).Encode(db.Usage().minus(before)); err != nil {
			return err
		}
	}
	cancel()
	return errors.Join(told.Err(), <-ended)
}
