package embedded

import "encoding/binary"

// ref says where a block lies in an arena: the number of its chunk, times 2^16,
// and its offset there. Zero is nowhere.
type ref uint64

const (
	refOffsetBits = 16
	// refBits is how many bits of a ref are used.
	refBits = 48
)

const (
	// chunkMax is the size of chunks. The first ones of a class are smaller, so
	// that small stores stay small.
	chunkMax = 1 << refOffsetBits
	chunkMin = 4 << 10
	// blockMax is the largest block that shares a chunk.
	blockMax = 4 << 10
	// Blocks have sizes in steps of fineStep up to fineMax, and in steps of
	// coarseStep beyond.
	fineStep, fineMax = 16, 512
	coarseStep        = 128
	classes           = 1 + fineMax/fineStep + (blockMax-fineMax)/coarseStep
)

// Memory of blocks that shared no chunk is kept for others of up to half its size less:
// idleMost of such of at least idleMin bytes.
const (
	idleMin  = 16 << 10
	idleMost = 8
)

// classOf returns the class of blocks that have room for size bytes.
func classOf(size int) int {
	if size <= fineMax {
		return (size + fineStep - 1) / fineStep
	}
	return fineMax/fineStep + (size-fineMax+coarseStep-1)/coarseStep
}

// classSize returns the size of the blocks of a class.
func classSize(class int) int {
	if class <= fineMax/fineStep {
		return class * fineStep
	}
	return fineMax + (class-fineMax/fineStep)*coarseStep
}

// chunk is memory for blocks of one class, or, in class zero, a single block.
type chunk struct {
	data  []byte
	class int
	// live is how many blocks are in use.
	live int
	// free is one more than the offset of the first block that was freed, each
	// of which begins with the like of the next; zero ends the list. Blocks from
	// fresh on were never in use.
	free, fresh int
	// roomyAt is the position in the arena's list of chunks with room, -1 if the
	// chunk has none.
	roomyAt int
	// ofHeap says that the collector frees the memory.
	ofHeap bool
}

// arena is memory that the garbage collector does not look into: large chunks
// of bytes, cut into blocks that are named by numbers. A block stays where it
// is until it is freed. A chunk without blocks in use is given back.
type arena struct {
	chunks []chunk
	// spare are the positions in chunks that are not in use.
	spare []int
	// roomy are the chunks with room, by class, made how many chunks there are.
	roomy [classes][]int
	made  [classes]int
	// idle is memory that the next blocks alone can have.
	idle [][]byte
	// pages are the chunks of chunkMax bytes.
	pages *pages
}

func (a *arena) init(heap int) { a.chunks, a.pages = make([]chunk, 1, 16), newPages(heap) }

// at returns the memory from a block on.
func (a *arena) at(r ref) []byte { return a.chunks[r>>refOffsetBits].data[r&(chunkMax-1):] }

// take returns memory for a block alone, whose content is arbitrary.
func (a *arena) take(size int) []byte {
	for i := len(a.idle) - 1; i >= 0 && size >= idleMin; i-- {
		if data := a.idle[i]; size <= cap(data) && cap(data) <= 2*size {
			last := len(a.idle) - 1
			a.idle[i], a.idle[last] = a.idle[last], nil
			a.idle = a.idle[:last]
			return data[:size]
		}
	}
	return make([]byte, size)
}

// give takes back the memory of a block alone.
func (a *arena) give(data []byte) {
	if cap(data) >= idleMin && len(a.idle) < idleMost {
		a.idle = append(a.idle, data)
	}
}

// add puts a chunk into the table and returns its position.
func (a *arena) add(c chunk) int {
	if n := len(a.spare); n > 0 {
		i := a.spare[n-1]
		a.spare = a.spare[:n-1]
		a.chunks[i] = c
		return i
	}
	a.chunks = append(a.chunks, c)
	return len(a.chunks) - 1
}

func (a *arena) drop(i int) {
	a.chunks[i] = chunk{}
	a.spare = append(a.spare, i)
}

// allocAlone returns a block that shares no chunk, so that resize can change it.
func (a *arena) allocAlone(size int) ref {
	return ref(a.add(chunk{data: a.take(size), live: 1, roomyAt: -1})) << refOffsetBits
}

// resize changes the size of a block that shares no chunk.
func (a *arena) resize(r ref, size int) {
	c := &a.chunks[r>>refOffsetBits]
	data := a.take(size)
	copy(data, c.data)
	a.give(c.data)
	c.data = data
}

// alloc returns a block of at least size bytes, whose content is arbitrary.
func (a *arena) alloc(size int) ref {
	if size > blockMax {
		return a.allocAlone(size)
	}
	class := classOf(size)
	if len(a.roomy[class]) == 0 {
		a.grow(class)
	}
	i := a.roomy[class][len(a.roomy[class])-1]
	c := &a.chunks[i]
	at := c.fresh
	if c.free != 0 {
		at = c.free - 1
		c.free = int(binary.LittleEndian.Uint64(c.data[at:]))
	} else {
		c.fresh += classSize(class)
	}
	c.live++
	if !c.hasRoom() {
		a.setFull(i)
	}
	return ref(i)<<refOffsetBits | ref(at)
}

func (c *chunk) hasRoom() bool { return c.free != 0 || c.fresh+classSize(c.class) <= len(c.data) }

func (a *arena) grow(class int) {
	size := max(min(chunkMin<<min(a.made[class], refOffsetBits), chunkMax), classSize(class))
	a.made[class]++
	c := chunk{class: class, ofHeap: true}
	if size == chunkMax {
		c.data, c.ofHeap = a.pages.take()
	} else {
		c.data = make([]byte, size)
	}
	a.setRoomy(a.add(c))
}

func (a *arena) setRoomy(i int) {
	c := &a.chunks[i]
	c.roomyAt = len(a.roomy[c.class])
	a.roomy[c.class] = append(a.roomy[c.class], i)
}

func (a *arena) setFull(i int) {
	c := &a.chunks[i]
	list := a.roomy[c.class]
	last := list[len(list)-1]
	list[c.roomyAt] = last
	a.chunks[last].roomyAt = c.roomyAt
	a.roomy[c.class] = list[:len(list)-1]
	c.roomyAt = -1
}

// free takes a block back.
func (a *arena) free(r ref) {
	i, at := int(r>>refOffsetBits), int(r&(chunkMax-1))
	c := &a.chunks[i]
	if c.class == 0 {
		a.give(c.data)
		a.drop(i)
		return
	}
	binary.LittleEndian.PutUint64(c.data[at:], uint64(c.free))
	c.free = at + 1
	c.live--
	if c.roomyAt < 0 {
		a.setRoomy(i)
	}
	// One chunk is kept for the next block.
	if c.live == 0 && len(a.roomy[c.class]) > 1 {
		a.setFull(i)
		a.made[c.class]--
		if len(c.data) == chunkMax {
			a.pages.give(c.data, c.ofHeap)
		}
		a.drop(i)
	}
}
