package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/console"
	"github.com/futura-run/futura/internal/wording"
	"github.com/futura-run/futura/workers/objects"
)

// barFrom is the size of the smallest transfer that has a bar, in bytes.
const barFrom = 4 << 20

// writeResult writes the bytes of a result to a file.
func (a *app) writeResult(ctx context.Context, c *futures.Client, id futures.ID, file string) error {
	row, err := c.Cluster().Get(ctx, id)
	if err != nil {
		return err
	}
	switch ending := row.Ending(); {
	case !ending.Over() && row.Attempts.Rebuilt > 0:
		fmt.Fprintf(a.err, "futura: the result of %s was lost with its worker, and is made again; waiting for it\n", id)
	case !ending.Over():
		return lateError{fmt.Sprintf("future %s has no result: it is %s. Wait for it with futura await %s", id, ending.State,
			id)}
	case ending.Result == nil:
		return fmt.Errorf("%w: %s has no result (%s): %s", futures.ErrFailed, id, ending.Failure.Kind,
			ending.Failure.Message)
	}
	hint := time.NewTimer(patience)
	defer hint.Stop()
	defer a.explainMeanwhile(ctx, c, id, hint.C)()
	s, err := c.Future(id).Open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if file == "-" {
		_, err := s.WriteTo(a.out)
		return err
	}
	if err := a.saveStream(s, file); err != nil {
		return err
	}
	return a.say(map[string]any{"id": id, "file": file, "bytes": s.Size()}, wording.Count(s.Size(), "byte"), "in", file)
}

// saveStream writes a stream to a file, which has its name once it is whole.
func (a *app) saveStream(s *futures.Stream, file string) error {
	at := file
	if target, err := filepath.EvalSymlinks(file); err == nil {
		at = target
	}
	if info, err := os.Stat(at); err == nil && info.IsDir() {
		return usageError{fmt.Errorf("--output %s is a directory: name a file", file)}
	} else if err == nil && !info.Mode().IsRegular() {
		return a.writeStream(s, at)
	}
	// Named by the content: what another call has left is of the same.
	part := filepath.Join(filepath.Dir(at), fmt.Sprintf(".%s.%.16s.part", filepath.Base(at), s.Tag()))
	f, err := openPart(part)
	switch {
	case errors.Is(err, errWritten):
		return usageError{fmt.Errorf("--output %s: %w: wait for it, or name another file", file, err)}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return usageError{fmt.Errorf("--output %s: %w", file, err)}
	case err != nil:
		return err
	}
	defer f.Close() // it is written; this releases the lock
	if err := a.fillFile(s, f); err != nil {
		info, failed := f.Stat()
		if s.Size() < barFrom || errors.Is(err, objects.ErrDamaged) || failed == nil && info.Size() == 0 {
			return errors.Join(err, os.Remove(part))
		}
		return fmt.Errorf("%w (call it again to go on; what has arrived is in %s)", err, part)
	}
	return os.Rename(part, at)
}

// errWritten is returned for a file that another process writes.
var errWritten = errors.New("another process writes it")

// openPart opens the unfinished file, which no other call may write meanwhile.
func openPart(part string) (*os.File, error) {
	for {
		f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		if err := lockFile(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		// Another call may have finished it, and named it FILE, before it was locked.
		if isAt(f, part) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// writeStream writes to what is no regular file, such as a pipe.
func (a *app) writeStream(s *futures.Stream, file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = s.WriteTo(f)
	return errors.Join(err, f.Close())
}

// fillFile appends to a file what it lacks of a stream, and syncs it.
func (a *app) fillFile(s *futures.Stream, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	have := info.Size() / objects.PieceSize * objects.PieceSize
	if _, err := objects.ParseHash(s.Tag()); err != nil || have > s.Size() {
		have = 0 // what is there could not be verified
	}
	if err := f.Truncate(have); err != nil {
		return err
	}
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return err
	}
	if _, err := s.Seek(have, io.SeekStart); err != nil {
		return err
	}
	var to io.Writer = f
	if bar := a.transferBar("get", s.Size()); bar != nil {
		_ = bar.Set64(have)
		defer bar.Clear()
		to = io.MultiWriter(f, bar)
	}
	if _, err := s.WriteTo(to); err != nil {
		return err
	}
	if have > 0 {
		if err := verifyFile(f, s.Tag()); err != nil {
			return err
		}
	}
	return f.Sync()
}

// verifyFile returns ErrDamaged for a file that does not have the content of an
// object: what another call had left was not of it.
func verifyFile(f *os.File, hash string) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	from, buffer := bufio.NewReader(f), make([]byte, objects.PieceSize)
	var pieces []objects.Hash
	var size int64
	for ended := false; !ended; {
		n, last, err := objects.ReadPiece(from, buffer)
		if err != nil {
			return err
		}
		if ended = last; n > 0 {
			pieces, size = append(pieces, objects.HashPiece(buffer[:n])), size+int64(n)
		}
	}
	if got := objects.RefOf(size, pieces).Hash.String(); got != hash {
		return fmt.Errorf("%w: %s was changed since an interrupted call left it; call it again", objects.ErrDamaged, f.Name())
	}
	return nil
}

// transferBar is a bar for bytes, on a terminal only, and nil for a few. The size is
// -1 if it is not known.
func (a *app) transferBar(what string, size int64) *progressbar.ProgressBar {
	if size >= 0 && size < barFrom {
		return nil
	}
	return console.Transfer(a.err, what, size)
}
