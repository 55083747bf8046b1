package state

import (
	"bytes"
	"strings"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Conditions and effects of the table of transitions, for promises.
var (
	isPromise = condition{"it is a promise",
		func(r *layout.Row, _ *Event) bool { return r.Spec != nil && r.Spec.IsPromise() }}
	sameValue = condition{"with this value",
		func(r *layout.Row, e *Event) bool { return isSameValue(r.Result, e.Result) }}
	sameRejection = condition{"rejected with this message", func(r *layout.Row, e *Event) bool {
		return r.Exception.Kind == layout.KindError && r.Exception.Message == e.Exception.Message
	}}
	fulfill = effect{"clear blocked, set claim and result", func(r *layout.Row, e *Event) {
		r.Blocked, r.Claim, r.Result = nil, &layout.Claim{Token: e.Token}, e.Result
	}}
	decline = effect{"clear blocked, final exception: error, permanent", func(r *layout.Row, e *Event) {
		r.Blocked, r.Exception = nil, &layout.Exception{
			Kind: layout.KindError, Message: e.Exception.Message, Final: true, Permanent: true, At: layout.Millis(e.Now),
		}
	}}
)

// AfterContent follows what names the content of a large value of a promise in the name that it
// is stored by.
const AfterContent = "."

// isSameValue reports whether two results of promises have the same value.
func isSameValue(a, b *layout.Result) bool {
	content := func(ref *layout.ChunkRef) (hash string) {
		if ref != nil {
			hash, _, _ = strings.Cut(ref.Token, AfterContent)
		}
		return hash
	}
	return a.Codec == b.Codec && a.Size == b.Size && bytes.Equal(a.Value, b.Value) &&
		content(a.ValueRef) == content(b.ValueRef)
}
