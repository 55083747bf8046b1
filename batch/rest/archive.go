package rest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// Limits of an archive's content.
const (
	maxUnpacked = 256 << 20
	maxFiles    = 1000
	maxModules  = 64
)

// wasmMagic is how a module begins.
var wasmMagic = []byte("\x00asm")

// module is a file of an archive that can be run.
type module struct {
	method string
	code   []byte
}

// unpack calls fn with each module of a tar.gz, in its order. The archive holds
// files and directories, below its top; other files than modules are passed
// over.
func unpack(ctx context.Context, archive []byte, fn func(module) error) error {
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return badArchive("it is not gzip: %v", err)
	}
	files := tar.NewReader(io.LimitReader(zipped, maxUnpacked))
	found, left := 0, int64(maxUnpacked)
	for n := 0; ; n++ {
		if err := stack.Work(ctx, int64(len(archive))); err != nil { // fn may have waited
			return err
		}
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return unpackProblem(err)
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
		code, err := readModule(ctx, files, header.Size)
		if err != nil {
			return fmt.Errorf("%.100q: %w", name, unpackProblem(err))
		}
		if code == nil {
			continue
		}
		if found++; found > maxModules {
			return badArchive("it has more than %d modules", maxModules)
		}
		if err := fn(module{name, code}); err != nil {
			return fmt.Errorf("%.100q: %w", name, err)
		}
		stack.Return(ctx, header.Size)
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
func readModule(ctx context.Context, file io.Reader, size int64) ([]byte, error) {
	magic := make([]byte, len(wasmMagic))
	if _, err := io.ReadFull(file, magic); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && size < int64(len(magic)) {
			return nil, nil
		}
		return nil, err
	}
	if !bytes.Equal(magic, wasmMagic) {
		return nil, nil
	}
	if size > fdbmodel.MaxModule {
		return nil, badArchive("a module of %d bytes: at most %d", size, int64(fdbmodel.MaxModule))
	}
	if err := stack.Reserve(ctx, size); err != nil {
		return nil, err
	}
	code := make([]byte, size)
	_, err := io.ReadFull(file, code[copy(code, magic):])
	return code, err
}

func badArchive(format string, args ...any) error {
	return stack.NewProblem(http.StatusUnprocessableEntity, "bad_archive", nil,
		"the archive is refused: "+format, args...)
}

func unpackProblem(err error) error {
	var p *stack.Problem
	if errors.As(err, &p) || errors.Is(err, context.Canceled) {
		return err
	}
	return badArchive("%v", err)
}
