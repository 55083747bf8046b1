package futures_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/futures"
)

// holders returns the workers that have a copy and are alive.
func (o *objectTeam) holders(f *futures.Future) (alive []futures.WorkerID) {
	copies, err := results.Of(o.client.Cluster()).Copies(o.ctx, f.ID())
	require.NoError(o.t, err)
	for i := range copies {
		if copies[i].Alive {
			alive = append(alive, copies[i].Worker)
		}
	}
	return alive
}

func (o *objectTeam) requireValue(f *futures.Future, want []byte) {
	got, err := o.client.Future(f.ID()).Await(o.ctx)
	require.NoError(o.t, err)
	require.True(o.t, bytes.Equal(want, got.Value))
}

// startOne starts a worker and returns its id.
func (o *objectTeam) startOne(memory int64) (id futures.WorkerID, stop func()) {
	known := map[futures.WorkerID]bool{}
	members := func() []fdbmodel.Member {
		members, err := o.client.Cluster().Workers(o.ctx)
		require.NoError(o.t, err)
		return members
	}
	for _, m := range members() {
		known[m.ID] = true
	}
	stop = o.start(memory)
	for _, m := range members() {
		if !known[m.ID] {
			return m.ID, stop
		}
	}
	require.Fail(o.t, "the worker is not there")
	return "", nil
}

// TestClone has a value survive the worker that it was put with.
func TestClone(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	want := patternOf(5<<20 + 1)
	first, stop := o.startOne(16 << 20)
	f := o.put(want, futures.PutOptions{})
	_, err := o.client.Clone(o.ctx, f.ID(), futures.CopyOptions{})
	require.ErrorIs(t, err, futures.ErrTransition)
	require.ErrorContains(t, err, "have a copy")
	second, _ := o.startOne(16 << 20)
	_, stopThird := o.startOne(1 << 20)
	to, err := o.client.Clone(o.ctx, f.ID(), futures.CopyOptions{})
	require.NoError(t, err)
	require.Equal(t, second, to, "it has most room")
	for range 2 {
		to, err = o.client.Clone(o.ctx, f.ID(), futures.CopyOptions{To: second})
		require.NoError(t, err)
		require.Equal(t, second, to)
	}
	require.ElementsMatch(t, []futures.WorkerID{first, second}, o.holders(f))
	_, err = o.client.Clone(o.ctx, f.ID(), futures.CopyOptions{})
	require.ErrorIs(t, err, futures.ErrNoHolder, "the third has no room for it")
	stopThird()
	stop()
	require.Equal(t, []futures.WorkerID{second}, o.holders(f))
	o.requireValue(f, want)
	o.requireSound()
}

// TestTransfer moves a value: the worker that had it drops it.
func TestTransfer(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	want := patternOf(3 << 20)
	o.startOne(16 << 20)
	f := o.put(want, futures.PutOptions{})
	second, _ := o.startOne(16 << 20)
	to, err := o.client.Transfer(o.ctx, f.ID(), futures.CopyOptions{To: second})
	require.NoError(t, err)
	require.Equal(t, second, to)
	require.Equal(t, []futures.WorkerID{second}, o.holders(f))
	to, err = o.client.Transfer(o.ctx, f.ID(), futures.CopyOptions{To: second})
	require.NoError(t, err, "it is there")
	require.Equal(t, second, to)
	o.requireValue(f, want)
	o.requireSound()
}

func TestCopiesThatCannotBe(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	o.start(16 << 20)
	stored := o.put([]byte("small"), futures.PutOptions{})
	held := o.put([]byte("small"), futures.PutOptions{AsObject: true})
	for _, c := range []struct {
		id   futures.ID
		to   futures.WorkerID
		want error
	}{
		{stored.ID(), "", futures.ErrTransition}, {futures.ID{15: 1}, "", futures.ErrNotFound},
		{held.ID(), "0123456789abcdef", futures.ErrUnknownWorker},
	} {
		_, err := o.client.Clone(o.ctx, c.id, futures.CopyOptions{To: c.to})
		require.ErrorIs(t, err, c.want)
		_, err = o.client.Transfer(o.ctx, c.id, futures.CopyOptions{To: c.to})
		require.ErrorIs(t, err, c.want)
	}
}

// TestHandover stops a worker: another one takes what only it had, and nothing runs
// again.
func TestHandover(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	want := patternOf(3 << 20)
	_, stop := o.startOne(16 << 20)
	f := o.put(want, futures.PutOptions{})
	made, err := fill.Submit(o.ctx, o.client, 1000)
	require.NoError(t, err)
	<-made.Done()
	cloned := o.put([]byte("cloned"), futures.PutOptions{AsObject: true})
	second, _ := o.startOne(16 << 20)
	_, err = o.client.Clone(o.ctx, cloned.ID(), futures.CopyOptions{To: second})
	require.NoError(t, err)
	stop()
	for _, f := range []*futures.Future{f, made.Future, cloned} {
		require.Equal(t, []futures.WorkerID{second}, o.holders(f))
	}
	o.requireValue(f, want)
	o.requireValue(cloned, []byte("cloned"))
	require.Equal(t, int64(1), o.runs.Load())
	o.requireSound()
}

// TestPinsOfAClient end when it closes.
func TestPinsOfAClient(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	f := o.put([]byte("v"), futures.PutOptions{})
	other, err := futures.FromCluster(o.client.Cluster(), futures.Options{})
	require.NoError(t, err)
	require.NoError(t, other.PinWhileOpen(o.ctx, f.ID(), "other"))
	require.NoError(t, o.client.Pin(o.ctx, f.ID(), "report"))
	pins, err := o.client.Pins(o.ctx, f.ID())
	require.NoError(t, err)
	require.Equal(t, []string{"other", "report"}, pins)
	require.NoError(t, o.client.Unpin(o.ctx, f.ID(), "report"))
	require.ErrorIs(t, o.client.Discard(o.ctx, f.ID()), futures.ErrTransition)
	require.NoError(t, other.Close(context.Background()))
	require.NoError(t, o.client.Discard(o.ctx, f.ID()))
	require.ErrorIs(t, o.client.Pin(o.ctx, f.ID(), "report"), futures.ErrNotFound)
	require.ErrorIs(t, o.client.Pin(o.ctx, f.ID(), "no name"), futures.ErrBadName)
}
