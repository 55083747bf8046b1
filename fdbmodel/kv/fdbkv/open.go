//go:build fdb

package fdbkv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// APIVersion is the version of FoundationDB's API that this package speaks.
// One process can speak only one.
const APIVersion = 730

const (
	defaultConnectTimeout = 5 * time.Second
	clusterFileVariable   = "FDB_CLUSTER_FILE"
)

// Options of Open. The zero value is ready to use.
type Options struct {
	// ConnectTimeout is how long Open waits for the cluster's first answer.
	// Defaults to 5 s.
	ConnectTimeout time.Duration
}

// opening guards the bindings' own map of open clusters, which has no lock.
var opening sync.Mutex

// Open opens the cluster that clusterFile names. If clusterFile is empty, it is
// the file that FDB_CLUSTER_FILE names, or else fdb.cluster in the working
// directory, or else FoundationDB's own default.
//
// Open returns an error that names the file if there is none, ErrBadClusterFile
// if it names no cluster, ErrAPIVersion if this process or its library speaks
// another version, and kv.ErrUnavailable if the cluster does not answer in time.
// It waits for nothing longer than the ConnectTimeout.
//
// FoundationDB's library reads the FDB_TLS_* and FDB_NETWORK_OPTION_* variables
// itself.
//
// A cluster's connection is made once per process and stays when the Database
// is closed, so that opening again costs nothing. The bindings keep their
// connections in a map without a lock: a program that opens clusters by
// fdb.OpenDatabase as well must not do so while Open runs.
func Open(ctx context.Context, clusterFile string, o Options) (*Database, error) {
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = defaultConnectTimeout
	}
	file, err := findClusterFile(clusterFile)
	if err != nil {
		return nil, err
	}
	if err := checkClusterFile(file); err != nil {
		return nil, err
	}
	native, err := connect(file)
	if err != nil {
		return nil, err
	}
	db := newDatabase(native)
	if err := db.probe(ctx, file, o.ConnectTimeout); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// ErrAPIVersion is returned when the process has chosen another version of
// FoundationDB's API already, or its library is too old for APIVersion.
var ErrAPIVersion = errors.New("fdbkv: needs version 730 of FoundationDB's API")

// defaultClusterFiles are where FoundationDB looks without being told.
func defaultClusterFiles() []string {
	return []string{"fdb.cluster", "/etc/foundationdb/fdb.cluster"}
}

// findClusterFile returns the absolute path of a cluster file that exists.
func findClusterFile(given string) (string, error) {
	candidates, from := []string{given}, ""
	if given == "" {
		candidates, from = defaultClusterFiles(), ", and "+clusterFileVariable+" is not set"
		if named := os.Getenv(clusterFileVariable); named != "" {
			candidates, from = []string{named}, ", which "+clusterFileVariable+" names"
		}
	}
	for _, candidate := range candidates {
		info, err := os.Stat(candidate)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("fdbkv: cluster file: %w", err)
		}
		if info.IsDir() {
			return "", fmt.Errorf("fdbkv: cluster file %s is a directory%s", candidate, from)
		}
		return filepath.Abs(candidate)
	}
	return "", fmt.Errorf("fdbkv: no cluster file %s%s: %w", strings.Join(candidates, " or "), from, fs.ErrNotExist)
}

// connect returns the process's connection to the cluster of file.
func connect(file string) (fdb.Database, error) {
	opening.Lock()
	defer opening.Unlock()
	if err := fdb.APIVersion(APIVersion); err != nil {
		if other, unset := fdb.GetAPIVersion(); unset == nil {
			return fdb.Database{}, fmt.Errorf("%w: this process chose %d before: %w", ErrAPIVersion, other, err)
		}
		return fdb.Database{}, fmt.Errorf("%w: is libfdb_c of version 7.3 or later installed? %w", ErrAPIVersion, err)
	}
	native, err := fdb.OpenDatabase(file)
	if err != nil {
		return fdb.Database{}, fmt.Errorf("fdbkv: open the cluster of %s: %w", file, err)
	}
	return native, nil
}

// probe waits for a first answer of the cluster.
func (d *Database) probe(ctx context.Context, file string, timeout time.Duration) error {
	probing, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t := d.Begin(kv.Options{})
	defer t.Cancel()
	_, err := t.ReadVersion(probing)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%w: no answer from the cluster of %s in %v: is it running, of version 7.3, configured, "+
			"and reachable from here?", kv.ErrUnavailable, file, timeout)
	}
	if err != nil {
		return fmt.Errorf("fdbkv: open the cluster of %s: %w", file, err)
	}
	return nil
}
