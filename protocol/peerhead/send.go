package peerhead

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/fdbmodel/results"
)

// OpenModule opens a module of the cluster for a peer, by its content id: a
// p2p.BlobSource. It is read as the peer takes it; what several peers take at about the
// same time is read once. It returns fs.ErrNotExist for a module that the cluster does not
// have, and for a stranger.
func (h *Head) OpenModule(ctx context.Context, to PeerID, id string) (io.ReadSeekCloser, int64, error) {
	p := h.peer(to)
	if p == nil || p.membership() == nil {
		return nil, 0, fmt.Errorf("%w: modules are for peers that have said hello", fs.ErrNotExist)
	}
	r, err := modules.Of(h.options.Cluster).Open(ctx, id)
	if errors.Is(err, fdbmodel.ErrNotFound) {
		return nil, 0, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, 0, err
	}
	content := results.NewSeeker(ctx, &sharedModule{Reader: r, id: id, pieces: &h.pieces})
	return &sentModuleReader{content, p.transferring(transferModule, id, 0, r.Size())}, r.Size(), nil
}

// sentModuleReader is a module while a peer takes it.
type sentModuleReader struct {
	*results.Seeker
	*transfer
}

// Read implements io.Reader.
func (m *sentModuleReader) Read(p []byte) (int, error) {
	n, err := m.Seeker.Read(p)
	m.done.Add(int64(n))
	return n, err
}

// Seek implements io.Seeker.
func (m *sentModuleReader) Seek(offset int64, whence int) (int64, error) {
	at, err := m.Seeker.Seek(offset, whence)
	m.at(at)
	return at, err
}

// Close implements io.Closer.
func (m *sentModuleReader) Close() error {
	m.end()
	return nil
}

// maxPieces are the pieces of modules that are in memory, of up to 512 KiB.
const maxPieces = 32

// pieces are the pieces of modules that were read last.
type pieces struct {
	reading singleflight.Group

	mu    sync.Mutex
	by    map[string][]byte
	order []string // the oldest first
}

func (c *pieces) get(name string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[name]
}

func (c *pieces) put(name string, piece []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string][]byte{}
	}
	if c.by[name] == nil {
		if len(c.order) == maxPieces {
			delete(c.by, c.order[0])
			c.order = append(c.order[:0], c.order[1:]...)
		}
		c.order = append(c.order, name)
	}
	c.by[name] = piece
}

// sharedModule is a module whose pieces several readers share.
type sharedModule struct {
	*modules.Reader
	id     string
	pieces *pieces
}

// ReadAt implements results.Sections.
func (m *sharedModule) ReadAt(ctx context.Context, p []byte, offset int64) error {
	name := fmt.Sprintf("%s/%d/%d", m.id, offset, len(p))
	for {
		if piece := m.pieces.get(name); piece != nil {
			copy(p, piece)
			return nil
		}
		reads := false
		read, err, _ := m.pieces.reading.Do(name, func() (any, error) {
			reads = true
			piece := make([]byte, len(p))
			if err := m.Reader.ReadAt(ctx, piece, offset); err != nil {
				return nil, err
			}
			m.pieces.put(name, piece)
			return piece, nil
		})
		switch {
		case err == nil:
			copy(p, read.([]byte))
			return nil
		case ctx.Err() != nil || reads:
			return err
		} // another reader failed, maybe because its context has ended
	}
}
