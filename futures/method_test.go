package futures_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
)

// TestTasksCallActorsOfANewType submits tasks of a method in all ways, each in a cluster where no actor of the type
// was called before.
func TestTasksCallActorsOfANewType(t *testing.T) {
	t.Parallel()
	for name, submit := range map[string]func(context.Context, *futures.Client, futures.Task) error{
		"Submit": func(ctx context.Context, c *futures.Client, task futures.Task) error {
			_, err := c.Submit(ctx, task)
			return err
		},
		"SubmitMany": func(ctx context.Context, c *futures.Client, task futures.Task) error {
			_, err := c.SubmitMany(ctx, []futures.Task{{Function: "go:other"}, task})
			return err
		},
		"PutSchedule": func(ctx context.Context, c *futures.Client, task futures.Task) error {
			_, err := c.PutSchedule(ctx, futures.Schedule{Name: "hourly", Every: time.Hour, Task: task})
			return err
		},
	} {
		b, cluster := newBankCluster(t)
		task, err := b.deposit.Task("alice", 1)
		require.NoError(t, err)
		require.NoError(t, submit(t.Context(), cluster.Client, task), name)
		cluster.Advance(time.Hour)
		require.Positive(t, b.balance(t, cluster.Client, "alice"), name)
	}
}

// TestASentTaskCallsAnActorOfANewType sends the task of a method from a plain function.
func TestASentTaskCallsAnActorOfANewType(t *testing.T) {
	t.Parallel()
	b, cluster := newBankCluster(t)
	gift := futures.Define[int, int]("gift")
	cluster.Register(gift.Bind(func(ctx context.Context, n int) (int, error) {
		task, err := b.deposit.Task("alice", n)
		if err == nil {
			_, err = futures.Send(ctx, task)
		}
		return n, err
	}))
	_, err := gift.Call(t.Context(), cluster.Client, 3)
	require.NoError(t, err)
	cluster.Run()
	require.Equal(t, 3, b.balance(t, cluster.Client, "alice"))
}

// TestATransactionCallsActorsOfANewType submits the task of a method in a transaction that has read before another
// process makes the kind of lanes: it is tried again. The second one reads no kind that the first one made.
func TestATransactionCallsActorsOfANewType(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), storetest.New(t)
	c := newClient(t, db)
	other, err := futures.New(ctx, db, futures.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close(ctx)) }()
	b := newBank()
	task, err := b.deposit.Task("alice", 1)
	require.NoError(t, err)
	for i, submitter := range []*futures.Client{other, c, c} {
		var s *futures.TxFutures
		result, err := kv.Transact(ctx, db, kv.Retry{}, func(tx kv.Attempt) error {
			if _, err := tx.Get([]byte("own")).Wait(ctx); err != nil {
				return err
			}
			if i == 0 && tx.Number == 1 {
				if _, err := b.deposit.Submit(ctx, c, "alice", 1); err != nil {
					return err
				}
			}
			s, err = submitter.SubmitTx(ctx, tx, []futures.Task{task, {Function: "go:other"}, task})
			return err
		})
		require.NoError(t, err)
		require.Equal(t, i == 0, result.Attempts > 1)
		s.Committed(ctx, result.Version)
	}
}

// TestUnknownTransactionsCallActorsOfANewType makes the kind of lanes in a transaction whose commit has an unknown
// result: tried again, it finds the kind or makes it, and the call is one.
func TestUnknownTransactionsCallActorsOfANewType(t *testing.T) {
	t.Parallel()
	for _, fault := range unknownResults() {
		ctx, faults := t.Context(), faultkv.Wrap(storetest.New(t), faultkv.Options{})
		c := newClient(t, faults)
		task, err := newBank().deposit.Task("alice", 1, futures.Key("once"))
		require.NoError(t, err)
		faults.FailNext(fault, func(tag string) bool { return tag == "orders" })
		var s *futures.TxFutures
		retry := kv.Retry{Options: kv.Options{Tag: "orders"}}
		result, err := kv.Transact(ctx, faults, retry, func(tx kv.Attempt) (err error) {
			s, err = c.SubmitTx(ctx, tx, []futures.Task{task})
			return err
		})
		require.NoError(t, err, fault)
		s.Committed(ctx, result.Version)
		faults.Flush()
		require.Equal(t, 1, faults.Counts().Injected[fault])
		kind, err := lanes.Of(c.Cluster()).Kind(ctx, task.Lane.Kind)
		require.NoError(t, err, fault)
		require.Equal(t, 1, kind.Width)
		again, err := c.Submit(ctx, task)
		require.NoError(t, err, fault)
		require.True(t, again.Existed(), fault)
		require.Equal(t, s.Futures[0].ID(), again.ID(), fault)
		report, err := audit.Check(ctx, c.Cluster(), audit.Options{})
		require.NoError(t, err)
		require.Empty(t, report.Problems, fault)
	}
}
