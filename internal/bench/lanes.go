package bench

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/futures"
)

// LaneCost is what members of lanes cost: from the submit to the result, claims and
// finishes included.
type LaneCost struct {
	Name    string `json:"lanes"`
	Futures int    `json:"futures"`
	// SubmitMS is the time until all are submitted; then workers start, and RunMS later
	// the client has all results.
	SubmitMS         float64 `json:"submit_ms"`
	RunMS            float64 `json:"run_ms"`
	FuturesPerSecond float64 `json:"futures_per_second"`
	// These are for each future.
	Transactions float64 `json:"transactions_per_future"`
	Mutations    float64 `json:"mutations_per_future"`
	Reads        float64 `json:"reads_per_future"`
	// Conflicts is their share of the transactions.
	Conflicts float64 `json:"conflicts_per_commit"`
}

// narrowShare is which part of the futures the backlog of one lane of width 1 has: they
// run one after the other.
const narrowShare = 20

// lanes compares members of lanes with plain futures: of lanes that are never full, of
// one of width 1 with a backlog, and of 100 of width 10.
func lanes(ctx context.Context, r *run) error {
	n, w := r.futures(20_000), r.workers(2)
	for _, s := range []struct {
		name  string
		n     int
		width int
		key   func(i int) string
	}{
		{"plain", n, 0, nil},
		{"never full", n, 10, func(i int) string { return fmt.Sprint(i) }},
		{"one of width 1", max(n/narrowShare, 1), 1, func(int) string { return "one" }},
		{"100 of width 10", n, 10, func(i int) string { return fmt.Sprint(i % 100) }},
	} {
		shape, usage, err := r.shape(ctx, s.name, w, func(ctx context.Context) ([]*futures.Future, int, error) {
			r.begin("submit "+s.name, s.n)
			if s.width > 0 {
				if err := r.client.SetLaneKind(ctx, "bench", futures.LaneSettings{Width: s.width}); err != nil {
					return nil, 0, err
				}
			}
			all, err := r.submitTasks(ctx, s.n, func(i int) futures.Task {
				t := task(i)
				if s.key != nil {
					t.Lane = futures.Lane{Kind: "bench", Key: s.key(i)}
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
	r.report.FuturesPerSecond = r.report.Lanes[3].FuturesPerSecond
	r.report.Ratio = round(r.report.FuturesPerSecond/r.report.Lanes[0].FuturesPerSecond, 3)
	return nil
}

func costOfLane(name string, shape *Shape, usage *Usage) LaneCost {
	each := func(v int64) float64 { return round(float64(v)/float64(shape.Futures), 3) }
	return LaneCost{
		Name: name, Futures: shape.Futures, SubmitMS: shape.SubmitMS, RunMS: shape.RunMS,
		FuturesPerSecond: shape.FuturesPerSecond, Transactions: each(usage.Commits), Mutations: each(usage.Mutations),
		Reads: each(usage.Reads), Conflicts: round(float64(usage.Conflicts)/float64(max(usage.Commits, 1)), 4),
	}
}
