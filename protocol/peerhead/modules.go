package peerhead

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/futura-run/futura/fdbmodel"
)

// moduleCache has the modules that are being sent, each once.
type moduleCache struct {
	mu    sync.Mutex
	by    map[string]*sentModule
	bytes int64
}

// maxSending is beyond how many bytes of modules that are being sent no other one is read.
const maxSending = 512 << 20

// errSending has a peer ask again: a host answers that it is busy.
var errSending = fmt.Errorf("peerhead: more than %d bytes of modules are being sent: ask again", maxSending)

type sentModule struct {
	users int
	ready chan struct{} // closed once code or err is set
	code  []byte
	err   error
}

// OpenModule opens a module of the cluster for a peer, by its content id: a
// p2p.BlobSource. However many peers get it at once, it is in memory once. It returns
// fs.ErrNotExist for a module that the cluster does not have, and for a stranger. While
// many large ones are in memory it refuses further ones.
func (h *Head) OpenModule(ctx context.Context, to PeerID, id string) (io.ReadSeekCloser, int64, error) {
	if p := h.peer(to); p == nil || p.membership() == nil {
		return nil, 0, fmt.Errorf("%w: modules are for peers that have said hello", fs.ErrNotExist)
	}
	m := h.modules.use(id, func() ([]byte, error) { return h.options.Cluster.GetModule(ctx, id) })
	select {
	case <-m.ready:
	case <-ctx.Done():
		h.modules.leave(id, m)
		return nil, 0, ctx.Err()
	}
	if m.err != nil {
		h.modules.leave(id, m)
		if errors.Is(m.err, fdbmodel.ErrNotFound) {
			return nil, 0, fmt.Errorf("%w: %w", fs.ErrNotExist, m.err)
		}
		return nil, 0, m.err
	}
	return &openModule{Reader: bytes.NewReader(m.code), leave: sync.OnceFunc(func() { h.modules.leave(id, m) })},
		int64(len(m.code)), nil
}

// use returns a module, which load reads for its first user.
func (c *moduleCache) use(id string, load func() ([]byte, error)) *sentModule {
	c.mu.Lock()
	m := c.by[id]
	first := m == nil
	if first && c.bytes >= maxSending {
		c.mu.Unlock()
		m = &sentModule{ready: make(chan struct{}), err: errSending}
		close(m.ready)
		return m
	}
	if first {
		m = &sentModule{ready: make(chan struct{})}
		c.by[id] = m
		c.bytes += fdbmodel.MaxModule // until its size is known
	}
	m.users++
	c.mu.Unlock()
	if first {
		m.code, m.err = load()
		c.mu.Lock()
		if m.err != nil { // the next user tries again
			delete(c.by, id)
		}
		c.bytes += int64(len(m.code)) - fdbmodel.MaxModule
		c.mu.Unlock()
		close(m.ready)
	}
	return m
}

// leave ends a use. The last one frees the memory.
func (c *moduleCache) leave(id string, m *sentModule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.users--; m.users == 0 && c.by[id] == m {
		delete(c.by, id)
		c.bytes -= int64(len(m.code))
	}
}

// openModule is a module while a peer reads it.
type openModule struct {
	*bytes.Reader
	leave func()
}

// Close implements io.Closer.
func (m *openModule) Close() error {
	m.leave()
	return nil
}
