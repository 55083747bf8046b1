//go:build !linux

package wasm

import (
	"bytes"
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// memories makes the memory of instances, anew for each.
type memories struct{}

// linearMemory is the memory of one instance.
type linearMemory struct {
	bytes      []byte
	limit      uint64
	peak       atomic.Uint64
	refused    bool // more than the limit was asked for
	image      []byte
	hadRefused bool // when the image was kept
}

func (m *memories) get(limit uint64) *linearMemory { return &linearMemory{limit: limit} }

func (m *memories) put(memory *linearMemory) { memory.bytes, memory.image = nil, nil }

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

// keep makes the content an image of the memory.
func (m *linearMemory) keep() { m.image, m.hadRefused = bytes.Clone(m.bytes), m.refused }

// restore gives the memory the size and the content of its image.
func (m *linearMemory) restore() (content []byte, restored bool) {
	m.bytes, m.refused = bytes.Clone(m.image), m.hadRefused
	m.peak.Store(uint64(len(m.bytes)))
	return m.bytes, true
}

// held is how many bytes the memory takes while it waits.
func (m *linearMemory) held() int64 { return int64(len(m.bytes) + len(m.image)) }
