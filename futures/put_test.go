package futures_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/taskcontext"
)

func (o *objectTeam) put(content []byte, options futures.PutOptions) *futures.Future {
	f, err := o.client.Put(o.ctx, bytes.NewReader(content), options)
	require.NoError(o.t, err)
	return f
}

func (o *objectTeam) row(id futures.ID) layout.Row {
	row, err := o.client.Cluster().Get(o.ctx, id)
	require.NoError(o.t, err)
	return row
}

func (o *objectTeam) isObject(f *futures.Future) bool {
	row := o.row(f.ID())
	return row.Object() != ""
}

// TestPut puts values of each kind of place, awaits them, and takes them as inputs.
func TestPut(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	o.start(64 << 20)
	for _, c := range []struct {
		name    string
		n       int
		options futures.PutOptions
		object  bool
	}{
		{"nothing", 0, futures.PutOptions{}, false},
		{"in the record", 100, futures.PutOptions{}, false},
		{"in chunks", futures.PutStored, futures.PutOptions{Label: "l", Queue: "q"}, false},
		{"above", futures.PutStored + 1, futures.PutOptions{}, true},
		{"small object", 100, futures.PutOptions{AsObject: true, Size: 100}, true},
		{"no object", futures.PutStored + 1, futures.PutOptions{Stored: true}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := patternOf(c.n)
			f := o.put(want, c.options)
			require.False(t, f.Existed())
			got, err := f.Await(o.ctx)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got.Value))
			require.Equal(t, futures.CodecRaw, got.Codec)
			row := o.row(f.ID())
			require.Equal(t, c.object, row.Object() != "")
			require.Equal(t, c.options.Label, row.Spec.Label)
			require.ErrorIs(t, o.client.Retry(o.ctx, f.ID()), futures.ErrTransition)
		})
	}
	big, err := futures.PutValue(o.ctx, o.client, patternOf(3<<20), futures.PutOptions{})
	require.NoError(t, err)
	size, err := futures.Then(o.ctx, o.client, big, length)
	require.NoError(t, err)
	n, err := size.Await(o.ctx)
	require.NoError(t, err)
	require.Equal(t, 3<<20, n)
	o.requireSound()
}

func TestBadPuts(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	for _, bad := range []futures.PutOptions{{Size: -5}, {Memory: -1}} {
		_, err := o.client.Put(o.ctx, strings.NewReader("x"), bad)
		require.ErrorIs(t, err, futures.ErrBadSpec)
	}
	_, err := o.client.Put(o.ctx, nil, futures.PutOptions{})
	require.ErrorIs(t, err, futures.ErrBadSpec)
}

func TestPutIsRepeatable(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	o.start(16 << 20)
	for _, options := range []futures.PutOptions{{Key: "a"}, {Key: "b", AsObject: true}, {ID: futures.ID{0: 1}}} {
		f := o.put(patternOf(9000), options)
		again := o.put(patternOf(9000), options)
		require.Equal(t, f.ID(), again.ID())
		require.True(t, again.Existed())
		for _, other := range [][]byte{patternOf(8999), make([]byte, 9000)} {
			_, err := o.client.Put(o.ctx, bytes.NewReader(other), options)
			require.ErrorIs(t, err, futures.ErrIDInUse)
		}
	}
	o.requireSound()
}

// TestAPutIsRepeatedWhereItWasNot has the workers that take objects come and go between two puts of one key: the same
// content is the same future wherever it is, and other content is refused.
func TestAPutIsRepeatedWhereItWasNot(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	o.start(64 << 20)
	const n = futures.PutStored + 1
	places := []futures.PutOptions{{}, {Stored: true}} // held by a worker, and stored with the cluster
	for i, key := range []string{"held", "stored"} {
		first, second := places[i], places[1-i]
		first.Key, second.Key = key, key
		f := o.put(patternOf(n), first)
		require.Equal(t, i == 0, o.isObject(f))
		again := o.put(patternOf(n), second)
		require.Equal(t, f.ID(), again.ID())
		require.True(t, again.Existed())
		require.Equal(t, i == 0, o.isObject(f), "it stays where it is")
		for _, other := range [][]byte{patternOf(n + 1), make([]byte, n)} {
			_, err := o.client.Put(o.ctx, bytes.NewReader(other), second)
			require.ErrorIs(t, err, futures.ErrIDInUse)
		}
		second.Codec = futures.CodecMsgpack
		_, err := o.client.Put(o.ctx, bytes.NewReader(patternOf(n)), second)
		require.ErrorIs(t, err, futures.ErrIDInUse)
	}
	o.requireSound()
}

// TestPutObjectsCannotBeRebuilt loses a value that was put, and what takes it.
func TestPutObjectsCannotBeRebuilt(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	stop := o.start(16 << 20)
	f := o.put(patternOf(2<<20), futures.PutOptions{})
	stop()
	o.start(16 << 20)
	_, err := o.client.Future(f.ID()).Await(o.ctx)
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, futures.KindLost, failed.Kind)
	require.ErrorContains(t, err, "cannot be rebuilt because it was put, not computed")
	err = o.client.Retry(o.ctx, f.ID())
	require.ErrorIs(t, err, futures.ErrTransition)
	require.ErrorContains(t, err, "it was put")
	explanation, err := o.client.Explain(o.ctx, f.ID())
	require.NoError(t, err)
	require.NotContains(t, explanation.Text, "Retry it")
	require.Contains(t, explanation.Text, "Put the value again")
	user, err := o.client.Submit(o.ctx, futures.Task{
		Function: "go:length", Codec: futures.CodecInputs, After: []futures.ID{f.ID()},
	})
	require.NoError(t, err)
	_, err = user.Await(o.ctx)
	require.ErrorContains(t, err, "upstream")
	o.requireSound()
}

// TestPutInAFunction holds values where they were made.
func TestPutInAFunction(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	o.start(16 << 20)
	o.start(16 << 20)
	for range 4 {
		f, err := deposit.Submit(o.ctx, o.client, 2<<20)
		require.NoError(t, err)
		text, err := f.Await(o.ctx)
		require.NoError(t, err)
		id, err := layout.ParseID(text)
		require.NoError(t, err)
		require.Equal(t, o.row(f.ID()).Result.Worker, o.row(id).Result.Worker)
		got, err := o.client.Future(id).Await(o.ctx)
		require.NoError(t, err)
		require.True(t, bytes.Equal(patternOf(2<<20), got.Value))
	}
	o.requireSound()
}

// TestPutWithoutHolders has no worker that takes objects.
func TestPutWithoutHolders(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	f := o.put(patternOf(2<<20), futures.PutOptions{})
	require.False(t, o.isObject(f))
	got, err := f.Await(o.ctx)
	require.NoError(t, err)
	require.True(t, bytes.Equal(patternOf(2<<20), got.Value))
	_, err = o.client.Put(o.ctx, strings.NewReader("x"), futures.PutOptions{AsObject: true})
	require.ErrorIs(t, err, futures.ErrNoHolder)
	_, err = o.client.Put(o.ctx, endless{}, futures.PutOptions{Memory: 2 << 20})
	require.ErrorIs(t, err, futures.ErrTooLarge)
	require.ErrorIs(t, err, futures.ErrNoHolder)
	_, err = o.client.Put(o.ctx, endless{}, futures.PutOptions{Stored: true, Memory: 2 << 20})
	require.ErrorIs(t, err, futures.ErrTooLarge)
	o.start(1 << 20) // too small for it
	require.False(t, o.isObject(o.put(patternOf(3<<20), futures.PutOptions{Size: 3 << 20})))
}

// interrupted calls a function when half of it has been read for the first time.
type interrupted struct {
	*bytes.Reader
	half func()
}

func (i *interrupted) Read(p []byte) (int, error) {
	if i.half != nil && i.Len() <= int(i.Size()/2) {
		i.half()
		i.half = nil
	}
	return i.Reader.Read(p[:min(len(p), 100_000)])
}

// TestPutGoesToAnotherWorker has the worker with most room stop when it has half of a
// value: one that can be read again goes to the other worker, or to the cluster if there
// is none; one that can't is an error that says so, and leaves nothing.
func TestPutGoesToAnotherWorker(t *testing.T) {
	t.Parallel()
	for _, others := range []int{1, 0} {
		o := newObjectTeam(t)
		stop := o.start(64 << 20)
		for range others {
			o.start(32 << 20)
		}
		value := &interrupted{bytes.NewReader(patternOf(6 << 20)), stop}
		f, err := o.client.Put(o.ctx, value, futures.PutOptions{})
		require.NoError(t, err)
		require.Equal(t, others > 0, o.isObject(f))
		got, err := f.Await(o.ctx)
		require.NoError(t, err)
		require.True(t, bytes.Equal(patternOf(6<<20), got.Value))
		if others == 0 {
			continue
		}
		stop = o.start(64 << 20)
		_, err = o.client.Put(o.ctx, struct{ io.Reader }{&interrupted{bytes.NewReader(patternOf(7 << 20)), stop}},
			futures.PutOptions{})
		require.ErrorContains(t, err, "no other worker was asked")
		require.ErrorContains(t, err, "put it again")
		counts, err := o.client.Counts(o.ctx)
		require.NoError(t, err)
		for k, n := range counts {
			require.Equal(t, layout.Realized, k.State)
			require.EqualValues(t, 1, n, "nothing of the second")
		}
		o.requireSound()
	}
}

// failingKeeper is the worker of a function that fails when it has all of a value.
type failingKeeper struct{}

func (failingKeeper) Keep(_ context.Context, _ layout.ID, r io.Reader, _ int64,
) (string, int64, layout.WorkerID, error) {
	n, err := io.Copy(io.Discard, r)
	return "hash", n, "w", errors.Join(err, errors.New("broken"))
}

// TestPutLeavesAWorkerThatFails has the worker of the calling function fail after it has
// read the value: the cluster stores it where there is no other worker.
func TestPutLeavesAWorkerThatFails(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	ctx := context.WithValue(o.ctx, taskcontext.KeeperKey{}, taskcontext.Keeper(failingKeeper{}))
	f, err := o.client.Put(ctx, bytes.NewReader(patternOf(2<<20)), futures.PutOptions{})
	require.NoError(t, err)
	require.False(t, o.isObject(f))
	got, err := f.Await(o.ctx)
	require.NoError(t, err)
	require.True(t, bytes.Equal(patternOf(2<<20), got.Value))
	_, err = o.client.Put(ctx, io.MultiReader(bytes.NewReader(patternOf(2<<20))), futures.PutOptions{})
	require.ErrorContains(t, err, "broken; no other worker was asked: 2097152 bytes")
	o.requireSound()
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestPutsThatFail leave nothing behind.
func TestPutsThatFail(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	o.start(8 << 20)
	broken := errors.New("broken")
	_, err := o.client.Put(o.ctx, io.MultiReader(bytes.NewReader(patternOf(3<<20)), iotest.ErrReader(broken)),
		futures.PutOptions{})
	require.ErrorIs(t, err, broken)
	_, err = o.client.Put(o.ctx, endless{}, futures.PutOptions{AsObject: true})
	require.Error(t, err)
	for _, bad := range []futures.PutOptions{
		{Codec: futures.CodecArgv}, {Codec: "x"}, {Queue: "no queue"}, {Label: strings.Repeat("l", 65)},
		{AsObject: true, Stored: true}, {Key: strings.Repeat("k", 1025)},
	} {
		_, err := o.client.Put(o.ctx, strings.NewReader("x"), bad)
		require.Error(t, err, "%+v", bad)
	}
	ended, cancel := context.WithCancel(o.ctx)
	cancel()
	_, err = o.client.Put(ended, strings.NewReader("x"), futures.PutOptions{})
	require.ErrorIs(t, err, context.Canceled)
	counts, err := o.client.Counts(o.ctx)
	require.NoError(t, err)
	require.Empty(t, counts)
	o.requireSound()
}
