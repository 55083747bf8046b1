package futures

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/taskcontext"
	"github.com/futura-run/futura/workers/objects/held"
)

// PutStored is the largest value, in bytes, that Put stores with the cluster unless
// it is told where.
const PutStored = 1 << 20

// putWithin is how soon after a worker has a value its future must be made.
const putWithin = time.Minute

// ErrNoHolder is returned by Put for a value that the cluster does not store and that
// no worker takes.
var ErrNoHolder = held.ErrNoHolder

// ErrHolderGone is returned by Put when the worker that took the value died before the
// future was made. Put it again.
var ErrHolderGone = results.ErrHolderGone

// PutOptions say what is put. The zero value is right for a stream of bytes.
type PutOptions struct {
	// Codec is the encoding of the value: CodecRaw, CodecJSON or CodecMsgpack. What is
	// to be JSON is checked as it comes. Defaults to raw.
	Codec string
	// Size is about how many bytes there are. Defaults to unknown.
	Size int64
	// ID, or else Key, makes the put repeatable: the same one with the same content is
	// the same future. Default to a new id.
	ID  ID
	Key string
	// Queue is what the future is counted in, default "default". Label is for people,
	// at most 64 bytes of printable characters; it defaults to none.
	Queue, Label string
	// Tags are what lists find the future by; see Task.Tags. A repeated put leaves those
	// of the first. Default to none.
	Tags []string
	// AsObject has a worker hold the value whatever its size, Stored has the cluster
	// store it, up to 64 MiB. Default to false: the cluster stores up to PutStored.
	AsObject, Stored bool
	// Memory is how many bytes of a value above PutStored may be in memory to be stored
	// with the cluster, with Stored or if no worker takes objects. Defaults to 64 MiB,
	// which is also the most.
	Memory int64
	// WaitForRoom has the put wait, until ctx ends, while the cluster's limit of bytes or
	// of submits per second is exceeded. Defaults to false: it returns a LimitError.
	WaitForRoom bool
}

// Put makes what r has to say, to its end, the result of a new future, which is
// realized at once: it is awaited, opened, an input of others, kept and removed like
// any other. The cluster stores values of up to PutStored bytes, which are as durable as
// futures. Larger ones are held by a worker: that of the function to which ctx was
// given, else the one with most room. Such a value is lost with the last worker that
// has a copy, and nothing can make it again: the future then fails with the kind lost.
// If no worker takes objects, the cluster stores up to PutOptions.Memory.
//
// A worker that fails while it takes the value leaves it to another one, if r is an
// io.Seeker or no more than its first MiB was read; else Put returns the error.
//
// It returns ErrNoHolder and ErrTooLarge for what is too large for either, ErrHolderGone,
// ErrIDInUse, ErrBadSpec, a LimitError before r is read, and errors of r. Without a future nothing is kept: an upload
// that was cut off is dropped at once, one whose future was not made within minutes. An
// unknown commit is resolved, but if ctx ends meanwhile, the future may exist: put it
// with an ID or a Key to be able to repeat it.
func (c *Client) Put(ctx context.Context, r io.Reader, o PutOptions) (*Future, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	if err := o.check(r); err != nil {
		return nil, err
	}
	v := results.Value{ID: o.ID, Key: o.Key, Codec: o.Codec, Queue: o.Queue, Label: o.Label, Tags: o.Tags}
	if err := c.identifyValue(&v); err != nil {
		return nil, err
	}
	if err := c.findRoom(ctx, 1, o.WaitForRoom, quota.Of(c.cluster).AdmitValues); err != nil {
		return nil, err
	}
	whole, err := c.place(ctx, r, &v, &o)
	if err != nil {
		return nil, err
	}
	if whole != nil {
		v.Bytes = whole
	}
	existed, err := results.Of(c.cluster).Put(ctx, v)
	if errors.Is(err, ErrIDInUse) {
		var failed error
		if existed, failed = c.isPutElsewhere(ctx, &v); failed != nil || existed {
			err = failed
		}
	}
	if err != nil {
		return nil, err
	}
	return &Future{client: c, id: v.ID, existed: existed}, nil
}

// isPutElsewhere reports whether a future with the id of a value has the same one in the other kind of place: with
// workers, or stored with the cluster. Which of them takes a value depends on the workers of the time.
func (c *Client) isPutElsewhere(ctx context.Context, v *results.Value) (bool, error) {
	row, err := c.cluster.Get(ctx, v.ID)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil || !row.Spec.IsPut() || row.Spec.Codec != cmp.Or(v.Codec, CodecRaw) || row.Result == nil {
		return false, err
	}
	switch object := row.Object(); {
	case object != "" && v.Object == "":
		return held.NameOf(v.Bytes) == object, nil
	case object == "" && v.Object != "" && row.Result.Size == v.Size:
		e := row.Ending()
		err := results.Of(c.cluster).Load(ctx, &e)
		return err == nil && held.NameOf(e.Result.Value) == v.Object, err
	}
	return false, nil
}

// PutValue puts a value, encoded as msgpack, as the result of a future of its type;
// see Client.Put.
func PutValue[T any](ctx context.Context, c *Client, value T, o PutOptions) (*Typed[T], error) {
	encoded, err := encodeMsgpack(&value)
	if err != nil {
		return nil, fmt.Errorf("value to put: %w", err)
	}
	o.Codec, o.Size = CodecMsgpack, int64(len(encoded))
	f, err := c.Put(ctx, bytes.NewReader(encoded), o)
	if err != nil {
		return nil, err
	}
	return &Typed[T]{f}, nil
}

// check returns ErrBadSpec for what can't be put.
func (o *PutOptions) check(r io.Reader) error {
	switch {
	case r == nil:
		return fmt.Errorf("%w: there is no reader of the value to put: for an empty value give an empty one", ErrBadSpec)
	case o.AsObject && o.Stored:
		return fmt.Errorf("%w: a value is put as an object or stored with the cluster, not both", ErrBadSpec)
	case o.Size < 0 || o.Memory < 0:
		return fmt.Errorf("%w: size %d, memory %d: use numbers of bytes, or 0 for the default", ErrBadSpec, o.Size, o.Memory)
	}
	return nil
}

// identifyValue gives a value its id.
func (c *Client) identifyValue(v *results.Value) error {
	switch {
	case !v.ID.IsZero():
		return nil
	case v.Key != "":
		v.ID = c.cluster.IDOf(v.Key)
		return nil
	}
	ids, err := c.cluster.DrawIDs(1)
	if err == nil {
		v.ID = ids[0]
	}
	return err
}

// place has a worker hold a value, or returns what the cluster is to store.
func (c *Client) place(ctx context.Context, r io.Reader, v *results.Value, o *PutOptions) (whole []byte, err error) {
	most := PutStored
	switch {
	case o.Stored:
		most = o.memory()
	case o.AsObject:
		most = 0
	}
	from := newSource(r)
	from.json = o.Codec == CodecJSON
	var head []byte
	if !o.AsObject {
		head, err = io.ReadAll(io.LimitReader(r, int64(most)+1))
		if err != nil || len(head) <= most {
			return present(head), err
		}
	}
	if o.Stored {
		return nil, fmt.Errorf("%w: more than %d bytes are stored with the cluster: put them as an object", ErrTooLarge, most)
	}
	from.begin(head)
	err = c.holdValue(ctx, from, v, max(o.Size, int64(len(head))))
	if err == nil || o.AsObject || !errors.Is(err, ErrNoHolder) || from.again(ctx, err) != nil {
		return nil, err
	}
	limit := int64(o.memory())
	whole, failed := io.ReadAll(io.LimitReader(from, limit+1))
	switch {
	case failed != nil:
		return nil, failed
	case int64(len(whole)) > limit:
		return nil, fmt.Errorf("%w: more than %d bytes, and %w", ErrTooLarge, limit, err)
	}
	return whole, nil
}

// memory is how many bytes may be stored with the cluster.
func (o *PutOptions) memory() int {
	if o.Memory > 0 {
		return int(min(layout.MaxPut, o.Memory))
	}
	return layout.MaxPut
}

// present is a value that is there, if empty.
func present(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// holdValue has a worker hold a value: that of the function which calls, else the one
// with most room.
// One that fails leaves the value to the next, if it can be read again.
func (c *Client) holdValue(ctx context.Context, r *source, v *results.Value, about int64) (err error) {
	if keeper, ok := ctx.Value(taskcontext.KeeperKey{}).(taskcontext.Keeper); ok {
		v.Object, v.Size, v.Holder, err = keeper.Keep(ctx, v.ID, r, about)
		if err == nil {
			v.Before = c.cluster.Now().Add(putWithin)
			return nil
		}
		v.Object, v.Size, v.Holder = "", 0, ""
		if err := r.again(ctx, err); err != nil {
			return err
		}
	}
	holders, err := c.holders(ctx, "")
	if err != nil {
		return err
	}
	var failed error
	for i := range holders {
		to := &holders[i]
		if to.Room < about {
			failed = errors.Join(failed, fmt.Errorf("worker %s has room for %d bytes, and about %d are needed", to.Worker,
				to.Room, about))
			continue
		}
		v.Object, v.Size, err = c.objects.Put(ctx, to, v.ID, r, about)
		if err == nil {
			v.Holder, v.Before = to.Worker, c.cluster.Now().Add(putWithin)
			return nil
		}
		if err := r.again(ctx, err); err != nil {
			return err
		}
		failed = errors.Join(failed, err)
	}
	return fmt.Errorf("%w: %w", ErrNoHolder, failed)
}

// holders returns the workers that hold objects, but for one, the one with most room
// first.
func (c *Client) holders(ctx context.Context, but layout.WorkerID) ([]held.Holder, error) {
	members, err := c.cluster.Workers(ctx)
	if err != nil {
		return nil, err
	}
	var alive []layout.WorkerInfo
	leaving := false
	for i := range members {
		m := &members[i]
		if leaving = leaving || m.Leaving; m.Alive && m.Unreadable == "" && !m.Leaving && m.ID != but {
			alive = append(alive, m.WorkerInfo)
		}
	}
	holders, err := c.objects.Holders(ctx, alive)
	if leaving && errors.Is(err, ErrNoHolder) {
		err = fmt.Errorf("%w: %w", ErrHolderGone, err)
	}
	return holders, err
}
