package archive

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
)

// Reader reads a file. It belongs to one goroutine.
type Reader struct {
	r      *bufio.Reader
	offset int64
	sum    hash.Hash
	head   Head
	end    *End
	frame  []byte // of items, not read yet
	items  int64
	last   []byte
	err    error
}

// NewReader reads the beginning of a file. It returns ErrNoBackup, ErrNewer,
// ErrTruncated and ErrDamaged.
func NewReader(r io.Reader) (*Reader, error) {
	a := &Reader{r: bufio.NewReaderSize(r, 64<<10), sum: sha256.New()}
	begin := make([]byte, headLength)
	n, err := io.ReadFull(a.r, begin)
	a.offset = int64(n)
	switch {
	case n < len(magic) || string(begin[:len(magic)]) != magic:
		return nil, errors.Join(ErrNoBackup, ignoreEnd(err))
	case err != nil:
		return nil, a.readError(err)
	}
	switch version := binary.BigEndian.Uint16(begin[len(magic):]); {
	case version > Version:
		return nil, fmt.Errorf("%w: it has version %d, this program reads %d", ErrNewer, version, Version)
	case version != Version:
		return nil, fmt.Errorf("%w: version %d", ErrDamaged, version)
	}
	kind, payload, err := a.next()
	if err != nil {
		return nil, err
	}
	if kind != frameHead || json.Unmarshal(payload, &a.head) != nil {
		return nil, a.damaged("the head is missing")
	}
	a.sum.Write(payload)
	return a, nil
}

// ignoreEnd drops the errors that say that there is no more.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// Head returns what the file says of itself.
func (a *Reader) Head() Head { return a.head }

// Next returns the next item, which stays valid until the call after. At the
// end of a file that is whole it returns io.EOF: only then are the items those
// that were written. It returns ErrTruncated and ErrDamaged. An error stays.
func (a *Reader) Next() (key, value []byte, err error) {
	if a.err != nil {
		return nil, nil, a.err
	}
	key, value, a.err = a.item()
	return key, value, a.err
}

// End returns how the file ended, once Next has returned io.EOF.
func (a *Reader) End() End {
	if a.end == nil {
		return End{}
	}
	return *a.end
}

func (a *Reader) item() (key, value []byte, err error) {
	for len(a.frame) == 0 {
		kind, payload, err := a.next()
		switch {
		case err != nil:
			return nil, nil, err
		case kind == frameEnd:
			return nil, nil, a.close(payload)
		case kind != frameItems:
			return nil, nil, a.damaged(fmt.Sprintf("frame of kind %d", kind))
		}
		a.sum.Write(payload)
		a.frame = payload
	}
	if key, err = a.piece(MaxKey); err != nil {
		return nil, nil, err
	}
	if value, err = a.piece(MaxValue); err != nil {
		return nil, nil, err
	}
	if a.items > 0 && string(key) <= string(a.last) {
		return nil, nil, a.damaged("keys are not in order")
	}
	a.last = append(a.last[:0], key...)
	a.items++
	return key, value, nil
}

// piece takes a length and as many bytes from the frame.
func (a *Reader) piece(limit uint64) ([]byte, error) {
	n, size := binary.Uvarint(a.frame)
	if size <= 0 || n > limit || n > uint64(len(a.frame)-size) {
		return nil, a.damaged("item is longer than its frame")
	}
	piece := a.frame[size : size+int(n)]
	a.frame = a.frame[size+int(n):]
	return piece, nil
}

// close compares the end with what was read.
func (a *Reader) close(payload []byte) error {
	var end End
	if json.Unmarshal(payload, &end) != nil {
		return a.damaged("the end is missing")
	}
	if end.Items != a.items || end.SHA256 != hex.EncodeToString(a.sum.Sum(nil)) {
		return a.damaged("items are missing or were changed")
	}
	if _, err := a.r.ReadByte(); err == nil {
		return a.damaged("bytes after the end")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	a.end = &end
	return io.EOF
}

// next reads a frame.
func (a *Reader) next() (kind byte, payload []byte, err error) {
	var head [5]byte
	if err := a.read(head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > MaxFrame {
		return 0, nil, a.damaged(fmt.Sprintf("frame of %d bytes", length))
	}
	frame := make([]byte, 1+int(length)+4)
	frame[0] = head[4]
	if err := a.read(frame[1:]); err != nil {
		return 0, nil, err
	}
	body := frame[:1+length]
	if binary.BigEndian.Uint32(frame[1+length:]) != crc32.Checksum(body, castagnoli()) {
		return 0, nil, a.damaged("a frame has the wrong checksum")
	}
	return frame[0], body[1:], nil
}

func (a *Reader) read(b []byte) error {
	n, err := io.ReadFull(a.r, b)
	a.offset += int64(n)
	if err != nil {
		return a.readError(err)
	}
	return nil
}

func (a *Reader) readError(err error) error {
	if ignoreEnd(err) == nil {
		return fmt.Errorf("%w: it ends at byte %d", ErrTruncated, a.offset)
	}
	return err
}

func (a *Reader) damaged(what string) error {
	return fmt.Errorf("%w: %s, before byte %d", ErrDamaged, what, a.offset)
}

// Verify reads a whole file and returns what it says of itself if it is whole.
// It returns the errors of NewReader and of Reader.Next.
func Verify(r io.Reader) (Head, End, error) {
	a, err := NewReader(r)
	if err != nil {
		return Head{}, End{}, err
	}
	for {
		if _, _, err := a.Next(); errors.Is(err, io.EOF) {
			return a.Head(), a.End(), nil
		} else if err != nil {
			return a.Head(), End{}, err
		}
	}
}
