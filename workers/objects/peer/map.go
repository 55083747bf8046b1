package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/futura-run/futura/workers/objects"
)

// Map opens an object in the memory of a process of the same user on this host,
// without a copy. The source must be a Unix socket, and have the object in memory
// in a file of its own: it has, on Linux, for objects of more than 128 KiB that did
// not go to disk. The content can't change, and stays when the other process ends.
// It is taken from the process as it is: its hash was verified when it came into
// the store there, and is not computed again.
func (c *Client) Map(ctx context.Context, address string, ref objects.Ref) (*objects.Object, error) {
	network, _, err := splitAddress(address)
	if err != nil {
		return nil, err
	}
	if err := ref.Valid(); err != nil {
		return nil, err
	}
	if network != "unix" {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnavailable, ref, sourceError(address, errNoFile))
	}
	for {
		l, isNew, err := c.lease(ctx, address)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrUnavailable, ref, sourceError(address, err))
		}
		f, err := l.take(ctx, ref)
		if err == nil {
			o, err := objects.Map(f, ref, func() error { l.release(ref.Hash); return nil })
			if err != nil {
				l.release(ref.Hash) // the other process goes on holding it
			}
			return o, err
		}
		var said statusError
		if !errors.As(err, &said) {
			c.dropLease(l)
			if !isNew && ctx.Err() == nil {
				continue // the server has closed it since
			}
		}
		return nil, fmt.Errorf("%w: %s: %w", ErrUnavailable, ref, sourceError(address, err))
	}
}

// lease is the connection that holds what is mapped from one source. It lasts as
// long as that, so that the other process knows what is used.
type lease struct {
	address string
	source  *source

	mu    sync.Mutex
	ended bool
}

// lease returns the lease of a source, or a new one.
func (c *Client) lease(ctx context.Context, address string) (l *lease, isNew bool, err error) {
	c.mu.Lock()
	l = c.leases[address]
	c.mu.Unlock()
	if l != nil {
		return l, false, nil
	}
	s, err := c.dialNew(ctx, address)
	if err != nil {
		return nil, false, err
	}
	l = &lease{address: address, source: s}
	c.mu.Lock()
	other := c.leases[address]
	closed := c.closed
	if other == nil && !closed {
		c.leases[address] = l
	}
	c.mu.Unlock()
	switch {
	case closed:
		l.end()
		return nil, false, objects.ErrClosed
	case other != nil:
		l.end()
		return other, false, nil
	}
	return l, true, nil
}

func (c *Client) dropLease(l *lease) {
	c.mu.Lock()
	if c.leases[l.address] == l {
		delete(c.leases, l.address)
	}
	c.mu.Unlock()
	l.end()
}

// end closes the connection, and what is under way on it ends. What is mapped stays.
func (l *lease) end() {
	_ = l.source.Close() // one that waits for an answer has the lock
	l.mu.Lock()
	defer l.mu.Unlock()
	l.close()
}

func (l *lease) close() {
	if !l.ended {
		l.ended = true
		_ = l.source.Close() // the other side notices
	}
}

// take gets the file of an object.
func (l *lease) take(ctx context.Context, ref objects.Ref) (*os.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, net.ErrClosed
	}
	stop := context.AfterFunc(ctx, func() { _ = l.source.SetDeadline(time.Unix(1, 0)) })
	f, err := l.askFile(ref)
	if !stop() {
		l.close() // an answer may be on its way
		if err == nil {
			err = f.Close()
		}
		return nil, errors.Join(ctx.Err(), err)
	}
	return f, err
}

func (l *lease) askFile(ref objects.Ref) (*os.File, error) {
	if err := l.source.ask(request{op: opMap, hash: ref.Hash}); err != nil {
		return nil, err
	}
	connection, ok := l.source.Conn.(*net.UnixConn)
	if !ok {
		return nil, errNoFile
	}
	var head [replySize]byte
	f, err := receiveFile(connection, head[:])
	if err != nil {
		return nil, err
	}
	r, err := decodeReply(&head)
	if err == nil {
		err = r.err()
	}
	if err == nil && (f == nil || r.value != uint64(ref.Size)) {
		err = fmt.Errorf("%w: a file of %d bytes for %s", ErrMalformed, r.value, ref)
	}
	if err != nil && f != nil {
		err = errors.Join(err, f.Close())
	}
	return f, err
}

// release says that an object is not used any longer. A connection that fails
// says so as well.
func (l *lease) release(hash objects.Hash) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if l.source.ask(request{op: opRelease, hash: hash}) != nil {
		l.close()
	}
}
