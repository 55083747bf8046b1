package results

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// Value describes a value that is put. It has either Bytes, which are stored with
// the cluster, or an Object of Size bytes that the worker Holder has.
type Value struct {
	// ID is the id that the future gets, or else Key, of at most 1,024 bytes, decides:
	// the same one with the same content is the same future. One of both is needed.
	ID  layout.ID
	Key string
	// Codec is the encoding of the value. Defaults to raw.
	Codec string
	// Queue is what the future is counted in, default "default". Label is for people,
	// at most 64 bytes.
	Queue, Label string
	// Tags are what lists find the future by.
	Tags []string

	Bytes  []byte
	Object string
	Size   int64
	Holder layout.WorkerID
	// Before is when the transaction that names the holder must have begun. Defaults to
	// no bound.
	Before time.Time
}

// errSwept is returned when a janitor swept a value as an orphan, before its future was made.
var errSwept = fmt.Errorf("%w: the value that the reference leads to", fdbmodel.ErrNotFound)

// Put makes a value the result of a new future, which is realized at once and can be
// used like any other. It cannot be rebuilt: without a copy of its object it fails as
// lost. Bytes are at most MaxPut. It reports whether the future existed.
//
// It returns ErrBadSpec, ErrBadName and ErrTooLarge for invalid values, ErrIDInUse if
// the id or key belongs to a future with other content, and ErrHolderGone. An unknown
// commit is resolved by looking for the future.
func (r *Results) Put(ctx context.Context, v Value) (existed bool, err error) {
	row, err := r.putRow(&v)
	if err != nil {
		return false, err
	}
	for range pieces.MaxStored {
		if len(v.Bytes) > fdbmodel.MaxResultInline {
			ref, err := r.Store(ctx, row.ID, row.Result.Token, v.Bytes)
			if err != nil {
				return false, err
			}
			row.Result.ValueRef = &ref
		}
		existed, err = r.commitPut(ctx, row, v.Before)
		if !errors.Is(err, errSwept) {
			return existed, err
		}
	}
	return false, fmt.Errorf("future %s: %w", row.ID, pieces.Vanished(int64(len(v.Bytes))))
}

// putRow is the future that a value becomes.
func (r *Results) putRow(v *Value) (*layout.Row, error) {
	spec := &layout.Spec{
		Function: layout.FunctionPut, Codec: v.Codec, Queue: v.Queue, Label: v.Label, AsObject: v.Object != "",
		SubmittedAt: layout.Millis(r.cluster.Now()),
	}
	spec.Queue = cmp.Or(spec.Queue, layout.DefaultQueue)
	spec.Codec = cmp.Or(spec.Codec, layout.CodecRaw)
	if err := layout.CheckQueueName(spec.Queue); err != nil {
		return nil, err
	}
	var err error
	if spec.Tags, err = layout.SortTags(v.Tags); err != nil {
		return nil, err
	}
	if err := cmp.Or(spec.CheckLimits(), layout.CheckNewLabel(spec.Label)); err != nil {
		return nil, err
	}
	id := v.ID
	if id.IsZero() && v.Key != "" {
		id = r.cluster.IDOf(v.Key)
	}
	switch {
	case spec.Codec == layout.CodecArgv || spec.Codec == layout.CodecInputs:
		return nil, fmt.Errorf("%w: codec %s: no value has it", layout.ErrBadSpec, spec.Codec)
	case len(v.Key) > 1024:
		return nil, fmt.Errorf("%w: idempotency key of %d bytes: at most 1024", fdbmodel.ErrTooLarge, len(v.Key))
	case id.IsZero():
		return nil, fmt.Errorf("%w: a value that is put needs an id or a key", layout.ErrBadSpec)
	case len(v.Bytes) > layout.MaxPut:
		return nil, fmt.Errorf("%w: %d bytes, at most %d: put them as an object", fdbmodel.ErrTooLarge, len(v.Bytes),
			layout.MaxPut)
	case spec.Codec == layout.CodecJSON && v.Object == "" && !json.Valid(v.Bytes):
		return nil, fmt.Errorf("%w: value to put: codec json: its %d bytes are not JSON", layout.ErrBadSpec, len(v.Bytes))
	case v.Object != "" && (len(v.Bytes) > 0 || v.Holder == "" || v.Size < 0):
		return nil, fmt.Errorf("%w: an object of %d bytes at worker %q, and %d bytes beside it", layout.ErrBadSpec, v.Size,
			v.Holder, len(v.Bytes))
	}
	result := &layout.Result{Codec: spec.Codec, Object: v.Object, Size: v.Size, Attempt: 1, At: spec.SubmittedAt}
	content := v.Object
	if v.Object == "" {
		sum := sha256.Sum256(v.Bytes)
		content, result.Size = string(sum[:]), int64(len(v.Bytes))
		if len(v.Bytes) <= fdbmodel.MaxResultInline {
			result.Value = v.Bytes
		}
	}
	// The token names the content, so that a repeated put writes the same.
	result.Token = layout.Token{Worker: v.Holder, Sequence: numberOf(content)}
	return &layout.Row{ID: id, Spec: spec, Claim: &layout.Claim{Token: result.Token}, Result: result}, nil
}

// numberOf is a positive number for a content.
func numberOf(content string) int64 {
	sum := sha256.Sum256([]byte(content))
	return int64(binary.BigEndian.Uint64(sum[:8])>>1) | 1
}

// commitPut makes the future of a value.
func (r *Results) commitPut(ctx context.Context, row *layout.Row, before time.Time) (existed bool, err error) {
	_, err = r.cluster.Change(ctx, kv.Options{Tag: "futura-put"}, func(tx kv.Attempt, w *fdbmodel.WriteSet) error {
		existed = false
		old, found, err := read.Record(tx, r.keys, row.ID).Wait(ctx)
		if err != nil {
			return err
		}
		if found && old.Spec != nil {
			existed = !tx.MaybeCommitted
			return samePut(&old, row)
		}
		if err := r.requireStored(ctx, tx, row, before); err != nil {
			return err
		}
		w.Put(row)
		return nil
	})
	return existed, err
}

// requireStored returns an error unless a value is where its result says.
func (r *Results) requireStored(ctx context.Context, tx kv.Reader, row *layout.Row, before time.Time) error {
	switch result := row.Result; {
	case result.Object != "":
		info, err := r.member(ctx, r.fence(tx, result.Worker), result.Worker)
		late := !before.IsZero() && r.cluster.Now().After(before)
		if errors.Is(err, fdbmodel.ErrReaped) || err == nil && (info.Leaving || late) {
			err = fmt.Errorf("worker %s: %w: put it again", result.Worker, ErrHolderGone)
		}
		return err
	case result.ValueRef != nil:
		piece, err := tx.Get(r.keys.Chunk(row.ID, *result.ValueRef, 0)).Wait(ctx)
		if err == nil && piece == nil {
			err = fmt.Errorf("future %s: %w", row.ID, errSwept)
		}
		return err
	}
	return nil
}

// samePut returns ErrIDInUse unless an existing future is that of a value.
func samePut(old, row *layout.Row) error {
	differs := ""
	switch {
	case !old.Spec.IsPut():
		differs = "function"
	case old.Spec.Codec != row.Spec.Codec:
		differs = "codec"
	case old.Result == nil: // it was lost
		return fmt.Errorf("%w: %s, put before and lost: put it with another id or key", fdbmodel.ErrIDInUse, old.ID)
	case old.Result.Object != row.Result.Object || old.Result.Size != row.Result.Size,
		row.Result.Object == "" && old.Result.Sequence != row.Result.Sequence:
		differs = "value"
	}
	if differs == "" {
		return nil
	}
	return fmt.Errorf("%w: %s, with other %s: use another id or key, or put what was put before", fdbmodel.ErrIDInUse,
		old.ID, differs)
}
