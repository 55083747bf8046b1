package kv

import "context"

type toldKey struct{}

// Told returns a context whose Transact calls tell with each error of an attempt, conflicts
// excepted. tell doesn't wait.
func Told(ctx context.Context, tell func(error)) context.Context {
	return context.WithValue(ctx, toldKey{}, tell)
}

// tellOf passes an error on to whom Told named.
func tellOf(ctx context.Context, err error) {
	if tell, ok := ctx.Value(toldKey{}).(func(error)); ok {
		tell(err)
	}
}
