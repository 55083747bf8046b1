package p2p

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/futura-run/futura/internal/clock"
	wire "github.com/futura-run/futura/protocol"
)

// FetchOptions are the options of FetchBlob. All fields may be left out.
type FetchOptions struct {
	// Limit is the size of the largest blob to take, in bytes. The default is 1 GiB.
	Limit int64
	// Have are the bytes that an earlier fetch of the blob has written: it goes on after
	// them. They are read once, for the hash.
	Have io.Reader
	// Patience is how long to try without a single byte of the blob. The default is two
	// minutes.
	Patience time.Duration
	// Rate is how many bytes per second have to come on average, beside Patience. The
	// default is half of Limits.MinRate. The time in which others have their turn does not
	// count.
	Rate int64
	// Progress is called now and then and at the end, by the fetch itself. done counts
	// the bytes of Have too.
	Progress func(done, total int64)
}

// FetchBlob writes a blob that a peer has to w, in order, each byte once. It needs 64
// KiB of memory beside the connection's buffers, whatever the blob's size. When the
// connection is cut, or the peer is busy or slow, it goes on where it was, after a
// pause, as long as FetchOptions.Patience allows. Limits.Blobs fetches run at once, and
// Limits.PeerBlobs of them from one peer; while others wait, each has turns of ten seconds.
//
// A nil error means that w has all of the blob and that its content has its id: on
// every other, what was written is not verified. The errors are ErrBlobID,
// ErrBlobUnknown if the peer does not have it, ErrBlobContent if the peer sent other
// bytes, ErrTooLarge, ErrUnsupported, ErrDenied, w's own, ctx's, and the last one when
// patience ran out.
func (h *Host) FetchBlob(ctx context.Context, from PeerID, id string, w io.Writer, o FetchOptions) error {
	want, err := ParseBlobID(id)
	if err != nil {
		return err
	}
	p, err := decodePeer(from)
	if err != nil {
		return err
	}
	orDefault(&o.Limit, 1<<30)
	orDefault(&o.Patience, 2*time.Minute)
	orDefault(&o.Rate, max(1, h.limits.MinRate/2))
	if !h.begin() {
		return ErrClosed
	}
	defer h.end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.ctx, func() { cancel(ErrClosed) })()
	f := &fetch{host: h, peer: p, id: id, sink: w, options: o, hash: sha256.New(), total: -1}
	if o.Have != nil {
		if f.done, err = io.Copy(f.hash, io.LimitReader(o.Have, o.Limit)); err != nil {
			return fmt.Errorf("p2p: blob %s: what is here of it: %w", id, err)
		}
	}
	if err := f.run(ctx); err != nil {
		return fmt.Errorf("p2p: blob %s from %s: %w", id, from, err)
	}
	if [sha256.Size]byte(f.hash.Sum(nil)) != want {
		return fmt.Errorf("%w: blob %s from %s: %d bytes with another hash", ErrBlobContent, id, from, f.done)
	}
	h.counts.blobsTaken.Add(1)
	return nil
}

// fetch is a blob on its way.
type fetch struct {
	host    *Host
	peer    peer.ID
	id      string
	sink    io.Writer
	options FetchOptions
	hash    hash.Hash
	done    int64
	total   int64         // -1 before the peer has said it
	turn    *turn         // while it has one
	took    time.Duration // without the turns of others
	still   time.Duration // of that, since the last byte
	came    int64
}

// finalError ends a fetch: trying again can't help.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// run tries until all bytes are here.
func (f *fetch) run(ctx context.Context) error {
	h := f.host
	share, release := h.table.use(f.peer)
	defer release()
	for failures := 0; ; {
		var err error
		if f.turn, err = h.takeTurn(ctx, share.fetches, h.table.all.fetches); err != nil {
			return context.Cause(ctx)
		}
		before, begin := f.done, h.clock.Now()
		err = f.try(ctx)
		f.turn.giveBack()
		if err == nil {
			return nil
		}
		if final := (finalError{}); errors.As(err, &final) {
			return final.error
		}
		f.count(h.clock.Now().Sub(begin), f.done-before)
		if errors.Is(err, errTurn) {
			continue
		}
		if f.done > before {
			failures = 0
		}
		failures++
		if err := f.exhausted(err); err != nil {
			return err
		}
		h.counts.blobCuts.Add(1)
		wait := backoff(failures, h.options.RedialMin, h.options.RedialMax, rand.Float64())
		h.log.Info("a blob was cut off", "blob", f.id, "peer", f.peer.String(), "at", f.done, "error", err, "again_in", wait)
		if clock.Sleep(ctx, h.clock, wait) != nil {
			return context.Cause(ctx)
		}
		f.count(wait, 0)
	}
}

// count adds a time in which some bytes have come.
func (f *fetch) count(took time.Duration, bytes int64) {
	f.took, f.still, f.came = f.took+took, f.still+took, f.came+bytes
	if bytes > 0 {
		f.still = 0
	}
}

// exhausted returns why there is no other try after one that failed with err, nil if there
// is.
func (f *fetch) exhausted(err error) error {
	o := &f.options
	switch due := time.Duration(float64(f.came) / float64(o.Rate) * float64(time.Second)); {
	case f.still >= o.Patience:
		return fmt.Errorf("%d of %d bytes, and none in %v: %w", f.done, f.total, o.Patience, err)
	case f.took >= o.Patience+due:
		return fmt.Errorf("%d of %d bytes, and less than %d a second: %w", f.done, f.total, o.Rate, err)
	}
	return nil
}

// try asks for what is missing and takes what comes.
func (f *fetch) try(ctx context.Context) error {
	s, err := f.host.openStream(ctx, f.peer, ProtocolBlob)
	switch {
	case context.Cause(ctx) != nil:
		return finalError{context.Cause(ctx)}
	case errors.Is(err, ErrUnsupported), errors.Is(err, ErrDenied):
		return finalError{err}
	case err != nil:
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	err = f.tryOn(s)
	if err == nil {
		return s.Close()
	}
	_ = s.Reset()
	if context.Cause(ctx) != nil {
		return finalError{context.Cause(ctx)}
	}
	if isUnsupported(err) {
		_ = f.host.node.Peerstore().RemoveProtocols(f.peer, ProtocolBlob)
	}
	return err
}

func (f *fetch) tryOn(s network.Stream) error {
	p := f.host.newPace(s)
	p.stretch = blobStretch
	line, err := (&wire.BlobRequest{ID: f.id, Offset: f.done}).Line()
	if err != nil {
		return finalError{err}
	}
	if _, err := p.Write(line); err != nil {
		return err
	}
	if err := s.CloseWrite(); err != nil {
		return err
	}
	p.allow(f.host.limits.MessageTimeout) // the peer waits for its turn
	r := bufio.NewReaderSize(p, blobPiece)
	line, err = readLine(r)
	if err != nil {
		return err
	}
	answer, err := parseBlobAnswer(line, f.done, f.options.Limit)
	switch {
	case errors.Is(err, ErrBusy):
		return err
	case err != nil:
		return finalError{err}
	case f.total >= 0 && f.total != answer.Size:
		return finalError{fmt.Errorf("%w: its size was %d and is %d", ErrBlobContent, f.total, answer.Size)}
	}
	f.total = answer.Size
	return f.receive(r, p)
}

// receive takes bytes up to the blob's end.
func (f *fetch) receive(r *bufio.Reader, p *pace) error {
	const step = 256 << 10
	reported := f.done
	buffer := make([]byte, blobPiece/2)
	for f.done < f.total {
		n, err := r.Read(buffer[:min(int64(len(buffer)), f.total-f.done)])
		if n > 0 {
			begin := time.Now()
			if _, err := f.sink.Write(buffer[:n]); err != nil {
				return finalError{err}
			}
			_, _ = f.hash.Write(buffer[:n]) // never fails
			f.done += int64(n)
			f.host.counts.blobBytesTaken.Add(int64(n))
			p.allow(time.Since(begin)) // the peer is not to blame
			if f.done < f.total && f.turn.isOver() {
				return errTurn
			}
			if f.options.Progress != nil && f.done-reported >= step && f.done < f.total {
				reported = f.done
				f.options.Progress(f.done, f.total)
			}
		}
		if err != nil && f.done < f.total {
			return fmt.Errorf("after %d of %d bytes: %w", f.done, f.total, err)
		}
	}
	if f.options.Progress != nil {
		f.options.Progress(f.done, f.total)
	}
	return nil
}
