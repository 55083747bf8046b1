package objects

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/futura-run/futura/internal/trust"
)

// filePrefix begins the names that files have for the moment before they lose
// them.
const filePrefix = ".futura-object-"

// file is a file without a name.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// punch gives back the disk's space of a range. It returns
	// errors.ErrUnsupported where the system can't.
	punch(offset, length int64) error
}

type diskFile struct{ *os.File }

// Close closes the file, and takes its name away where that could not be done
// before.
func (f diskFile) Close() error {
	err := f.File.Close()
	if !removesOpen {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

func (f diskFile) punch(offset, length int64) error { return punchHole(f.File, offset, length) }

// prepareDir makes the directory of a store, and removes the files that crashed
// processes left in it.
func prepareDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("objects: %w", err)
	}
	if err := trust.Directory(dir); err != nil {
		return fmt.Errorf("objects: %w", err)
	}
	return sweep(dir)
}

// sweep removes files that still have a name. Those of living processes don't
// need theirs; where the system can't remove open files, they stay.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("objects: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), filePrefix) && entry.Type().IsRegular() {
			_ = os.Remove(filepath.Join(dir, entry.Name())) // another process was faster, or has it open
		}
	}
	return nil
}

// createNamed makes a file and takes its name away at once, where the system can.
func createNamed(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, filePrefix)
	if err != nil {
		return nil, err
	}
	// Another store may have swept it; a system that removes no open file leaves
	// it to the next sweep.
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, os.ErrNotExist) && removesOpen {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
