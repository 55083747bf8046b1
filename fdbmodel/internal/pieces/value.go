package pieces

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// PutValue writes a large value of a future, and returns the reference with its size. It
// returns layout.ErrTooLarge beyond layout.MaxPut.
func PutValue(ctx context.Context, s Store, k layout.Keyspace, id layout.ID, ref layout.ChunkRef, value []byte,
) (layout.ChunkRef, error) {
	if len(value) > layout.MaxPut {
		return ref, fmt.Errorf("%w: %d bytes, at most %d: store the data elsewhere and pass where",
			layout.ErrTooLarge, len(value), layout.MaxPut)
	}
	ref.Size, ref.Count = int64(len(value)), layout.Pieces(int64(len(value)))
	return ref, Put(ctx, s, value, func(i int) []byte { return k.Chunk(id, ref, i) })
}

// MaxStored is how often a value is stored that vanishes before anything refers to it.
const MaxStored = 8

// Vanished is the error of a value that was stored MaxStored times, and was gone each time before a record could
// refer to it.
func Vanished(size int64) error {
	return fmt.Errorf("its value of %d bytes was stored %d times, and each time it was gone before a record referred to "+
		"it: the store loses keys, or this process is so slow that janitors take each one for garbage; store the data "+
		"elsewhere and pass where", size, MaxStored)
}

// ReadValue returns a large value of a future. layout.ErrNotFound says that the
// future was discarded meanwhile.
func ReadValue(ctx context.Context, s Store, k layout.Keyspace, id layout.ID, ref layout.ChunkRef) ([]byte, error) {
	value, err := Read(ctx, s, ref.Size, func(i int) []byte { return k.Chunk(id, ref, i) })
	if err != nil {
		err = fmt.Errorf("%s of future %s: %w", ref.Kind, id, err)
	}
	return value, err
}
