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
	require.ErrorContains(t, err, "swept")
	_, err = s.s.Get(t.Context(), s.id)
	require.ErrorIs(t, err, batch.ErrNotFound)
	require.NoError(t, sweep())
	s.requireGone()
}
