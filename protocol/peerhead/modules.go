package peerhead

import (
	"fmt"
	"sync"

	"github.com/futura-run/futura/fdbmodel/modules"
)

// moduleCache has the archives of modules that are being sent to nodes of b7s, each once.
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
		c.bytes += modules.MaxSize // until its size is known
	}
	m.users++
	c.mu.Unlock()
	if first {
		m.code, m.err = load()
		c.mu.Lock()
		if m.err != nil { // the next user tries again
			delete(c.by, id)
		}
		c.bytes += int64(len(m.code)) - modules.MaxSize
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
