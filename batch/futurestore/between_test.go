package futurestore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/batches"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// meeting is a call of one process, and what another one does before one of its transactions.
type meeting struct {
	*testing.T
	b         *batch.Batch
	arguments [][]string
	one       *futurestore.Store
	other     *futurestore.Store
	data      *data
}

// meet plays calls that meet, before each transaction of the one that begin returns. end looks at what they leave.
func meet(t *testing.T, begin func(m *meeting) func() error, between func(m *meeting),
	end func(m *meeting, err error),
) {
	t.Helper()
	t.Parallel()
	d := newData(t)
	arguments := make([][]string, 150)
	for i := range arguments {
		arguments[i] = []string{fmt.Sprint(i)}
	}
	for n := int64(1); ; n++ {
		m := &meeting{T: t, data: d, arguments: arguments, other: futurestore.New(d.cluster, futurestore.Options{})}
		m.b = &batch.Batch{
			ID: fmt.Sprintf("11111111-2222-4333-8444-%012d", n), Template: suiteFunction, MaxAttempts: 1, CreatedAt: time.Now(),
		}
		left := new(atomic.Int64)
		cluster, err := fdbmodel.Open(t.Context(), cutting{d.db, left, func() { between(m) }}, "batches", fdbmodel.Options{})
		require.NoError(t, err)
		m.one = futurestore.New(cluster, futurestore.Options{})
		call := begin(m)
		left.Store(n)
		err = call()
		met := left.Load() <= 0
		end(m, err)
		if !met {
			return
		}
	}
}

// cancelled makes a batch whose items have all failed for good.
func (m *meeting) cancelled() {
	require.NoError(m, m.other.Create(m.Context(), m.b, m.arguments))
	require.NoError(m, m.other.Cancel(m.Context(), m.b.ID, "enough", time.Now()))
}

func (m *meeting) progress() batch.Progress {
	progress, err := m.other.Progress(m.Context(), m.b.ID)
	require.NoError(m, err)
	return progress
}

// TestItemsThatStartOverOutliveTheCancelBefore has another call complete a cancel, and items start over, while the
// first is at it.
func TestItemsThatStartOverOutliveTheCancelBefore(t *testing.T) {
	retried := 0
	meet(t, func(m *meeting) func() error {
		require.NoError(m, m.other.Create(m.Context(), m.b, m.arguments))
		return func() error { return m.one.Cancel(m.Context(), m.b.ID, "enough", time.Now()) }
	}, func(m *meeting) {
		_, err := m.other.Settle(m.Context(), m.b.ID, time.Now())
		require.NoError(m, err)
		n, err := m.other.Retry(m.Context(), m.b.ID)
		require.NoError(m, err)
		retried += n
	}, func(m *meeting, err error) {
		require.NoError(m, err)
		got, err := m.other.Get(m.Context(), m.b.ID)
		require.NoError(m, err)
		want := batch.Created
		if got.Status == batch.PermanentlyFailed {
			want = batch.PermanentlyFailed
		}
		require.Equal(m, len(m.arguments), m.progress()[want], "%v", got.Status)
	})
	require.Positive(t, retried)
}

// TestNoItemIsRemovedFromABatchThatIsOpenAgain has items start over while their batch is deleted.
func TestNoItemIsRemovedFromABatchThatIsOpenAgain(t *testing.T) {
	meet(t, func(m *meeting) func() error {
		m.cancelled()
		return func() error { return m.one.Delete(m.Context(), m.b.ID) }
	}, func(m *meeting) {
		if _, err := m.other.Retry(m.Context(), m.b.ID); err != nil {
			require.ErrorIs(m, err, batch.ErrNotFound)
		}
	}, func(m *meeting, err error) {
		if err == nil {
			_, err = m.other.Get(m.Context(), m.b.ID)
			require.ErrorIs(m, err, batch.ErrNotFound)
			return
		}
		require.ErrorIs(m, err, batch.ErrState)
		require.Equal(m, len(m.arguments), m.progress()[batch.Created])
	})
}

// TestADeleteThatWasCutOffIsCompleted ends the process that deletes a batch before each of its transactions. Another
// Delete removes the rest, and so does a Sweep unless nothing has begun.
func TestADeleteThatWasCutOffIsCompleted(t *testing.T) {
	for name, finish := range map[string]func(m *meeting, begun bool) error{
		"delete": func(m *meeting, _ bool) error { return m.other.Delete(m.Context(), m.b.ID) },
		"sweep": func(m *meeting, begun bool) error {
			if !begun {
				return m.other.Delete(m.Context(), m.b.ID)
			}
			return m.other.Sweep(m.Context(), time.Now(), time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cut := t.Context(), func() {}
			meet(t, func(m *meeting) func() error {
				m.cancelled()
				ctx, cut = context.WithCancel(m.Context())
				return func() error { return m.one.Delete(ctx, m.b.ID) }
			}, func(*meeting) { cut() }, func(m *meeting, err error) {
				cut()
				m.data.db.underWay.Wait()
				_, gone := m.other.Get(m.Context(), m.b.ID)
				if gone == nil {
					require.Error(m, err)
					require.Equal(m, len(m.arguments), m.progress()[batch.PermanentlyFailed])
				}
				if err = finish(m, gone != nil); err != nil {
					require.ErrorIs(m, err, batch.ErrNotFound)
				}
				_, err = batches.Of(m.data.cluster).Get(m.Context(), m.b.ID)
				require.ErrorIs(m, err, fdbmodel.ErrNotFound)
			})
		})
	}
}

// TestACancelIsNotOverwritten has a batch be cancelled while it is found to be done.
func TestACancelIsNotOverwritten(t *testing.T) {
	cancelled := 0
	meet(t, func(m *meeting) func() error {
		m.arguments = m.arguments[:1]
		require.NoError(m, m.other.Create(m.Context(), m.b, m.arguments))
		s, c := &store{m.other, m.data}, batch.Chunk{ID: "chunk", Batch: m.b.ID, Worker: m.b.ID}
		_, err := s.Assign(m.Context(), &c, []int{0})
		require.NoError(m, err)
		execute(m.T, s, c, []batch.Completion{{Index: 0}})
		return func() error { _, err := m.one.Settle(m.Context(), m.b.ID, time.Now()); return err }
	}, func(m *meeting) {
		if err := m.other.Cancel(m.Context(), m.b.ID, "enough", time.Now()); err != nil {
			require.ErrorIs(m, err, batch.ErrState)
			return
		}
		m.b.Status = batch.PermanentlyFailed
		cancelled++
	}, func(m *meeting, err error) {
		require.NoError(m, err)
		got, err := m.other.Get(m.Context(), m.b.ID)
		require.NoError(m, err)
		if m.b.Status == batch.PermanentlyFailed {
			require.Equal(m, batch.PermanentlyFailed, got.Status)
			require.Equal(m, "enough", got.Reason)
		}
	})
	require.Positive(t, cancelled)
}

// TestWaitingItemsWait has items be given out while they are listed as waiting.
func TestWaitingItemsWait(t *testing.T) {
	var waiting []batch.Item
	meet(t, func(m *meeting) func() error {
		require.NoError(m, m.other.Create(m.Context(), m.b, m.arguments))
		return func() (err error) {
			waiting, _, err = m.one.Waiting(m.Context(), m.b.ID, time.Now(), len(m.arguments))
			return err
		}
	}, func(m *meeting) {
		c := batch.Chunk{ID: "chunk", Batch: m.b.ID, Worker: m.b.ID}
		_, err := (&store{m.other, m.data}).Assign(m.Context(), &c, []int{0, 1, 148, 149})
		require.NoError(m, err)
	}, func(m *meeting, err error) {
		require.NoError(m, err)
		for i := range waiting {
			require.Equal(m, batch.Created, waiting[i].Status)
		}
	})
	require.Len(t, waiting, 150, "of the last call, which met none")
}

// TestASweepGoesOnBehindWhatItRemoves has more batches that are no longer made than a page.
func TestASweepGoesOnBehindWhatItRemoves(t *testing.T) {
	t.Parallel()
	d := newData(t)
	for i := range 102 {
		require.NoError(t, batches.Of(d.cluster).Create(t.Context(), &layout.BatchRecord{
			ID: fmt.Sprint("left-", i), Template: []byte("{}"), Queue: layout.DefaultQueue, CreatedAt: 1, Maker: "gone",
		}))
	}
	s := futurestore.New(d.cluster, futurestore.Options{})
	require.ErrorIs(t, s.Delete(t.Context(), "left-0"), batch.ErrNotFound, "it is being made")
	require.NoError(t, s.Sweep(t.Context(), time.Now(), time.Hour))
	left, err := batches.Of(d.cluster).List(t.Context(), "", 1)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestASweepLeavesABatchThatIsMadeAfterAll has the call that was interrupted be repeated during a sweep.
func TestASweepLeavesABatchThatIsMadeAfterAll(t *testing.T) {
	var made error
	meet(t, func(m *meeting) func() error {
		template, err := m.b.Template.Encode()
		require.NoError(m, err)
		require.NoError(m, batches.Of(m.data.cluster).Create(m.Context(), &layout.BatchRecord{
			ID: m.b.ID, Template: template, Queue: layout.DefaultQueue, MaxAttempts: 1, Items: len(m.arguments),
			CreatedAt: 1, Maker: "gone", Digest: batch.Digest(m.b, m.arguments),
		}))
		made = batch.ErrExists
		return func() error { return m.one.Sweep(m.Context(), time.Now(), time.Hour) }
	}, func(m *meeting) {
		made = m.other.Create(m.Context(), m.b, m.arguments)
	}, func(m *meeting, err error) {
		require.NoError(m, err)
		if made == nil {
			require.Equal(m, len(m.arguments), m.progress()[batch.Created])
			return
		}
		require.ErrorIs(m, made, batch.ErrExists)
		_, err = batches.Of(m.data.cluster).Get(m.Context(), m.b.ID)
		require.ErrorIs(m, err, fdbmodel.ErrNotFound)
	})
}

// TestListsGoOnBehindABatchThatWasDeleted has the last batch of a page go before the next page is read.
func TestListsGoOnBehindABatchThatWasDeleted(t *testing.T) {
	t.Parallel()
	d := newData(t)
	db := &hooked{Database: d.db}
	cluster, err := fdbmodel.Open(t.Context(), db, "batches", fdbmodel.Options{})
	require.NoError(t, err)
	s := futurestore.New(cluster, futurestore.Options{})
	const batches = 102
	id := func(i int) string { return fmt.Sprintf("11111111-2222-4333-8444-%012d", i) }
	for i := range batches {
		b := &batch.Batch{ID: id(i), Template: suiteFunction, MaxAttempts: 1, CreatedAt: time.UnixMilli(int64(1e12 + i))}
		require.NoError(t, s.Create(t.Context(), b, [][]string{{"a"}}))
	}
	require.NoError(t, s.Cancel(t.Context(), id(99), "", time.UnixMilli(2e12)))
	begun := 0
	db.begins = func() {
		if begun++; begun == 2 {
			require.NoError(t, futurestore.New(d.cluster, futurestore.Options{}).Delete(t.Context(), id(99)))
		}
	}
	list, err := s.List(t.Context(), true, "", 1000)
	require.NoError(t, err)
	require.Len(t, list, batches-1)
	require.Equal(t, id(100), list[99].ID)
	require.Greater(t, begun, 1)
}

// hooked is a store that calls a function before each transaction.
type hooked struct {
	kv.Database
	begins func()
}

func (h *hooked) Begin(o kv.Options) kv.Tx {
	if h.begins != nil {
		h.begins()
	}
	return h.Database.Begin(o)
}
