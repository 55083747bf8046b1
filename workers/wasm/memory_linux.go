package wasm

import (
	"bytes"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/tetratelabs/wazero/experimental"
)

// clearedByHand is up to where a memory is overwritten with zeros after its use
// and stays with the process, in blocks that have been touched. What is beyond goes
// back to the kernel: for memory that is used again that takes several times as
// long.
const (
	clearedByHand = 16 * mebibyte
	clearedBlock  = 64 * kibibyte // a page of WebAssembly
	// lookEvery is how many uses of a range pass until it is looked at again which
	// blocks have been touched. Those that are not known to be go back to the kernel.
	lookEvery = 16
	// maxSpare is how many ranges wait that no instance has.
	maxSpare = 8
)

// memories keeps the address ranges of instances for the next ones: a range is
// reserved once, and only what an instance has of it can be accessed.
type memories struct {
	mu   sync.Mutex
	free []*linearMemory
}

// linearMemory is the memory of one instance at a time. Between two uses its bytes are
// those of its image, or zero where that has none.
type linearMemory struct {
	reserved   []byte
	committed  uint64 // bytes from the start that can be accessed
	limit      uint64
	size       uint64
	peak       atomic.Uint64
	refused    bool // more than the limit was asked for
	history    history
	image      [][]byte // a block of clearedBlock bytes each, nil for zeros
	hadRefused bool     // when the image was kept
}

// history is what is known of the uses of a range.
type history struct {
	uses    int
	touched [clearedByHand / clearedBlock]bool
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
	memory.image = nil
	if !memory.wipe() || !memory.withdraw(clearedByHand) {
		memory.unmap()
	}
	*memory = linearMemory{reserved: memory.reserved, committed: memory.committed, history: memory.history}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.free) == maxSpare {
		memory.unmap()
		return
	}
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

// keep makes the content an image of the memory.
func (m *linearMemory) keep() {
	m.hadRefused, m.image = m.refused, make([][]byte, m.size/clearedBlock)
	for i := range m.image {
		block := m.reserved[i*clearedBlock:][:clearedBlock]
		if bytes.Equal(block, zeros[:]) {
			giveBack(block) // a page that was only read takes memory
			continue
		}
		m.image[i] = bytes.Clone(block)
	}
}

var zeros [clearedBlock]byte

// restore gives the memory the size and the content of its image, and reports whether it could.
func (m *linearMemory) restore() (content []byte, restored bool) {
	if !m.wipe() {
		return nil, false
	}
	m.size, m.refused = uint64(len(m.image))*clearedBlock, m.hadRefused
	m.peak.Store(m.size)
	return m.reserved[:m.size:m.size], m.withdraw(max(m.size, clearedByHand))
}

// withdraw ends the access to what is beyond so many bytes, which then no longer counts towards what the process
// may have, and reports whether it could.
func (m *linearMemory) withdraw(beyond uint64) bool {
	if m.committed <= beyond {
		return true
	}
	if syscall.Mprotect(m.reserved[beyond:m.committed], syscall.PROT_NONE) != nil {
		return false
	}
	m.committed = beyond
	return true
}

// held is how many bytes the memory can take while it waits.
func (m *linearMemory) held() int64 {
	held := int64(m.committed)
	for _, block := range m.image {
		held += int64(len(block))
	}
	return held
}

// wipe reports whether all bytes are those of the image afterwards.
func (m *linearMemory) wipe() bool {
	used := m.reserved[:m.peak.Load()]
	near := used[:min(len(used), clearedByHand)]
	if m.history.uses%lookEvery == 0 {
		m.history.look(near)
	}
	m.history.uses++
	wiped, kept := true, 0
	for at := 0; at < len(used); at += clearedBlock {
		block := at / clearedBlock
		hasImage := block < len(m.image) && m.image[block] != nil
		if !hasImage && (at >= len(near) || !m.history.touched[block]) {
			continue
		}
		wiped = giveBack(used[kept:at]) && wiped
		if hasImage {
			copyChanged(used[at:], m.image[block])
		} else {
			clear(used[at : at+clearedBlock])
		}
		kept = at + clearedBlock
	}
	return giveBack(used[kept:]) && wiped
}

// copyChanged copies the pages that differ: most don't, and reading takes half as long as writing.
func copyChanged(to, from []byte) {
	for at := 0; at < len(from); at += smallestPage {
		if page := from[at:][:smallestPage]; !bytes.Equal(to[at:][:smallestPage], page) {
			copy(to[at:], page)
		}
	}
}

// look notes the blocks that have a page in memory. One without may have content
// too, which was swapped out.
func (h *history) look(memory []byte) {
	var resident [clearedByHand / smallestPage]byte // of each page, whether it takes memory
	if len(memory) == 0 || !findResident(memory, resident[:]) {
		return
	}
	pages := clearedBlock / os.Getpagesize()
	for block := range len(memory) / clearedBlock {
		h.touched[block] = bytes.Count(resident[block*pages:(block+1)*pages], untouched) < pages
	}
}

// giveBack gives memory back to the kernel, also what it has swapped out.
func giveBack(memory []byte) bool {
	return len(memory) == 0 || syscall.Madvise(memory, syscall.MADV_DONTNEED) == nil
}

const smallestPage = 4 * kibibyte

var untouched = []byte{0}

// findResident sets the lowest bit for each page that is in memory.
func findResident(memory, pages []byte) bool {
	_, _, errno := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&memory[0])), uintptr(len(memory)),
		uintptr(unsafe.Pointer(&pages[0])))
	return errno == 0
}

func (m *linearMemory) unmap() {
	if m.reserved != nil {
		_ = syscall.Munmap(m.reserved)
	}
	m.reserved, m.committed, m.history = nil, 0, history{}
}
