package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
)

// castagnoli makes the table of CRC-32C; the standard library keeps one.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Writer writes a file. It belongs to one goroutine.
type Writer struct {
	w     io.Writer
	sum   hash.Hash
	frame []byte // items of the frame at hand
	items int64
}

// NewWriter begins a file. It returns ErrTooLarge, and writes nothing, for a head that no Reader takes.
func NewWriter(w io.Writer, head Head) (*Writer, error) {
	a := &Writer{w: w, sum: sha256.New()}
	b, err := json.Marshal(&head)
	if err != nil {
		return nil, err
	}
	if len(b) > MaxFrame {
		return nil, fmt.Errorf("%w: a head of %d bytes that names %d prefixes of rows, at most %d bytes: name fewer, "+
			"or shorter ones that cover them", ErrTooLarge, len(b), len(head.Rows), MaxFrame)
	}
	if _, err := w.Write(binary.BigEndian.AppendUint16([]byte(magic), Version)); err != nil {
		return nil, err
	}
	return a, a.write(frameHead, b)
}

// Add writes an item. It returns ErrTooLarge.
func (a *Writer) Add(key, value []byte) error {
	if len(key) > MaxKey || len(value) > MaxValue {
		return fmt.Errorf("%w: key of %d bytes, value of %d", ErrTooLarge, len(key), len(value))
	}
	a.frame = append(binary.AppendUvarint(a.frame, uint64(len(key))), key...)
	a.frame = append(binary.AppendUvarint(a.frame, uint64(len(value))), value...)
	a.items++
	if len(a.frame) < fullFrame {
		return nil
	}
	return a.flush()
}

// Close ends the file. It does not close what it writes to.
func (a *Writer) Close() (End, error) {
	if err := a.flush(); err != nil {
		return End{}, err
	}
	end := End{Items: a.items, SHA256: hex.EncodeToString(a.sum.Sum(nil))}
	b, err := json.Marshal(&end)
	if err != nil {
		return end, err
	}
	return end, a.write(frameEnd, b)
}

func (a *Writer) flush() error {
	if len(a.frame) == 0 {
		return nil
	}
	err := a.write(frameItems, a.frame)
	a.frame = a.frame[:0]
	return err
}

func (a *Writer) write(kind byte, payload []byte) error {
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, len(payload)+9), uint32(len(payload)))
	frame = append(append(frame, kind), payload...)
	frame = binary.BigEndian.AppendUint32(frame, crc32.Checksum(frame[4:], castagnoli()))
	a.sum.Write(payload)
	_, err := a.w.Write(frame)
	return err
}
