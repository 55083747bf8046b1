package objects

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// content is where the bytes of one object are. Pieces are written once each, in
// any order, before seal, and read after it.
type content interface {
	// write stores a piece. It may be called for several pieces at a time.
	write(piece int, p []byte) error
	// seal is called once all pieces are written.
	seal() error
	// read fills p from an offset, within the size.
	read(p []byte, offset int64) error
	// view returns the whole content without a copy, false where it can't.
	view() ([]byte, bool)
	// drop gives back what the content takes.
	drop() error
}

// heap is content in the memory of the process.
type heap struct {
	mu     sync.Mutex
	pieces [][]byte
}

func (h *heap) write(piece int, p []byte) error {
	copied := append([]byte(nil), p...)
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.pieces) <= piece {
		h.pieces = append(h.pieces, nil)
	}
	h.pieces[piece] = copied
	return nil
}

func (h *heap) seal() error { return nil }

func (h *heap) read(p []byte, offset int64) error {
	for len(p) > 0 {
		piece := h.pieces[offset/PieceSize]
		n := copy(p, piece[offset%PieceSize:])
		p, offset = p[n:], offset+int64(n)
	}
	return nil
}

func (h *heap) view() ([]byte, bool) {
	switch len(h.pieces) {
	case 0:
		return nil, true
	case 1:
		return h.pieces[0], true
	default:
		return nil, false
	}
}

func (h *heap) drop() error { return nil }

// memoryFile is content in a file in memory, which other processes can map.
type memoryFile struct {
	file *os.File
	size int64 // known once it is sealed

	once   sync.Once
	mapped []byte
	failed error
}

func (m *memoryFile) write(piece int, p []byte) error {
	_, err := m.file.WriteAt(p, int64(piece)*PieceSize)
	return err
}

func (m *memoryFile) seal() error {
	info, err := m.file.Stat()
	if err != nil {
		return err
	}
	m.size = info.Size()
	return seal(m.file)
}

func (m *memoryFile) read(p []byte, offset int64) error {
	_, err := m.file.ReadAt(p, offset)
	return err
}

func (m *memoryFile) view() ([]byte, bool) {
	m.once.Do(func() { m.mapped, m.failed = mapFile(m.file, m.size) })
	return m.mapped, m.failed == nil
}

func (m *memoryFile) drop() error {
	var err error
	m.once.Do(func() { m.failed = ErrClosed })
	if m.failed == nil {
		err = unmap(m.mapped)
	}
	return errors.Join(err, m.file.Close())
}

// extent is content in a part of a file on disk.
type extent struct {
	segment *segment
	offset  int64
	length  int64 // 0 for all of the segment
}

func (e *extent) write(piece int, p []byte) error {
	_, err := e.segment.file.WriteAt(p, e.offset+int64(piece)*PieceSize)
	return err
}

func (e *extent) seal() error { return nil }

func (e *extent) read(p []byte, offset int64) error {
	_, err := e.segment.file.ReadAt(p, e.offset+offset)
	if err != nil {
		return fmt.Errorf("objects: the disk: %w", err)
	}
	return nil
}

// view maps nothing: a page that the disk fails to deliver, or delivers changed,
// would end the process or be believed.
func (e *extent) view() ([]byte, bool) { return nil, false }

func (e *extent) drop() error { return e.segment.leave(e) }
