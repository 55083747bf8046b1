package careless

import (
	"os"
	"path/filepath"
	"syscall"
)

// diskSize is that of the small disk, in bytes.
const diskSize = "24m"

// filler is the file that takes the rest of the small disk.
const filler = "filler"

// smallDisk mounts one, if that is allowed here. Else the limit on the size of
// files, which some commands are given, must do.
func (w *walk) smallDisk() string {
	dir := filepath.Join(w.dir, "small")
	w.must(os.Mkdir(dir, 0o700))
	if err := mount(dir); err != nil {
		w.t.Logf("no small disk (%v): only the size of files is limited", err)
		return ""
	}
	w.t.Cleanup(func() { _ = unmount(dir) })
	return dir
}

// fill fills the small disk, or frees it.
func (w *walk) fill() {
	for _, at := range w.worlds {
		if at.disk != "" {
			w.now = at
		}
	}
	switch {
	case w.now.disk == "":
		w.call()
	case w.now.full:
		w.free()
	default:
		w.sweep()
		w.note("fill the disk")
		w.now.full = true
		f, err := os.Create(filepath.Join(w.now.disk, filler))
		if err != nil {
			return // it is full already
		}
		defer f.Close()
		for block := make([]byte, 1<<16); len(block) > 0; {
			if _, err := f.Write(block); err != nil {
				block = block[:len(block)/2]
			}
		}
	}
}

// free frees the small disk.
func (w *walk) free() {
	w.note("free the disk")
	w.now.full = false
	_ = os.Remove(filepath.Join(w.now.disk, filler))
}

// shut is a pipe that nobody reads.
func (w *walk) shut() *os.File {
	r, f, err := os.Pipe()
	w.must(err)
	w.must(r.Close())
	return f
}

// fullFile is a device that takes nothing.
func (w *walk) fullFile() *os.File {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		return w.shut()
	}
	return f
}

// died reports whether a code is that of a process that a signal ended.
func died(code int) bool {
	return code > 128 && code != codeInterrupted && code < 128+int(syscall.SIGSYS)+1
}
