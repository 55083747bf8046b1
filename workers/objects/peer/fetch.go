package peer

import (
	"context"
	"errors"

	"github.com/futura-run/futura/workers/objects"
)

// Open opens an object where it is nearest: in the store, mapped from a source on
// this host, else fetched into the store. The object has to be closed.
func (c *Client) Open(ctx context.Context, store *objects.Store, ref objects.Ref, sources ...string,
) (*objects.Object, error) {
	o, err := store.Open(ref.Hash)
	if !errors.Is(err, objects.ErrNotFound) {
		return o, err
	}
	for _, address := range sources {
		if o, err := c.Map(ctx, address, ref); err == nil {
			return o, nil
		} else if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return c.Fetch(ctx, store, ref, sources...)
}

// Fetch opens an object of the store, into which it gets it from the sources if it
// isn't there. Calls for the same object at the same time get it once, from the sources
// of the first; if those don't deliver it, the others try theirs. It returns ErrFull,
// before anything is sent, if the store has no room for it.
func (c *Client) Fetch(ctx context.Context, store *objects.Store, ref objects.Ref, sources ...string,
) (*objects.Object, error) {
	for {
		o, err := store.Open(ref.Hash)
		if !errors.Is(err, objects.ErrNotFound) {
			return o, err
		}
		f, joined, err := c.board(ctx, store, ref, sources)
		if err != nil {
			return nil, err
		}
		select {
		case <-f.done:
			c.leave(f)
			if f.err != nil && !(joined && errors.Is(f.err, ErrUnavailable)) {
				return nil, f.err
			}
			// It may have been deleted since, or have other sources: then the answer is another flight.
		case <-ctx.Done():
			c.leave(f)
			return nil, ctx.Err()
		}
	}
}

// flight is an object that is fetched, for all who wait for it.
type flight struct {
	key     flightKey
	cancel  context.CancelFunc
	waiting int // guarded by the client's lock
	done    chan struct{}
	err     error // set before done is closed
}

type flightKey struct {
	store *objects.Store
	ref   objects.Ref
}

// board joins the flight of an object, or begins one. The flight ends when no caller
// waits for it.
func (c *Client) board(ctx context.Context, store *objects.Store, ref objects.Ref, sources []string,
) (f *flight, joined bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false, objects.ErrClosed
	}
	key := flightKey{store, ref}
	if f := c.flights[key]; f != nil {
		f.waiting++
		return f, true, nil
	}
	flying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f = &flight{key: key, cancel: cancel, waiting: 1, done: make(chan struct{})}
	c.flights[key] = f
	c.flying.Go(func() {
		defer cancel()
		f.err = c.fetch(flying, store, ref, sources)
		c.forget(f)
		close(f.done)
	})
	return f, false, nil
}

func (c *Client) leave(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting--; f.waiting > 0 {
		return
	}
	f.cancel()
	if c.flights[f.key] == f {
		delete(c.flights, f.key) // those who come now begin another
	}
}

// forget lets those who come now begin another flight.
func (c *Client) forget(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flights[f.key] == f {
		delete(c.flights, f.key)
	}
}

// fetch gets an object into a store.
func (c *Client) fetch(ctx context.Context, store *objects.Store, ref objects.Ref, sources []string) error {
	if err := ref.Valid(); err != nil {
		return err
	}
	kept, err := store.Reserve(ctx, ref.Size)
	if err != nil {
		return err
	}
	defer kept.Release()
	if ref.Pieces() <= 1 {
		into := make([]byte, ref.Size)
		if err := c.Get(ctx, into, ref, sources...); err != nil {
			return err
		}
		_, err := store.PutBytes(ctx, into, objects.PutOptions{Reservation: kept})
		return err
	}
	pieces, err := c.pieces(ctx, ref, sources)
	if err != nil {
		return err
	}
	a, err := store.Arrive(ctx, ref, pieces, objects.PutOptions{Reservation: kept})
	if err != nil {
		return err
	}
	t := &transfer{
		client: c, ref: ref, missing: []span{{0, len(pieces)}}, left: len(pieces), sink: sink{accept: a.Write},
	}
	if err := t.from(ctx, sources); err != nil {
		return errors.Join(err, a.Abandon())
	}
	return a.Commit()
}

// backOff waits before another attempt.
func (c *Client) backOff(ctx context.Context) error {
	timer := c.options.Clock.At(c.options.Clock.Now().Add(c.options.Backoff))
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
