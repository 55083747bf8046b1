package ferrettest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

// refuse makes the server refuse all commands of a kind on a collection while
// something is called.
func (s *scene) refuse(name, collection string, call func()) {
	s.proxy.set(func(p *proxy) {
		p.fault = func(c *command) fault {
			if c.name == name && c.body.Lookup(name).StringValue() == collection {
				return fault{answer: internal}
			}
			return fault{}
		}
	})
	call()
	s.proxy.set(func(p *proxy) { p.fault = nil })
}

func TestSettleEndsACancelThatWasCutOff(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.begin(2)
	s.refuse("update", itemsOf, func() { require.Error(t, s.cancel()) })
	s.require(batch.PermanentlyFailed, batch.Created, batch.Created)
	require.NoError(t, s.settle())
	s.require(batch.PermanentlyFailed, batch.PermanentlyFailed, batch.PermanentlyFailed)
}

func TestSettleBeginsAChunkThatWasCutOff(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.begin(3)
	s.refuse("update", chunksOf, func() { require.Error(t, s.assign(0, 1)) })
	s.requireChunk(batch.Created, 0)
	require.NoError(t, s.settle())
	s.requireChunk(batch.InProgress, 2)
	require.NoError(t, s.complete(0, 1))
	require.NoError(t, s.settle())
	s.requireChunk(batch.Done, 2)
}

func TestSettleRemovesAChunkThatGotNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.begin(1)
	s.refuse("update", itemsOf, func() { require.Error(t, s.assign(0)) })
	require.NoError(t, s.settle())
	s.requireChunk(batch.Created, 0)
	_, err := s.s.Settle(t.Context(), s.id, s.now.Add(time.Hour))
	require.NoError(t, err)
	chunks, err := s.s.Chunks(t.Context(), s.id)
	require.NoError(t, err)
	require.Empty(t, chunks)
	require.NoError(t, s.assign(0))
}

// TestCreateGoesOnAfterACut creates a batch that another left hidden, with some
// of its items.
func TestCreateGoesOnAfterACut(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(*command) bool{
		"before the items":    func(c *command) bool { return c.name == "insert" && isOf(c, itemsOf) },
		"before it was shown": func(c *command) bool { return c.name == "update" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.id = uuid.NewString()
			cut := false
			s.proxy.set(func(p *proxy) {
				p.fault = func(c *command) fault {
					if cut = cut || fails(c); cut { // the head is gone
						return fault{answer: internal}
					}
					return fault{}
				}
			})
			require.Error(t, s.create(1001))
			s.proxy.set(func(p *proxy) { p.fault = nil })
			_, err := s.s.Get(t.Context(), s.id)
			require.ErrorIs(t, err, batch.ErrNotFound)
			require.ErrorIs(t, s.create(3), batch.ErrExists, "that is another batch")
			require.NoError(t, s.create(1001))
			s.wholeOrGone(1001)
			require.ErrorIs(t, s.create(1001), batch.ErrExists)
		})
	}
}

func isOf(c *command, collection string) bool {
	return c.body.Lookup(c.name).StringValue() == collection
}

// TestTwoCreateTheSame lets a second Create take the first one's batch over
// while that is on its way.
func TestTwoCreateTheSame(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, at := range []struct {
		n                int
		name, collection string
	}{{1, "insert", itemsOf}, {2, "insert", itemsOf}, {1, "update", batchesOf}} {
		s.id = uuid.NewString()
		err := s.meanwhileAt(at.n, at.name, at.collection, func() error { return s.create(1001) }, func() {
			require.NoError(t, s.create(1001))
		})
		require.ErrorIs(t, err, batch.ErrBusy)
		s.wholeOrGone(1001)
		_, err = s.s.Get(t.Context(), s.id)
		require.NoError(t, err)
	}
}

// TestCreateIsNotShownInTheMiddleOfASweep cuts a sweep off that has begun to
// remove a batch which is still being created.
func TestCreateIsNotShownInTheMiddleOfASweep(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.id = uuid.NewString()
	sweep := func() error { return s.s.Sweep(t.Context(), s.now.Add(time.Hour), time.Minute) }
	err := s.meanwhile("update", batchesOf, func() error { return s.create(3) }, func() {
		s.refuse("delete", chunksOf, func() { require.Error(t, sweep()) })
	})
	require.ErrorContains(t, err, "a sweep removed it")
	_, err = s.s.Get(t.Context(), s.id)
	require.ErrorIs(t, err, batch.ErrNotFound)
	require.NoError(t, sweep())
	s.requireGone()
}
