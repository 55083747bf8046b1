package workers

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/peer"
)

// take gets a copy of a future's result from the workers that have it, and says so in
// the store of the cluster; alone has them drop theirs.
func (k *keeper) take(ctx context.Context, owner peer.Owner, alone bool) error {
	if err := k.accepts(); err != nil {
		return err
	}
	id := layout.ID(owner[:len(layout.ID{})])
	row, err := k.cluster.Get(ctx, id)
	if err != nil {
		return missingAs(err)
	}
	if row.Object() == "" {
		return fmt.Errorf("%w: the result of future %s is no object", objects.ErrNotFound, id)
	}
	hash, err := objects.ParseHash(row.Object())
	if err != nil {
		return err
	}
	// From here on a sweep leaves it.
	k.hold(id, hash, k.cluster.Now().Add(putGrace))
	if !k.store.Has(hash) {
		if err := k.fetch(ctx, &row, hash); err != nil {
			return missingAs(err)
		}
	}
	return missingAs(k.reg.AddCopy(ctx, id, row.Result.Token, alone))
}

// missingAs tells the other side that something is not there.
func missingAs(err error) error {
	if errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, fdbmodel.ErrLost) {
		return fmt.Errorf("%w: %w", objects.ErrNotFound, err)
	}
	return err
}

// fetch gets the object of a future into the store.
func (k *keeper) fetch(ctx context.Context, row *layout.Row, hash objects.Hash) error {
	size := row.Result.Size
	room, err := k.store.Reserve(ctx, size)
	if err != nil {
		return err
	}
	defer room.Release()
	from := &sequence{ctx: ctx, reader: k.cluster.OpenResult(row.ID, row.Result)}
	defer from.reader.Close()
	ref, err := k.store.Put(ctx, from, objects.PutOptions{Size: size, Reservation: room})
	if err == nil && ref != (objects.Ref{Hash: hash, Size: size}) {
		err = fmt.Errorf("%w: %s came instead of %s", objects.ErrDamaged, ref, row.Result.Object)
	}
	return err
}

// sequenceWindow is how much of a result a sequence asks for at a time, in bytes.
const sequenceWindow = 4 << 20

// sequence reads a result in order.
type sequence struct {
	ctx    context.Context
	reader *fdbmodel.ResultReader
	offset int64 // of what is read next from the result
	buffer []byte
	rest   []byte
}

// Read implements io.Reader.
func (s *sequence) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		n := min(sequenceWindow, s.reader.Size()-s.offset)
		if n == 0 {
			return 0, io.EOF
		}
		if s.buffer == nil {
			s.buffer = make([]byte, n)
		}
		s.rest = s.buffer[:n]
		if err := s.reader.ReadAt(s.ctx, s.rest, s.offset); err != nil {
			s.rest = nil
			return 0, err
		}
		s.offset += n
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}
