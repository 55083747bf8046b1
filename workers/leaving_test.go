package workers

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/held"
	"github.com/futura-run/futura/workers/objects/peer"
)

// slowReader ends when it is let.
type slowReader struct {
	*strings.Reader
	begun, end chan struct{}
}

// Read implements io.Reader.
func (r *slowReader) Read(p []byte) (int, error) {
	if r.Len() == 0 {
		close(r.begun)
		<-r.end
	}
	return r.Reader.Read(p)
}

// TestAStoppingWorkerTakesNothing stops a worker while a function runs: it refuses
// objects, for whatever, those that were under way, and the future of one that was put
// before. What counted before is there until the worker is gone.
func TestAStoppingWorkerTakesNothing(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	work := newBlocker(false)
	o := Options{Slots: 1, Objects: ObjectOptions{Memory: 8 << 20, Above: -1}}
	w := b.start(o, map[string]Function{"work": work.run})
	b.one("go:work")
	b.begins(work)
	k := w.keeping().kept
	var reader held.Reader
	defer func() { require.NoError(t, reader.Close()) }()
	holders, err := reader.Holders(b.ctx, []layout.WorkerInfo{w.keeping().reg.Info()})
	require.NoError(t, err)
	ids, err := b.cluster.DrawIDs(3)
	require.NoError(t, err)
	commit := func(id layout.ID, object string, size int64) error {
		_, err := results.Of(b.cluster).Put(b.ctx, results.Value{ID: id, Object: object, Size: size, Holder: w.ID()})
		return err
	}
	object, size, err := reader.Put(b.ctx, &holders[0], ids[0], strings.NewReader("before"), 6)
	require.NoError(t, err)
	require.NoError(t, commit(ids[0], object, size))
	late, size, err := reader.Put(b.ctx, &holders[0], ids[1], strings.NewReader("late"), 4)
	require.NoError(t, err)
	during := &slowReader{strings.NewReader("during"), make(chan struct{}), make(chan struct{})}
	over := make(chan error, 1)
	go func() {
		_, _, err := reader.Put(context.WithoutCancel(b.ctx), &holders[0], ids[2], during, 6)
		over <- err
	}()
	<-during.begun

	w.stop()
	b.await("it to say so", func() bool { m, there := b.member(w.ID()); return there && m.Leaving })
	close(during.end)
	require.ErrorIs(t, <-over, results.ErrHolderGone)
	require.ErrorIs(t, commit(ids[1], late, size), results.ErrHolderGone)
	_, _, err = reader.Put(b.ctx, &holders[0], ids[2], strings.NewReader("after"), 5)
	require.ErrorIs(t, err, results.ErrHolderGone)
	require.ErrorIs(t, reader.Take(b.ctx, &holders[0], ids[0], held.TakeOptions{Alone: true}), results.ErrHolderGone)
	_, err = reader.Holders(b.ctx, []layout.WorkerInfo{w.keeping().reg.Info()})
	require.ErrorIs(t, err, results.ErrHolderGone)
	_, _, _, err = k.Keep(b.ctx, ids[2], strings.NewReader("after"), 5)
	require.ErrorIs(t, err, objects.ErrStopping)
	require.ErrorIs(t, k.take(b.ctx, peer.Owner{}, peer.TakeOptions{}), objects.ErrStopping)
	sole, err := k.soleObjects(b.ctx)
	require.NoError(t, err)
	require.Len(t, sole, 1)
	require.Equal(t, ids[0], sole[0].ID)
	close(work.end)
	<-w.done
	require.NoError(t, w.err)
}
