package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
)

// socketName is the door's socket in the directory of a store.
const socketName = "store.sock"

// maxSocketPath is the longest path that a Unix socket may have on any system.
const maxSocketPath = 100

// reapTime bounds the reaping of a lost connection's workers. A janitor goes on
// where it ends.
const reapTime = 10 * time.Second

// door lets other processes use a store that only this one can open.
type door struct {
	// store is the name under which they open it, empty if they need no door.
	store  string
	tcp    string
	failed chan error
	cancel context.CancelFunc
	ended  []chan error
	remove string
}

// openDoor serves the store, if only this process can open it, on a socket that
// only this user can reach, and on TCP if that is asked for.
func (n *node) openDoor(ctx context.Context) (*door, error) {
	d := &door{failed: make(chan error, 2), cancel: func() {}}
	if !kv.TraitsOf(n.db).Exclusive {
		if n.doorListen != "" {
			return d, usageError{fmt.Errorf("--store-listen is for embedded stores: other processes reach %s directly",
				n.app.store)}
		}
		return d, nil
	}
	path, err := d.socketPath(n.app.store)
	if err != nil {
		return d, err
	}
	unix, err := remote.ListenUnix(path)
	if err != nil {
		return d, errors.Join(err, d.close())
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.cancel, d.store = cancel, "remote:unix:"+path
	o := remote.ServerOptions{Logger: n.log, OnDisconnect: n.reap}
	d.serve(serving, unix, n.db, o)
	if n.doorListen == "" {
		return d, nil
	}
	tcp, err := net.Listen("tcp", n.doorListen)
	if err != nil {
		return d, errors.Join(usageError{fmt.Errorf("--store-listen: %w", err)}, d.close())
	}
	d.tcp = "remote:tcp:" + tcp.Addr().String()
	o.Token, o.TLS = n.token, n.tls
	d.serve(serving, tcp, n.db, o)
	return d, nil
}

// socketPath is in the store's directory, or in a new one where that has none or
// its path is too long for a socket.
func (d *door) socketPath(store string) (string, error) {
	if dir, ok := embeddedDir(store); ok {
		path, err := filepath.Abs(filepath.Join(dir, socketName))
		if err != nil || len(path) <= maxSocketPath {
			return path, err
		}
	}
	dir, err := os.MkdirTemp("", "futura-")
	d.remove = dir
	return filepath.Join(dir, socketName), err
}

func (d *door) serve(ctx context.Context, l net.Listener, db kv.Database, o remote.ServerOptions) {
	ended := make(chan error, 1)
	d.ended = append(d.ended, ended)
	go func() {
		err := remote.Serve(ctx, l, db, o)
		if ended <- err; err != nil {
			d.failed <- err
		}
	}()
}

// reap takes back at once what the workers of a lost connection held.
func (n *node) reap(connection string) {
	ctx, cancel := context.WithTimeout(context.Background(), reapTime)
	defer cancel()
	workers, futures, err := admin.ReapConnection(ctx, n.client.Cluster(), connection)
	if err != nil {
		n.log.Warn("a lost connection's workers are left to the janitor", "connection", connection, "error", err)
	} else if workers > 0 {
		n.log.Info("a connection was lost", "workers", workers, "futures taken back", futures)
	}
}

// close ends the door, after the connections.
func (d *door) close() error {
	d.cancel()
	var errs []error
	for _, ended := range d.ended {
		errs = append(errs, <-ended)
	}
	if d.remove != "" {
		errs = append(errs, os.RemoveAll(d.remove))
	}
	return errors.Join(errs...)
}
