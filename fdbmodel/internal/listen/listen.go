// Package listen tells parts of a process what its transactions have changed.
package listen

import (
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// All tells every function of commits, in the order in which they were added. Its methods are safe for
// concurrent use.
type All[T any] struct {
	mu  sync.Mutex
	fns []func(T, kv.Version)
}

// Add has fn called by Tell.
func (l *All[T]) Add(fn func(T, kv.Version)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fns = append(slices.Clip(l.fns), fn)
}

// Tell tells all of a commit at version.
func (l *All[T]) Tell(what T, version kv.Version) {
	l.mu.Lock()
	fns := l.fns
	l.mu.Unlock()
	for _, fn := range fns {
		fn(what, version)
	}
}

// First tells one function alone: of those that were added and not stopped, the first. Its methods are safe
// for concurrent use.
type First[T any] struct {
	mu  sync.Mutex
	all []*func(T)
}

// Add has fn called by Tell until stop is called, unless one that was added before is.
func (l *First[T]) Add(fn func(T)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, &fn)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = slices.DeleteFunc(l.all, func(f *func(T)) bool { return f == &fn })
	}
}

// Tell calls that function, if there is one.
func (l *First[T]) Tell(what T) {
	l.mu.Lock()
	var first *func(T)
	if len(l.all) > 0 {
		first = l.all[0]
	}
	l.mu.Unlock()
	if first != nil {
		(*first)(what)
	}
}
