package sharing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/socket"
	"github.com/futura-run/futura/internal/trust"
)

// socketName is the socket's name in the directory of the store.
const socketName = "store.sock"

// owner is the part of the process that has the store open.
type owner struct {
	db      *Database
	store   *embedded.Store
	stop    context.CancelFunc // ends the serving
	serving sync.WaitGroup
	close   func() error

	mu     sync.Mutex
	record Record
	socket string // empty while the store is not served

	// writing is held while the record is written, and mu is not: a disk may hang.
	writing   sync.Mutex
	unwritten bool // the record could not be written the last time
}

// own opens the store and serves it. It returns kv.ErrStoreInUse while another process has it
// open. A store that can't be served is used by this process alone until it can. A process that has followed a
// store opens no other one, and makes none: it gets kv.ErrUnavailable while that one is not there.
func (d *Database) own(ctx context.Context) (*owner, error) {
	if err := InUse(d.dir, d.options.Embedded.Exposed); err != nil {
		return nil, err
	}
	options := d.options.Embedded
	if followed := d.followed.Load(); followed != nil {
		options.Only = *followed
	}
	store, err := embedded.Open(ctx, d.dir, options)
	if err != nil {
		return nil, err
	}
	before, _ := ReadRecord(d.dir)
	d.owns.Store(true)
	o := &owner{db: d, store: store}
	serving, stop := context.WithCancel(context.Background())
	o.stop = stop
	o.close = sync.OnceValue(o.end)
	o.record = Record{PID: os.Getpid(), Connection: d.id}
	for _, id := range before.Clients {
		if id != d.id && id != before.Connection {
			o.record.Clients = append(o.record.Clients, id)
		}
	}
	if err := o.serve(serving, before); err != nil {
		d.options.Logger.Warn("other processes can't use the store; trying again", "directory", d.dir, "error", err)
		o.serving.Go(func() { o.serveLater(serving, before) })
	}
	d.lose(before.Connection)
	d.running.Go(o.watchStore)
	return o, nil
}

// watchStore tells that the store has failed, and leaves it to others: this process may live on.
func (o *owner) watchStore() {
	select {
	case <-o.store.Failed():
		close(o.db.failed)
		_ = o.close() // Close returns it
	case <-o.db.ctx.Done():
	}
}

// Waits between two tries to serve a store.
const (
	serveMin = 100 * time.Millisecond
	serveMax = 5 * time.Second
)

// serveLater lets others use the store once that works: a disk gets room, and a process gets descriptors back.
func (o *owner) serveLater(ctx context.Context, before Record) {
	for wait := serveMin; clock.Sleep(ctx, clock.Real{}, wait) == nil; wait = min(2*wait, serveMax) {
		if o.serve(ctx, before) == nil {
			o.db.options.Logger.Warn("other processes can use the store now", "directory", o.db.dir)
			return
		}
	}
}

// serve lets others use the store.
func (o *owner) serve(ctx context.Context, before Record) error {
	removePlace(before.Socket, o.db.dir)
	path, err := socketPath(o.db.dir)
	if err != nil {
		return err
	}
	listener, err := remote.ListenUnix(path)
	if err != nil {
		removePlace(path, o.db.dir)
		return err
	}
	o.mu.Lock()
	o.record.Socket = path
	record := o.record // nobody changes it before the store is served
	o.mu.Unlock()
	if err := record.write(o.db.dir); err != nil && path != usualSocket(o.db.dir) {
		err = errors.Join(err, listener.Close())
		removePlace(path, o.db.dir)
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.socket = path
	options := remote.ServerOptions{Logger: o.db.options.Logger, Returning: slices.Clone(o.record.Clients),
		OnConnect: o.come, OnDisconnect: o.leave}
	o.serving.Go(func() { o.listen(ctx, listener, options) })
	return nil
}

func (o *owner) listen(ctx context.Context, l net.Listener, options remote.ServerOptions) {
	if err := remote.Serve(ctx, l, o.store, options); err != nil {
		o.db.options.Logger.Error("other processes can't use the store any more", "directory", o.db.dir, "error", err)
	}
}

// come records a process that uses the store.
func (o *owner) come(connection string) {
	o.db.find(connection)
	o.mu.Lock()
	known := slices.Contains(o.record.Clients, connection)
	if !known {
		o.record.Clients = append(o.record.Clients, connection)
	}
	o.mu.Unlock()
	if !known {
		o.write()
	}
}

// leave forgets a process that is gone.
func (o *owner) leave(connection string) {
	o.mu.Lock()
	o.record.Clients = slices.DeleteFunc(o.record.Clients, func(id string) bool { return id == connection })
	o.mu.Unlock()
	o.write()
	o.db.lose(connection)
}

// write keeps what a later owner has to know. Without it that one waits for heartbeats.
func (o *owner) write() {
	o.writing.Lock()
	defer o.writing.Unlock()
	o.mu.Lock()
	record := o.record
	record.Clients = slices.Clone(record.Clients)
	o.mu.Unlock()
	err := record.write(o.db.dir)
	if err != nil && !o.unwritten {
		o.db.options.Logger.Warn("the record of a shared store can't be written", "directory", o.db.dir, "error", err)
	}
	o.unwritten = err != nil
}

// servedAt is where the store is served, empty if it is not.
func (o *owner) servedAt() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.socket
}

// isAlone reports whether no other process uses the store.
func (o *owner) isAlone() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.record.Clients) == 0
}

// end leaves the store to others.
func (o *owner) end() error {
	o.stop()
	o.serving.Wait()
	if path := o.servedAt(); path != "" {
		removePlace(path, o.db.dir)
		if o.store.Err() == nil {
			o.mu.Lock()
			o.record.PID, o.record.Connection, o.record.Socket = 0, "", ""
			o.mu.Unlock()
			o.write()
		}
	}
	return o.store.Close()
}

// placePrefix begins the names of directories that are made for the socket of the store in dir, however
// that is named. They differ from those of its copies.
func placePrefix(dir string) string {
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	sum := sha256.Sum256([]byte(dir))
	return "futura-store-" + hex.EncodeToString(sum[:8]) + "-"
}

func isPlace(place, dir string) bool {
	return strings.HasPrefix(filepath.Base(place), placePrefix(dir))
}

// socketPath is in the directory of the store, or in a new one of this user where that path
// would be too long for a socket.
func socketPath(dir string) (string, error) {
	if path := usualSocket(dir); len(path) <= socket.MaxPath {
		return path, nil
	}
	place, err := os.MkdirTemp("", placePrefix(dir))
	if err != nil {
		return "", fmt.Errorf("sharing: a place for the socket: %w", err)
	}
	return filepath.Join(place, socketName), nil
}

func usualSocket(dir string) string { return filepath.Join(dir, socketName) }

// removePlace removes a directory that socketPath has made for the store in dir.
func removePlace(path, dir string) {
	place := filepath.Dir(path)
	if !isPlace(place, dir) || trust.Directory(place) != nil {
		return
	}
	_ = os.Remove(path)
	_ = os.Remove(place)
}
