package layout

import "context"

// CodecKey is the context key under which a Go function finds the codec of its
// arguments, a string. Its result must use the same codec.
type CodecKey struct{}

// AwaitKey is the context key under which a Go function finds a
// func(context.Context) func(): who waits for other futures calls it with the
// context of the wait, and calls what it returns at the end. Meanwhile the worker
// gives the function's slot to others. The end returns once the function has a
// slot again, or one of the two contexts has ended.
type AwaitKey struct{}

// NoteAwait says that a function begins to wait for futures. It returns how to
// say that the wait has ended; see AwaitKey.
func NoteAwait(ctx context.Context) (ended func()) {
	if note, ok := ctx.Value(AwaitKey{}).(func(context.Context) func()); ok {
		return note(ctx)
	}
	return func() {}
}
