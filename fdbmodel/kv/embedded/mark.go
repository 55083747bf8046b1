package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

const markName = "SYNCED"

// mark is what the file SYNCED says: that the log was synced up to a record
// while a segment was written. It is written after each sync and before the
// commits are acknowledged, and never synced itself: a mark that is lost, cut
// off or old claims less than was synced, and none claims more.
type mark struct {
	segment uint64
	known   attestation
}

// attestation is a record that was synced, with all before it, and the last
// version that was known then.
type attestation struct {
	seq     uint64
	version kv.Version
}

func (a attestation) or(b attestation) attestation {
	return attestation{seq: max(a.seq, b.seq), version: max(a.version, b.version)}
}

// encode gives the mark the form of a header of the log.
func (m mark) encode(store storeID) [headerSize]byte {
	return header{store: store, seq: m.segment, durable: m.known.seq, version: m.known.version}.encode()
}

// readMark reads what was known to be synced. It is nothing where the file is
// not there, empty, cut off or of another store.
func (j *journal) readMark() (m mark, err error) {
	f, err := j.dir.fs.Open(j.dir.file(markName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := make([]byte, headerSize)
	n, err := io.ReadFull(f, b)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return m, fmt.Errorf("%s: %w", j.dir.file(markName), err)
	}
	h, ok := decodeHeader(b[:n], j.store)
	if !ok && leftover(b[:n]) > 0 {
		j.log.Warn("what was synced can't be told: the file is damaged, cut off or of another store, and is ignored",
			"file", j.dir.file(markName))
	}
	return mark{segment: h.seq, known: attestation{seq: h.durable, version: h.version}}, nil
}

// openMark makes the mark ready to be written. Without it the log is as safe.
func (j *journal) openMark() {
	if j.mark != nil {
		return
	}
	file, err := j.dir.openOrCreate(markName)
	if err != nil {
		j.warnMark(err)
		return
	}
	j.mark = file
}

// writeMark says that everything in the log was synced.
func (j *journal) writeMark() {
	if j.mark == nil {
		return
	}
	segment := j.manifest.Segments[len(j.manifest.Segments)-1].File
	b := mark{segment: segment, known: attestation{seq: j.durable, version: j.version}}.encode(j.store)
	if _, err := j.mark.WriteAt(b[:], 0); err != nil {
		j.warnMark(err)
	}
}

func (j *journal) warnMark(err error) {
	if !j.markWarned {
		j.markWarned = true
		j.log.Warn("what was synced can't be recorded: a log whose end is cut off may look like one that was never written",
			"file", j.dir.file(markName), "error", err)
	}
}

func (j *journal) closeMark() error {
	if j.mark == nil {
		return nil
	}
	err := j.mark.Close()
	j.mark = nil
	return err
}

// openOrCreate opens a file to be overwritten in place.
func (d directory) openOrCreate(name string) (vfs.File, error) {
	path := d.file(name)
	if _, err := d.fs.Stat(path); errors.Is(err, fs.ErrNotExist) {
		f, err := d.fs.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return d.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
}

// complete returns kv.ErrCorrupt if records are missing behind those that were
// read, although they were synced, unless Options.AcceptLoss gives them up.
func (j *journal) complete() error {
	if j.known.seq < j.next {
		return nil
	}
	name := manifestName
	if n := len(j.manifest.Segments); n > 0 {
		name = segmentName(j.manifest.Segments[n-1].File)
	}
	loss := fmt.Sprintf("the log ends before record %d, and was synced up to record %d: commits that were acknowledged "+
		"are missing or damaged, of versions after %d up to %d", j.next, j.known.seq, j.version, j.known.version)
	if j.manifest.Until >= j.next {
		return j.dir.corrupt(name, "%s; the last checkpoint counts on them and can't be used alone: restore a backup", loss)
	}
	if j.acceptLoss != j.next {
		return j.dir.corrupt(name, "%s; copy the directory and restore a backup, or go on without these commits, once, by "+
			"the name embedded:DIR?accept-loss=%d", loss, j.next)
	}
	j.log.Warn("commits that were acknowledged are given up, as accept-loss says", "file", j.dir.file(name),
		"first record", j.next, "last record", j.known.seq, "after version", j.version, "last version", j.known.version)
	return nil
}
