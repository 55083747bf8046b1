package peerhead

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/workers"
)

const (
	// peerFetches are how many values of one peer are fetched at a time. The network bounds
	// those of all, and has them take turns.
	peerFetches = 2
	// tellAfter is how long a transfer takes before the future says how far it is.
	tellAfter = 2 * time.Second
)

// errUnserved is returned for a value whose peer is not known any more.
var errUnserved = errors.New("the peer that has the value is gone")

// held is a value that a peer serves as a blob.
type held struct {
	from PeerID
	blob protocol.Blob
}

// blobValue is the value of an outcome, which some peers have: workers.RemoteValue.
type blobValue struct {
	head *Head
	at   attempt // whose value it is
	held []held  // all the same content
}

// Size implements workers.RemoteValue.
func (v *blobValue) Size() int64 { return v.held[0].blob.Size }

// Fetch implements workers.RemoteValue. It goes on where an earlier fetch for the future was
// cut, by this head or one before it, as far as the store still has that. If it turns out
// that that was of another content, everything is fetched.
func (v *blobValue) Fetch(ctx context.Context, to *results.Upload) error {
	h := v.head
	name := partName{v.at.id, v.held[0].blob.ID}
	if old := h.parts.take(name); old != nil {
		_, _ = io.Copy(to, old.Reader(ctx)) // what it can't read is fetched
	} else {
		_, _ = to.Resume(ctx, v.Size())
	}
	var errs []error
	for _, one := range v.held {
		had := to.Written() > 0
		err := h.fetch(ctx, v.at.id, one, to)
		if had && errors.Is(err, p2p.ErrBlobContent) {
			to.Rewind()
			err = h.fetch(ctx, v.at.id, one, to)
		}
		if err == nil {
			return nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, p2p.ErrBlobContent) {
			if p := h.peer(one.from); p != nil {
				p.refused.Add(1)
				p.fault(1)
			}
			to.Rewind() // it is not known from where on it is wrong
		}
	}
	h.parts.put(name, to)
	return errors.Join(errs...)
}

// serves reports whether the value of an outcome is here, or can be fetched now.
func (h *Head) serves(out *workers.RemoteOutcome) bool {
	v, large := out.Large.(*blobValue)
	if !large {
		return true
	}
	p := h.peer(v.held[0].from)
	return p != nil && p.isConnected()
}

// fetch writes to to what it lacks of a value that a peer has.
func (h *Head) fetch(ctx context.Context, future layout.ID, one held, to *results.Upload) error {
	p := h.peer(one.from)
	if p == nil {
		return errUnserved
	}
	t := p.transferring(transferResult, future.String(), to.Written(), one.blob.Size)
	defer t.end()
	if err := p.fetches.Acquire(ctx, 1); err != nil {
		return err
	}
	defer p.fetches.Release(1)
	o := p2p.FetchOptions{Limit: one.blob.Size, Progress: func(done, total int64) {
		p.hear(0)
		t.at(done)
		if h.clock.Now().Sub(t.since) >= tellAfter {
			_ = workers.Progress(ctx, done, total, "bytes of its result have come from its peer") // no function fails for it
		}
	}}
	if to.Written() > 0 {
		o.Have = to.Reader(ctx)
	}
	if err := h.options.Network.FetchBlob(ctx, one.from, one.blob.ID, to, o); err != nil {
		return fmt.Errorf("the value was not fetched: %w", err)
	}
	return nil
}
