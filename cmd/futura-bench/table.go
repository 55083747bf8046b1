package main

import (
	"fmt"
	"slices"

	"github.com/futura-run/futura/internal/bench"
	"github.com/futura-run/futura/internal/wording"
)

func pressureRows(all []bench.Pressure) (rows [][]string) {
	for _, p := range all {
		rows = append(rows, []string{p.Name, fmt.Sprintf("%.0f per second, ratio %.3g (%.3g to %.3g), back after %.0f ms",
			p.FuturesPerSecond, p.Ratio, slices.Min(p.Ratios), slices.Max(p.Ratios), p.BackMS)})
	}
	return rows
}

func pointRows(all []bench.Point) (rows [][]string) {
	for _, p := range all {
		row := fmt.Sprintf("%.0f per second", p.FuturesPerSecond)
		if p.P50 > 0 {
			row += fmt.Sprintf(", p50 %.3g ms, p99 %.3g ms", p.P50, p.P99)
		}
		rows = append(rows, []string{fmt.Sprintf("  at %.0f", p.At), row})
	}
	return rows
}

// labels are those of the rate to compare with and of the latency.
func labels(r *bench.Report) (small, latency string) {
	if r.Scenario == "history" {
		return "at first", "read of an old one"
	}
	return "small backlog", "latency"
}

// benchRows are a report as a table that fits a terminal, without what the
// scenario does not measure.
func benchRows(r *bench.Report) [][]string {
	rows := [][]string{{r.Scenario, r.Store}}
	add := func(measured bool, name, format string, args ...any) {
		if measured {
			rows = append(rows, []string{name, fmt.Sprintf(format, args...)})
		}
	}
	add(true, "cores", "%d", r.Cores)
	add(r.Workers > 0, "workers", "%d", r.Workers)
	add(r.Futures > 0, "futures", "%d", r.Futures)
	add(r.FuturesPerSecond > 0, "rate", "%.0f per second", r.FuturesPerSecond)
	add(r.SubmitPerSecond > 0, "submitted", "%.0f per second", r.SubmitPerSecond)
	small, latency := labels(r)
	add(r.SmallPerSecond > 0, small, "%.0f per second", r.SmallPerSecond)
	add(r.Ratio > 0, "ratio", "%.3g", r.Ratio)
	add(r.RatioToUnstoppable > 0, "ratio, unstoppable", "%.3g", r.RatioToUnstoppable)
	add(r.P50 > 0, latency, "p50 %.3g ms, p99 %.3g ms", r.P50, r.P99)
	add(r.CommitP50 > 0, "commit", "p50 %.3g ms: a future takes %.3g of them", r.CommitP50, r.LatencyInCommits)
	add(r.AfterLast > 0, "last result", "%.3g ms after the last run", r.AfterLast)
	add(r.Watches > 0, "watches", "%d at a time", r.Watches)
	add(r.ConflictsPerCommit != nil, "store per future", "%.3g transactions, %.3g mutations, %.3g reads",
		r.TransactionsPerFuture, r.MutationsPerFuture, r.ReadsPerFuture)
	if r.ConflictsPerCommit != nil {
		add(true, "conflicts", "%.2f %% of the transactions", 100**r.ConflictsPerCommit)
	}
	add(r.ReadsPerSecond > 0, "store per second", "%.0f reads of %.0f keys, %.0f commits", r.ReadsPerSecond,
		r.KeysReadPerSecond, r.CommitsPerSecond)
	for _, shape := range r.Shapes {
		add(true, shape.Name, "%s of %s in %.0f ms", wording.Count(shape.Edges, "edge"),
			wording.Count(shape.Futures, "future"), shape.RunMS)
		add(shape.Edges > 0, "  each edge", "%.3g transactions, %.3g mutations, %.3g reads", shape.TransactionsPerEdge,
			shape.MutationsPerEdge, shape.ReadsPerEdge)
	}
	rows = append(rows, laneRows(r.Lanes)...)
	rows = append(append(rows, pressureRows(r.Pressures)...), pointRows(r.Points)...)
	cost := func(per string, c *bench.Cost) {
		if c != nil {
			add(true, "processor per "+per, "%.4g µs user, %.4g µs system", c.UserMicroseconds, c.SystemMicroseconds)
			add(true, "allocated per "+per, "%.4g objects, %.0f bytes", c.Allocations, c.AllocatedBytes)
		}
	}
	cost("future", r.PerFuture)
	cost("second", r.PerSecond)
	if o := r.Objects; o != nil {
		add(true, "memory copy", "%.3g ms for 10 MB", o.Copy)
		add(true, "bare socket", "%.3g ms for 10 MB", o.Socket)
		times := func(name string, t bench.ObjectTimes) {
			add(true, name, "%.3g µs (1 kB), %.3g ms (10 MB), ratio %.3g", t.Small, t.Large, t.Ratio)
		}
		times("put", o.Put)
		times("get within process", o.Within)
		times("get on one host", o.Between)
		times("get over socket", o.OverSocket)
		times("put on one host", o.PutBetween)
		times("put over socket", o.PutOverSocket)
	}
	rows = append(rows, hintRows(r.Hints)...)
	rows = append(rows, peerRows(r)...)
	add(r.ResidentBytes > 0, "resident memory", "%.0f MB", float64(r.ResidentBytes)/1e6)
	add(r.ResidentBytesPerFuture > 0, "resident per future", "%.0f bytes", r.ResidentBytesPerFuture)
	add(r.FsyncP50 > 0, "fsync", "p50 %.3g ms", r.FsyncP50)
	add(r.StoreSyncP50 > 0, "store sync", "p50 %.3g ms", r.StoreSyncP50)
	return rows
}

// hintRows compare futures with hints and without.
func hintRows(h *bench.Hints) (rows [][]string) {
	if h == nil {
		return nil
	}
	times := func(name string, t bench.HintTimes) {
		rows = append(rows,
			[]string{name, fmt.Sprintf("p50 %.3g ms, p99 %.3g ms, submit %.3g ms", t.P50, t.P99, t.SubmitP50)},
			[]string{"  store per future", fmt.Sprintf("%.3g transactions, %.3g mutations, %.3g reads",
				t.TransactionsPerFuture, t.MutationsPerFuture, t.ReadsPerFuture)})
	}
	times("with hints", h.With)
	times("without hints", h.Without)
	return append(rows, []string{"ratio", fmt.Sprintf("%.3g", h.Ratio)})
}

// laneRows are what members of lanes cost.
func laneRows(lanes []bench.LaneCost) (rows [][]string) {
	for _, l := range lanes {
		rows = append(rows, []string{l.Name, fmt.Sprintf("%s in %.0f ms, %.0f per second", wording.Count(l.Futures, "future"),
			l.RunMS, l.FuturesPerSecond)},
			[]string{"  each", fmt.Sprintf("%.3g transactions, %.3g mutations, %.3g reads; %.2g %% conflicts",
				l.Transactions, l.Mutations, l.Reads, 100*l.Conflicts)})
	}
	return rows
}

// peerRows are how peers compare with workers that run one item at a time, and with b7s.
func peerRows(r *bench.Report) (rows [][]string) {
	if r.OneByOneRatio > 0 {
		rows = append(rows, []string{"ratio, one by one", fmt.Sprintf("%.3g", r.OneByOneRatio)})
	}
	if b := r.B7S; b != nil {
		rows = append(rows,
			[]string{"head of b7s", fmt.Sprintf("%.0f per second, %.4g µs of processor each", b.ItemsPerSecond, b.CPU)},
			[]string{"ratio to b7s", fmt.Sprintf("%.3g", b.Ratio)})
	}
	if r.B7SSkipped != "" {
		rows = append(rows, []string{"head of b7s", r.B7SSkipped})
	}
	return rows
}
