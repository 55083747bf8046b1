package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// readOnlyError is returned with a lock that keeps writers out and allows no
// writing.
type readOnlyError struct{ cause error }

func (e readOnlyError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e readOnlyError) Unwrap() error { return e.cause }

// lockDirectory makes the directory, unless Options.Only forbids that, and keeps other stores out of
// it. Where nothing can be written, the error is a readOnlyError and comes with a lock.
func lockDirectory(path string, o *Options) (directory, io.Closer, error) {
	d := directory{fs: o.FS, path: path}
	onDisk := vfs.Root(d.fs) == vfs.Default
	if onDisk {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return d, nil, fmt.Errorf("embedded: %w", err)
		}
		d.path = absolute
	}
	if err := d.enter(o.Only); err != nil {
		return d, nil, err
	}
	if onDisk {
		// The lock knows paths, not directories.
		if real, err := filepath.EvalSymlinks(d.path); err == nil {
			d.path = real
		}
		if err := guard(d.path, o.Exposed); err != nil {
			return d, nil, err
		}
	}
	if onDisk {
		if info, err := os.Stat(d.path); err == nil {
			d.locked = info
		}
	}
	lock, err := d.fs.Lock(d.file(lockName))
	if err == nil {
		if lock, err = d.lockItself(lock, false); err == nil {
			return d, lock, nil
		}
	}
	if cantWrite(err) {
		lock, locking := d.lockShared()
		if locking == nil {
			return d, lock, readOnlyError{err}
		}
		if !errors.Is(locking, fs.ErrNotExist) {
			err = locking
		}
	}
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		return d, nil, fmt.Errorf("embedded: directory %s can't be written: %w", d.path, err)
	}
	return d, nil, fmt.Errorf("%w: %s: %w", kv.ErrStoreInUse, d.path, err)
}

// enter makes the directory if it is not there, unless only one store may be opened.
func (d directory) enter(only string) error {
	if only == "" {
		return d.make()
	}
	m, err := d.manifest()
	if err != nil {
		return err
	}
	return d.allow(m, only)
}

// allow returns kv.ErrUnavailable unless the directory has the manifest of the only store that may be
// opened. An empty id allows any, and none.
func (d directory) allow(m *manifest, only string) error {
	switch {
	case only == "":
	case m == nil:
		return fmt.Errorf("%w: directory %s has no store any more: bring it back if it was moved, mount its file system, or "+
			"start this process again to make a new store", kv.ErrUnavailable, d.path)
	case m.Store != only:
		return fmt.Errorf("%w: directory %s has another store than before, %s and not %s: bring that one back, or start "+
			"this process again to use the new one", kv.ErrUnavailable, d.path, m.Store, only)
	}
	return nil
}

// make makes the directory if it is not there.
func (d directory) make() error {
	info, err := d.fs.Stat(d.path)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("embedded: %s is not a directory", d.path)
	case errors.Is(err, fs.ErrNotExist):
		if err := d.fs.MkdirAll(d.path, 0o700); err != nil {
			return fmt.Errorf("embedded: directory %s can't be created: %w", d.path, err)
		}
		if err := syncDir(d.fs, d.fs.PathDir(d.path)); err != nil {
			return fmt.Errorf("embedded: %w", err)
		}
	case err != nil:
		return fmt.Errorf("embedded: directory %s can't be opened: %w", d.path, err)
	}
	return nil
}

// cantWrite reports whether err says that a file system takes no writes.
func cantWrite(err error) bool {
	return errors.Is(err, syscall.EROFS) || hasNoRoom(err)
}

// lockShared keeps writers out of a directory that can't be written. It returns
// fs.ErrNotExist where there is no store.
func (d directory) lockShared() (io.Closer, error) {
	if _, err := d.fs.Stat(d.file(manifestName)); err != nil {
		return nil, err
	}
	if vfs.Root(d.fs) != vfs.Default {
		return d.fs.Open(d.file(manifestName))
	}
	lock, err := lockFileShared(d.file(lockName))
	if errors.Is(err, fs.ErrNotExist) {
		// Whoever writes has made that file.
		lock, err = io.NopCloser(nil), nil
	}
	if err != nil {
		return nil, err
	}
	return d.lockItself(lock, true)
}

// lockItself locks the directory beside its file LOCK, so that others stay out if somebody removes that
// file. It returns a lock of both, and closes the one of the file if that fails.
func (d directory) lockItself(file io.Closer, shared bool) (io.Closer, error) {
	if vfs.Root(d.fs) != vfs.Default {
		return file, nil
	}
	itself, err := lockPath(d.path, shared)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return bothLocks{itself, file}, nil
}

// bothLocks are those of a directory and of a file in it.
type bothLocks [2]io.Closer

// Close implements io.Closer.
func (b bothLocks) Close() error { return errors.Join(b[0].Close(), b[1].Close()) }

var errLocked = errors.New("the directory is locked")
