//go:build unix

package remote

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/internal/ratelog"
)

// crowdSocket is the environment of a child that serves a store on disk with few
// descriptors.
const crowdSocket = "FUTURA_TEST_CROWD_SOCKET"

const (
	crowdDescriptors = 256
	// crowdFree is what the child leaves free of them, fewer than the server
	// takes for the clients of the test.
	crowdFree = 120
)

// crowdChild serves until its standard input ends, and then says how much memory
// it took at most.
func crowdChild(path string) error {
	limit := unix.Rlimit{Cur: crowdDescriptors, Max: crowdDescriptors}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir := filepath.Join(filepath.Dir(path), "store")
	store, err := embedded.Open(ctx, dir, embedded.Options{SegmentSize: 32 << 10, CheckpointBytes: 256 << 10})
	if err != nil {
		return err
	}
	l, err := ListenUnix(path)
	if err != nil {
		return err
	}
	var taken []*os.File
	for len(taken) == 0 || taken[len(taken)-1].Fd() < crowdDescriptors-crowdFree {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		taken = append(taken, f)
	}
	fmt.Println("serving")
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	// The crowd stays, however long it takes to come: without timeouts it is all there at once.
	err = Serve(ctx, l, store, ServerOptions{Logger: slog.New(slog.NewTextHandler(os.Stdout, nil)),
		HandshakeTimeout: time.Hour, IdleTimeout: time.Hour, WriteTimeout: time.Hour})
	failed, closed := store.Err(), store.Close()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	runtime.KeepAlive(taken)
	fmt.Println("peak", memory.HeapSys+memory.StackSys)
	return errors.Join(err, failed, closed)
}

// TestCrowd has 400 connections that say nothing and 100 that ask for much and
// read nothing, at a server with 256 descriptors: others are served, the log
// rotates or waits, the store does not fail, and the memory stays in its bound.
func TestCrowd(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), crowdSocket+"="+path), os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.Equal(t, "serving", lines.Text())
	began := time.Now()

	at := Address{Network: "unix", Target: path}
	early := dial(t, at)
	update(t, early, func(tx kv.Tx) {
		for i := range 50 {
			tx.Set([]byte{'k', byte(i)}, make([]byte, kv.MaxValueSize))
		}
	})
	for range 100 {
		crowdSlow(t, newRawClientOf(t, at, rand.Text()))
	}
	for range 400 {
		conn, err := net.Dial(at.Network, at.Target)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
	late := dial(t, at)
	for i := range 200 {
		for _, db := range []*Database{early, late} {
			key := fmt.Sprint("row", i)
			update(t, db, func(tx kv.Tx) { tx.Set([]byte(key), make([]byte, 1000)) })
			require.Len(t, get(t, db, key), 1000)
		}
	}

	require.NoError(t, in.Close())
	var log []string
	peak := int64(0)
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "peak %d", &peak); err != nil {
			log = append(log, lines.Text())
		}
	}
	text := strings.Join(log, "\n")
	require.NoError(t, cmd.Wait(), text)
	require.Positive(t, peak)
	require.Less(t, peak, ServerOptions{}.withDefaults().MaxMemory)
	require.Contains(t, text, syscall.EMFILE.Error())
	const kinds = 5 // each has a line per interval, and one in the end
	require.LessOrEqual(t, len(log), kinds*(2+int(time.Since(began)/ratelog.Interval)), text)
	t.Log("peak", peak>>20, "MiB,", len(log), "lines of log")
}

// crowdSlow asks for the whole store again and again, and reads nothing.
func crowdSlow(t *testing.T, s rawClient) {
	var asked []byte
	for number := range byte(50) {
		ask := binary.AppendUvarint([]byte{number, flagBegin, 0, opGetRange, 1, 0, 1, 'k', 1, 'l', 0}, 0)
		asked = appendFrame(asked, frameBatch, ask, nil)
	}
	require.NoError(t, s.SetWriteDeadline(time.Now().Add(patience)))
	_, err := s.Write(asked)
	require.NoError(t, err)
}
