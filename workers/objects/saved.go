package objects

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// savedPrefix begins the names of directories with objects that outlive their process.
	savedPrefix = "futura-kept-"
	// savedList is the file that names them. It comes last: without it the directory is torn.
	savedList = "list.json"
	// A directory without a list is removed after tornAfter: before, it may be on its way.
	// One of whose objects none is wanted, as by a worker of another store, goes after staleAfter.
	tornAfter  = time.Hour
	staleAfter = 7 * 24 * time.Hour
	// maxSavedList bounds a list, in bytes.
	maxSavedList = 64 << 20
)

// Saved is an object that outlives its process, with what its owner calls it.
type Saved struct {
	Owner string `json:"owner"`
	Hash  string `json:"object"`
	Size  int64  `json:"bytes"`
}

// Save writes objects to a new directory in Dir, synced, where Restore finds them under the
// same realm. It returns those that it has saved, and why it has not saved others: one that
// the disk has no room for costs no other.
func (s *Store) Save(ctx context.Context, realm string, objects []Saved) (saved []Saved, err error) {
	dir, err := os.MkdirTemp(s.options.Dir, savedPrefix)
	if err != nil {
		return nil, fmt.Errorf("objects: %w", err)
	}
	var failed []error
	for i := range objects {
		if err := s.saveOne(ctx, dir, &objects[i]); err != nil {
			failed = append(failed, err)
			continue
		}
		saved = append(saved, objects[i])
	}
	if err := errors.Join(failed[:min(len(failed), 3)]...); len(saved) == 0 {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := writeSavedList(dir, savedObjects{realm, saved}); err != nil {
		return nil, errors.Join(fmt.Errorf("objects: save: %w", err), os.RemoveAll(dir))
	}
	return saved, errors.Join(errors.Join(failed[:min(len(failed), 3)]...), syncDir(s.options.Dir))
}

func writeSavedList(dir string, list savedObjects) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	whole := filepath.Join(dir, savedList)
	if err := writeSynced(whole+".part", func(f *os.File) error {
		_, err := f.Write(text)
		return err
	}); err != nil {
		return err
	}
	return errors.Join(os.Rename(whole+".part", whole), syncDir(dir))
}

type savedObjects struct {
	Realm   string  `json:"realm"`
	Objects []Saved `json:"objects"`
}

func (s *Store) saveOne(ctx context.Context, dir string, saved *Saved) error {
	hash, err := ParseHash(saved.Hash)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, hash.String())
	if _, err := os.Stat(path); err == nil {
		return nil // of another owner as well
	}
	o, err := s.Open(hash)
	if err != nil {
		return err
	}
	defer o.Close()
	return writeSynced(path, func(f *os.File) error {
		_, err := io.Copy(f, untilEnd{ctx, o})
		return err
	})
}

// untilEnd reads until its context ends.
type untilEnd struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (u untilEnd) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(p)
}

func writeSynced(path string, write func(*os.File) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // what is torn has another name by its content
	}
	return err
}

// Restore offers each object that was saved in Dir under a realm to take, which opens it if it
// wants it, and reports whether it is done with it: then it is removed. What take reads may
// be torn or other bytes: Put tells by the name. With an error of take it stops; a directory
// that can't be read costs no other one. Files of which none is opened are removed once they are a week old.
func Restore(dir, realm string, take func(Saved, func() (io.ReadCloser, error)) (done bool, err error)) error {
	found, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("objects: %w", err)
	}
	var failed []error
	for stopped := false; len(found) > 0 && !stopped; found = found[1:] {
		one := filepath.Join(dir, found[0].Name())
		if !strings.HasPrefix(found[0].Name(), savedPrefix) {
			continue
		}
		err := restoreOne(one, realm, func(s Saved, open func() (io.ReadCloser, error)) (bool, error) {
			done, err := take(s, open)
			stopped = err != nil
			return done, err
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("objects: restore %s: %w", one, err))
		}
	}
	return errors.Join(failed...)
}

func restoreOne(dir, realm string, take func(Saved, func() (io.ReadCloser, error)) (bool, error)) error {
	info, err := os.Stat(dir)
	if err != nil {
		return nil // another worker with this directory was faster
	}
	list, err := readSavedList(dir)
	torn, age := errors.Is(err, os.ErrNotExist), time.Since(info.ModTime())
	others := err == nil && list.Realm != realm
	switch {
	case torn && age > tornAfter, (others || err != nil) && age > staleAfter:
		return os.RemoveAll(dir)
	case torn, others:
		return nil
	case err != nil:
		return err
	}
	left, wanted := map[string]bool{}, false
	for _, saved := range list.Objects {
		hash, err := ParseHash(saved.Hash)
		if err != nil {
			continue
		}
		path := filepath.Join(dir, hash.String())
		done, err := take(saved, func() (io.ReadCloser, error) {
			wanted = true
			return os.Open(path)
		})
		if err != nil {
			return err
		}
		left[path] = left[path] || !done
	}
	kept := false
	for path, needed := range left {
		if kept = kept || needed; !needed {
			err = cmp.Or(err, os.Remove(path))
		}
	}
	if !kept || !wanted && age > staleAfter {
		return os.RemoveAll(dir)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func readSavedList(dir string) (list savedObjects, err error) {
	f, err := os.Open(filepath.Join(dir, savedList))
	if err != nil {
		return list, err
	}
	defer f.Close()
	return list, json.NewDecoder(io.LimitReader(f, maxSavedList)).Decode(&list)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
