package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/futura-run/futura/fdbmodel/modules"
)

// Limits of an archive's content.
const (
	maxUnpacked = 256 << 20
	maxFiles    = 1000
	maxModules  = 64
)

// Module is a file of an archive that can be run.
type Module struct {
	// Method is its path in the archive.
	Method string
	Code   []byte
}

// magic is how a module begins.
const magic = "\x00asm"

// IsModule reports whether some bytes begin as a module does.
func IsModule(content []byte) bool { return bytes.HasPrefix(content, []byte(magic)) }

// Unpack calls fn with each module of a tar.gz, in its order. The archive holds
// at most 1,000 files and directories, 256 MiB of them unpacked, below its top, and
// at most 64 modules of up to modules.MaxSize each; other files than modules are
// passed over. It returns ErrArchive for any other archive, fn's errors, and those of m.
func Unpack(ctx context.Context, m Meter, archive []byte, fn func(Module) error) error {
	m = orNone(m)
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return badArchive("it is not gzip: %v", err)
	}
	files := tar.NewReader(io.LimitReader(zipped, maxUnpacked))
	found, left := 0, int64(maxUnpacked)
	for n := 0; ; n++ {
		if err := m.Work(ctx, int64(len(archive))); err != nil { // fn may have waited
			return err
		}
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return archiveError(err)
		}
		name, err := checkEntry(header)
		if err != nil {
			return err
		}
		if n == maxFiles {
			return badArchive("it has more than %d files", maxFiles)
		}
		if header.Typeflag == tar.TypeDir {
			continue
		}
		// A sparse file is larger than what is in the archive.
		if left -= header.Size; left < 0 {
			return badArchive("it unpacks to more than %d bytes", maxUnpacked)
		}
		code, err := readModule(ctx, m, files, header.Size)
		if err != nil {
			return fmt.Errorf("%.100q: %w", name, archiveError(err))
		}
		if code == nil {
			continue
		}
		if found++; found > maxModules {
			return badArchive("it has more than %d modules", maxModules)
		}
		if err := fn(Module{name, code}); err != nil {
			return fmt.Errorf("%.100q: %w", name, err)
		}
		m.Return(ctx, header.Size)
	}
	if found == 0 {
		return badArchive("it has no WASM module")
	}
	return nil
}

// checkEntry returns the clean name of an entry that may be in an archive.
func checkEntry(h *tar.Header) (string, error) {
	if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
		return "", badArchive("%.100q is neither a file nor a directory", h.Name)
	}
	name := path.Clean(h.Name)
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return "", badArchive("%.100q is a sparse file, which is larger than what is sent: pack it without holes", h.Name)
		}
	}
	switch {
	case path.IsAbs(name), name == "..", strings.HasPrefix(name, "../"), strings.ContainsAny(name, "\\\x00"):
		return "", badArchive("%.100q leads out of the archive", h.Name)
	case h.Typeflag == tar.TypeReg && name == ".":
		return "", badArchive("a file has no name")
	}
	return name, nil
}

// readModule returns a file if it is a module, nil for another.
func readModule(ctx context.Context, m Meter, file io.Reader, size int64) ([]byte, error) {
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(file, begin); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && size < int64(len(begin)) {
			return nil, nil
		}
		return nil, err
	}
	if !IsModule(begin) {
		return nil, nil
	}
	if size > modules.MaxSize {
		return nil, badArchive("a module of %d bytes: at most %d", size, int64(modules.MaxSize))
	}
	if err := m.Reserve(ctx, size); err != nil {
		return nil, notRead{err}
	}
	code := make([]byte, size)
	_, err := io.ReadFull(file, code[copy(code, begin):])
	return code, err
}

// notRead marks errors that say nothing about the archive.
type notRead struct{ error }

func (e notRead) Unwrap() error { return e.error }

func badArchive(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrArchive}, args...)...)
}

func archiveError(err error) error {
	var other notRead
	switch {
	case errors.As(err, &other):
		return other.error
	case errors.Is(err, ErrArchive), errors.Is(err, context.Canceled):
		return err
	default:
		return badArchive("%v", err)
	}
}
