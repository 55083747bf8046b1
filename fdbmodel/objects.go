package fdbmodel

import (
	"context"
	"errors"
)

var (
	// ErrLost is returned for a result that was an object and of which no copy is
	// left. That was reported: the future runs again, or has failed. Read it again.
	ErrLost = errors.New("the result was lost with the workers that had it")
	// ErrUnreachable is returned for a result that is an object when workers that
	// should have it are alive and can't be reached. Try again later.
	ErrUnreachable = errors.New("no worker that has the result can be reached")
)

// ObjectReader reads objects from the workers that have them.
type ObjectReader interface {
	// OpenObject opens an object of size bytes at the worker of a copy. It returns
	// ErrNotFound if that worker does not have it; other errors say that it can't be
	// reached.
	OpenObject(ctx context.Context, object string, size int64, from *Copy) (OpenObject, error)
}

// OpenObject is an object that is open at one worker. One goroutine uses it.
type OpenObject interface {
	// ReadAt fills p with what begins at offset, a multiple of layout.ObjectPiece; p
	// ends at such a multiple or at the end of the object. Its errors are those of
	// ObjectReader.OpenObject.
	ReadAt(ctx context.Context, p []byte, offset int64) error
	Close()
}

// OfferObjectReader has results that are objects read by r, unless another one
// reads them. Without any they are ErrUnreachable.
func (c *Cluster) OfferObjectReader(r ObjectReader) {
	c.objectsMu.Lock()
	defer c.objectsMu.Unlock()
	if c.objects == nil {
		c.objects = r
	}
}

// WithdrawObjectReader ends the reading of objects by r.
func (c *Cluster) WithdrawObjectReader(r ObjectReader) {
	c.objectsMu.Lock()
	defer c.objectsMu.Unlock()
	if c.objects == r {
		c.objects = nil
	}
}

func (c *Cluster) objectReader() ObjectReader {
	c.objectsMu.Lock()
	defer c.objectsMu.Unlock()
	return c.objects
}
