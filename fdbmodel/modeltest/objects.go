package modeltest

import (
	"context"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

// Object submits a future whose result is an object.
func (s *Stage) Object(inputs ...layout.ID) layout.ID {
	return s.Submit(func(sub *fdbmodel.Submission) {
		sub.Spec.AsObject, sub.Spec.AllowReconstruction, sub.Inputs = true, true, inputs
	})
}

// KeepObject is a result in the store of the worker that holds the claim.
func KeepObject(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
	return fdbmodel.Completion{Future: f, Result: &layout.Result{Object: "object of " + f.ID.String(), Size: 3}}
}

// DeclareDead declares a worker dead by its last heartbeat. It keeps its claims.
func DeclareDead(t require.TestingT, c *fdbmodel.Cluster, id layout.WorkerID) {
	ctx := context.Background()
	members, err := c.Workers(ctx)
	require.NoError(t, err)
	at := slices.IndexFunc(members, func(m fdbmodel.Member) bool { return m.ID == id })
	require.NotEqual(t, -1, at, "worker %s is no member", id)
	dead, err := c.DeclareDead(ctx, id, members[at].Beat)
	require.NoError(t, err)
	require.True(t, dead)
}

// LoseWorker declares the stage's worker dead, with all its objects, and starts
// another one.
func (s *Stage) LoseWorker() {
	members, err := s.C.Workers(s.Ctx)
	require.NoError(s.T, err)
	for _, m := range members {
		DeclareDead(s.T, s.C, m.ID)
		_, err = s.C.ReapClaims(s.Ctx, m.ID)
		require.NoError(s.T, err)
	}
	s.Worker, err = s.C.Register(s.Ctx, s.Info())
	require.NoError(s.T, err)
}

// Second registers another worker, which has objects as well.
func (s *Stage) Second() *fdbmodel.Registration {
	info := s.Info()
	info.Address = ""
	second, err := s.C.Register(s.Ctx, info)
	require.NoError(s.T, err)
	return second
}

// Token returns the token of a future's result.
func (s *Stage) Token(id layout.ID) layout.Token {
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(s.T, err)
	require.NotNil(s.T, row.Result)
	return row.Result.Token
}

// EndAll claims and ends what is ready, until nothing is. It returns how many
// that were.
func (s *Stage) EndAll(end func(*fdbmodel.ClaimedFuture) fdbmodel.Completion) (n int) {
	for {
		answer, err := s.Worker.Claim(s.Ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 64}, Max: 64})
		require.NoError(s.T, err)
		if len(answer.Futures) == 0 && s.ResolveLeft() {
			continue
		}
		if len(answer.Futures) == 0 {
			return n
		}
		var done []fdbmodel.Completion
		for i := range answer.Futures {
			done = append(done, end(&answer.Futures[i]))
		}
		n += len(done)
		_, err = s.Worker.Finish(s.Ctx, done)
		require.NoError(s.T, err)
	}
}

// ResolveLeft resolves, as a janitor does, dependencies that an end has left marked because its
// transactions failed, as they may on a busy server. It reports whether there were any.
func (s *Stage) ResolveLeft() bool {
	if !storetest.OnServer {
		return false
	}
	resolved, more, err := s.C.ResolveEdges(s.Ctx)
	require.NoError(s.T, err)
	return resolved > 0 || more
}

// Realize is a small result.
func Realize(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
	return fdbmodel.Completion{Future: f, Result: &layout.Result{Value: []byte("v")}}
}

// RequireSound audits the cluster.
func (s *Stage) RequireSound() audit.Report { return RequireSound(s.T, s.C) }

// RequireSound audits a cluster.
func RequireSound(t require.TestingT, c *fdbmodel.Cluster) audit.Report {
	report, err := audit.Check(context.Background(), c, audit.Options{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	return report
}

// RequireResolved audits the cluster, and requires that no dependencies are to be resolved.
func (s *Stage) RequireResolved() {
	for _, note := range s.RequireSound().Notes {
		require.NotEqual(s.T, audit.InvariantEdge, note.Invariant, note.Text)
	}
}
