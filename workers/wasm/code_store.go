package wasm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// codeStore keeps compiled code in a directory that this process alone writes.
// Its methods may be called from many goroutines, and processes may share the
// directory.
type codeStore struct {
	dir string
	// most is how many bytes are kept; what was used least recently goes first.
	most int64
}

// A file of code is this mark, the name of the code, its SHA-256, and the code.
var codeMark = []byte("futura code 1\n")

const codeSuffix = ".code"

// newCodeStore makes the directory for this version of the engine below dir.
func newCodeStore(dir string, most int64) (*codeStore, error) {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/tetratelabs/wazero" {
				version = module.Version
			}
		}
	}
	path := filepath.Join(dir, fmt.Sprintf("code-%s-%s-%s", version, runtime.GOOS, runtime.GOARCH))
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("wasm: directory for compiled code: %w", err)
	}
	return &codeStore{dir: path, most: most}, nil
}

func (s *codeStore) path(module [sha256.Size]byte) string {
	return filepath.Join(s.dir, hex.EncodeToString(module[:])+codeSuffix)
}

// get returns the code of a module by the module's SHA-256, and false if it is not
// there or damaged.
func (s *codeStore) get(module [sha256.Size]byte) (c machineCode, ok bool) {
	path := s.path(module)
	content, err := os.ReadFile(path)
	if err != nil {
		return c, false
	}
	content, marked := bytes.CutPrefix(content, codeMark)
	if !marked || len(content) < 2*sha256.Size {
		return c, false
	}
	c = machineCode{[sha256.Size]byte(content), content[2*sha256.Size:]}
	if sha256.Sum256(c.bytes) != [sha256.Size]byte(content[sha256.Size:]) {
		return machineCode{}, false
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // it only decides what goes first
	return c, true
}

// drop removes the code of a module.
func (s *codeStore) drop(module [sha256.Size]byte) error {
	if err := os.Remove(s.path(module)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("wasm: removing compiled code: %w", err)
	}
	return nil
}

// put keeps the code of a module.
func (s *codeStore) put(module [sha256.Size]byte, c machineCode) (err error) {
	f, err := os.CreateTemp(s.dir, "*.tmp") // mode 0600
	if err != nil {
		return fmt.Errorf("wasm: keeping compiled code: %w", err)
	}
	sum := sha256.Sum256(c.bytes)
	for _, part := range [][]byte{codeMark, c.name[:], sum[:], c.bytes} {
		if err == nil {
			_, err = f.Write(part)
		}
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), s.path(module))
	}
	if err != nil {
		return fmt.Errorf("wasm: keeping compiled code: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return s.trim(s.path(module))
}

// abandonedAfter is when a file that was never finished belongs to no process any more.
const abandonedAfter = time.Hour

// trim removes what was used least recently, apart from keep, until the rest is
// within the bound.
func (s *codeStore) trim(keep string) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	size := int64(0)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			continue // another process has removed it
		}
		if filepath.Ext(info.Name()) != codeSuffix && time.Since(info.ModTime()) < abandonedAfter {
			continue
		}
		files = append(files, info)
		size += info.Size()
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range files {
		path := filepath.Join(s.dir, info.Name())
		if filepath.Ext(path) == codeSuffix && (size <= s.most || path == keep) {
			continue
		}
		size -= info.Size()
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
