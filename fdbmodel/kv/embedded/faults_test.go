package embedded

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// faultFS is a file system whose syncs and writes a test can see and change.
type faultFS struct {
	vfs.FS
	// syncing is called instead of a sync, with the sync to do.
	syncing func(sync func() error) error
	// failing, where set, is the error of all writes and syncs.
	failing atomic.Pointer[error]
}

func (f *faultFS) fail(err error) { f.failing.Store(&err) }

func (f *faultFS) heal() { f.failing.Store(nil) }

func (f *faultFS) fault() error {
	if err := f.failing.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *faultFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	return f.wrap(f.FS.Create(name, c))
}

func (f *faultFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return f.wrap(f.FS.OpenReadWrite(name, c, o...))
}

func (f *faultFS) OpenDir(name string) (vfs.File, error) { return f.wrap(f.FS.OpenDir(name)) }

func (f *faultFS) wrap(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &faultFile{File: file, fs: f}, nil
}

type faultFile struct {
	vfs.File
	fs *faultFS
}

func (f *faultFile) Write(b []byte) (int, error) {
	if err := f.fs.fault(); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

func (f *faultFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.fs.fault(); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, at)
}

func (f *faultFile) Sync() error {
	if err := f.fs.fault(); err != nil {
		return err
	}
	if f.fs.syncing != nil {
		return f.fs.syncing(f.File.Sync)
	}
	return f.File.Sync()
}

func (f *faultFile) SyncData() error { return f.Sync() }
