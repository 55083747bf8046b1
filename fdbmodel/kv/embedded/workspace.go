package embedded

import (
	"math"
	"sync"

	"github.com/futura-run/futura/fdbmodel/kv"
)

type opKind uint8

const (
	opSet opKind = iota + 1
	opClear
	opClearRange
	opAtomic
	opStampKey
	opStampValue
)

// op is one mutation of a transaction, in the order of the calls.
type op struct {
	kind   opKind
	atomic kv.AtomicOp
	// offset is where the stamp goes.
	offset int32
	// seen is the version that the transaction read at when it stamped a key,
	// zero if it had not read.
	seen  kv.Version
	key   []byte
	value []byte // the end of the range for opClearRange
}

// span is a conflict range, or the single key begin where end is nil.
type span struct{ begin, end []byte }

func (s span) size() int {
	if s.end == nil {
		return 2*len(s.begin) + 1
	}
	return len(s.begin) + len(s.end)
}

// workspace is what a transaction gathers. It is pooled: what it holds is
// valid until the transaction has ended.
type workspace struct {
	memory []byte
	ops    []op
	reads  []span
	writes []span
	// size counts what kv.MaxTxSize bounds.
	size int

	overlay overlay
	cursor  cursor
	rows    rowBuffer
	request request
}

const (
	workspaceMemory    = 4 << 10
	workspaceMemoryMax = 1 << 20
	workspaceItemsMax  = 8 << 10
)

func newWorkspace() any {
	return &workspace{memory: make([]byte, 0, workspaceMemory), request: request{done: make(chan struct{}, 1)}}
}

// release gives the workspace back. No part of it may be in use any more.
func (w *workspace) release(to *sync.Pool) {
	if max(cap(w.memory), cap(w.rows.bytes)) > workspaceMemoryMax ||
		max(cap(w.ops), cap(w.reads), cap(w.writes), cap(w.rows.sizes)) > workspaceItemsMax {
		return
	}
	clear(w.ops)
	clear(w.reads)
	clear(w.writes)
	w.memory, w.ops, w.reads, w.writes, w.size = w.memory[:0], w.ops[:0], w.reads[:0], w.writes[:0], 0
	w.overlay.reset()
	w.cursor = cursor{mark: w.cursor.mark}
	w.request = request{done: w.request.done}
	to.Put(w)
}

// keep copies b into the workspace. The copy is never nil.
func (w *workspace) keep(b []byte) []byte {
	if cap(w.memory)-len(w.memory) < len(b) {
		w.memory = make([]byte, 0, max(min(2*cap(w.memory), 1<<20), len(b)))
	}
	from := len(w.memory)
	w.memory = append(w.memory, b...)
	return w.memory[from:len(w.memory):len(w.memory)]
}

// after returns the first key behind key, in the workspace's memory.
func (w *workspace) after(key []byte) []byte {
	w.keep(nil)
	if cap(w.memory)-len(w.memory) < len(key)+1 {
		w.memory = make([]byte, 0, max(workspaceMemory, len(key)+1))
	}
	from := len(w.memory)
	w.memory = append(append(w.memory, key...), 0)
	return w.memory[from:len(w.memory):len(w.memory)]
}

func (w *workspace) addRead(s span) {
	w.reads = append(w.reads, s)
	w.size = saturate(w.size, s.size())
}

func (w *workspace) addWrite(s span) {
	w.writes = append(w.writes, s)
	w.size = saturate(w.size, s.size())
}

// addOp takes a mutation whose slices the workspace owns. Its size is that of
// the mutation and of the conflict range that comes with it.
func (w *workspace) addOp(o op) {
	w.ops = append(w.ops, o)
	conflict := span{begin: o.key}
	if o.kind == opClearRange {
		conflict.end = o.value
	}
	w.size = saturate(w.size, len(o.key)+len(o.value)+conflict.size())
}

func (w *workspace) empty() bool { return len(w.ops) == 0 && len(w.writes) == 0 }

func saturate(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}
