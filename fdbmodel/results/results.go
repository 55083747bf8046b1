// Package results is where the results of futures are: values that are stored with the
// cluster, and objects that workers have. It reads and writes large ones, makes futures of
// values, knows the copies of an object, and pins results against removal.
package results

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

var (
	// ErrLost is returned for a result that was an object and of which no copy is
	// left. That was reported: the future runs again, or has failed. Read it again.
	ErrLost = errors.New("the result was lost with the workers that had it")
	// ErrHolderGone is returned when the worker that holds an object is no
	// member any more or stops, or too much time has passed since it got it.
	ErrHolderGone = errors.New("the worker that holds the value is gone")
)

// Copy is a copy of a result as an object in the store of a worker.
type Copy = read.Copy

// ObjectReader reads objects from the workers that have them.
type ObjectReader interface {
	// OpenObject opens an object of size bytes at the worker of a copy. It returns
	// fdbmodel.ErrNotFound if that worker does not have it; other errors say that it can't be
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

// Results are the results of one cluster. Its methods may be called from many goroutines.
type Results struct {
	cluster *fdbmodel.Cluster
	keys    layout.Keyspace

	mu      sync.Mutex
	readers []ObjectReader // of objects: the first one reads
}

// Of returns the results of a cluster: one for all its callers.
func Of(c *fdbmodel.Cluster) *Results {
	type key struct{}
	return c.Room(key{}, func() any { return &Results{cluster: c, keys: c.Keys()} }).(*Results)
}

// OfferReader has results that are objects read by o, once those that were offered before
// are withdrawn. Without any they are fdbmodel.ErrUnreachable.
func (r *Results) OfferReader(o ObjectReader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers = append(r.readers, o)
}

// WithdrawReader ends the reading of objects by o.
func (r *Results) WithdrawReader(o ObjectReader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers = slices.DeleteFunc(r.readers, func(other ObjectReader) bool { return other == o })
}

func (r *Results) objectReader() ObjectReader {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.readers) == 0 {
		return nil
	}
	return r.readers[0]
}
