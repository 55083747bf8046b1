package fdbmodel_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// pieces counts what commits that resolve edges write.
type pieces struct {
	kv.Database
	commits []int // the keys that each has written
}

type pieceTx struct {
	kv.Tx
	to   *pieces
	keys int
}

// Begin implements kv.Database.
func (p *pieces) Begin(o kv.Options) kv.Tx {
	tx := p.Database.Begin(o)
	if o.Tag != "futura-resolve" {
		return tx
	}
	return &pieceTx{Tx: tx, to: p}
}

func (t *pieceTx) Set(key, value []byte) {
	t.keys++
	t.Tx.Set(key, value)
}

func (t *pieceTx) Clear(key []byte) {
	t.keys++
	t.Tx.Clear(key)
}

func (t *pieceTx) ClearRange(r kv.Range) {
	t.keys++
	t.Tx.ClearRange(r)
}

func (t *pieceTx) Atomic(op kv.AtomicOp, key, param []byte) {
	t.keys++
	t.Tx.Atomic(op, key, param)
}

// Commit implements kv.Tx.
func (t *pieceTx) Commit(ctx context.Context) (kv.Committed, error) {
	committed, err := t.Tx.Commit(ctx)
	if err == nil {
		t.to.commits = append(t.to.commits, t.keys)
	}
	return committed, err
}

// taken returns how many commits there were since the last call.
func (p *pieces) taken() int {
	n := len(p.commits)
	p.commits = nil
	return n
}

// TestDependantsEndInPieces cancels a future with more dependants than one call ends:
// no commit is large, whoever calls next makes one of them at most, and what that one has
// ended itself comes first.
func TestDependantsEndInPieces(t *testing.T) {
	t.Parallel()
	const turn = fdbmodel.ResolveRounds * fdbmodel.MaxPiece
	s := modeltest.NewStage(t)
	db := &pieces{Database: s.Faults}
	c, err := fdbmodel.Open(s.Ctx, db, "unknown", fdbmodel.Options{Clock: s.Clock, Config: s.C.Config()})
	require.NoError(t, err)
	root := s.Submit()
	n := turn + 4*fdbmodel.MaxPiece
	submitMany(s, n, root)
	_, _, err = c.Cancel(s.Ctx, root, "")
	require.NoError(t, err)
	for _, keys := range db.commits {
		require.LessOrEqual(t, keys, 10*fdbmodel.MaxPiece/2, "a commit ends few futures")
	}
	require.Equal(t, fdbmodel.ResolveRounds, db.taken())
	require.Equal(t, int64(n-turn), s.Counted(layout.Blocked))

	small := s.Submit()
	users := submitMany(s, 2, small)
	_, _, err = c.Cancel(s.Ctx, small, "")
	require.NoError(t, err)
	require.Equal(t, layout.Failed, s.State(users[0]))
	require.Equal(t, 2, db.taken(), "its own, and a piece of the other")
	_, _, err = c.Cancel(s.Ctx, s.Submit(), "")
	require.NoError(t, err)
	require.Equal(t, 1, db.taken(), "a piece of the other")
	require.Equal(t, int64(n-turn-2*fdbmodel.MaxPiece), s.Counted(layout.Blocked))
	for more := true; more; {
		_, more, err = c.ResolveEdges(s.Ctx)
		require.NoError(t, err)
	}
	requireResolved(s)
	require.Zero(t, s.Counted(layout.Blocked))
	db.taken()
	_, _, err = c.Cancel(s.Ctx, s.Submit(), "")
	require.NoError(t, err)
	require.LessOrEqual(t, db.taken(), 1)
	_, _, err = c.Cancel(s.Ctx, s.Submit(), "")
	require.NoError(t, err)
	require.Zero(t, db.taken(), "nothing is left")
}
