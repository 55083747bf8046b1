package peer

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/futura-run/futura/workers/objects"
)

// Get fills into, whose length is the object's size, with an object. Sources are
// addresses, unix:PATH or tcp:HOST:PORT, that are tried in turn. What is in the
// buffer after an error is not the object.
func (c *Client) Get(ctx context.Context, into []byte, ref objects.Ref, sources ...string) error {
	if int64(len(into)) != ref.Size {
		return fmt.Errorf("objects: %s does not fit a buffer of %d bytes exactly", ref, len(into))
	}
	if err := ref.Valid(); err != nil {
		return err
	}
	if ref.Size == 0 {
		return ref.Verify(nil)
	}
	return c.getRange(ctx, into, ref, nil, span{0, ref.Pieces()}, sources)
}

// getRange gets the pieces of a span, and their hashes as well where it is not given
// them.
func (c *Client) getRange(ctx context.Context, into []byte, ref objects.Ref, pieces []objects.Hash, s span,
	sources []string,
) error {
	if s.count == 0 {
		return nil
	}
	t := &transfer{client: c, ref: ref, missing: []span{s}, left: s.count}
	if pieces == nil && ref.Pieces() > 1 {
		t.list = &listing{}
	}
	t.sink = sink{
		buffer: func(piece int) []byte {
			at := (piece - s.first) * objects.PieceSize
			return into[at : at+ref.PieceLength(piece)]
		},
		accept: func(piece int, content []byte) error {
			switch {
			case t.list != nil:
				return nil // it is verified
			case pieces != nil:
				return ref.VerifyPiece(pieces, piece, content)
			}
			// The only piece says what the list would be.
			return ref.Verify([]objects.Hash{objects.HashPiece(content)})
		},
	}
	return t.from(ctx, sources)
}

// pieces gets and verifies the hashes of an object's pieces. One of at most one
// piece needs none.
func (c *Client) pieces(ctx context.Context, ref objects.Ref, sources []string) (pieces []objects.Hash, err error) {
	if err := ref.Valid(); err != nil {
		return nil, err
	}
	switch ref.Pieces() {
	case 0:
		return nil, ref.Verify(nil)
	case 1:
		return nil, nil
	}
	err = c.rounds(ctx, sources, ref, func(address string) (progress bool, err error) {
		pieces, err = c.list(ctx, address, ref)
		return false, err
	})
	return pieces, err
}

// Pieces returns the verified hashes of an object's pieces, none for one of at most
// one piece. GetPieces takes them.
func (c *Client) Pieces(ctx context.Context, ref objects.Ref, sources ...string) ([]objects.Hash, error) {
	return c.pieces(ctx, ref, sources)
}

// GetPieces fills into with the pieces of an object from one on, all but the
// object's last of objects.PieceSize bytes. pieces is what Pieces returned. What is in
// the buffer after an error is not the object.
func (c *Client) GetPieces(ctx context.Context, into []byte, ref objects.Ref, pieces []objects.Hash, first int,
	sources ...string,
) error {
	offset := int64(first) * objects.PieceSize
	end := offset + int64(len(into))
	if first < 0 || end > ref.Size || end < ref.Size && end%objects.PieceSize != 0 {
		return fmt.Errorf("objects: %d bytes from piece %d are not whole pieces of %s", len(into), first, ref)
	}
	count := (len(into) + objects.PieceSize - 1) / objects.PieceSize
	return c.getRange(ctx, into, ref, pieces, span{first, count}, sources)
}

// copyWindow is how many pieces Copy has in memory, in each of two parts.
const copyWindow = 16

// Copy writes an object to w, in order and verified, with at most 16 MiB of it in
// memory, and returns how many bytes w took.
func (c *Client) Copy(ctx context.Context, w io.Writer, ref objects.Ref, sources ...string) (int64, error) {
	pieces, err := c.pieces(ctx, ref, sources)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type part struct {
		content []byte
		err     error
	}
	parts, free := make(chan part), make(chan []byte, 2)
	size := min(ref.Size, copyWindow*objects.PieceSize)
	free <- make([]byte, size)
	if ref.Size > size {
		free <- make([]byte, size)
	}
	var getting sync.WaitGroup
	defer getting.Wait()
	defer cancel()
	getting.Go(func() {
		defer close(parts)
		for first := 0; first < ref.Pieces(); first += copyWindow {
			var into []byte
			select {
			case into = <-free:
			case <-ctx.Done():
				return
			}
			s := span{first, min(copyWindow, ref.Pieces()-first)}
			into = into[:min(int64(cap(into)), ref.Size-int64(first)*objects.PieceSize)]
			p := part{content: into, err: c.getRange(ctx, into, ref, pieces, s, sources)}
			select {
			case parts <- p:
			case <-ctx.Done():
				return
			}
			if p.err != nil {
				return
			}
		}
	})
	var written int64
	for p := range parts {
		if p.err != nil {
			return written, p.err
		}
		n, err := w.Write(p.content)
		written += int64(n)
		if err != nil {
			return written, err
		}
		free <- p.content[:cap(p.content)]
	}
	return written, ctx.Err()
}
