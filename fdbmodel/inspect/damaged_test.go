package inspect_test

import (
	"encoding/hex"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

func TestOldestReadySkipsWhatItCantRead(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	bad := append(s.C.Keys().ReadyQueue(id.Shard(s.C.Config().Shards), ""), 0x17)
	_, err := s.C.Transact(s.Ctx, kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(bad, nil)
		return nil
	})
	require.NoError(t, err)
	oldest, err := inspect.OldestReady(s.Ctx, s.C)
	require.NoError(t, err)
	require.Len(t, oldest, 1)
}

// TestSecretsAreNotShownRaw: a record of a newer version is shown as it is stored, unless it has one.
func TestSecretsAreNotShownRaw(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("c")
	k.Shards = 1
	for _, c := range []struct {
		key   []byte
		value []byte
		shown bool
	}{
		{k.Worker("0123456789abcdef", layout.WorkerAlive), layout.Encode(&layout.WorkerInfo{Secret: "hidden"}), false},
		{k.Worker("0123456789abcdef", layout.WorkerHeartbeat), layout.Encode(&layout.Heartbeat{Count: 7}), true},
	} {
		c.value[0] = layout.RecordVersion + 1
		d := inspect.DescribeValue(c.key, c.value)
		require.Contains(t, d.Problem, "has version 2")
		want := ""
		if c.shown {
			want = hex.EncodeToString(c.value)
		}
		require.Equal(t, want, d.Raw)
		require.NotEmpty(t, d.Fields)
		require.NotContains(t, d.Fields, "hidden")
	}
}

// TestListsOfEitherOrderLeaveOutWhatTheyCantRead: a row is read from its end in lists of the newest.
func TestListsOfEitherOrderLeaveOutWhatTheyCantRead(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	bad, good := s.Submit(), s.Submit()
	s.Store(s.C.Keys().State(bad, layout.StateException), []byte{layout.RecordVersion, 0xc1})
	for name, f := range map[string]inspect.Filter{"oldest": {}, "newest": {Newest: true},
		"newest of all shards": {Newest: true, LeftOut: new(int)}} {
		rows, next, err := inspect.List(s.Ctx, s.C, f, nil, 10)
		require.NoError(t, err)
		require.Empty(t, next)
		require.Len(t, rows, 1, name)
		require.Equal(t, good, rows[0].ID, name)
	}
}

// TestListsGoOnPastForeignKeys has keys that nothing of the model wrote before and behind the futures of a shard, more
// of them than a page, and among those that are listed.
func TestListsGoOnPastForeignKeys(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	var want []layout.ID
	for range 3 {
		want = append(want, s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Tags = []string{"t"} }))
	}
	for shard := range s.C.Config().Shards {
		for _, prefix := range [][]byte{s.C.Keys().Shard(shard, layout.SubFutures), s.C.Keys().ListedTag(shard, "t")} {
			_, err := s.C.Transact(s.Ctx, kv.Options{}, func(tx kv.Attempt) error {
				for n := range 520 {
					for _, kind := range []byte{0x01, 0xf0} {
						tx.Set(append(slices.Clone(prefix), kind, byte(n>>8), byte(n)), nil)
					}
				}
				return nil
			})
			require.NoError(t, err)
		}
	}
	for name, f := range map[string]inspect.Filter{"oldest": {}, "newest": {Newest: true},
		"newest of all shards": {Newest: true, LeftOut: new(int)}, "by tag": {Newest: true, Tag: "t"}} {
		var ids []layout.ID
		var cursor []byte
		for more := true; more; more = len(cursor) > 0 {
			rows, next, err := inspect.List(s.Ctx, s.C, f, cursor, 2)
			require.NoError(t, err, name)
			for i := range rows {
				ids = append(ids, rows[i].ID)
			}
			cursor = next
		}
		require.ElementsMatch(t, want, ids, name)
	}
}

// TestListsEndAtManyForeignKeys: a list reads so many in one go at most, and names one.
func TestListsEndAtManyForeignKeys(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	s.Submit()
	prefix := s.C.Keys().Shard(0, layout.SubFutures)
	for part := range 7 {
		_, err := s.C.Transact(s.Ctx, kv.Options{}, func(tx kv.Attempt) error {
			for n := range 3000 {
				tx.Set(append(slices.Clone(prefix), 0x01, byte(part), byte(n>>8), byte(n)), nil)
			}
			return nil
		})
		require.NoError(t, err)
	}
	_, _, err := inspect.List(s.Ctx, s.C, inspect.Filter{}, nil, 2)
	require.ErrorIs(t, err, layout.ErrBadRecord)
	require.ErrorContains(t, err, "futura check")
}

// TestAnInputThatCantBeRead is named where others are.
func TestAnInputThatCantBeRead(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	bad, good := s.Submit(), s.Submit()
	user := s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{bad, good} })
	s.Store(s.C.Keys().Spec(bad), []byte{layout.RecordVersion + 1, 0x80})
	e, err := inspect.Explain(s.Ctx, s.C, user)
	require.NoError(t, err)
	require.Contains(t, e.Text, good.String()+" (go:f, ready), "+bad.String()+" (which can't be read).")
	g, err := inspect.ReadGraph(s.Ctx, s.C, user, inspect.GraphOptions{})
	require.NoError(t, err)
	require.Len(t, g.Nodes, 3)
	for _, n := range g.Nodes {
		require.Equal(t, n.ID == bad, n.Unreadable)
		require.Equal(t, n.ID == bad, n.State == 0)
	}
	_, err = inspect.ReadGraph(s.Ctx, s.C, bad, inspect.GraphOptions{})
	require.ErrorIs(t, err, layout.ErrNewerRecord)

	claimed := s.Claim(s.Worker)
	require.Len(t, claimed, 1)
	s.Finish(s.Worker, fdbmodel.Completion{Future: &claimed[0], Permanent: true,
		Exception: &layout.Exception{Kind: layout.KindError}})
	s.C.ResolveMarked(s.Ctx)
	require.Equal(t, layout.Failed, s.State(user))
	e, err = inspect.Explain(s.Ctx, s.C, user)
	require.NoError(t, err)
	require.Contains(t, e.Text, "Future "+good.String()+" failed first", "the other one is not missing")
}
