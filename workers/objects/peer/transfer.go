package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/futura-run/futura/workers/objects"
)

// sink takes what arrives of an object. Its functions are called from many
// goroutines, for a piece by one at a time.
type sink struct {
	// buffer is where a piece is read to. Where it is nil the transfer has buffers.
	buffer func(piece int) []byte
	// accept verifies a piece and keeps it. It returns ErrDamaged for another
	// content; another error ends the transfer.
	accept func(piece int, content []byte) error
}

// transfer gets a range of an object's pieces.
type transfer struct {
	client *Client
	ref    objects.Ref
	sink   sink
	// list is what pieces are verified with, nil if the sink has it.
	list *listing

	mu      sync.Mutex
	missing []span // not yet asked for
	left    int    // pieces that have not arrived
	failed  error  // of the sink
}

// span is a range of pieces.
type span struct{ first, count int }

// from is the rounds over the sources until all pieces are there. What has arrived
// is not asked for again.
func (t *transfer) from(ctx context.Context, sources []string) error {
	return t.client.rounds(ctx, sources, t.ref, func(address string) (progress bool, err error) {
		before := t.left
		err = t.fromOne(ctx, address)
		if t.failed != nil {
			return false, finalError{t.failed}
		}
		if t.left == 0 {
			err = nil
		}
		return t.left < before, err
	})
}

// finalError is an error that another source can't help against.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// rounds calls try for one source after the other until it returns no error, and
// once more for all as long as there is progress, or attempts.
func (c *Client) rounds(ctx context.Context, sources []string, ref objects.Ref,
	try func(address string) (progress bool, err error),
) error {
	if len(sources) == 0 {
		return fmt.Errorf("%w: %s: there are no sources", ErrUnavailable, ref)
	}
	for attempt := 1; ; attempt++ {
		var errs []error
		for _, address := range sources {
			progress, err := try(address)
			if err == nil {
				return nil
			}
			var final finalError
			if errors.As(err, &final) {
				return final.error
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if progress {
				attempt = 0
			}
			errs = append(errs, sourceError(address, err))
		}
		if attempt >= c.options.Attempts || !anyMayRecover(errs) {
			return fmt.Errorf("%w: %s: %w", ErrUnavailable, ref, errors.Join(errs...))
		}
		if attempt > 0 {
			if err := c.backOff(ctx); err != nil {
				return err
			}
		}
	}
}

// anyMayRecover reports whether another attempt may help.
func anyMayRecover(errs []error) bool {
	for _, err := range errs {
		final := !errors.Is(err, errBusy) && (errors.Is(err, objects.ErrNotFound) || errors.Is(err, objects.ErrDamaged) ||
			errors.Is(err, ErrRefused) || errors.Is(err, ErrInsecure) || errors.Is(err, ErrBadAddress) ||
			errors.Is(err, objects.ErrClosed))
		if !final {
			return true
		}
	}
	return false
}

// fromOne gets what it can from one source, by several connections.
func (t *transfer) fromOne(ctx context.Context, address string) error {
	workers := min(t.client.options.Parallel, t.left)
	if workers == 1 {
		return t.work(ctx, address)
	}
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() { errs[i] = t.work(ctx, address) })
	}
	all.Wait()
	return worst(errs)
}

// worst is the error that says most about a source.
func worst(errs []error) (found error) {
	for _, err := range errs {
		if errors.Is(err, objects.ErrDamaged) {
			return err
		}
		found = cmp.Or(found, err)
	}
	return found
}

// work gets pieces over one connection at a time until none is missing.
func (t *transfer) work(ctx context.Context, address string) error {
	buffer := t.sink.buffer
	if buffer == nil {
		own := pieceBuffers.Get().(*[]byte)
		defer pieceBuffers.Put(own)
		buffer = func(piece int) []byte { return (*own)[:t.ref.PieceLength(piece)] }
	}
	k := talk{transfer: t, buffer: buffer}
	err := k.all(ctx, address)
	if k.lists {
		t.list.end(nil, err)
	}
	t.giveBack(k.asked)
	return err
}

// pieceBuffers are of the size of a piece.
var pieceBuffers = sync.Pool{New: func() any { b := make([]byte, objects.PieceSize); return &b }}

// accept verifies a piece and hands it to the sink.
func (t *transfer) accept(piece int, content []byte) error {
	if t.list != nil {
		pieces, err := t.list.wait()
		if err == nil {
			err = t.ref.VerifyPiece(pieces, piece, content)
		}
		if err != nil {
			return err
		}
	}
	err := t.sink.accept(piece, content)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.left--
	case !errors.Is(err, objects.ErrDamaged):
		t.failed = err
	}
	return err
}

// take takes a few of the missing pieces: fewer towards the end, so that all
// connections are done at about the same time.
func (t *transfer) take() (span, bool) {
	const most = 8
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.missing) == 0 || t.failed != nil {
		return span{}, false
	}
	s := &t.missing[0]
	n := min(s.count, most, max(1, t.left/(2*t.client.options.Parallel)))
	taken := span{s.first, n}
	if s.first, s.count = s.first+n, s.count-n; s.count == 0 {
		t.missing = t.missing[1:]
	}
	return taken, true
}

func (t *transfer) giveBack(s []span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.missing = append(t.missing, s...)
}
