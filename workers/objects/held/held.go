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
	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/peer"
)

// MaxValue is the largest object that ReadObject returns, in bytes.
const MaxValue = layout.MaxPut

// maxClients is how many workers' connections are kept.
const maxClients = 64

// Reader is a fdbmodel.ObjectReader. Its methods may be called from many
// goroutines. The zero value is ready.
type Reader struct {
	mu      sync.Mutex
	closed  bool
	clients map[string]*peer.Client // by secret
}

// ReadObject implements fdbmodel.ObjectReader. It verifies what it returns.
func (r *Reader) ReadObject(ctx context.Context, object string, size int64, from *fdbmodel.Copy) ([]byte, error) {
	if size < 0 || size > MaxValue {
		return nil, fmt.Errorf("an object of %d bytes: at most %d are read into memory", size, MaxValue)
	}
	hash, err := objects.ParseHash(object)
	if err != nil {
		return nil, err
	}
	client, done, err := r.client(string(from.Secret))
	if err != nil {
		return nil, err
	}
	defer done()
	value := make([]byte, size)
	err = client.Get(ctx, value, objects.Ref{Hash: hash, Size: size}, strings.Fields(from.Objects)...)
	// A worker whose copy is damaged has none.
	if errors.Is(err, objects.ErrNotFound) || errors.Is(err, objects.ErrDamaged) {
		return nil, fmt.Errorf("%w: %w", fdbmodel.ErrNotFound, err)
	}
	if err != nil {
		return nil, err
	}
	return value, nil
}

// client returns the connections to the worker with a secret, and what to call
// when they are not needed any more.
func (r *Reader) client(secret string) (c *peer.Client, done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, objects.ErrClosed
	}
	if c := r.clients[secret]; c != nil {
		return c, func() {}, nil
	}
	if c, err = peer.NewClient(peer.Options{Token: secret, Attempts: 1}); err != nil {
		return nil, nil, err
	}
	if len(r.clients) >= maxClients {
		return c, func() { _ = c.Close() }, nil // it was for this read alone
	}
	if r.clients == nil {
		r.clients = map[string]*peer.Client{}
	}
	r.clients[secret] = c
	return c, func() {}, nil
}

// Close closes all connections.
func (r *Reader) Close() error {
	r.mu.Lock()
	clients := r.clients
	r.clients, r.closed = nil, true
	r.mu.Unlock()
	var errs []error
	for _, c := range clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
