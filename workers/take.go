package workers

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/peer"
)

// take gets a copy of a future's result from the workers that have it, and says so in
// the store of the cluster.
func (k *keeper) take(ctx context.Context, owner peer.Owner, o peer.TakeOptions) error {
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
	// A sweep leaves what is held; before, it may drop what is there for others. A transfer may take longer than a hold.
	for held := false; !held; held = k.store.Has(hash) {
		if err := k.fetchOnce(ctx, &row, hash, o.Arrived); err != nil {
			return missingAs(err)
		}
		k.hold(id, hash, k.cluster.Now().Add(putGrace))
	}
	return missingAs(results.Of(k.cluster).AddCopy(ctx, k.reg.ID(), id, row.Result.Token, o.Alone))
}

// missingAs tells the other side that something is not there.
func missingAs(err error) error {
	if errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, results.ErrLost) {
		return fmt.Errorf("%w: %w", objects.ErrNotFound, err)
	}
	return err
}

// fetching is an object that is on its way into the store, for one take or several.
type fetching struct {
	done    chan struct{}
	waiting []func(arrived int64)
}

// fetchOnce has an object in the store when it returns without an error. Takes that
// want it at the same time share one transfer, and its room; where that fails, the next
// of them begins another one.
func (k *keeper) fetchOnce(ctx context.Context, row *layout.Row, hash objects.Hash, arrived func(int64)) error {
	for !k.store.Has(hash) {
		k.mu.Lock()
		f := k.fetches[hash]
		if f == nil {
			f = &fetching{done: make(chan struct{}), waiting: []func(int64){arrived}}
			if k.fetches == nil {
				k.fetches = map[objects.Hash]*fetching{}
			}
			k.fetches[hash] = f
			k.mu.Unlock()
			return k.lead(ctx, f, row, hash)
		}
		f.waiting = append(f.waiting, arrived)
		k.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// lead makes the transfer of an object, for all calls that wait for it.
func (k *keeper) lead(ctx context.Context, f *fetching, row *layout.Row, hash objects.Hash) (err error) {
	defer func() {
		k.mu.Lock()
		delete(k.fetches, hash)
		k.mu.Unlock()
		close(f.done)
	}()
	if k.store.Has(hash) {
		return nil // another transfer has ended since
	}
	return k.fetch(ctx, row, hash, func(n int64) {
		k.mu.Lock()
		all := f.waiting
		k.mu.Unlock()
		for _, tell := range all {
			tell(n)
		}
	})
}

// fetch gets the object of a future into the store, and says how much has arrived.
func (k *keeper) fetch(ctx context.Context, row *layout.Row, hash objects.Hash, arrived func(int64)) error {
	size := row.Result.Size
	room, err := k.store.Reserve(ctx, size)
	if err != nil {
		return err
	}
	defer room.Release()
	from := &sequence{ctx: ctx, reader: results.Of(k.cluster).Open(row.ID, row.Result), arrived: arrived}
	defer func() { _ = from.Close() }() // it never fails
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
	reader *results.Reader
	offset int64 // of what is read next from the result
	buffer []byte
	rest   []byte

	arrived func(int64) // may be nil
}

// Close implements io.Closer.
func (s *sequence) Close() error {
	s.reader.Close()
	return nil
}

// Read implements io.Reader.
func (s *sequence) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		unit := s.reader.Unit()
		n := min(max(sequenceWindow/unit, 1)*unit, s.reader.Size()-s.offset)
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
		if s.arrived != nil {
			s.arrived(s.offset)
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}
