package results

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Reader reads the value of a result part by part, wherever it is stored. One
// goroutine at a time may use it. It has to be closed.
type Reader struct {
	results *Results
	id      layout.ID
	result  *layout.Result

	// What follows is about a result that is an object.
	open    OpenObject
	from    layout.WorkerID // that has it open
	tried   map[layout.WorkerID]bool
	missing []layout.WorkerID
	failed  error
}

// Open returns a reader of a future's result. It reads nothing.
func (r *Results) Open(id layout.ID, result *layout.Result) *Reader {
	return &Reader{results: r, id: id, result: result}
}

// Size is how many bytes the value has.
func (r *Reader) Size() int64 {
	switch {
	case r.result.Object != "":
		return r.result.Size
	case r.result.ValueRef != nil:
		return r.result.ValueRef.Size
	}
	return int64(len(r.result.Value))
}

// Unit is what reads begin and end at multiples of, but for the end of the value.
func (r *Reader) Unit() int64 {
	switch {
	case r.result.Object != "":
		return layout.ObjectPiece
	case r.result.ValueRef != nil:
		return layout.ChunkSize
	}
	return 1
}

// ReadAt fills p with what begins at offset. What comes from a worker is verified.
// After a cut, and for each part, all copies are tried in turn. It returns ErrLost if
// no worker has a copy, which it has then reported, fdbmodel.ErrUnreachable if some should
// have one and can't be reached, and fdbmodel.ErrNotFound if the future was discarded. It may
// be called again.
func (r *Reader) ReadAt(ctx context.Context, p []byte, offset int64) error {
	if unit, end := r.Unit(), offset+int64(len(p)); offset < 0 || end > r.Size() ||
		offset%unit != 0 || end%unit != 0 && end != r.Size() {
		return fmt.Errorf("%d bytes at %d of a result of %d bytes: not multiples of %d", len(p), offset, r.Size(), unit)
	}
	switch {
	case r.result.Object != "":
		return r.readObject(ctx, p, offset)
	case r.result.ValueRef != nil:
		ref := r.result.ValueRef
		key := func(i int) []byte { return r.results.keys.Chunk(r.id, *ref, i) }
		err := pieces.Fill(ctx, r.results.cluster, p, ref.Count, int(offset/layout.ChunkSize), key)
		if err != nil {
			err = fmt.Errorf("%s of future %s: %w", ref.Kind, r.id, err)
		}
		return err
	}
	copy(p, r.result.Value[offset:])
	return nil
}

// Close ends the reading.
func (r *Reader) Close() {
	if r.open != nil {
		r.open.Close()
		r.open = nil
	}
}

func (r *Reader) readObject(ctx context.Context, p []byte, offset int64) error {
	r.tried, r.missing, r.failed = map[layout.WorkerID]bool{}, nil, nil
	for {
		if r.open == nil {
			if err := r.openCopy(ctx); err != nil {
				return err
			}
		}
		err := r.open.ReadAt(ctx, p, offset)
		if err == nil {
			return nil
		}
		r.Close()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.without(err)
	}
}

// without notes that the worker of a copy could not deliver it.
func (r *Reader) without(err error) {
	r.tried[r.from] = true
	if errors.Is(err, fdbmodel.ErrNotFound) {
		r.missing = append(r.missing, r.from)
		return
	}
	r.failed = errors.Join(r.failed, fmt.Errorf("worker %s: %w", r.from, err))
}

// openCopy opens the next copy.
func (r *Reader) openCopy(ctx context.Context) error {
	reader := r.results.objectReader()
	if reader == nil {
		return fmt.Errorf("result of future %s: %w: this process reads no objects", r.id, fdbmodel.ErrUnreachable)
	}
	copies, unreadable := r.results.Copies(ctx, r.id)
	if unreadable != nil && !layout.IsUnreadable(unreadable) {
		return unreadable
	}
	for i := range copies {
		held := &copies[i]
		if !held.Alive || held.Object != r.result.Object || r.tried[held.Worker] {
			continue
		}
		r.from = held.Worker
		var err error
		if r.open, err = reader.OpenObject(ctx, r.result.Object, r.result.Size, held); err == nil {
			return nil
		}
		if r.open = nil; ctx.Err() != nil {
			return ctx.Err()
		}
		r.without(err)
	}
	switch {
	case unreadable != nil: // that copy may be whole: no loss is reported
		return fmt.Errorf("result of future %s: %w", r.id, errors.Join(unreadable, r.failed))
	case r.failed != nil:
		return fmt.Errorf("result of future %s: %w: %w", r.id, fdbmodel.ErrUnreachable, r.failed)
	}
	state, err := r.results.ReportLost(ctx, r.id, r.result.Token, r.missing)
	if err != nil {
		return fmt.Errorf("result of future %s: %w", r.id, err)
	}
	return fmt.Errorf("future %s, now %v: %w", r.id, state, ErrLost)
}

// Probe reads the beginning of a copy of a result, and returns why it can't: it changes
// nothing, and reports no loss. Without a reader of objects it returns fdbmodel.ErrUnreachable.
func (r *Results) Probe(ctx context.Context, held *Copy) error {
	reader := r.objectReader()
	if reader == nil {
		return fmt.Errorf("%w: this process reads no objects", fdbmodel.ErrUnreachable)
	}
	open, err := reader.OpenObject(ctx, held.Object, held.Size, held)
	if err != nil {
		return err
	}
	defer open.Close()
	return open.ReadAt(ctx, make([]byte, max(0, min(layout.ObjectPiece, held.Size))), 0)
}
