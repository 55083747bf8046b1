//go:build !linux

package objects

import (
	"errors"
	"os"
	"runtime"
)

// removesOpen is whether a file can lose its name while it is open.
const removesOpen = runtime.GOOS != "windows"

// descriptors is what the least of the common systems allows.
func descriptors() int { return 256 }

func createNameless(dir string) (file, error) {
	f, err := createNamed(dir)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

func punchHole(*os.File, int64, int64) error { return errors.ErrUnsupported }

func available(string) (left, total int64, known bool) { return 0, 0, false }

// Elsewhere objects in memory are on the heap, and other processes get a copy.

func createMemory() (*os.File, error) { return nil, errors.ErrUnsupported }

func seal(*os.File) error { return errors.ErrUnsupported }

func isSealed(*os.File, int64) error { return errors.ErrUnsupported }

func mapFile(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) error { return errors.ErrUnsupported }
