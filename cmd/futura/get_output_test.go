package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
	"github.com/futura-run/futura/workers/objects"
)

// TestGetGoesOn has a file half written by an earlier call: what is there is kept
// if it is of the result.
func TestGetGoesOn(t *testing.T) {
	t.Parallel()
	c, err := futures.New(t.Context(), storetest.New(t), futures.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	content := make([]byte, 5*objects.PieceSize+1)
	for i := range content {
		content[i] = byte(i / 1000)
	}
	w, err := workers.New(c, workers.Options{
		Objects: workers.ObjectOptions{Memory: 16 << 20}, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	require.NoError(t, w.Register("make", func(context.Context, []byte) ([]byte, error) { return content, nil }))
	storetest.Background(t, w.Run)
	f, err := c.Submit(t.Context(), futures.Task{Function: "go:make", AsObject: true})
	require.NoError(t, err)
	s, err := f.Open(t.Context())
	require.NoError(t, err)
	defer s.Close()

	dir := t.TempDir()
	file := filepath.Join(dir, "result")
	part := filepath.Join(dir, ".result."+s.Tag()[:16]+".part")
	a := &app{err: io.Discard, out: io.Discard}
	require.NoError(t, os.WriteFile(part, content[:2*objects.PieceSize+100], 0o600))
	require.NoError(t, a.saveStream(s, file))
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))
	require.NoFileExists(t, part)

	// What is there is of something else: it is found, and the next call begins anew.
	require.NoError(t, os.WriteFile(part, make([]byte, objects.PieceSize), 0o600))
	require.ErrorIs(t, a.saveStream(s, file), objects.ErrDamaged)
	require.NoFileExists(t, part)
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, a.saveStream(s, link))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, s.Size(), info.Size(), "a link is followed")
}

// TestGetWaitsForALostResult has the only holder of a result stop: the call after the one that found that out waits
// until the result is made again, and none leaves an empty file.
func TestGetWaitsForALostResult(t *testing.T) {
	t.Parallel()
	c, err := futures.New(t.Context(), storetest.New(t), futures.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	content := bytes.Repeat([]byte("x"), 3*objects.PieceSize)
	begin := func() (stop func()) {
		w, err := workers.New(c, workers.Options{
			Objects: workers.ObjectOptions{Memory: 16 << 20}, Logger: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		require.NoError(t, w.Register("make", func(context.Context, []byte) ([]byte, error) { return content, nil }))
		return storetest.Background(t, w.Run)
	}
	stop := begin()
	f, err := c.Submit(t.Context(), futures.Task{Function: "go:make", AsObject: true})
	require.NoError(t, err)
	_, err = f.Await(t.Context())
	require.NoError(t, err)
	stop()
	dir := t.TempDir()
	a := &app{err: io.Discard, out: io.Discard}
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { first <- a.writeResult(ctx, c, f.ID(), filepath.Join(dir, "result")) }()
	require.Eventually(t, func() bool {
		row, err := c.Cluster().Get(t.Context(), f.ID())
		return err == nil && row.Attempts.Rebuilt > 0
	}, time.Minute, time.Millisecond)
	cancel()
	require.Error(t, <-first)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
	said := &bytes.Buffer{}
	a.err = said
	second := make(chan error, 1)
	go func() { second <- a.writeResult(t.Context(), c, f.ID(), filepath.Join(dir, "result")) }()
	begin()
	require.NoError(t, <-second)
	got, err := os.ReadFile(filepath.Join(dir, "result"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))
}
