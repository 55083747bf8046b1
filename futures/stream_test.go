package futures_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
)

var (
	// pattern makes bytes that are another at each place.
	pattern = futures.Define[int, []byte]("pattern", futures.AsObject())
	drift   = futures.Define[int, []byte]("drift", futures.AsObject())
)

func patternOf(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

// TestStreams reads results that are stored in each of the places as streams.
func TestStreams(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	o.start(64 << 20)
	for _, c := range []struct {
		name    string
		n       int
		options []futures.Option
	}{
		{"in the record", 100, []futures.Option{func(t *futures.Task) { t.AsObject = false }}},
		{"in chunks", 5<<20 + 7, []futures.Option{func(t *futures.Task) { t.AsObject = false }}},
		{"small object", 100, nil},
		{"object", 5<<20 + 7, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := pattern.Submit(o.ctx, o.client, c.n, c.options...)
			require.NoError(t, err)
			s, err := f.Open(o.ctx)
			require.NoError(t, err)
			want, err := o.client.Future(f.ID()).Await(o.ctx)
			require.NoError(t, err)
			require.Equal(t, int64(len(want.Value)), s.Size())
			require.Equal(t, want.Codec, s.Codec())
			got, err := io.ReadAll(s)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want.Value, got))
			for _, at := range []int64{0, s.Size() / 3, s.Size() - 1, s.Size() / 2} {
				_, err := s.Seek(at, io.SeekStart)
				require.NoError(t, err)
				part := make([]byte, min(50, s.Size()-at))
				_, err = io.ReadFull(s, part)
				require.NoError(t, err)
				require.Equal(t, want.Value[at:at+int64(len(part))], part)
			}
			_, err = s.Seek(0, io.SeekStart)
			require.NoError(t, err)
			var all bytes.Buffer
			n, err := s.WriteTo(&all)
			require.NoError(t, err)
			require.Equal(t, s.Size(), n)
			require.True(t, bytes.Equal(want.Value, all.Bytes()))
			_, err = s.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
			require.NoError(t, s.Close())
			require.NoError(t, s.Close())
		})
	}
}

// TestOpenReadsNoValue opens results that are not there yet: what the stream is for is not
// read meanwhile, unless others wait for it. Whoever wants it later gets it.
func TestOpenReadsNoValue(t *testing.T) {
	t.Parallel()
	for _, object := range []bool{false, true} {
		for _, others := range []bool{false, true} {
			o := newObjectTeam(t)
			f, err := pattern.Submit(o.ctx, o.client, 1<<20, func(t *futures.Task) { t.AsObject = object })
			require.NoError(t, err)
			opened := make(chan error, 1)
			go func() {
				s, err := f.Open(o.ctx)
				opened <- errors.Join(err, s.Close())
			}()
			require.Eventually(t, func() bool { return o.client.WaitsWithoutValue(f.ID()) }, time.Minute, time.Millisecond)
			if others {
				f.Done()
				require.False(t, o.client.WaitsWithoutValue(f.ID()))
			}
			o.start(16 << 20)
			require.NoError(t, <-opened)
			require.Equal(t, others, f.HasValue())
			got, err := f.Await(o.ctx)
			require.NoError(t, err)
			require.True(t, bytes.Equal(patternOf(1<<20), got))
			require.True(t, f.HasValue())
		}
	}
}

// TestWaitsForAnEndReadNoValue follows and awaits a future whose result is an object.
func TestWaitsForAnEndReadNoValue(t *testing.T) {
	t.Parallel()
	for _, wait := range []func(*objectTeam, *futures.Future) error{
		func(o *objectTeam, f *futures.Future) error {
			return o.client.Follow(o.ctx, f.ID(), func(futures.View) error { return nil })
		},
		func(o *objectTeam, f *futures.Future) error { return f.AwaitEnd(o.ctx) },
	} {
		o := newObjectTeam(t)
		f, err := pattern.Submit(o.ctx, o.client, 1<<20)
		require.NoError(t, err)
		waited := make(chan error, 1)
		go func() { waited <- wait(o, f.Future) }()
		require.Eventually(t, func() bool { return o.client.WaitsWithoutValue(f.ID()) }, time.Minute, time.Millisecond)
		short, cancel := context.WithCancel(o.ctx)
		cancel()
		require.Equal(t, context.Canceled, f.AwaitEnd(short), "it does not look for the reason")
		o.start(16 << 20)
		require.NoError(t, <-waited)
		require.False(t, f.HasValue())
	}
}

// TestStreamsGoOnAfterALoss has the only worker with a result stop while it is read:
// the stream goes on with the one that is made again, if it is the same.
func TestStreamsGoOnAfterALoss(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	const n = 10 << 20
	read := func(f *futures.Future, stop func()) ([]byte, error) {
		s, err := f.Open(o.ctx)
		require.NoError(t, err)
		defer s.Close()
		head := make([]byte, 1000)
		_, err = io.ReadFull(s, head)
		require.NoError(t, err)
		stop()
		o.start(64 << 20)
		rest, err := io.ReadAll(s)
		return append(head, rest...), err
	}
	stop := o.start(64 << 20)
	f, err := pattern.Submit(o.ctx, o.client, n)
	require.NoError(t, err)
	got, err := read(o.client.Future(f.ID()), stop)
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(got, patternOf(n)))
	require.Len(t, got, n+5) // as msgpack
	o.requireSound()
}

func TestStreamsOfAnotherResult(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	stop := o.start(64 << 20)
	f, err := drift.Submit(o.ctx, o.client, 10<<20)
	require.NoError(t, err)
	s, err := f.Open(o.ctx)
	require.NoError(t, err)
	defer s.Close()
	_, err = io.ReadFull(s, make([]byte, 1000))
	require.NoError(t, err)
	stop()
	o.start(64 << 20)
	_, err = io.Copy(io.Discard, s)
	require.ErrorIs(t, err, futures.ErrChanged)
}

func TestStreamsThatCannotBe(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	_, err := o.client.Future(futures.ID{15: 1}).Open(o.ctx)
	require.ErrorIs(t, err, futures.ErrNotFound)
	f, err := pattern.Submit(o.ctx, o.client, 1)
	require.NoError(t, err)
	soon, cancel := context.WithCancel(o.ctx)
	cancel()
	_, err = f.Open(soon)
	require.ErrorIs(t, err, context.Canceled)
	_, err = o.client.Cancel(o.ctx, f.ID(), "not wanted")
	require.NoError(t, err)
	_, err = f.Open(o.ctx)
	var failed *futures.FailedError
	require.True(t, errors.As(err, &failed), err)
	require.Equal(t, futures.KindCancelled, failed.Kind)
}

// TestResultsLargerThanTheStoreTakes has a worker keep a result that the cluster's
// store has no room for, and one without an object store fail it.
func TestResultsLargerThanTheStoreTakes(t *testing.T) {
	t.Parallel()
	const n = 64<<20 + 1
	o := newObjectTeam(t)
	stop := o.start(2 * n)
	f, err := drift.Submit(o.ctx, o.client, n)
	require.NoError(t, err)
	s, err := f.Open(o.ctx)
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Seek(-1, io.SeekEnd)
	require.NoError(t, err)
	last, err := io.ReadAll(s)
	require.NoError(t, err)
	require.Equal(t, []byte{1}, last)
	_, err = f.Await(o.ctx)
	require.ErrorIs(t, err, futures.ErrTooLarge)
	stop()
	o.start(0)
	f, err = drift.Submit(o.ctx, o.client, n, futures.Retries(0))
	require.NoError(t, err)
	_, err = f.Await(o.ctx)
	require.ErrorContains(t, err, "submit the future as an object")
}

// TestSmallResultsAreStored has small results stay when their worker is lost, though
// they were to be objects.
func TestSmallResultsAreStored(t *testing.T) {
	t.Parallel()
	for above, kept := range map[int64]map[int]bool{0: {1000: false, 5000: true}, 9000: {5000: false, 10_000: true}} {
		o := newObjectTeam(t)
		o.above = above
		stop := o.start(64 << 20)
		for n, kept := range kept {
			f, err := pattern.Submit(o.ctx, o.client, n, futures.NoRebuild())
			require.NoError(t, err)
			_, err = f.Await(o.ctx)
			require.NoError(t, err)
			row, err := o.client.Cluster().Get(o.ctx, f.ID())
			require.NoError(t, err)
			require.Equal(t, kept, row.Result.Object != "", "%d bytes", n)
		}
		stop()
	}
}
