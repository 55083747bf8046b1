package faultdisk

import (
	"io"
	"io/fs"
	"path"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// sectorSize is what a disk writes whole, mostly.
const sectorSize = 512

// file is what the cache and the disk have of a file. Both may be shared with
// images until one of them changes.
type file struct {
	cache, disk []byte
	shared      bool
	// dirty are the sectors that are to be written, in no order.
	dirty map[int]bool
}

// own ends the sharing with images.
func (f *file) own() {
	if f.shared {
		f.cache, f.disk = append([]byte(nil), f.cache...), append([]byte(nil), f.disk...)
		f.shared = false
	}
}

func (f *file) writeAt(b []byte, at int) {
	f.own()
	if grow := at + len(b) - len(f.cache); grow > 0 {
		f.cache = append(f.cache, make([]byte, grow)...)
	}
	copy(f.cache[at:], b)
	if f.dirty == nil {
		f.dirty = map[int]bool{}
	}
	for s := at / sectorSize; s*sectorSize < at+len(b); s++ {
		f.dirty[s] = true
	}
}

// sector returns the part of b that a sector is.
func sector(b []byte, s int) []byte {
	return b[min(s*sectorSize, len(b)):min((s+1)*sectorSize, len(b))]
}

// put writes sector s of the cache to the disk, or its first n bytes.
func (f *file) put(disk []byte, s, n int) []byte {
	from := sector(f.cache, s)
	from = from[:min(n, len(from))]
	if grow := s*sectorSize + len(from) - len(disk); grow > 0 {
		disk = append(disk, make([]byte, grow)...)
	}
	copy(disk[s*sectorSize:], from)
	return disk
}

func (f *file) sync() {
	f.own()
	for s := range f.dirty {
		f.disk = f.put(f.disk, s, sectorSize)
	}
	if grow := len(f.cache) - len(f.disk); grow > 0 {
		f.disk = append(f.disk, make([]byte, grow)...)
	}
	clear(f.dirty)
}

// handle is an open file, or a directory if file is nil.
type handle struct {
	disk   *Disk
	name   string
	file   *file
	at     int64
	closed bool
}

func (h *handle) Close() error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.closed {
		return fs.ErrClosed
	}
	h.closed = true
	if h.disk.Descriptors >= 0 {
		h.disk.Descriptors++
	}
	return nil
}

func (h *handle) Read(b []byte) (int, error) {
	n, err := h.ReadAt(b, h.at)
	h.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (h *handle) ReadAt(b []byte, at int64) (int, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if at >= int64(len(h.file.cache)) {
		return 0, io.EOF
	}
	n := copy(b, h.file.cache[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) Write(b []byte) (int, error) {
	n, err := h.WriteAt(b, h.at)
	h.at += int64(n)
	return n, err
}

func (h *handle) WriteAt(b []byte, at int64) (int, error) {
	if err := h.disk.call("write", h.name, len(b)); err != nil {
		return 0, err
	}
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	room := len(b)
	if grow := at + int64(len(b)) - int64(len(h.file.cache)); h.disk.Space >= 0 && grow > 0 {
		room = len(b) - int(max(0, grow-h.disk.Space))
		h.disk.Space -= min(grow, h.disk.Space)
	}
	h.file.writeAt(b[:room], int(at))
	if room < len(b) {
		return room, &fs.PathError{Op: "write", Path: h.name, Err: syscall.ENOSPC}
	}
	return len(b), nil
}

// Sync writes what is to be written. If it fails, nothing was, and nothing of it
// is to be written any more.
func (h *handle) Sync() error {
	op := "sync"
	if h.file == nil {
		op = "syncdir"
	}
	err := h.disk.call(op, h.name, 0)
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	switch {
	case h.file == nil && err == nil:
		h.disk.syncDir(h.name)
	case h.file == nil:
	case err == nil:
		h.file.sync()
	default:
		clear(h.file.dirty)
	}
	return err
}

func (d *Disk) syncDir(dir string) {
	rest := d.pending[:0]
	for _, c := range d.pending {
		if c.dir == dir {
			c.apply(d.durable)
		} else {
			rest = append(rest, c)
		}
	}
	d.pending = rest
}

func (h *handle) SyncData() error                { return h.Sync() }
func (h *handle) SyncTo(int64) (bool, error)     { return false, nil }
func (h *handle) Preallocate(int64, int64) error { return nil }
func (h *handle) Prefetch(int64, int64) error    { return nil }
func (h *handle) Fd() uintptr                    { return vfs.InvalidFd }

func (h *handle) Stat() (vfs.FileInfo, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.file == nil {
		return info{name: path.Base(h.name), dir: true}, nil
	}
	return info{name: path.Base(h.name), size: int64(len(h.file.cache))}, nil
}

type info struct {
	name string
	size int64
	dir  bool
}

func (i info) Name() string           { return i.name }
func (i info) Size() int64            { return i.size }
func (i info) ModTime() time.Time     { return time.Time{} }
func (i info) IsDir() bool            { return i.dir }
func (i info) Sys() any               { return nil }
func (i info) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }

func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o700
	}
	return 0o600
}
