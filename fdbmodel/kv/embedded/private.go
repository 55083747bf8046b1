package embedded

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/trust"
)

// privateFS creates files that only this user may read.
type privateFS struct{ vfs.FS }

const privateMode = 0o600

// Unwrap returns the file system below.
func (p privateFS) Unwrap() vfs.FS { return p.FS }

// Create implements vfs.FS.
func (p privateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	// The file is there with its mode before the file system below opens it.
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, privateMode)
	if os.IsExist(err) {
		if err = p.Remove(name); err == nil {
			f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, privateMode)
		}
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, err
	}
	return p.OpenReadWrite(name, category)
}

// Lock implements vfs.FS. A file that is there is not opened first: when a process closes a
// file, it loses the locks that it has on it.
func (p privateFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, privateMode)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !os.IsExist(err) {
		return nil, err
	}
	return p.FS.Lock(name)
}

// guard refuses a directory whose files other users can change, unless it is
// exposed by choice, and files that lead out of it. It takes the files away from other
// users.
func guard(dir string, exposed bool) error {
	if err := trust.Directory(dir); err != nil && !exposed {
		return fmt.Errorf("embedded: %w: %w; or accept that with embedded:DIR?exposed=on", kv.ErrExposed, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("embedded: directory %s can't be read: %w", dir, err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if !isOurs(name) {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			continue // it has gone since
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("embedded: %w: %s is not a file, but %s: a store's files lie in its own directory",
				kv.ErrExposed, filepath.Join(dir, name), info.Mode().Type())
		}
		if info.Mode().Perm()&^privateMode != 0 && !exposed {
			// One that can't be changed belongs to another user, who shares it.
			_ = os.Chmod(filepath.Join(dir, name), privateMode)
		}
	}
	return nil
}

// isOurs reports whether a name is that of a file of the store.
func isOurs(name string) bool {
	switch filepath.Ext(name) {
	case segmentSuffix, rowsSuffix:
		return true
	}
	return name == manifestName || name == manifestNewName || name == lockName || name == markName || name == coldName
}
