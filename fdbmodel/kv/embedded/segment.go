package embedded

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

const (
	headerSize    = len(storeID{}) + 8 + 8 + 8 + 4
	segmentBuffer = 256 << 10
)

// header begins each record of the log. It can be found in the middle of
// damage: by the store's id and a checksum of its own.
type header struct {
	store storeID
	// seq numbers the records of a store without a gap.
	seq uint64
	// durable is a record that was known to be synced, with all before it, when
	// this one was written. A store that has this one and misses that one was
	// damaged; otherwise its last write was merely cut off.
	durable uint64
	// version is the last commit version in the record.
	version kv.Version
}

func (h header) encode() (b [headerSize]byte) {
	to := append(b[:0], h.store[:]...)
	to = binary.LittleEndian.AppendUint64(to, h.seq)
	to = binary.LittleEndian.AppendUint64(to, h.durable)
	to = binary.LittleEndian.AppendUint64(to, uint64(h.version))
	binary.LittleEndian.AppendUint32(to, crc32.Checksum(to, castagnoli))
	return b
}

// decodeHeader returns false if b does not begin with a header of the store.
func decodeHeader(b []byte, store storeID) (h header, ok bool) {
	if len(b) < headerSize || !bytes.HasPrefix(b, store[:]) {
		return h, false
	}
	sum := binary.LittleEndian.Uint32(b[headerSize-4:])
	if crc32.Checksum(b[:headerSize-4], castagnoli) != sum {
		return h, false
	}
	numbers := b[len(store):]
	return header{store: store, seq: binary.LittleEndian.Uint64(numbers), durable: binary.LittleEndian.Uint64(numbers[8:]),
		version: kv.Version(binary.LittleEndian.Uint64(numbers[16:]))}, true
}

// promised returns what the headers in b say was synced.
func promised(b []byte, store storeID) (known attestation) {
	for {
		i := bytes.Index(b, store[:])
		if i < 0 {
			return known
		}
		if h, ok := decodeHeader(b[i:], store); ok {
			known = known.or(attestation{seq: h.durable, version: h.version})
		}
		b = b[i+1:]
	}
}

// segment is the file of the log that is being written. Behind its records it
// has zeros, which end a log just as the end of a file does: a disk syncs what
// overwrites them sooner than what makes a file longer.
type segment struct {
	file    vfs.File
	buffer  *bufio.Writer
	records *record.Writer
	// limit is up to where zeros are written ahead.
	limit int64
	// written is the end of what was written, synced its part that is durable,
	// and zeroed the end of the file.
	written, synced, zeroed int64
	zeros                   []byte
	head                    [headerSize]byte
}

const (
	// zerosPerSync is how many syncs of the size of the last one shall find
	// zeros to overwrite, and zerosMax how many bytes of them there are at most.
	zerosPerSync = 32
	zerosMax     = 512 << 10
	// largeSync is the size from which on a sync takes its time for the bytes.
	largeSync = 128 << 10
)

// createSegment makes a file with its first records, both durable. Its zeros end
// at limit.
func createSegment(d directory, number uint64, limit int64, first func(*segment) error) (*segment, error) {
	if err := d.inPlace(); err != nil {
		return nil, err
	}
	path := d.file(segmentName(number))
	f, err := d.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	if err = f.Close(); err == nil {
		f, err = d.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		return nil, errors.Join(err, d.fs.Remove(path))
	}
	s := &segment{file: f, limit: limit}
	s.buffer = bufio.NewWriterSize(s, segmentBuffer)
	s.records = record.NewWriter(s.buffer)
	if err = first(s); err == nil {
		err = s.flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = d.sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), d.fs.Remove(path))
	}
	s.synced = s.written
	return s, nil
}

// Write implements io.Writer for the buffer.
func (s *segment) Write(b []byte) (int, error) {
	n, err := s.file.WriteAt(b, s.written)
	s.written += int64(n)
	s.zeroed = max(s.zeroed, s.written)
	return n, err
}

// writeAhead writes zeros for the syncs to come, if few are left.
func (s *segment) writeAhead() error {
	size := s.written - s.synced
	if size >= largeSync || s.written+size <= s.zeroed {
		return nil
	}
	end := min(s.written+min(zerosPerSync*size, zerosMax), s.limit)
	for s.zeroed < end {
		if s.zeros == nil {
			s.zeros = make([]byte, 32<<10)
		}
		n, err := s.file.WriteAt(s.zeros[:min(end-s.zeroed, int64(len(s.zeros)))], s.zeroed)
		s.zeroed += int64(n)
		if mayWait(err) {
			s.limit = 0 // records may still find room
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *segment) append(h header, body []byte) error {
	w, err := s.records.Next()
	if err != nil {
		return err
	}
	s.head = h.encode()
	if _, err := w.Write(s.head[:]); err != nil {
		return err
	}
	_, err = w.Write(body)
	return err
}

// flush hands everything appended to the system.
func (s *segment) flush() error {
	if err := s.records.Flush(); err != nil {
		return err
	}
	return s.writeAhead()
}

// sync returns when everything appended is on the disk. It returns an error if the file was removed: nobody would
// find what is in it.
func (s *segment) sync() error {
	if err := s.flush(); err != nil {
		return err
	}
	s.synced = s.written
	if err := s.file.SyncData(); err != nil {
		return err
	}
	if isRemoved(s.file) {
		return errRemoved
	}
	return nil
}

// errRemoved is what a store fails with whose files somebody has removed.
var errRemoved = errors.New("embedded: the files of the store were removed while it was open: what it held is " +
	"gone, but for backups (futura restore)")

func (s *segment) size() int64 { return s.records.Size() }

// segmentReader reads the records of one file in order.
type segmentReader struct {
	dir     directory
	name    string
	store   storeID
	file    vfs.File
	records *record.Reader
	body    bytes.Buffer
	// end is where the last record ends.
	end int64
}

func openSegment(d directory, number uint64, store storeID) (*segmentReader, error) {
	name := segmentName(number)
	f, err := d.fs.Open(d.file(name), vfs.SequentialReadsOption)
	if err != nil {
		return nil, err
	}
	return &segmentReader{dir: d, name: name, store: store, file: f,
		records: record.NewReader(bufio.NewReaderSize(f, segmentBuffer), 0)}, nil
}

func (r *segmentReader) close() error { return r.file.Close() }

// errTail is returned where the records that can be read end, be it at the end
// of the file, in a record that was cut off, or at damage.
var errTail = errors.New("embedded: end of the readable records")

// next returns a record, valid until the next call.
func (r *segmentReader) next() (header, []byte, error) {
	records, err := r.records.Next()
	if err == nil {
		r.body.Reset()
		_, err = r.body.ReadFrom(records)
	}
	if err != nil {
		if err == io.EOF || unreadableRecord(err) {
			err = errTail
		}
		return header{}, nil, err
	}
	h, ok := decodeHeader(r.body.Bytes(), r.store)
	if !ok {
		return header{}, nil, r.dir.corrupt(r.name, "a record is not of this store")
	}
	r.end = r.records.Offset()
	return h, r.body.Bytes()[headerSize:], nil
}

func (r *segmentReader) size() (int64, error) {
	info, err := r.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// rest calls look with what the file has from an offset on, unless it is nothing.
func (r *segmentReader) rest(from int64, look func([]byte) error) error {
	size, err := r.size()
	if err != nil || size <= from {
		return err
	}
	b := make([]byte, size-from)
	n, err := r.file.ReadAt(b, from)
	if err != nil && err != io.EOF {
		return err
	}
	return look(b[:n])
}

// leftover returns how many bytes b has up to the last one that is not zero.
func leftover(b []byte) int { return len(bytes.TrimRight(b, "\x00")) }

func unreadableRecord(err error) bool {
	return errors.Is(err, record.ErrInvalidChunk) || errors.Is(err, record.ErrZeroedChunk) ||
		errors.Is(err, record.ErrUnexpectedEOF)
}
