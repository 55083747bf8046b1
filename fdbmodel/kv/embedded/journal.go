package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// durability is what keeps batches of commits beyond the life of the process.
type durability interface {
	// recover puts back what was kept, before anything else is called.
	recover(into *loader) error
	// persist hands over the next batch, and notes in it where it lies. Its body may
	// be reused at once.
	persist(b *commitBatch) error
	// wait returns when everything that was handed over will survive.
	wait() error
}

var _ durability = (*journal)(nil)

// journal is a log in a directory, and the checkpoint that it begins at.
// After an error it takes nothing more.
type journal struct {
	dir         directory
	segmentSize int64
	acceptLoss  uint64
	store       storeID
	log         *slog.Logger

	// logBytes is the size of the log that recovery would read.
	logBytes atomic.Int64
	latency  latencies

	mu       sync.Mutex
	manifest *manifest
	// current is nil before begin, and nextFile is only used until then.
	current  *segment
	nextFile uint64
	tail     tail
	broken   error
	// known is what was synced before the store was opened, whether it can be
	// read or not.
	known attestation
	// mark is nil until the log begins, and where it can't be written.
	mark       vfs.File
	markWarned bool
	// opening is the version that the store was opened at.
	opening kv.Version
	// next is the number of the next record, durable that of the last synced
	// one, and attested that of the last of which a synced record says so.
	next, durable, attested uint64
	version                 kv.Version
	// sizes are those of the segments before the current one, and closed their
	// sum.
	sizes  map[uint64]int64
	closed int64
	// ends are the last versions of the segments before the current one.
	ends map[uint64]kv.Version
	// rotateAt is the size at which the current segment ends.
	rotateAt int64
}

// persist implements durability.
func (j *journal) persist(b *commitBatch) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.append(b.last, b.body); err != nil {
		return err
	}
	var err error
	b.file = j.manifest.Segments[len(j.manifest.Segments)-1].File
	b.place, err = j.current.records.LastRecordOffset()
	return err
}

func (j *journal) append(version kv.Version, body []byte) error {
	if j.broken != nil {
		return j.broken
	}
	if j.current.size() >= j.rotateAt {
		if err := j.rotate(); j.broken == nil && mayWait(err) {
			j.rotateAt = j.current.size() + j.segmentSize/shortageFraction
		} else if err != nil {
			return err
		}
	}
	h := header{store: j.store, seq: j.next, durable: j.durable, version: version}
	if err := j.current.append(h, body); err != nil {
		return j.fail(err)
	}
	j.next++
	j.version = version
	j.logBytes.Store(j.closed + j.current.size())
	return nil
}

// wait implements durability.
func (j *journal) wait() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sync()
}

func (j *journal) sync() error {
	if j.broken != nil {
		return j.broken
	}
	if j.next == j.durable+1 {
		return nil
	}
	start := time.Now()
	if err := j.current.sync(); err != nil {
		return j.fail(err)
	}
	j.latency.add(time.Since(start))
	j.attested, j.durable = j.durable, j.next-1
	j.writeMark()
	return nil
}

// attest writes an empty record, which says that everything before it was
// synced. Damage to the last commit is then told from a write that was cut
// off.
func (j *journal) attest() error {
	if err := j.append(j.version, nil); err != nil {
		return err
	}
	if err := j.sync(); err != nil {
		return err
	}
	j.attested = j.durable
	return nil
}

// idle is called when nothing was handed over for a while.
func (j *journal) idle() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil || j.attested == j.durable {
		return nil
	}
	return j.attest()
}

func (j *journal) fail(err error) error {
	j.broken = fmt.Errorf("writing the log in %s: %w", j.dir.path, err)
	return j.broken
}

// shortageFraction is the part of a segment that is written before the next
// attempt to rotate, after one that was postponed.
const shortageFraction = 16

// isShortage reports whether the process, or the system, has no file descriptor
// left for now.
func isShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// hasNoRoom reports whether a file system has no room left, or none for this user.
func hasNoRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// mayWait reports whether a rotation found no descriptor or no room: the old
// segment may still have some.
func mayWait(err error) bool { return isShortage(err) || hasNoRoom(err) }

// rotate seals the current segment and goes on in a new one. A shortage of file
// descriptors or of room is returned and leaves the current segment in use.
func (j *journal) rotate() error {
	if err := j.sync(); err != nil {
		return err
	}
	m := j.manifest.clone()
	m.Version = max(m.Version, j.version)
	m.Segments[len(m.Segments)-1].seal(j.next-1, j.current.written)
	number := m.NextFile
	m.NextFile++
	m.Segments = append(m.Segments, segmentRange{File: number, First: j.next, Synced: j.next})
	// A segment without a record is damaged.
	head := header{store: j.store, seq: j.next, durable: j.next - 1, version: j.version}
	fresh, err := createSegment(j.dir, number, j.segmentSize, func(s *segment) error { return s.append(head, nil) })
	if mayWait(err) {
		return err
	}
	if err != nil {
		return j.fail(err)
	}
	if err := j.dir.install(m); err != nil {
		postponed := mayWait(err) && !errors.Is(err, errInstall)
		if err = errors.Join(err, fresh.file.Close()); postponed {
			return err
		}
		return j.fail(err)
	}
	j.sizes[m.Segments[len(m.Segments)-2].File] = j.current.size()
	j.ends[m.Segments[len(m.Segments)-2].File] = j.version
	if err := j.current.file.Close(); err != nil {
		return j.fail(errors.Join(err, fresh.file.Close()))
	}
	j.manifest, j.current, j.rotateAt = m, fresh, j.segmentSize
	j.openMark()
	j.measure()
	j.durable, j.attested = j.next, j.next
	j.next++
	return nil
}

// beginCheckpoint lets the log go on in a new segment. It returns the number of the file to
// write, and the last version before that segment.
func (j *journal) beginCheckpoint() (file uint64, before kv.Version, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return 0, 0, j.broken
	}
	if err := j.rotate(); err != nil {
		return 0, 0, err
	}
	return j.newFile(), j.version, nil
}

// newFile returns the number of a file that can be written.
func (j *journal) newFile() uint64 {
	file := j.manifest.NextFile
	j.manifest.NextFile++
	return file
}

// installCheckpoint makes recovery begin at a checkpoint: a table more, if anything has
// changed, and the log after the version through. It returns the first segment that is
// left, and the names of the files that are no longer needed.
func (j *journal) installCheckpoint(t *table, through kv.Version) (firstLog uint64, obsolete []string, err error) {
	obsolete, err = j.replace(func(m *manifest) {
		if m.Through = through; t != nil {
			m.Tables = append(m.Tables, t.tableFile)
		}
		m.Until = j.durable
		m.Segments[len(m.Segments)-1].Synced = j.durable
		for len(m.Segments) > 1 && j.ends[m.Segments[0].File] <= through {
			m.Segments = m.Segments[1:]
		}
		firstLog = m.Segments[0].File
	})
	return firstLog, obsolete, err
}

// replace installs a manifest that is changed, and returns the names of the files that it
// has no more.
func (j *journal) replace(change func(*manifest)) (obsolete []string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return nil, j.broken
	}
	before := j.manifest.files()
	m := j.manifest.clone()
	change(m)
	if err := j.dir.install(m); err != nil {
		if errors.Is(err, errInstall) {
			return nil, j.fail(err)
		}
		return nil, err
	}
	j.manifest = m
	after := m.files()
	for name := range before {
		if !after[name] {
			obsolete = append(obsolete, name)
		}
	}
	j.measure()
	return obsolete, nil
}

// remove removes files that the manifest has no more. One that stays is removed by the next
// opening.
func (j *journal) remove(names []string) {
	slices.Sort(names)
	for _, name := range names {
		if err := j.dir.fs.Remove(j.dir.file(name)); err != nil {
			j.log.Warn("obsolete file can't be removed", "error", err)
		}
	}
}

// measure determines the size of the log again.
func (j *journal) measure() {
	size := int64(0)
	for _, s := range j.manifest.Segments {
		size += j.sizes[s.File]
	}
	j.closed = size
	if j.current != nil {
		size += j.current.size()
	}
	j.logBytes.Store(size)
}

// close ends the log in a state that recovers without a doubt. It returns what has broken the log before.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.current == nil {
		j.broken = cmp.Or(j.broken, kv.ErrClosed)
		return j.closeMark()
	}
	err := j.broken
	if err == nil {
		err = j.seal()
	}
	err = errors.Join(err, j.current.file.Close(), j.closeMark())
	j.current = nil
	j.broken = cmp.Or(j.broken, kv.ErrClosed)
	return err
}

// segments returns how many files the log has.
func (j *journal) segments() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.manifest.Segments)
}

// latencies remembers the last durations of syncs.
type latencies struct {
	mu   sync.Mutex
	ring [256]time.Duration
	n    int
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring[l.n%len(l.ring)] = d
	l.n++
}

// median returns the median of the last durations, and how many syncs there
// ever were.
func (l *latencies) median() (time.Duration, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := slices.Clone(l.ring[:min(l.n, len(l.ring))])
	if len(last) == 0 {
		return 0, 0
	}
	slices.Sort(last)
	return last[len(last)/2], l.n
}
