package peerworker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/internal/clock"
)

// spool is a large value, in a file of the machine's directory for such. One goroutine
// writes it; then any number may read it.
type spool struct {
	file *os.File
	size int64
	hash hash.Hash
}

func newSpool() (*spool, error) {
	file, err := os.CreateTemp("", "futura-peer-*")
	if err != nil {
		return nil, fmt.Errorf("a place for a large value: %w", err)
	}
	// Where an open file can have no name, nothing is left of it after a crash.
	_ = os.Remove(file.Name())
	return &spool{file: file, hash: sha256.New()}, nil
}

// spooled returns a spool with a value, nil if there is no room for one.
func spooled(value []byte) *spool {
	s, err := newSpool()
	if err == nil {
		if _, err = s.Write(value); err != nil {
			s.close()
		}
	}
	if err != nil {
		return nil
	}
	return s
}

// Write implements io.Writer.
func (s *spool) Write(p []byte) (int, error) {
	n, err := s.file.WriteAt(p, s.size)
	_, _ = s.hash.Write(p[:n]) // never fails
	s.size += int64(n)
	return n, err
}

// sum is the hash of what is written.
func (s *spool) sum() [sha256.Size]byte { return [sha256.Size]byte(s.hash.Sum(nil)) }

// reader returns what is written.
func (s *spool) reader() *io.SectionReader { return io.NewSectionReader(s.file, 0, s.size) }

func (s *spool) close() {
	_ = s.file.Close() // it is not read again
	_ = os.Remove(s.file.Name())
}

// store makes what was written a module of a cluster.
func (s *spool) store(ctx context.Context, c *fdbmodel.Cluster, cid string) error {
	upload := modules.Of(c).Upload(ctx, cid)
	if _, err := io.Copy(upload, s.reader()); err != nil {
		return err
	}
	_, err := upload.End()
	return err
}

// Bounds of modules that were cut off.
const (
	maxSpools = 8
	spoolFor  = 10 * time.Minute
)

// spools are modules of which some has come, for the next order to fetch them.
type spools struct {
	clock clock.Clock

	mu sync.Mutex
	by map[blobName]cutSpool
}

type cutSpool struct {
	*spool
	at time.Time
}

// take returns what has come of a module, or an empty spool, for the caller to close or to
// put back.
func (s *spools) take(name blobName) (*spool, error) {
	s.mu.Lock()
	cut, found := s.by[name]
	delete(s.by, name)
	s.mu.Unlock()
	if found {
		return cut.spool, nil
	}
	return newSpool()
}

// put keeps what has come, instead of the oldest if there are too many.
func (s *spools) put(name blobName, one *spool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, twice := s.by[name]; twice {
		before.close()
	}
	s.by[name] = cutSpool{one, s.clock.Now()}
	oldest := name
	for n, other := range s.by {
		if other.at.Before(s.by[oldest].at) {
			oldest = n
		}
	}
	if len(s.by) > maxSpools {
		s.by[oldest].close()
		delete(s.by, oldest)
	}
}

// tidy gives up what no order has asked for within spoolFor.
func (s *spools) tidy() {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, one := range s.by {
		if now.Sub(one.at) >= spoolFor {
			one.close()
			delete(s.by, name)
		}
	}
}

func (s *spools) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.by {
		one.close()
	}
	clear(s.by)
}

// isFinal reports whether what has come of a module is of no use.
func isFinal(err error) bool { return errors.Is(err, ErrContent) || errors.Is(err, ErrTooLarge) }
