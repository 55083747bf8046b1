package futures

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/reference"
)

// Arg is an argument, or a part of one, that is either a value or the result of a
// future: give the fields of a function's In this type, at any depth. The caller
// sets it with Value or From, and the future waits until all that it refers to is
// realized; the function then finds the results with Get.
//
// It encodes as T, or as a reference, so In may have T itself where a function
// needs no Arg; what is submitted is the same. The zero value is that of T.
type Arg[T any] struct {
	value   T
	from    ID
	nowhere bool // it was to be the result of a future, and there is none
}

// Value returns an argument that is a value.
func Value[T any](v T) Arg[T] { return Arg[T]{value: v} }

// From returns an argument that is the result of a future. With nil the submit returns
// ErrBadSpec.
func From[T any](f *Typed[T]) Arg[T] { return FromID[T](f.ID()) }

// FromID returns an argument that is the result of a future of any client. With the
// zero id the submit returns ErrBadSpec.
func FromID[T any](id ID) Arg[T] { return Arg[T]{from: id, nowhere: id.IsZero()} }

// All returns an argument that is the list of the results of futures, in their
// order.
func All[T any](fs []*Typed[T]) []Arg[T] {
	args := make([]Arg[T], len(fs))
	for i, f := range fs {
		args[i] = From(f)
	}
	return args
}

// Values returns the values of a list.
func Values[T any](args []Arg[T]) []T {
	values := make([]T, len(args))
	for i := range args {
		values[i] = args[i].value
	}
	return values
}

// Get returns the value. Before the function runs, an argument that is the result
// of a future has none: Get returns the zero value.
func (a Arg[T]) Get() T { return a.value }

// IsZero reports whether the argument is the zero value, which a field with
// omitempty or omitzero leaves out.
func (a Arg[T]) IsZero() bool {
	return a.from.IsZero() && !a.nowhere && reflect.ValueOf(&a.value).Elem().IsZero()
}

// Future returns the future that the argument refers to, zero if it is a value.
// In the function it is zero.
func (a Arg[T]) Future() ID { return a.from }

// EncodeMsgpack implements msgpack.CustomEncoder.
func (a Arg[T]) EncodeMsgpack(e *msgpack.Encoder) error {
	if a.nowhere {
		return errNowhere
	}
	if a.from.IsZero() {
		return e.Encode(&a.value)
	}
	_, err := e.Writer().Write(reference.Append(nil, a.from))
	return err
}

// errNowhere is returned for an argument that is the result of no future.
var errNowhere = fmt.Errorf("%w: From(nil), or FromID of the zero id: submit that future first", layout.ErrBadSpec)

// errUnresolved is returned for a reference where a value should be.
var errUnresolved = errors.New("a reference to a future was not replaced by its result")

// DecodeMsgpack implements msgpack.CustomDecoder.
func (a *Arg[T]) DecodeMsgpack(d *msgpack.Decoder) error {
	raw, err := d.DecodeRaw()
	if err != nil {
		return err
	}
	*a = Arg[T]{}
	if ids, err := reference.Of(CodecMsgpack, raw); err != nil || len(ids) > 0 {
		return errors.Join(err, errUnresolved)
	}
	return decode(CodecMsgpack, raw, &a.value)
}

// MarshalJSON implements json.Marshaler.
func (a Arg[T]) MarshalJSON() ([]byte, error) {
	if a.nowhere {
		return nil, errNowhere
	}
	if a.from.IsZero() {
		return json.Marshal(a.value)
	}
	return reference.JSON(a.from), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Arg[T]) UnmarshalJSON(b []byte) error {
	*a = Arg[T]{}
	if ids, err := reference.Of(CodecJSON, b); err != nil || len(ids) > 0 {
		return errors.Join(err, errUnresolved)
	}
	return json.Unmarshal(b, &a.value)
}

// String returns the value, or what it will be.
func (a Arg[T]) String() string {
	if a.from.IsZero() {
		return fmt.Sprint(a.value)
	}
	return "the result of future " + a.from.String()
}
