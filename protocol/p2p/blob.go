package p2p

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/multiformats/go-multihash"

	wire "github.com/futura-run/futura/protocol"
)

// ProtocolBlob moves blobs: the one who wants a blob writes one line with its id and
// an offset, the other answers with one line and then the bytes from there on.
const ProtocolBlob = wire.StreamBlob

// BlobSource opens a blob for a peer and tells its size. It returns an error that
// wraps fs.ErrNotExist if it has none, or not for this peer. The host closes what it
// returned. ctx ends with the transfer.
type BlobSource func(ctx context.Context, to PeerID, id string) (content io.ReadSeekCloser, size int64, err error)

// BlobID returns the id of a blob, by the SHA-256 hash of its bytes: a CIDv1 with the
// raw codec, in base32.
func BlobID(hash [sha256.Size]byte) string {
	digest, err := multihash.Encode(hash[:], multihash.SHA2_256)
	if err != nil {
		return "" // not for this hash and its size
	}
	return cid.NewCidV1(cid.Raw, digest).String()
}

// ParseBlobID returns the hash in a blob's id. It returns ErrBlobID for anything that
// BlobID doesn't return.
func ParseBlobID(id string) (hash [sha256.Size]byte, err error) {
	const longest = 128
	if len(id) > longest {
		return hash, fmt.Errorf("%w: %d characters, at most %d", ErrBlobID, len(id), longest)
	}
	c, err := cid.Decode(id)
	if err != nil {
		return hash, fmt.Errorf("%w: %q: %w", ErrBlobID, id, err)
	}
	digest, err := multihash.Decode(c.Hash())
	if err != nil {
		return hash, fmt.Errorf("%w: %q: %w", ErrBlobID, id, err)
	}
	if copy(hash[:], digest.Digest) < len(hash) || BlobID(hash) != id {
		return hash, fmt.Errorf("%w: %q: a CIDv1 in base32 with the raw codec and a SHA-256 hash is needed", ErrBlobID, id)
	}
	return hash, nil
}

func parseBlobRequest(line []byte) (r wire.BlobRequest, err error) {
	if r, err = wire.DecodeBlobRequest(line); err != nil {
		return r, fmt.Errorf("a request for a blob: %w", err)
	}
	_, err = ParseBlobID(r.ID)
	return r, err
}

// parseBlobAnswer accepts sizes up to limit, and from offset on.
func parseBlobAnswer(line []byte, offset, limit int64) (a wire.BlobResponse, err error) {
	if a, err = wire.DecodeBlobResponse(line); err != nil {
		return a, fmt.Errorf("%w: an answer about a blob: %w", ErrBlobContent, err)
	}
	switch a.Code {
	case wire.CodeOK:
	case wire.CodeNotFound:
		return a, ErrBlobUnknown
	case wire.CodeUnavailable:
		return a, ErrBusy
	default:
		return a, fmt.Errorf("%w: the peer refused, with code %.20q", ErrBlobContent, a.Code)
	}
	switch {
	case a.Size > limit:
		return a, fmt.Errorf("%w: the blob has %d bytes, at most %d", ErrTooLarge, a.Size, limit)
	case a.Size < offset:
		return a, fmt.Errorf("%w: the peer says that it has %d bytes, but %d are here", ErrBlobContent, a.Size, offset)
	}
	return a, nil
}

// readLine reads up to a newline, of which it returns what is before.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if len(line) > wire.MaxLine || errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrTooLarge, wire.MaxLine)
	}
	if err != nil {
		return nil, err
	}
	return line[:len(line)-1], nil
}

// ServeBlobs sets where peers get blobs from. The host announces ProtocolBlob from
// then on. It serves Limits.Blobs at once, Limits.PeerBlobs of them to one peer, with
// 64 KiB of memory each; a peer that takes less than Limits.MinRate bytes per second
// is cut off. While others wait, one is served for ten seconds at a time: a fetch goes on
// where it was.
func (h *Host) ServeBlobs(source BlobSource) {
	if h.blobs.Swap(&source) == nil {
		h.node.SetStreamHandler(ProtocolBlob, h.giveBlob)
	}
}

// giveBlob handles a stream of ProtocolBlob.
func (h *Host) giveBlob(s network.Stream) {
	if !h.begin() {
		_ = s.Reset()
		return
	}
	defer h.end()
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	if err := h.giveBlobOn(ctx, s); err != nil {
		h.counts.refuse(err)
		_ = s.Reset()
		h.log.Debug("a blob was not served", "peer", s.Conn().RemotePeer().String(), "error", err)
	}
}

func (h *Host) giveBlobOn(ctx context.Context, s network.Stream) error {
	share, release := h.table.use(s.Conn().RemotePeer())
	defer release()
	if err := h.table.pass(ctx, share, h.limits.MessageTimeout); err != nil {
		return err
	}
	p := h.newPace(s)
	line, err := readLine(bufio.NewReaderSize(p, wire.MaxLine))
	if err != nil {
		return err
	}
	request, err := parseBlobRequest(line)
	if err != nil {
		return errors.Join(err, answerBlob(s, p, wire.CodeInvalid))
	}
	waiting, stop := context.WithTimeout(ctx, h.limits.MessageTimeout/2)
	defer stop()
	turn, err := h.takeTurn(waiting, share.blobs, h.table.all.blobs)
	if err != nil {
		return answerBlob(s, p, wire.CodeUnavailable)
	}
	defer turn.giveBack()
	content, size, err := (*h.blobs.Load())(ctx, nameOf(s.Conn().RemotePeer()), request.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return answerBlob(s, p, wire.CodeNotFound)
	}
	if err != nil {
		h.log.Warn("a blob can't be read", "blob", request.ID, "error", err)
		return answerBlob(s, p, wire.CodeUnavailable)
	}
	defer func() { _ = content.Close() }() // it was only read
	if request.Offset > size {
		return answerBlob(s, p, wire.CodeInvalid)
	}
	return h.copyBlob(s, content, request.Offset, size, turn)
}

// answerBlob ends a stream with a code.
func answerBlob(s network.Stream, p *pace, code wire.Code) error {
	line, err := (&wire.BlobResponse{Code: code}).Line()
	if err == nil {
		_, err = p.Write(line)
	}
	return errors.Join(err, s.Close())
}

// blobStretch is how many bytes of a blob have a deadline together, so that a fast
// beginning doesn't pay for a slow end.
const blobStretch = 1 << 20

// blobPiece is how much memory a transfer takes on either side.
const blobPiece = 64 << 10

func (h *Host) copyBlob(s network.Stream, content io.ReadSeeker, offset, size int64, turn *turn) error {
	if _, err := content.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	p := h.newPace(s)
	p.stretch = blobStretch
	line, err := (&wire.BlobResponse{Code: wire.CodeOK, Size: size}).Line()
	if err != nil {
		return err
	}
	if _, err := p.Write(line); err != nil {
		return err
	}
	buffer := make([]byte, blobPiece)
	for offset < size {
		if turn.isOver() {
			return errTurn
		}
		begin := time.Now()
		n, err := io.ReadFull(content, buffer[:min(blobPiece, size-offset)])
		p.allow(time.Since(begin)) // the peer is not to blame
		if err == nil {
			_, err = p.Write(buffer[:n])
		}
		if err != nil {
			return err
		}
		offset += int64(n)
		h.counts.blobBytesGiven.Add(int64(n))
	}
	h.counts.blobsGiven.Add(1)
	return s.Close()
}
