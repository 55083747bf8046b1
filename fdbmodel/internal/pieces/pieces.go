// Package pieces stores values that are larger than one key holds, in pieces of
// layout.ChunkSize bytes.
package pieces

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Store is where pieces are.
type Store interface {
	Transact(context.Context, kv.Options, func(kv.Attempt) error) (kv.Result, error)
	View(context.Context, func(kv.Attempt) error) error
}

const (
	perTx     = 10 // pieces of one transaction
	readAhead = 8  // pieces that are requested at once
)

// Put writes a value. An unknown commit is retried: the caller's keys are written by it alone.
func Put(ctx context.Context, s Store, value []byte, key func(i int) []byte) error {
	count := layout.Pieces(int64(len(value)))
	for first := 0; first < count; first += perTx {
		_, err := s.Transact(ctx, kv.Options{Tag: "futura-chunk"}, func(tx kv.Attempt) error {
			for i := first; i < min(first+perTx, count); i++ {
				tx.Set(key(i), value[i*layout.ChunkSize:min((i+1)*layout.ChunkSize, len(value))])
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Read returns a value of a size. It returns layout.ErrNotFound for a missing piece, and
// layout.ErrBadRecord for one of another size.
func Read(ctx context.Context, s Store, size int64, key func(i int) []byte) ([]byte, error) {
	if size < 0 || size > layout.MaxPut {
		return nil, fmt.Errorf("%w: reference to %d bytes", layout.ErrBadRecord, size)
	}
	value := make([]byte, size)
	if err := Fill(ctx, s, value, layout.Pieces(size), 0, key); err != nil {
		return nil, err
	}
	return value, nil
}

// Fill fills p with pieces of a value of count pieces, from one on. Its errors are those of
// Read.
func Fill(ctx context.Context, s Store, p []byte, count, from int, key func(i int) []byte) error {
	for first := from; len(p) > 0; first += readAhead {
		part := p[:min(len(p), readAhead*layout.ChunkSize)]
		p = p[len(part):]
		err := s.View(ctx, func(tx kv.Attempt) error {
			var pending [readAhead]kv.Pending[[]byte]
			n := layout.Pieces(int64(len(part)))
			for i := range n {
				pending[i] = tx.Snapshot().Get(key(first + i))
			}
			for i := range n {
				piece, err := pending[i].Wait(ctx)
				if err != nil {
					return err
				}
				if piece == nil {
					return fmt.Errorf("%w: chunk %d of %d", layout.ErrNotFound, first+i+1, count)
				}
				into := part[i*layout.ChunkSize : min((i+1)*layout.ChunkSize, len(part))]
				if len(piece) != len(into) {
					return fmt.Errorf("%w: chunk %d of %d has %d bytes, not %d", layout.ErrBadRecord, first+i+1, count,
						len(piece), len(into))
				}
				copy(into, piece)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
