package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures"
)

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
			crowd := make([]*workChild, w)
			for i := range crowd {
				c, err := startWorkChild(ctx, store, r.name)
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
				if err := c.begin(); err != nil {
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
				if err := c.expect(isWorking); err != nil {
					return err
				}
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
