package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
)

// socketName is the door's socket in its directory.
const socketName = "store.sock"

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
// only this user can reach, and on TCP if that is asked for. The door is to be closed, also where there is an
// error.
func (n *node) openDoor(ctx context.Context) (*door, error) {
	d := &door{failed: make(chan error, 2), cancel: func() {}}
	store, isShared := n.db.(*sharing.Database)
	if !isShared && !kv.TraitsOf(n.db).Exclusive {
		if n.doorListen != "" {
			return d, usageError{fmt.Errorf("--store-listen is for embedded stores: other processes reach %s directly",
				n.app.store)}
		}
		return d, nil
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.cancel = cancel
	o := remote.ServerOptions{Logger: n.log, OnDisconnect: admin.Reaper(n.client.Cluster(), n.log)}
	if isShared {
		if path := store.Socket(); path != "" {
			d.store = "remote:unix:" + path
		}
	} else if err := n.openSocket(serving, d, o); err != nil {
		return d, err
	}
	if n.doorListen == "" {
		return d, nil
	}
	tcp, err := net.Listen("tcp", n.doorListen)
	if err != nil {
		return d, usageError{fmt.Errorf("--store-listen: %w", err)}
	}
	d.tcp = "remote:tcp:" + tcp.Addr().String()
	o.Token, o.TLS = n.token, n.certificate.config()
	d.serve(serving, tcp, n.db, o)
	return d, nil
}

// clientStore is the store as this process uses it itself: not exclusively, where the door lets
// others in.
func (n *node) clientStore() kv.Database {
	if _, ok := n.db.(*sharing.Database); ok && n.doorListen == "" {
		return n.db
	}
	if !kv.TraitsOf(n.db).Exclusive {
		return n.db
	}
	return remote.Share(n.db)
}

// reapLost has the workers of processes that a shared store loses reaped at once.
func reapLost(db kv.Database, c *fdbmodel.Cluster, log *slog.Logger) {
	if store, ok := db.(*sharing.Database); ok {
		store.OnLost(admin.Reaper(c, log))
	}
}

// openSocket serves a store in memory at a socket in a new directory.
func (n *node) openSocket(ctx context.Context, d *door, o remote.ServerOptions) (err error) {
	if d.remove, err = os.MkdirTemp("", "futura-"); err != nil {
		return err
	}
	path := filepath.Join(d.remove, socketName)
	unix, err := remote.ListenUnix(path)
	if err != nil {
		return err
	}
	d.store = "remote:unix:" + path
	d.serve(ctx, unix, n.db, o)
	return nil
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
