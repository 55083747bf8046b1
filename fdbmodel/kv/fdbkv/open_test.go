//go:build fdb

package fdbkv_test

import (
	"context"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/apple/foundationdb/bindings/go/src/fdb"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/fdbkv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
)

func TestOpenNamesAMissingClusterFile(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing.cluster")
	_, err := fdbkv.Open(t.Context(), missing, fdbkv.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, missing)

	directory := t.TempDir()
	_, err = fdbkv.Open(t.Context(), directory, fdbkv.Options{})
	require.ErrorContains(t, err, directory+" is a directory")
}

func TestOpenUsesTheEnvironment(t *testing.T) {
	t.Setenv("FDB_CLUSTER_FILE", filepath.Join(t.TempDir(), "missing.cluster"))
	_, err := fdbkv.Open(t.Context(), "", fdbkv.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "which FDB_CLUSTER_FILE names")

	t.Setenv("FDB_CLUSTER_FILE", server.ClusterFile(t))
	db, err := fdbkv.Open(t.Context(), "", fdbkv.Options{})
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

func TestOpenByName(t *testing.T) {
	t.Parallel()
	db, err := kvopen.Open(t.Context(), "fdb:"+server.ClusterFile(t), kvopen.Options{})
	require.NoError(t, err)
	set(t, db, key(t, "a"), "x")
	require.Equal(t, "x", get(t, open(t), key(t, "a")))
	require.NoError(t, db.Close())
}

// silentCluster returns a cluster file that names an address at which nothing
// speaks.
func silentCluster(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	file := filepath.Join(t.TempDir(), "fdb.cluster")
	require.NoError(t, os.WriteFile(file, []byte("silent:test@"+listener.Addr().String()+"\n"), 0o600))
	return file
}

func TestOpenDoesNotHangOnASilentCluster(t *testing.T) {
	t.Parallel()
	file := silentCluster(t)
	_, err := fdbkv.Open(t.Context(), file, fdbkv.Options{ConnectTimeout: 200 * time.Millisecond})
	require.ErrorIs(t, err, kv.ErrUnavailable)
	require.ErrorContains(t, err, file)
	require.ErrorContains(t, err, "200ms")

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = fdbkv.Open(ctx, file, fdbkv.Options{ConnectTimeout: time.Hour})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestOpenRefusesAMalformedClusterFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "fdb.cluster")
	require.NoError(t, os.WriteFile(file, []byte("not a cluster file\n"), 0o600))
	_, err := fdbkv.Open(t.Context(), file, fdbkv.Options{ConnectTimeout: time.Hour})
	require.ErrorIs(t, err, fdbkv.ErrBadClusterFile)
	require.ErrorContains(t, err, file)
	require.ErrorContains(t, err, "DESCRIPTION:ID@HOST:PORT")
}

// TestOpenAfterAnotherAPIVersion runs in a process of its own, as one process
// speaks one version.
func TestOpenAfterAnotherAPIVersion(t *testing.T) {
	if os.Getenv(otherVersionVariable) != "" {
		require.NoError(t, fdb.APIVersion(720))
		_, err := fdbkv.Open(t.Context(), silentCluster(t), fdbkv.Options{})
		require.ErrorIs(t, err, fdbkv.ErrAPIVersion)
		require.ErrorContains(t, err, "720")
		return
	}
	command := exec.Command(os.Args[0], "-test.run=^TestOpenAfterAnotherAPIVersion$")
	command.Env = append(os.Environ(), otherVersionVariable+"=1")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
}
