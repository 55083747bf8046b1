package embedded

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// reopenLogged is reopen, and returns what the store had to say.
func reopenLogged(t testing.TB, all map[string][]byte) (map[string]string, string, error) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := Open(context.Background(), "store", Options{FS: filesystem(t, all), Inline: true, Logger: logger})
	if err != nil {
		return nil, log.String(), err
	}
	defer s.Close()
	return contents(t, s), log.String(), nil
}

// TestEndOfAClosedLog shortens, overwrites and lengthens the last file of a store
// that was closed: nothing of it may be lost without an error.
func TestEndOfAClosedLog(t *testing.T) {
	t.Parallel()
	all, history := storeFiles(t, true)
	want := history[len(history)-1]
	name := lastSegment(all)
	end := len(bytes.TrimRight(all[name], "\x00"))
	damage := func(content []byte) (map[string]string, string, error) {
		damaged := maps.Clone(all)
		damaged[name] = content
		return reopenLogged(t, damaged)
	}
	rows, log, err := damage(all[name])
	require.NoError(t, err)
	require.Equal(t, want, rows)
	require.Empty(t, log)

	for size := 0; size < end; size += 7 {
		for _, zeros := range []int{0, len(all[name]) - size} {
			_, _, err := damage(append(slices.Clone(all[name][:size]), make([]byte, zeros)...))
			require.ErrorIs(t, err, kv.ErrCorrupt, "%d bytes are left", size)
			require.ErrorContains(t, err, name)
		}
	}
	overwritten := slices.Clone(all[name])
	copy(overwritten[end-200:], random(200))
	_, _, err = damage(overwritten)
	require.ErrorIs(t, err, kv.ErrCorrupt)

	other, _ := storeFiles(t, true)
	earlier := slices.Sorted(maps.Keys(all))[0]
	require.True(t, strings.HasSuffix(earlier, segmentSuffix))
	require.NotEqual(t, name, earlier)
	for what, tail := range map[string][]byte{
		"noise":                 random(300),
		"itself":                all[name][:end],
		"an earlier segment":    all[earlier],
		"another store":         other[name],
		"zeros and then a byte": append(make([]byte, 40<<10), 1),
	} {
		require.NotEmpty(t, tail, what)
		rows, log, err := damage(append(slices.Clone(all[name]), tail...))
		require.NoError(t, err, what)
		require.Equal(t, want, rows, what)
		require.Contains(t, log, "bytes behind the end of the log are ignored", what)
		require.Contains(t, log, name, what)
	}
}

// TestCutOffWriteIsNoticed after a crash.
func TestCutOffWriteIsNoticed(t *testing.T) {
	t.Parallel()
	all, history := storeFiles(t, false)
	name := lastSegment(all)
	rows, log, err := reopenLogged(t, all)
	require.NoError(t, err)
	require.Equal(t, history[len(history)-1], rows)
	require.Empty(t, log)

	end := len(bytes.TrimRight(all[name], "\x00"))
	all[name] = all[name][:end-3]
	delete(all, markName)
	rows, log, err = reopenLogged(t, all)
	require.NoError(t, err)
	require.Equal(t, history[len(history)-2], rows)
	require.Contains(t, log, "a write at the end of the log was cut off")
	require.Contains(t, log, name)
}

// TestCloseThatCantSeal closes all the same: everything is in the log.
func TestCloseThatCantSeal(t *testing.T) {
	t.Parallel()
	fs := &faultFS{FS: filesystem(t, nil)}
	s := open(t, "store", Options{FS: fs})
	write(t, s, "a", "1")
	fs.fail(errors.New("no space left on device"))
	require.NoError(t, s.Close())
	fs.heal()
	require.Equal(t, []byte("1"), read(t, open(t, "store", Options{FS: fs}), "a"))
}

// TestCloseTellsWhatItCouldNotWrite of commits that were acknowledged before they were durable.
func TestCloseTellsWhatItCouldNotWrite(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"sync off": {SyncOff: true, SyncInterval: time.Hour}, "no sync": {Linger: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fs := &faultFS{FS: filesystem(t, nil)}
			o.FS = fs
			s := open(t, "store", o)
			write(t, s, "a", "1")
			tx := s.Begin(kv.Options{NoSync: true})
			tx.Set([]byte("b"), []byte("2"))
			commit(t, tx)
			full := errors.New("no space left on device")
			fs.fail(full)
			require.ErrorIs(t, s.Close(), full)
		})
	}
}
