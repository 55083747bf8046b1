//go:build !linux

package wasm

import (
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// memories makes the memory of instances, anew for each.
type memories struct{}

// linearMemory is the memory of one instance.
type linearMemory struct {
	bytes   []byte
	limit   uint64
	peak    atomic.Uint64
	refused bool // more than the limit was asked for
}

func (m *memories) get(limit uint64) *linearMemory { return &linearMemory{limit: limit} }

func (m *memories) put(memory *linearMemory) { memory.bytes = nil }

func (m *memories) close() {}

// Allocate implements experimental.MemoryAllocator.
func (m *linearMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements experimental.LinearMemory.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.refused = true
		return nil
	}
	if grown := int(size) - len(m.bytes); grown > 0 {
		m.bytes = append(m.bytes, make([]byte, grown)...)
	}
	m.peak.Store(max(m.peak.Load(), size))
	return m.bytes[:size:size]
}

// Free implements experimental.LinearMemory.
func (m *linearMemory) Free() {}
