package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// tailFraction is the part of a segment up to which a new opening continues a segment by
// copying it.
const tailFraction = 64

// tail is what the next segment repeats of the last one, which was read at the
// opening. It is never read again for that: the file may have been read from the
// system's cache, and the disk may hold something else.
type tail struct {
	records []tailRecord
	bytes   int64
	// limit is how many bytes of records that are known to be synced are kept.
	limit int64
	// synced is the last record that is known to be.
	synced uint64
}

type tailRecord struct {
	header header
	body   []byte
}

// add keeps a record. Of what is larger than the limit only the records stay
// that may not have been synced.
func (t *tail) add(h header, body []byte) {
	t.synced = max(t.synced, h.durable)
	t.records = append(t.records, tailRecord{header: h, body: append([]byte(nil), body...)})
	t.bytes += int64(headerSize + len(body))
	if t.bytes <= t.limit {
		return
	}
	n := 0
	for ; n < len(t.records) && t.records[n].header.seq <= t.synced; n++ {
		t.bytes -= int64(headerSize + len(t.records[n].body))
		t.records[n].body = nil
	}
	t.records = t.records[n:]
}

// begin makes the log ready to be written, in a new segment that repeats the end
// of the last one. Nothing was written before; after an error it can be called
// again, and takes the same name for the segment unless the manifest may have it.
func (j *journal) begin() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.current != nil || j.broken != nil {
		return j.broken
	}
	number := j.nextFile
	fresh, err := createSegment(j.dir, number, j.segmentSize, func(s *segment) error {
		for _, r := range j.tail.records {
			if err := s.append(r.header, r.body); err != nil {
				return err
			}
		}
		return s.append(header{store: j.store, seq: j.next, durable: j.next - 1, version: j.opening}, nil)
	})
	if err != nil {
		return fmt.Errorf("the next file of the log can't be written: %w", err)
	}
	j.openMark()
	m := j.continued(number)
	if err := j.dir.install(m); err != nil {
		err = errors.Join(err, fresh.file.Close())
		if !errors.Is(err, errInstall) {
			err = errors.Join(err, j.dir.fs.Remove(j.dir.file(segmentName(number))))
		} else {
			j.nextFile++
		}
		return fmt.Errorf("the manifest can't be written: %w", err)
	}
	j.manifest, j.current, j.rotateAt = m, fresh, j.segmentSize
	j.version = j.opening
	j.durable, j.attested = j.next, j.next
	j.next++
	j.tail = tail{}
	j.sweep()
	j.measure()
	return nil
}

// continued returns the manifest with which the log goes on in a new segment. The
// last one goes if the new one has all of it, and ends before what the new one
// has of it otherwise.
func (j *journal) continued(number uint64) *manifest {
	m := j.manifest.clone()
	m.Format, m.Version, m.NextFile = formatVersion, j.opening, number+1
	first := j.next
	if len(j.tail.records) > 0 {
		first = j.tail.records[0].header.seq
	}
	if n := len(m.Segments); n > 0 {
		if last := &m.Segments[n-1]; first <= last.First {
			m.Segments = m.Segments[:n-1]
		} else if !last.Sealed || last.Last >= first {
			*last = segmentRange{File: last.File, First: last.First, Last: first - 1, Sealed: true}
		}
	}
	m.Segments = append(m.Segments, segmentRange{File: number, First: first, Synced: j.next})
	return m
}

// sweep removes files that are no part of the store: what was replaced, and what
// a crash left. It may not fail: the next opening tries again.
func (j *journal) sweep() {
	names, err := j.dir.fs.List(j.dir.path)
	if err != nil {
		j.log.Warn("obsolete files can't be listed", "error", err)
	}
	mine := j.manifest.files()
	for _, name := range names {
		ours := strings.HasSuffix(name, segmentSuffix) || strings.HasSuffix(name, rowsSuffix) || name == manifestNewName
		if ours && !mine[name] {
			if err := j.dir.fs.Remove(j.dir.file(name)); err != nil {
				j.log.Warn("obsolete file can't be removed", "error", err)
			}
		}
	}
}

// seal records where the log ends, so that the next opening can tell damage from
// a write that was cut off.
func (j *journal) seal() error {
	if err := j.sync(); err != nil {
		return err
	}
	m := j.manifest.clone()
	m.Version = max(m.Version, j.version)
	m.Segments[len(m.Segments)-1].seal(j.next-1, j.current.written)
	if err := j.dir.install(m); err != nil {
		j.log.Warn("the end of the log can't be recorded: everything is in it, but damage to its last record would look "+
			"like a write that was cut off", "error", err)
		return nil
	}
	j.manifest = m
	return nil
}

// beginLog makes the store ready to be written, before its first commit. Until
// then it has written nothing, unless it was not closed the last time. After an
// error, which is kv.ErrReadOnly or, if it may soon pass, kv.ErrUnavailable, the
// store can be read, and the next commit tries again, or one of the next where there is no room. Where the directory
// could not be locked to be written, all fail until it is opened again.
func (s *Store) beginLog() error {
	d := s.disk
	if d.begun.Load() {
		return nil
	}
	d.beginLock.Lock()
	defer d.beginLock.Unlock()
	if d.begun.Load() {
		return nil
	}
	if err := s.Err(); err != nil {
		return err
	}
	if said := d.unwritable.Load(); said != nil && d.full.lasts(s) {
		return *said
	}
	err := d.readOnly
	if err == nil {
		err = d.journal.begin()
	}
	d.full.note(s, err)
	switch {
	case err == nil:
	case s.Err() != nil:
		return s.Err()
	case isShortage(err):
		return fmt.Errorf("%w: %s: %w%s", kv.ErrUnavailable, d.journal.dir.path, err, wayOut(err))
	default:
		way := wayOut(err)
		if d.readOnly != nil {
			way += "; then open the store again, which is locked for reading"
		}
		err = fmt.Errorf("%w: %s: %w%s", kv.ErrReadOnly, d.journal.dir.path, err, way)
		d.unwritable.Store(&err)
		return err
	}
	d.unwritable.Store(nil)
	if s.worthTrimming() {
		if err := s.checkpoint(context.Background(), 0); err != nil && s.Err() == nil {
			s.options.Logger.Warn("checkpoint failed", "error", err)
		}
	}
	d.begun.Store(true)
	s.mergeSoon(context.Background())
	return nil
}

// fullPause is for how long a file system counts as full on which the log found no room, unless more is free than then.
const fullPause = time.Second

// fullness is that the log found no room to begin. The lock of the beginning guards it.
type fullness struct {
	since time.Time
	free  uint64
	known bool // free is
}

// note takes note of what an attempt to begin the log came to.
func (f *fullness) note(s *Store, err error) {
	if *f = (fullness{}); hasNoRoom(err) {
		f.since = s.options.Clock.Now()
		f.free, f.known = s.freeBytes()
	}
}

// lasts reports whether another attempt would be in vain.
func (f *fullness) lasts(s *Store) bool {
	if f.since.IsZero() {
		return false
	}
	if age := s.options.Clock.Now().Sub(f.since); age < 0 || age >= fullPause {
		return false
	}
	free, known := s.freeBytes()
	return !known || !f.known || free <= f.free
}

// freeBytes is what is free for this user of the file system of the directory, false where that is not known.
func (s *Store) freeBytes() (uint64, bool) {
	usage, err := s.options.FS.GetDiskUsage(s.disk.journal.dir.path)
	return usage.AvailBytes, err == nil
}

// trimFraction is the part of Options.CheckpointBytes that the log may have, if it
// is also twice as large as the rows, before an opening that commits replaces it
// by a checkpoint; an eighth of them may be the rows, so that this takes no time
// worth speaking of. Otherwise many short openings would each read a log that is
// mostly obsolete.
const trimFraction = 64

func (s *Store) worthTrimming() bool {
	rows := s.index.bytes()
	return s.disk.journal.logBytes.Load() > max(s.options.CheckpointBytes/trimFraction, 2*rows) &&
		rows <= s.options.CheckpointBytes/8
}

// wayOut says what to do about an error that keeps a store from being written.
func wayOut(err error) string {
	switch {
	case isShortage(err):
		return ": let it have more files open, as by ulimit -n; what only reads still works"
	case hasNoRoom(err):
		return ": free some space; what only reads still works"
	case errors.Is(err, syscall.EROFS):
		return ": mount it writable; what only reads still works"
	case errors.Is(err, fs.ErrPermission):
		return ": check its owner and mode; what only reads still works"
	}
	return ""
}
