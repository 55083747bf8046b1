package promises_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/promises"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/storetest"
)

// beforeSecond is a store that calls something before the second transaction with a tag begins.
type beforeSecond struct {
	kv.Database
	tag  string
	seen int
	call func()
}

func (b *beforeSecond) Begin(o kv.Options) kv.Tx {
	if o.Tag == b.tag {
		if b.seen++; b.seen == 2 {
			b.call()
		}
	}
	return b.Database.Begin(o)
}

// TestAValueThatIsSweptIsStoredAgain has a janitor sweep a large value after it was stored, and
// before its promise refers to it.
func TestAValueThatIsSweptIsStoredAgain(t *testing.T) {
	t.Parallel()
	ctx, db := context.Background(), storetest.New(t)
	beside, err := fdbmodel.Open(ctx, db, "promises", fdbmodel.Options{Config: layout.Config{Shards: 1}})
	require.NoError(t, err)
	hooked := &beforeSecond{Database: db, tag: "futura-fulfill"}
	c, err := fdbmodel.Open(ctx, hooked, "promises", fdbmodel.Options{})
	require.NoError(t, err)
	made, err := promises.Of(c).Make(ctx, fdbmodel.Submission{})
	require.NoError(t, err)
	swept := 0
	hooked.call = func() { // of two values that nothing refers to, the longer one stays
		_, err := results.Of(beside).Store(ctx, made.ID, layout.Token{Worker: "w", Sequence: 1}, make([]byte, 300_000))
		require.NoError(t, err)
		for cursor := []byte(nil); ; {
			next, n, err := maintenance.Of(beside).SweepChunks(ctx, 0, cursor)
			require.NoError(t, err)
			if swept, cursor = swept+n, next; next == nil {
				return
			}
		}
	}
	value := bytes.Repeat([]byte("v"), 200_000)
	_, err = promises.Of(c).ResolveBy(ctx, made.Token, promises.Value{Bytes: value})
	require.NoError(t, err)
	require.Equal(t, 1, swept)
	row, err := c.Get(ctx, made.ID)
	require.NoError(t, err)
	got, err := results.Of(c).Value(ctx, made.ID, row.Result)
	require.NoError(t, err)
	require.Equal(t, value, got)
}

// TestAPromiseEndsThoughItsPiecesVanish has them gone each time before the promise refers to them.
func TestAPromiseEndsThoughItsPiecesVanish(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	made, err := promises.Of(s.C).Make(s.Ctx, fdbmodel.Submission{})
	require.NoError(t, err)
	c, times := s.Vanishing("futura-fulfill")
	value := promises.Value{Bytes: make([]byte, 200_000)}
	_, err = promises.Of(c).ResolveBy(s.Ctx, made.Token, value)
	require.ErrorContains(t, err, "its value of 200000 bytes was stored 8 times")
	require.Equal(t, 8, *times)
	require.Equal(t, layout.Blocked, s.State(made.ID))
	_, err = promises.Of(s.C).ResolveBy(s.Ctx, made.Token, value)
	require.NoError(t, err)
	s.RequireSound()
}

// TestAPromiseThatAnotherMadeMeanwhile has another process make the promise with a key after the
// commit of the first one was lost.
func TestAPromiseThatAnotherMadeMeanwhile(t *testing.T) {
	t.Parallel()
	ctx, db := context.Background(), storetest.New(t)
	beside, err := fdbmodel.Open(ctx, db, "promises", fdbmodel.Options{})
	require.NoError(t, err)
	faults := faultkv.Wrap(db, faultkv.Options{LateAfter: -1})
	hooked := &beforeSecond{Database: faults, tag: "futura-promise"}
	c, err := fdbmodel.Open(ctx, hooked, "promises", fdbmodel.Options{})
	require.NoError(t, err)
	hooked.call = func() {
		made, err := promises.Of(beside).Make(ctx, fdbmodel.Submission{Key: "k"})
		require.NoError(t, err)
		require.False(t, made.Existed)
	}
	faults.FailNext(faultkv.UnknownLost, func(tag string) bool { return tag == hooked.tag })
	made, err := promises.Of(c).Make(ctx, fdbmodel.Submission{Key: "k"})
	require.NoError(t, err)
	require.True(t, made.Existed)
	require.True(t, made.Token.IsZero())
}
