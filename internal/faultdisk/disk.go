package faultdisk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Call is a call that changes the disk, or needs a descriptor.
type Call struct {
	// Op is create, open, write, sync, syncdir, rename, remove, mkdir or lock.
	Op   string
	Path string
	// Bytes is the size of a write.
	Bytes int
}

// Disk is a file system. Its methods may be called from many goroutines, its
// fields be set only while nobody calls.
type Disk struct {
	// Before is called before each call, which ends with the error that it
	// returns. It may take images. Nil stands for no error.
	Before func(Call) error
	// Space is how many bytes more the files may have, without a limit if
	// negative.
	Space int64
	// ReadOnly makes every change end with EROFS.
	ReadOnly bool
	// Descriptors is how many more files can be open, without a limit if
	// negative.
	Descriptors int

	mu    sync.Mutex
	dirs  map[string]bool
	names map[string]*file
	// durable are the names on the disk, and pending the changes that are not yet,
	// in their order.
	durable map[string]*file
	pending []change
	locked  map[string]bool
}

var _ vfs.FS = (*Disk)(nil)

// change is one of the names: a file in place of another or of none, or its
// removal if it is nil. from is the name that it had before, if any.
type change struct {
	dir, name, from string
	file            *file
}

// New returns an empty disk.
func New() *Disk {
	return &Disk{Space: -1, Descriptors: -1, dirs: map[string]bool{".": true, "/": true}, names: map[string]*file{},
		durable: map[string]*file{}, locked: map[string]bool{}}
}

// SetSpace sets Space while the disk is in use.
func (d *Disk) SetSpace(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Space = n
}

func (c *change) apply(names map[string]*file) {
	if c.from != "" {
		delete(names, c.from)
	}
	if c.file == nil {
		delete(names, c.name)
	} else {
		names[c.name] = c.file
	}
}

// call asks Before. Nothing is locked, so that it can take images.
func (d *Disk) call(op, name string, bytes int) error {
	if d.Before != nil {
		if err := d.Before(Call{Op: op, Path: name, Bytes: bytes}); err != nil {
			return &fs.PathError{Op: op, Path: name, Err: err}
		}
	}
	if d.ReadOnly && op != "open" {
		return &fs.PathError{Op: op, Path: name, Err: syscall.EROFS}
	}
	return nil
}

// change changes names, in the cache.
func (d *Disk) change(c change) {
	c.dir = path.Dir(c.name)
	c.apply(d.names)
	d.pending = append(d.pending, c)
}

func missing(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

// handle opens a file, or a directory for a nil file.
func (d *Disk) handle(name string, f *file) (vfs.File, error) {
	if d.Descriptors == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	if d.Descriptors > 0 {
		d.Descriptors--
	}
	return &handle{disk: d, name: name, file: f}, nil
}

// Create implements vfs.FS.
func (d *Disk) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.call("create", name, 0); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h, err := d.handle(name, &file{})
	if err == nil {
		d.change(change{name: name, file: h.(*handle).file})
	}
	return h, err
}

// Open implements vfs.FS.
func (d *Disk) Open(name string, _ ...vfs.OpenOption) (vfs.File, error) {
	if err := d.call("open", name, 0); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return nil, missing("open", name)
	}
	return d.handle(name, d.names[name])
}

// OpenReadWrite implements vfs.FS.
func (d *Disk) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	if f, err := d.Open(name, o...); !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	return d.Create(name, c)
}

// OpenDir implements vfs.FS.
func (d *Disk) OpenDir(name string) (vfs.File, error) {
	if err := d.call("open", name, 0); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.dirs[name] {
		return nil, missing("open", name)
	}
	return d.handle(name, nil)
}

// Remove implements vfs.FS.
func (d *Disk) Remove(name string) error {
	if err := d.call("remove", name, 0); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return missing("remove", name)
	}
	d.change(change{name: name})
	return nil
}

// RemoveAll implements vfs.FS. Directories are gone at once.
func (d *Disk) RemoveAll(name string) error {
	if err := d.call("remove", name, 0); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	within := func(other string) bool { return other == name || strings.HasPrefix(other, name+"/") }
	for _, other := range slices.Sorted(maps.Keys(d.names)) {
		if within(other) {
			d.change(change{name: other})
		}
	}
	maps.DeleteFunc(d.dirs, func(other string, _ bool) bool { return within(other) })
	return nil
}

// Rename implements vfs.FS.
func (d *Disk) Rename(from, to string) error {
	if err := d.call("rename", to, 0); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[from] == nil {
		return missing("rename", from)
	}
	d.change(change{name: to, from: from, file: d.names[from]})
	return nil
}

// MkdirAll implements vfs.FS. Directories are durable at once.
func (d *Disk) MkdirAll(name string, _ fs.FileMode) error {
	if err := d.call("mkdir", name, 0); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dirs[name] = true
	return nil
}

// Lock implements vfs.FS.
func (d *Disk) Lock(name string) (io.Closer, error) {
	if err := d.call("lock", name, 0); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked[name] {
		return nil, syscall.EAGAIN
	}
	if d.names[name] == nil {
		d.change(change{name: name, file: &file{}})
	}
	d.locked[name] = true
	return &lock{d, name}, nil
}

type lock struct {
	disk *Disk
	name string
}

func (l *lock) Close() error {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	delete(l.disk.locked, l.name)
	return nil
}

// List implements vfs.FS.
func (d *Disk) List(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.dirs[dir] {
		return nil, missing("list", dir)
	}
	var found []string
	for _, names := range []iter.Seq[string]{maps.Keys(d.names), maps.Keys(d.dirs)} {
		for name := range names {
			if path.Dir(name) == dir && name != dir {
				found = append(found, path.Base(name))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// Stat implements vfs.FS.
func (d *Disk) Stat(name string) (vfs.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.dirs[name]:
		return info{name: path.Base(name), dir: true}, nil
	case d.names[name] == nil:
		return nil, missing("stat", name)
	}
	return info{name: path.Base(name), size: int64(len(d.names[name].cache))}, nil
}

// PathBase implements vfs.FS.
func (*Disk) PathBase(p string) string { return path.Base(p) }

// PathJoin implements vfs.FS.
func (*Disk) PathJoin(elem ...string) string { return path.Join(elem...) }

// PathDir implements vfs.FS.
func (*Disk) PathDir(p string) string { return path.Dir(p) }

// Unwrap implements vfs.FS.
func (*Disk) Unwrap() vfs.FS { return nil }

// ErrNotSupported is returned for calls that no test has needed.
var ErrNotSupported = errors.New("faultdisk: not supported")

// Link implements vfs.FS.
func (*Disk) Link(string, string) error { return ErrNotSupported }

// ReuseForWrite implements vfs.FS.
func (*Disk) ReuseForWrite(string, string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, ErrNotSupported
}

// GetDiskUsage implements vfs.FS. What is free is Space.
func (d *Disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	free := uint64(math.MaxInt64)
	if d.Space >= 0 {
		free = uint64(d.Space)
	}
	return vfs.DiskUsage{AvailBytes: free}, nil
}

// Flip inverts a bit of a file, in the cache and on the disk.
func (d *Disk) Flip(name string, bit int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.names[name]
	if f == nil || bit >= 8*len(f.cache) {
		return fmt.Errorf("faultdisk: %s has no bit %d", name, bit)
	}
	f.own()
	f.cache[bit/8] ^= 1 << (bit % 8)
	if bit < 8*len(f.disk) {
		f.disk[bit/8] ^= 1 << (bit % 8)
	}
	return nil
}

// Names returns the paths of the files below a directory.
func (d *Disk) Names(dir string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []string
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if strings.HasPrefix(name, dir+"/") {
			found = append(found, name)
		}
	}
	return found
}
