package audit_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/fdbmodel/schedule"
	"github.com/futura-run/futura/internal/storetest"
)

// unrepaired are the breakages after which the right answer does not follow from the records, by
// the reason.
var unrepaired = map[string][]string{
	"a key that the table does not have may be of a newer version": {
		"a part below a part", "a shard below 0", "a shard too many", "assignment that is none",
		"batch key that is none", "future in another shard", "group that is none", "job below 0", "no tuple",
		"piece with a negative number", "piece without a number", "priority below 0", "unknown key",
		"unknown key of a shard", "unknown part of a future", "unknown part of a future's state",
		"unknown part of a worker",
	},
	"a record that can't be read says nothing": {
		"claims that can't be read", "copy that can't be read", "done list that can't be read",
		"mail that can't be read", "row that can't be read", "session that can't be read",
	},
	"what is gone is nowhere else": {
		"alias of no module", "arguments cut", "arguments gone", "batch gone", "piece of a module gone",
		"piece of a result gone", "piece of arguments cut", "pieces of a module misnumbered",
		"number of pieces off", "schedule gone", "spec gone", "state of a schedule gone",
		"progress of no future", "config gone", "promise without a token", "promise with a token that is none",
		"piece of a step gone",
	},
	"an operator says what the settings are": {
		"config of another format", "config of others", "config out of bounds", "limits that can't be",
		"pause of nothing",
	},
	"a state is data": {
		"actor without a state", "small state that is not in its head",
		"large state that is in its head too", "state beside a small one in its head", "actor with a type that can't be",
		"head that can't be", "state of another size",
		"state that is shorter",
		"state of no actor", "part of no actor", "part of an actor without parts", "part that is too large",
	},
	"a log of jobs is data": {
		"consumer ahead of the log", "job before the first", "job behind the last", "job in the middle gone",
		"job of no log", "last job gone", "lease without progress", "log that begins behind its end",
		"log that begins with no job", "parked and not passed", "producer ahead of the log",
	},
	"nothing else says what was used, or happened": {
		"activity below 0", "activity of a part of an hour", "use below 0", "use on no day",
	},
	"a step is what a function has done": {
		"step with a name that can't be", "step with the number of another", "step without a number",
	},
	"a notice is all that a client gets": {
		"mail about nothing that ended",
	},
	"records of one future, or schedule, contradict each other": {
		"arguments in two places", "arguments of nobody", "attempts without an exception",
		"blocked and claimed", "blocked record gone", "claimed with a due time", "crashes without deaths",
		"empty history", "failed before its last attempt", "in line without a lane",
		"promise that is linked", "promise that is ready", "token of no promise",
		"large arguments in two places", "left to a worker for no time", "line of a schedule in disorder",
		"linked to more than there are", "long text in a history", "lost without crashes",
		"memory that grew for no reason", "more failed attempts than allowed, and not over",
		"near what is no input", "negative count", "negative number of crashes",
		"negative number of failed attempts", "pins in disorder", "pins without names", "progress below 0",
		"progress of a claim that never was", "realized and asked to stop", "realized with a final exception",
		"reject by more than it counts", "result of a failed future", "result of an attempt that was not",
		"slot kept by a ready one", "too many attempts", "too many crashes", "unplaceable from nothing",
	},
}

// repair checks and repairs until nothing can be repaired, and returns the last report.
func repair(t *testing.T, c *fdbmodel.Cluster) audit.Report {
	t.Helper()
	ctx := context.Background()
	for range 5 {
		report, err := audit.Check(ctx, c, audit.Options{})
		require.NoError(t, err)
		if report.Repairable() == 0 {
			return report
		}
		did, err := audit.Repair(ctx, c, report, audit.Options{})
		require.NoError(t, err)
		require.NotEmpty(t, did.Repaired, "%+v %+v", did, report.Problems)
		require.Empty(t, did.Unsettled)
	}
	report, err := audit.Check(ctx, c, audit.Options{})
	require.NoError(t, err)
	require.Zero(t, report.Repairable(), "%+v", report.Problems)
	return report
}

// belongings are the keys that users and operators have written: no index of them, apart from more kinds.
func belongings(t *testing.T, p *modeltest.Population, more ...string) map[string]string {
	kept := map[string]string{}
	whole := []string{layout.SubFutures, layout.SubModules, layout.SubAliases, joblog.Subspace, actors.Subspace, "chunks"}
	kinds := []string{layout.KeyBatch, layout.KeyBatchChunk, schedule.KeyDefinition, schedule.KeyState,
		layout.KeyLaneKind, layout.KeyConfig, quota.KeyLimits, pause.KeyPause}
	for _, item := range p.Items(t) {
		key := keyspace.Table().Parse(item.Key)
		marks := []string{"has dependants", "has steps", "has forks", joblog.KeyRetry}
		if key.Kind == nil || slices.Contains(marks, key.Kind.Name) {
			continue
		}
		if slices.Contains(whole, key.Subspace) || slices.Contains(append(kinds, more...), key.Kind.Name) {
			kept[string(item.Key)] = string(item.Value)
		}
	}
	return kept
}

func TestEachBreakageIsRepairedOrNamed(t *testing.T) {
	t.Parallel()
	known, left := map[string]bool{}, map[string]bool{}
	for _, names := range unrepaired {
		for _, name := range names {
			left[name] = true
		}
	}
	for n, b := range slices.Concat(breakRow, breakEdges, breakUnique, breakLanes, breakLife, breakRest, breakJobs,
		breakSchedules, breakLimits, breakPromises, breakSteps, breakForks, breakActors) {
		known[b.name] = true
		if storetest.OnServer && testing.Short() && n%16 != 1 {
			continue // a cluster for each is slow to make there
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			p := modeltest.Populate(t)
			p.Write(t, func(tx kv.Tx) { b.how(t, p, tx) })
			var places []string // futures stay where they are if it is not known where they belong
			for _, place := range layout.Places() {
				if left[b.name] {
					places = append(places, place.Kind)
				}
			}
			before := belongings(t, p, places...)
			report := repair(t, p.C)
			require.Equal(t, before, belongings(t, p, places...))
			if !left[b.name] {
				require.Empty(t, report.Problems)
				return
			}
			require.NotEmpty(t, report.Problems, "it is repaired")
			for _, problem := range report.Problems {
				require.NotEmpty(t, problem.Instead)
			}
		})
	}
	for name := range left {
		require.True(t, known[name], "no such breakage: %s", name)
	}
}
