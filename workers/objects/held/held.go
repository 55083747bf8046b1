// Package held reads results that workers hold as objects: it connects the data
// model, which knows the workers that have a result, with the connection that
// objects come over.
package held

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/peer"
)

// Both packages say how long a piece is.
const (
	_ uint = layout.ObjectPiece - objects.PieceSize
	_ uint = objects.PieceSize - layout.ObjectPiece
)

// maxClients is how many workers' connections are kept, of the workers that were used last.
const maxClients = 64

// Reader is a results.ObjectReader. Its methods may be called from many
// goroutines. The zero value is ready.
type Reader struct {
	mu      sync.Mutex
	closed  bool
	clients map[string]*kept // by secret
	used    int64            // how often any was
}

// kept are the connections to one worker.
type kept struct {
	client *peer.Client
	users  int
	last   int64 // use
}

// OpenObject implements results.ObjectReader. What is read of the object is
// verified.
func (r *Reader) OpenObject(ctx context.Context, object string, size int64, from *results.Copy,
) (results.OpenObject, error) {
	hash, err := objects.ParseHash(object)
	if err != nil {
		return nil, err
	}
	client, done, err := r.client(string(from.Secret))
	if err != nil {
		return nil, err
	}
	o := &open{client: client, done: done, ref: objects.Ref{Hash: hash, Size: size},
		sources: strings.Fields(from.Objects)}
	if o.pieces, err = client.Pieces(ctx, o.ref, o.sources...); err != nil {
		done()
		return nil, missing(err)
	}
	return o, nil
}

// open is an object of one worker.
type open struct {
	client  *peer.Client
	done    func()
	ref     objects.Ref
	pieces  []objects.Hash
	sources []string
}

// ReadAt implements results.OpenObject.
func (o *open) ReadAt(ctx context.Context, p []byte, offset int64) error {
	if offset%objects.PieceSize != 0 {
		return fmt.Errorf("objects: offset %d is not that of a piece", offset)
	}
	return missing(o.client.GetPieces(ctx, p, o.ref, o.pieces, int(offset/objects.PieceSize), o.sources...))
}

// Close implements results.OpenObject.
func (o *open) Close() { o.done() }

// missing returns ErrNotFound for a worker that does not have an object. One whose
// copy is damaged has none.
func missing(err error) error {
	if errors.Is(err, objects.ErrNotFound) || errors.Is(err, objects.ErrDamaged) {
		return fmt.Errorf("%w: %w", fdbmodel.ErrNotFound, err)
	}
	return err
}

// client returns the connections to the worker with a secret, and what to call
// when they are not needed any more.
func (r *Reader) client(secret string) (c *peer.Client, done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, objects.ErrClosed
	}
	k := r.clients[secret]
	if k == nil {
		// The worker chose where it is reached, and in which network.
		if c, err = peer.NewClient(peer.Options{Token: secret, Attempts: 1, PlainText: true}); err != nil {
			return nil, nil, err
		}
		k = &kept{client: c}
		if len(r.clients) >= maxClients && !r.evict() {
			return c, func() { _ = c.Close() }, nil // it was for this read alone
		}
		if r.clients == nil {
			r.clients = map[string]*kept{}
		}
		r.clients[secret] = k
	}
	r.used++
	k.users, k.last = k.users+1, r.used
	return k.client, sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		k.users--
	}), nil
}

// evict closes the connections that have not been used for longest, and reports whether there
// are some without a user. It is called under mu.
func (r *Reader) evict() bool {
	oldest := ""
	for secret, k := range r.clients {
		if k.users == 0 && (oldest == "" || k.last < r.clients[oldest].last) {
			oldest = secret
		}
	}
	if oldest == "" {
		return false
	}
	_ = r.clients[oldest].client.Close() // nothing is under way
	delete(r.clients, oldest)
	return true
}

// Close closes all connections.
func (r *Reader) Close() error {
	r.mu.Lock()
	clients := r.clients
	r.clients, r.closed = nil, true
	r.mu.Unlock()
	var errs []error
	for _, k := range clients {
		errs = append(errs, k.client.Close())
	}
	return errors.Join(errs...)
}
