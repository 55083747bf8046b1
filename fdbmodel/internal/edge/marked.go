package edge

import (
	"context"
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel/internal/index"
)

const (
	// ResolveRounds is how many transactions one call of ResolveMarked makes.
	ResolveRounds = 8
	// maxMarked bounds the marks that this process knows. A janitor finds further
	// ones.
	maxMarked = 64 * maxMarks
)

// marked are the marks that transactions of this process have left, and that are to be
// resolved right after their commits. One caller resolves those of all, so that the
// transactions of one process don't conflict.
//
// A future with more edges than one transaction resolves is large: they are resolved in
// pieces, after what else is marked. The turn in which they are met goes on with them, and
// each later one takes one piece, so that a caller pays little for what others have ended.
type marked struct {
	mu    sync.Mutex
	marks []index.Mark
	large []index.Mark
	taken []index.Mark // by the caller whose turn it is
	busy  bool
	// pieces is how many transactions the turn may still make for large ones.
	pieces int
}

// knows reports whether a caller of this process resolves a mark now, or will in its turn:
// two that resolve edges of one future conflict.
func (m *marked) knows(k index.Mark) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.busy && (slices.Contains(m.taken, k) || slices.Contains(m.marks, k) || slices.Contains(m.large, k))
}

// leave adds what a transaction that resolved some marks has left.
func (m *marked) leave(resolved, left []index.Mark) {
	m.mu.Lock()
	for _, k := range left {
		if slices.Contains(resolved, k) && len(m.large) < maxMarked {
			m.large = append(m.large, k)
		}
	}
	m.mu.Unlock()
	m.add(slices.DeleteFunc(left, func(k index.Mark) bool { return slices.Contains(resolved, k) }))
}

func (m *marked) add(marks []index.Mark) {
	if len(marks) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marks = append(m.marks, marks[:min(len(marks), max(0, maxMarked-len(m.marks)))]...)
}

// next returns the marks to resolve next, each once. After the last one, or the last
// round, it returns none and ends the caller's turn.
func (m *marked) next(round int) []index.Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := &m.marks
	if len(m.marks) == 0 {
		from = &m.large
		m.pieces--
	}
	if len(*from) == 0 || round == ResolveRounds || m.pieces < 0 {
		m.busy, m.taken = false, nil
		return nil
	}
	batch := make([]index.Mark, 0, min(len(*from), maxMarks))
	for len(*from) > 0 && len(batch) < maxMarks {
		if !slices.Contains(batch, (*from)[0]) {
			batch = append(batch, (*from)[0])
		}
		*from = (*from)[1:]
	}
	m.taken = batch
	return batch
}

// begin begins the caller's turn, unless another one has it.
func (m *marked) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy || len(m.marks) == 0 && len(m.large) == 0 {
		return false
	}
	m.busy, m.pieces = true, ResolveRounds
	if len(m.large) > 0 {
		m.pieces = 1
	}
	return true
}

// release ends the caller's turn, and leaves what it took to the next one.
func (m *marked) release(marks []index.Mark) {
	m.add(marks)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy, m.taken = false, nil
}

// Add has marks resolved by the next call of ResolveMarked.
func (r *Resolver) Add(marks []index.Mark) { r.marked.add(marks) }

// ResolveMarked resolves dependencies that transactions of this process have marked, of
// all its callers: while one does, the others return at once. It is best effort, and a call
// makes a few transactions at most. Where ctx ends first, the next call goes on. A janitor
// resolves what is left.
func (r *Resolver) ResolveMarked(ctx context.Context) {
	if !r.marked.begin() {
		return
	}
	for round := 0; ; round++ {
		marks := r.marked.next(round)
		if marks == nil {
			return
		}
		_, left, _, err := r.ResolveMarks(ctx, marks)
		if err != nil && ctx.Err() != nil {
			r.marked.release(marks) // they may be other callers'
			return
		}
		if err == nil {
			r.marked.leave(marks, left)
		}
	}
}
