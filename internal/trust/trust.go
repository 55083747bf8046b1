// Package trust tells whether others may read or change a file: other users of the
// machine, apart from root. On systems without Unix modes it trusts everything.
package trust

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrExposed is returned for what other users may read or change.
var ErrExposed = errors.New("open to other users")

// owner is the owner of a file.
type owner struct {
	id      uint32
	me      bool
	trusted bool
	// foreign are the bits of a mode that are for others.
	foreign os.FileMode
}

// Directory returns ErrExposed for a directory that another user owns or can
// write. Root and the user's own group are not others. A path that does not exist
// has the error of os.Stat.
func Directory(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	who := ownerOf(info)
	if !who.trusted {
		return fmt.Errorf("%w: directory %s belongs to user %d, this is user %d: use a directory of your own, or chown it",
			ErrExposed, path, who.id, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&who.foreign&0o022 != 0 {
		return fmt.Errorf("%w: others may write to directory %s (mode %04o): chmod go-w %[2]s", ErrExposed, path, mode)
	}
	return nil
}

// Secret returns ErrExposed for a file of this user that others may read or
// change. A file of another user is that user's to protect: a program often can't
// change what is mounted for it.
func Secret(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return secret(path, info)
}

func secret(path string, info os.FileInfo) error {
	if mode := info.Mode().Perm(); ownerOf(info).me && mode&0o077 != 0 {
		return fmt.Errorf("%w: others may read %s (mode %04o): chmod 600 %[2]s", ErrExposed, path, mode)
	}
	return nil
}

// ReadSecret returns a file of at most limit bytes, with the errors of Secret.
func ReadSecret(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err == nil {
		err = secret(path, info)
	}
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return content, err
}

// WriteSecret replaces the file at path by one that only this user may read. A reader sees one or
// the other whole.
func WriteSecret(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
