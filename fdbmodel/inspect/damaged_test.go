package inspect_test

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

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
