package promises

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
	"unicode/utf8"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
)

// Value is what a promise is resolved with.
type Value struct {
	// Bytes are at most layout.MaxPut. White space of JSON outside of its texts is dropped.
	Bytes []byte
	// Codec is their encoding. Defaults to raw.
	Codec string
}

// errSwept is returned when a janitor swept a large value before the promise referred to it.
var errSwept = fmt.Errorf("%w: the value that the reference leads to", fdbmodel.ErrNotFound)

// Resolve gives a promise its value, once, and wakes who awaits it. It reports whether it had
// that very value before. It returns ErrConflict, ErrExpired and ErrCancelled for a promise that
// is over, ErrNotFound and ErrNoPromise, ErrTooLarge, and ErrBadSpec for a value that is not what
// its codec says. An unknown commit is retried: one that has committed is not a repetition.
func (p *Promises) Resolve(ctx context.Context, id layout.ID, v Value) (already bool, err error) {
	return p.resolve(ctx, caller{id: id}, v)
}

// Reject fails a promise for good, with a message of at most fdbmodel.MaxMessage bytes; a longer
// one is cut. It reports whether it was rejected with that very message before. Its errors are
// those of Resolve, but for those of the value.
func (p *Promises) Reject(ctx context.Context, id layout.ID, message string) (already bool, err error) {
	return p.reject(ctx, caller{id: id}, message)
}

// ResolveBy is Resolve by a token. It returns ErrBadToken in place of ErrNotFound and
// ErrNoPromise, and stores nothing of the value then.
func (p *Promises) ResolveBy(ctx context.Context, token Token, v Value) (already bool, err error) {
	return p.resolve(ctx, caller{id: token.ID, token: &token}, v)
}

// RejectBy is Reject by a token, with the errors of ResolveBy.
func (p *Promises) RejectBy(ctx context.Context, token Token, message string) (already bool, err error) {
	return p.reject(ctx, caller{id: token.ID, token: &token}, message)
}

// caller says who completes a promise: somebody with a token, or with rights.
type caller struct {
	id    layout.ID
	token *Token
}

func (p *Promises) resolve(ctx context.Context, by caller, v Value) (already bool, err error) {
	result := &layout.Result{Codec: cmp.Or(v.Codec, layout.CodecRaw), Attempt: 1}
	value, err := checked(by.id, result.Codec, v.Bytes)
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(value)
	// The token names the content, so that a repetition writes the same.
	result.Token = layout.Token{Sequence: int64(binary.BigEndian.Uint64(sum[:8])>>1) | 1}
	result.Size = int64(len(value))
	event := state.Event{Kind: state.EventFulfill, Token: result.Token, Result: result}
	if len(value) <= fdbmodel.MaxResultInline {
		result.Value = value
		return p.complete(ctx, by, event)
	}
	// Only this call writes there.
	name := fmt.Sprintf("%x%s%x", sum[:16], state.AfterContent, rand.Uint64())
	result.ValueRef = &layout.ChunkRef{Kind: layout.ChunkResult, Token: name, Size: result.Size,
		Count: layout.Pieces(result.Size)}
	for stored := 0; ; stored++ {
		already, err = p.complete(ctx, by, event)
		if !errors.Is(err, errSwept) {
			return already, err
		}
		if stored == pieces.MaxStored {
			return false, fmt.Errorf("promise %s: %w", by.id, pieces.Vanished(result.Size))
		}
		if _, err := pieces.PutValue(ctx, p.cluster, p.cluster.Keys(), by.id, *result.ValueRef, value); err != nil {
			return false, err
		}
	}
}

// checked returns a value as it is stored.
func checked(id layout.ID, codec string, value []byte) ([]byte, error) {
	switch {
	case len(value) > layout.MaxPut:
		return nil, fmt.Errorf("promise %s: %w: %d bytes, at most %d: store the data elsewhere and pass where", id,
			fdbmodel.ErrTooLarge, len(value), layout.MaxPut)
	case codec == layout.CodecRaw || codec == layout.CodecMsgpack:
		return value, nil
	case codec != layout.CodecJSON:
		return nil, fmt.Errorf("%w: promise %s: codec %.20q: use json, msgpack or raw", layout.ErrBadSpec, id, codec)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil || !utf8.Valid(value) { // which Compact lets pass
		return nil, fmt.Errorf("%w: promise %s: codec json: its %d bytes are not JSON in UTF-8", layout.ErrBadSpec, id,
			len(value))
	}
	return compact.Bytes(), nil
}

func (p *Promises) reject(ctx context.Context, by caller, message string) (already bool, err error) {
	return p.complete(ctx, by, state.Event{Kind: state.EventDecline, Exception: &layout.Exception{
		Message: layout.Shorten(cmp.Or(message, "rejected"), fdbmodel.MaxMessage)}})
}

// complete applies an event that completes a promise.
func (p *Promises) complete(ctx context.Context, by caller, e state.Event) (already bool, err error) {
	e.Now = p.cluster.Now()
	var answer error
	_, err = p.cluster.Change(ctx, kv.Options{Tag: "futura-" + e.Kind.String()},
		func(tx kv.Attempt, w *fdbmodel.WriteSet) error {
			row, err := p.find(ctx, tx, by)
			if err != nil {
				return err
			}
			if e.Result != nil {
				own := *e.Result
				own.At, e.Result = layout.Millis(e.Now), &own
			}
			after, outcome := state.Next(row, e)
			already, answer = outcome == fdbmodel.Already && !tx.MaybeCommitted, nil
			switch {
			case outcome == fdbmodel.Already:
				return nil
			case outcome == fdbmodel.Refused:
				answer = over(&row, e.Result)
				return nil
			}
			if err := p.requireStored(ctx, tx, by.id, after.Result); err != nil {
				return err
			}
			w.Apply(&row, &after)
			if after.State() == layout.Failed && after.Exception.Kind != layout.KindError {
				answer = over(&after, nil) // its time is over
			}
			return nil
		})
	if err == nil {
		err = answer
	}
	return already, err
}

// find reads the promise that somebody completes.
func (p *Promises) find(ctx context.Context, tx kv.Tx, by caller) (layout.Row, error) {
	if by.token != nil {
		return p.opened(ctx, tx, by.token)
	}
	row, err := read.Existing(ctx, tx, p.cluster.Keys(), by.id)
	if err == nil && !row.Spec.IsPromise() {
		err = notPromise(by.id)
	}
	return row, err
}

// requireStored returns errSwept unless a large value is where its result says.
func (p *Promises) requireStored(ctx context.Context, tx kv.Reader, id layout.ID, result *layout.Result) error {
	if result == nil || result.ValueRef == nil {
		return nil
	}
	piece, err := tx.Get(p.cluster.Keys().Chunk(id, *result.ValueRef, 0)).Wait(ctx)
	if err == nil && piece == nil {
		err = fmt.Errorf("promise %s: %w", id, errSwept)
	}
	return err
}

// over says why a promise that is over can't be completed, by a result or, without one, by a rejection.
func over(row *layout.Row, by *layout.Result) error {
	if row.State() == layout.Realized {
		value := "a value"
		if by != nil {
			value = "another value"
		}
		at := time.UnixMilli(row.Result.At).UTC().Format(time.RFC3339)
		return fmt.Errorf("promise %s: %w: it was resolved with %s, of %d bytes, at %s", row.ID, ErrConflict, value,
			row.Result.Size, at)
	}
	x := row.Exception
	if x == nil {
		return fmt.Errorf("promise %s is %s, which no promise is: completing it is %w", row.ID, row.State(),
			fdbmodel.ErrTransition)
	}
	why := ErrConflict
	switch x.Kind {
	case layout.KindCancelled:
		why = ErrCancelled
	case layout.KindExpired, layout.KindDeadline:
		why = ErrExpired
	}
	if why == ErrConflict {
		return fmt.Errorf("promise %s: %w: it was rejected: %s", row.ID, why, x.Message)
	}
	return fmt.Errorf("promise %s: %w: %s", row.ID, why, x.Message)
}
