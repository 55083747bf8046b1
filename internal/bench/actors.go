package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

const (
	manyActors = 1000
	// awaitedCalls is how many calls of one actor are made one after the other.
	awaitedCalls = 300
)

// counted is the state of an actor.
type counted struct{ Calls int }

var counters = futures.DefineActor[counted]("bench")

// count is a call that changes its actor.
func count(ctx context.Context, args []byte) ([]byte, error) {
	state, err := counters.State(ctx, futures.ActorKey(ctx))
	if err != nil {
		return nil, err
	}
	state.Calls++
	return args, nil
}

// same is a call that changes nothing.
func same(_ context.Context, args []byte) ([]byte, error) { return args, nil }

// onActors compares calls of actors with plain futures: of 1,000 actors, and of one with a backlog. Then it
// calls one that is warm, one call after the other.
func onActors(ctx context.Context, r *run) error {
	n, w := r.futures(20_000), r.workers(2)
	for _, s := range []struct {
		name string
		n    int
		fn   workers.Function
		key  func(i int) string
	}{
		{"plain", n, same, nil},
		{"1,000 actors", n, count, func(i int) string { return fmt.Sprint(i % manyActors) }},
		{"one actor", max(n/narrowShare, 1), count, func(int) string { return "one" }},
	} {
		shape, usage, err := r.shapeOf(ctx, s.name, w, s.fn, func(ctx context.Context) ([]*futures.Future, int, error) {
			if err := r.client.SetLaneKind(ctx, actorLanes, futures.LaneSettings{Width: 1}); err != nil {
				return nil, 0, err
			}
			r.begin("submit "+s.name, s.n)
			all, err := r.submitTasks(ctx, s.n, func(i int) futures.Task {
				t := task(i)
				if s.key != nil {
					t.Lane = futures.Lane{Kind: actorLanes, Key: s.key(i)}
				}
				return t
			})
			return all, 0, err
		})
		if err != nil {
			return err
		}
		r.report.Lanes = append(r.report.Lanes, costOfLane(s.name, &shape, &usage))
	}
	r.report.FuturesPerSecond = r.report.Lanes[1].FuturesPerSecond
	r.report.Ratio = round(r.report.FuturesPerSecond/r.report.Lanes[0].FuturesPerSecond, 3)
	return r.within(ctx, func() error {
		return working(ctx, r.client.Cluster(), 1, workers.Options{}, count, func() error { return r.callOne(ctx) })
	})
}

const actorLanes = "actor.bench"

// callOne calls one actor, one call after the other.
func (r *run) callOne(ctx context.Context) error {
	if err := r.client.SetLaneKind(ctx, actorLanes, futures.LaneSettings{Width: 1}); err != nil {
		return err
	}
	r.begin("one call after the other", awaitedCalls)
	times := make([]time.Duration, 0, awaitedCalls)
	var before mark
	for i := range awaitedCalls + 1 {
		if i == 1 { // the first one finds it cold
			before = r.mark()
		}
		start, t := time.Now(), task(i)
		t.Lane = futures.Lane{Kind: actorLanes, Key: "warm"}
		f, err := r.client.Submit(ctx, t)
		if err == nil {
			_, err = f.Await(ctx)
		}
		if err != nil {
			return err
		}
		if i > 0 {
			times = append(times, time.Since(start))
		}
		r.step(1)
	}
	r.spent(before, awaitedCalls)
	r.report.P50, r.report.P99 = quantiles(times)
	return nil
}
