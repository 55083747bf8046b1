package embedded

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// openJournal reads the manifest of a directory, or begins a new one unless Options.Only forbids that.
func openJournal(d directory, o *Options) (*journal, error) {
	m, err := d.manifest()
	if err == nil {
		err = d.allow(m, o.Only)
	}
	if err != nil {
		return nil, err
	}
	if m == nil {
		if m, err = newManifest(d); err != nil {
			return nil, err
		}
	}
	id, err := m.id()
	if err != nil {
		return nil, d.corrupt(manifestName, "%v", err)
	}
	return &journal{dir: d, segmentSize: o.SegmentSize, acceptLoss: o.AcceptLoss, store: id, manifest: m,
		nextFile: m.NextFile, log: o.Logger, sizes: map[uint64]int64{}, ends: map[uint64]kv.Version{}}, nil
}

func newManifest(d directory) (*manifest, error) {
	names, err := d.fs.List(d.path)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, segmentSuffix) || strings.HasSuffix(name, rowsSuffix) {
			return nil, d.corrupt(manifestName, "it is missing, but %s exists", name)
		}
	}
	var id storeID
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	m := &manifest{Format: formatVersion, Store: hex.EncodeToString(id[:]), NextFile: 1}
	return m, d.install(m)
}

// recover implements durability.
func (j *journal) recover(into *loader) error {
	if err := into.loadTables(j.dir, j.manifest.Tables); err != nil {
		return err
	}
	if err := j.attestations(); err != nil {
		return err
	}
	j.next = 1
	for i, s := range j.manifest.Segments {
		if i == 0 {
			j.next = s.First
		}
		if s.First != j.next {
			return j.dir.corrupt(segmentName(s.File), "it begins at record %d, not at %d", s.First, j.next)
		}
		if err := j.replay(s, i == len(j.manifest.Segments)-1, into); err != nil {
			return err
		}
	}
	into.countCold()
	if err := j.complete(); err != nil {
		return err
	}
	j.durable = j.next - 1
	j.attested = j.durable
	// Versions that were handed out before are never handed out again.
	j.opening = max(j.version, j.manifest.Version, j.known.version) + versionJump
	j.measure()
	return nil
}

// attestations finds what is known to be synced besides what the log says.
func (j *journal) attestations() error {
	last := segmentRange{}
	if n := len(j.manifest.Segments); n > 0 {
		last = j.manifest.Segments[n-1]
		j.known.seq = last.Synced
	}
	m, err := j.readMark()
	if err != nil {
		return err
	}
	// What a segment before the last one had is in the manifest.
	if m.segment >= last.File {
		j.known = j.known.or(m.known)
	}
	// A mark that was passed over is never taken for one of a later segment.
	j.nextFile = max(j.nextFile, m.segment+1)
	return nil
}

// replay applies the records of one segment.
func (j *journal) replay(s segmentRange, last bool, into *loader) (err error) {
	name := segmentName(s.File)
	if !s.Sealed && !last {
		return j.dir.corrupt(manifestName, "segment %s is not the last one and not sealed", name)
	}
	r, err := openSegment(j.dir, s.File, j.store)
	if errors.Is(err, fs.ErrNotExist) {
		return j.dir.corrupt(name, "it is missing")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if j.sizes[s.File], err = r.size(); err != nil {
		return err
	}
	if last {
		j.tail = tail{limit: j.segmentSize / tailFraction, synced: s.Last}
	}
	for !s.Sealed || j.next <= s.Last {
		if err := into.ctx.Err(); err != nil {
			return err
		}
		h, body, err := r.next()
		if errors.Is(err, errTail) {
			j.ends[s.File] = j.version
			return j.cut(s, r)
		}
		if err != nil {
			return err
		}
		if h.seq != j.next {
			return j.dir.corrupt(name, "record %d follows record %d", h.seq, j.next-1)
		}
		// What the tables have is not done again.
		if h.version > into.hints.Version {
			into.countCold()
		}
		if into.version = h.version; h.version > j.manifest.Through {
			if err := into.apply(body); err != nil {
				return j.dir.corrupt(name, "record %d: %v", h.seq, err)
			}
			into.index.collect(h.version)
		}
		j.version = max(j.version, h.version)
		j.next++
		if last {
			j.tail.add(h, body)
		}
	}
	j.ends[s.File] = j.version
	if s.Size == 0 {
		return nil
	}
	return r.rest(s.Size, func(b []byte) error {
		if n := leftover(b); n > 0 {
			j.log.Warn("bytes behind the end of the log are ignored, they are no part of the store",
				"file", j.dir.file(name), "end", s.Size, "bytes", n)
		}
		return nil
	})
}

// cut looks at what lies behind the readable records of a segment that may still
// have been written.
func (j *journal) cut(s segmentRange, r *segmentReader) error {
	if s.Sealed {
		return j.dir.corrupt(r.name, "record %d is missing or damaged, the last one is %d", j.next, s.Last)
	}
	return r.rest(r.end, func(b []byte) error {
		j.known = j.known.or(promised(b, j.store))
		if n := leftover(b); n > 0 && j.known.seq < j.next {
			j.log.Warn("a write at the end of the log was cut off, nothing of it was acknowledged",
				"file", j.dir.file(r.name), "end", r.end, "bytes", n)
		}
		return nil
	})
}

// doubtful reports whether the log was not closed: what was read at its end may
// never have reached the disk.
func (j *journal) doubtful() bool {
	n := len(j.manifest.Segments)
	return n > 0 && !j.manifest.Segments[n-1].Sealed
}

// loader fills an index that is not read yet.
type loader struct {
	ctx   context.Context
	index *index
	// version is that of the record whose mutations are done.
	version kv.Version
	// most is how much memory rows of tables may take.
	most int64
	// hints say how many rows are on disk alone, which counted says that it was used.
	hints   coldHints
	counted bool
	log     *slog.Logger
}

var errMalformed = errors.New("malformed record")

// apply does the mutations of a record's body.
func (l *loader) apply(body []byte) error {
	for len(body) > 0 {
		kind := body[0]
		key, rest, ok := cutBytes(body[1:])
		if !ok {
			return errMalformed
		}
		if kind == recordClear {
			l.clear(key)
			body = rest
			continue
		}
		second, rest, ok := cutBytes(rest)
		if !ok {
			return errMalformed
		}
		switch kind {
		case recordSet:
			if err := l.set(key, second); err != nil {
				return err
			}
		case recordClearRange:
			l.clearRange(key, second)
		default:
			return errMalformed
		}
		body = rest
	}
	return nil
}

// cutBytes takes a byte string with its length before it off b.
func cutBytes(b []byte) (cut, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}
