package kv

import "context"

// Pending is the answer to a read that was issued and may not have arrived yet.
type Pending[T any] struct {
	value T
	err   error
	wait  func(context.Context) (T, error)
}

// Ready returns an answer that has already arrived.
func Ready[T any](value T, err error) Pending[T] { return Pending[T]{value: value, err: err} }

// Later returns an answer that wait fetches. Each Wait calls wait.
func Later[T any](wait func(context.Context) (T, error)) Pending[T] { return Pending[T]{wait: wait} }

// Wait returns the answer, or ctx's error if that ends first. It may be called
// once.
func (p Pending[T]) Wait(ctx context.Context) (T, error) {
	if p.wait == nil {
		return p.value, p.err
	}
	return p.wait(ctx)
}
