package layout

import "context"

// TraceKey is the context key under which a Go function finds the context of the trace of
// its future, a map[string]string that must not be changed, nil for none.
type TraceKey struct{}

// FollowTrace has the future be part of the trace of ctx, by its TraceKey. Without one, or
// where the future has no room for it, the future is part of none.
func (s *Spec) FollowTrace(ctx context.Context) {
	if s.Trace, _ = ctx.Value(TraceKey{}).(map[string]string); s.Trace != nil && s.MetaSize() > MaxMeta {
		s.Trace = nil
	}
}
