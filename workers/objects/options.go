package objects

import (
	"cmp"
	"errors"
	"time"
)

// Defaults of Options.
const (
	defaultMemory = 256 << 20
	defaultDisk   = 10 << 30
)

// Sentinels of a Store.
var (
	// ErrFull is returned for what the store has no room for.
	ErrFull = errors.New("objects: the store is full")
	// ErrNotFound is returned for an object that the store does not have.
	ErrNotFound = errors.New("objects: no such object")
	// ErrClosed is returned by a store, or an object, that was closed.
	ErrClosed = errors.New("objects: closed")
	// ErrStopping is returned by a store that takes no more objects because it stops.
	ErrStopping = errors.New("objects: stopping, it takes no more")
)

// Options of a Store.
type Options struct {
	// Memory is how many bytes of memory objects may take. Defaults to 256 MiB;
	// less than 0 is none.
	Memory int64
	// Disk is how many bytes of Dir objects may take, as far as its file system has
	// them: a sixteenth of that, 64 MiB at most, is left to others. Nothing goes to a
	// disk that has failed for 5 s. Defaults to 10 GiB, and is none without Dir.
	Disk int64
	// Dir is where objects go that memory has no room for. It is created for this
	// user alone if it does not exist, and must not be open to others. Stores may
	// share it. Defaults to none.
	Dir string
	// MaxFiles bounds the descriptors of files that the store has open. Defaults
	// to a quarter of those that the process may have.
	MaxFiles int

	// create makes a file without a name in Dir.
	create func(dir string) (file, error)
	// available is how many bytes the file system of Dir has left, and in all, if the
	// system says so.
	available func(dir string) (left, total int64, known bool)
	now       func() time.Time
}

func (o Options) withDefaults() Options {
	o.Memory = max(0, cmp.Or(o.Memory, defaultMemory))
	o.Disk = max(0, cmp.Or(o.Disk, defaultDisk))
	if o.Dir == "" {
		o.Disk = 0
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = max(16, descriptors()/4)
	}
	if o.create == nil {
		o.create = createNameless
	}
	if o.available == nil {
		o.available = available
	}
	if o.now == nil {
		o.now = time.Now
	}
	return o
}
