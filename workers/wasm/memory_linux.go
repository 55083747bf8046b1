package wasm

import (
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/tetratelabs/wazero/experimental"
)

// clearedByHand is the size up to which a memory is overwritten with zeros
// after its use. A larger one goes back to the kernel.
const clearedByHand = 128 * kibibyte

// memories keeps the address ranges of instances for the next ones: a range is
// reserved once, and only what an instance has of it can be accessed.
type memories struct {
	mu   sync.Mutex
	free []*linearMemory
}

// linearMemory is the memory of one instance at a time. All of its bytes are
// zero between two uses.
type linearMemory struct {
	reserved  []byte
	committed uint64 // bytes from the start that can be accessed
	limit     uint64
	size      uint64
	peak      atomic.Uint64
	refused   bool // more than the limit was asked for
}

func (m *memories) get(limit uint64) *linearMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.free); n > 0 {
		memory := m.free[n-1]
		m.free = m.free[:n-1]
		memory.limit = limit
		return memory
	}
	return &linearMemory{limit: limit}
}

// put takes a memory back once no instance uses it any more.
func (m *memories) put(memory *linearMemory) {
	if !memory.wipe() {
		memory.unmap()
	}
	*memory = linearMemory{reserved: memory.reserved, committed: memory.committed}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = append(m.free, memory)
}

func (m *memories) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, memory := range m.free {
		memory.unmap()
	}
	m.free = nil
}

// Allocate implements experimental.MemoryAllocator.
func (m *linearMemory) Allocate(_, most uint64) experimental.LinearMemory {
	span := max(min(most, m.limit), 64*kibibyte)
	if uint64(len(m.reserved)) < span {
		m.unmap()
		reserved, err := syscall.Mmap(-1, 0, int(span), syscall.PROT_NONE,
			syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
		if err != nil {
			return m // Reallocate refuses
		}
		m.reserved = reserved
	}
	return m
}

// Reallocate implements experimental.LinearMemory.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit || size > uint64(len(m.reserved)) {
		m.refused = true
		return nil
	}
	if size > m.committed {
		grown := m.reserved[m.committed:size]
		if err := syscall.Mprotect(grown, syscall.PROT_READ|syscall.PROT_WRITE); err != nil {
			m.refused = true
			return nil
		}
		m.committed = size
	}
	m.size = size
	m.peak.Store(max(m.peak.Load(), size))
	return m.reserved[:size:size]
}

// Free implements experimental.LinearMemory. The memory is wiped when it is put
// back.
func (m *linearMemory) Free() {}

func (m *linearMemory) wipe() bool {
	used := m.reserved[:m.peak.Load()]
	if len(used) <= clearedByHand {
		clear(used)
		return true
	}
	return syscall.Madvise(used, syscall.MADV_DONTNEED) == nil
}

func (m *linearMemory) unmap() {
	if m.reserved != nil {
		_ = syscall.Munmap(m.reserved)
	}
	m.reserved, m.committed = nil, 0
}
