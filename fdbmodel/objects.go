package fdbmodel

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/layout"
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
	// ReadObject returns an object of size bytes from the worker of a copy. It
	// returns ErrNotFound if that worker does not have it; other errors say that it
	// can't be reached.
	ReadObject(ctx context.Context, object string, size int64, from *Copy) ([]byte, error)
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

// objectValue returns a result that is an object. It reports a loss.
func (c *Cluster) objectValue(ctx context.Context, id layout.ID, r *layout.Result) ([]byte, error) {
	reader := c.objectReader()
	if reader == nil {
		return nil, fmt.Errorf("result of future %s: %w: this process reads no objects", id, ErrUnreachable)
	}
	copies, err := c.Copies(ctx, id)
	if err != nil {
		return nil, err
	}
	var missing []layout.WorkerID
	var failed error
	for i := range copies {
		held := &copies[i]
		if !held.Alive || held.Object != r.Object {
			continue
		}
		value, err := reader.ReadObject(ctx, r.Object, r.Size, held)
		switch {
		case err == nil:
			return value, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, ErrNotFound):
			missing = append(missing, held.Worker)
		default:
			failed = errors.Join(failed, fmt.Errorf("worker %s: %w", held.Worker, err))
		}
	}
	if failed != nil {
		return nil, fmt.Errorf("result of future %s: %w: %w", id, ErrUnreachable, failed)
	}
	state, err := c.ReportLost(ctx, id, r.Token, missing)
	if err == nil {
		err = fmt.Errorf("future %s, now %v: %w", id, state, ErrLost)
	}
	return nil, err
}
