package lanes_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

// askStore notes what transactions that end claims ask of one lane and wait for.
type askStore struct {
	kv.Database
	lane, line []byte
	log        []string
}

type askTx struct {
	kv.Tx
	store *askStore
}

func (s *askStore) Begin(o kv.Options) kv.Tx {
	tx := s.Database.Begin(o)
	if o.Tag != "futura-finish" {
		return tx
	}
	return askTx{tx, s}
}

func (t askTx) Get(key []byte) kv.Pending[[]byte] {
	asked := t.Tx.Get(key)
	if !bytes.Equal(key, t.store.lane) {
		return asked
	}
	return kv.Later(func(ctx context.Context) ([]byte, error) {
		t.store.log = append(t.store.log, "has the lane")
		return asked.Wait(ctx)
	})
}

func (t askTx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	if bytes.HasPrefix(r.Begin, t.store.line) {
		t.store.log = append(t.store.log, "asks for the line")
	}
	return t.Tx.GetRange(r, o)
}

// TestTheLineIsAskedForWithItsLane where futures were in line before, and not where none were.
func TestTheLineIsAskedForWithItsLane(t *testing.T) {
	t.Parallel()
	ctx, lane := context.Background(), layout.Lane{Kind: "host", Key: "x"}
	db := &askStore{Database: storetest.New(t)}
	c, err := fdbmodel.Open(ctx, db, "asked", fdbmodel.Options{})
	require.NoError(t, err)
	keys := c.Keys()
	db.lane, db.line = keys.Lane(lane), keys.LineOf(lane)
	require.NoError(t, lanes.Of(c).SetKind(ctx, "host", layout.LaneKind{Width: 1}))
	r, err := c.Register(ctx, layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 1}})
	require.NoError(t, err)
	submit := func() {
		_, err := c.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f", Lane: lane}}})
		require.NoError(t, err)
	}
	end := func() []string {
		db.log = nil
		answer, err := r.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
		require.NoError(t, err)
		require.Len(t, answer.Futures, 1)
		outcomes, err := r.Finish(ctx, []fdbmodel.Completion{realize(&answer.Futures[0])})
		require.NoError(t, err)
		require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied}, outcomes)
		return db.log
	}
	submit()
	require.Equal(t, []string{"has the lane"}, end(), "none was in line")
	for range 3 {
		submit()
	}
	require.Equal(t, []string{"asks for the line", "has the lane"}, end())
	require.Equal(t, []string{"asks for the line", "has the lane"}, end())
	require.Equal(t, []string{"asks for the line", "has the lane"}, end(), "nothing said that it was the last one")
	submit()
	require.Equal(t, []string{"has the lane"}, end(), "the line was seen empty")
}
