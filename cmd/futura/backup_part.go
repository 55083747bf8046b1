package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// partMark stands between the name of a backup and digits, in the name that its file has until it is complete.
const partMark = ".part-"

// createPart makes the file of a backup that is to have a name once it is complete, and locks it until it is closed.
// Before, it removes what backups of this name have left whose processes were killed.
func createPart(name string) (*os.File, error) {
	dir, prefix := filepath.Dir(name), filepath.Base(name)+partMark
	removeParts(dir, prefix)
	for {
		f, err := os.CreateTemp(dir, prefix)
		if err != nil {
			return nil, err
		}
		failed := lockFile(f)
		if failed == nil && isAt(f, f.Name()) {
			return f, nil
		}
		// Another backup may have taken it for one that was left, before it was locked.
		if errors.Is(failed, errWritten) {
			failed = nil
		}
		if err := errors.Join(failed, f.Close()); err != nil {
			return nil, errors.Join(err, os.Remove(f.Name()))
		}
	}
}

// isAt reports whether a name is that of an open file.
func isAt(f *os.File, name string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(name)
	return err == nil && os.SameFile(opened, there)
}

// removeParts removes files in a directory whose names are a prefix and digits, and that nobody writes. Where files
// have no locks it removes none. A failure is no obstacle to a backup.
func removeParts(dir, prefix string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		digits, found := strings.CutPrefix(entry.Name(), prefix)
		if !found || digits == "" || strings.Trim(digits, "0123456789") != "" || !entry.Type().IsRegular() {
			continue
		}
		name := filepath.Join(dir, entry.Name())
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if takesLock(f) && isAt(f, name) {
			_ = os.Remove(name)
		}
		_ = f.Close()
	}
}
