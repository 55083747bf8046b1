package fdbmodel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// maxEdges is the maximum number of edges that one transaction makes.
const maxEdges = 500

// placeInputs checks the inputs, drops repeated ones, and decides where they are
// stored.
func (s *Submission) placeInputs() error {
	s.Spec.Inputs, s.Spec.InputsRef, s.many = nil, nil, nil
	if s.Spec.Codec == layout.CodecInputs && (len(s.Inputs) == 0 || len(s.Args) > 0 || s.Spec.ArgsRef != nil) {
		return fmt.Errorf("%w: codec inputs: it needs inputs, whose results are the arguments, and no other arguments",
			layout.ErrBadSpec)
	}
	if err := s.addNear(); err != nil || len(s.Inputs) == 0 {
		return err
	}
	seen, inputs := make(map[layout.ID]bool, len(s.Inputs)), make([]layout.ID, 0, len(s.Inputs))
	for _, id := range s.Inputs {
		if !seen[id] {
			seen[id], inputs = true, append(inputs, id)
		}
	}
	switch {
	case seen[s.ID]:
		return fmt.Errorf("%w: %s is its own input", layout.ErrBadSpec, s.ID)
	case s.Assigned != "" || s.Spec.Owner != "":
		return fmt.Errorf("%w: a future with inputs can't be assigned, or belong to a batch", layout.ErrBadSpec)
	case len(inputs) > layout.MaxInputs:
		return fmt.Errorf("%w: %d inputs: at most %d; let futures between them take some each", ErrTooLarge, len(inputs),
			layout.MaxInputs)
	case len(inputs) > layout.MaxInputsInSpec:
		s.many = inputs
	default:
		s.Spec.Inputs = layout.PackIDs(inputs)
	}
	return nil
}

// inputRows are the inputs of futures that one transaction links, each read
// once. It conflicts with what ends an input, makes it run again or removes it,
// and not with a claim, or with others that use it.
type inputRows struct {
	keys layout.Keyspace
	tx   kv.Tx
	// Both are nil until an input is asked for: most transactions have none.
	asked map[layout.ID]read.Pending
	rows  map[layout.ID]*layout.Row // nil for a future that does not exist
}

func (c *Cluster) inputRows(tx kv.Tx) *inputRows { return &inputRows{keys: c.keys, tx: tx} }

// ask requests inputs.
func (in *inputRows) ask(ids []layout.ID) {
	if len(ids) > 0 && in.asked == nil {
		in.asked, in.rows = map[layout.ID]read.Pending{}, map[layout.ID]*layout.Row{}
	}
	for _, id := range ids {
		if _, known := in.asked[id]; !known {
			relyOnEnding(in.tx, in.keys, id)
			in.asked[id] = read.Record(in.tx.Snapshot(), in.keys, id)
		}
	}
}

// relyOnEnding makes a transaction conflict with one that ends a future, makes it
// run again or removes it.
func relyOnEnding(tx kv.Tx, keys layout.Keyspace, id layout.ID) {
	tx.AddReadConflictKey(keys.Spec(id))
	tx.AddReadConflictKey(keys.State(id, layout.StateException))
	tx.AddReadConflictKey(keys.State(id, layout.StateResult))
}

// made says that the transaction makes a future, or has read it. All inputs were
// asked for before.
func (in *inputRows) made(row *layout.Row) {
	if in.rows != nil {
		in.rows[row.ID] = row
	}
}

func (in *inputRows) get(ctx context.Context, id layout.ID) (*layout.Row, error) {
	if row, known := in.rows[id]; known {
		return row, nil
	}
	row, found, err := in.asked[id].Wait(ctx)
	if err != nil {
		return nil, fmt.Errorf("input %s: %w", id, err)
	}
	if !found || row.Spec == nil {
		in.rows[id] = nil
		return nil, nil
	}
	in.rows[id] = &row
	return &row, nil
}

// errNoInput is returned for an input that does not exist.
var errNoInput = fmt.Errorf("%w: an input does not exist", layout.ErrBadSpec)

// link links inputs to a future: those that are not over will tell it when they
// end, and none is removed before the future ends. It returns how many it has to
// wait for. It returns a failure, and links nothing, if an input has failed, and
// errNoInput.
func (in *inputRows) link(ctx context.Context, user *layout.Row, inputs []layout.ID,
) (waiting int, failure *layout.Exception, err error) {
	id, listed := user.ID, user.Spec.ListsInputs()
	for _, input := range inputs {
		row, err := in.get(ctx, input)
		switch {
		case err != nil:
			return 0, nil, err
		case row == nil:
			return 0, nil, fmt.Errorf("future %s: %w: %s: submit it first", id, errNoInput, input)
		case row.State() == layout.Failed:
			return 0, upstream(row), nil
		}
	}
	for _, input := range inputs {
		row := in.rows[input]
		in.tx.Set(in.keys.Dependant(input, id), layout.Mark())
		if !row.Dependants {
			row.Dependants = true
			in.tx.Set(in.keys.HasDependants(input), layout.Mark())
		}
		if row.State().Terminal() {
			continue
		}
		waiting++
		if listed {
			in.tx.Set(in.keys.Input(id, input), layout.Mark())
		}
	}
	return waiting, nil, nil
}

// insert writes a new future with its edges.
func (in *inputRows) insert(ctx context.Context, w *WriteSet, row *layout.Row, args []byte) error {
	in.made(row)
	if !row.Spec.HasInputs() {
		w.insert(row, args)
		return nil
	}
	if row.Spec.InputsRef != nil {
		row.Blocked = &layout.BlockedRecord{}
		w.insert(row, args)
		w.edges.Mark(row.ID, &layout.SettlingRecord{})
		return nil
	}
	waiting, failure, err := in.link(ctx, row, layout.UnpackIDs(row.Spec.Inputs))
	switch {
	case err != nil:
		return err
	case failure != nil:
		row.Blocked = &layout.BlockedRecord{}
		w.insert(row, args)
		failed, _ := Next(*row, Event{Kind: EventUpstream, Exception: failure, Now: time.UnixMilli(w.Now)})
		w.Apply(row, &failed)
		*row = failed
		return nil
	case waiting > 0 || in.haveObjects(row):
		row.Blocked = &layout.BlockedRecord{Linked: row.Spec.CountInputs(), Objects: in.haveObjects(row)}
	}
	w.insert(row, args)
	if row.Blocked != nil && waiting == 0 {
		w.edges.Mark(row.ID, &layout.SettlingRecord{})
	}
	return nil
}

// maxChain is how much of the failures further up the message of an upstream
// failure contains, in bytes.
const maxChain = 2 << 10

// upstream returns the failure of a future that takes the result of one that
// failed. It names the chain: its nearest links, and its origin.
func upstream(input *layout.Row) *layout.Exception {
	e := input.Exception
	message := e.Message
	if e.Kind != layout.KindUpstream {
		message = fmt.Sprintf("%s: %s", e.Kind, message)
	}
	if len(message) > maxChain {
		message = "…" + strings.ToValidUTF8(message[len(message)-maxChain:], "")
	}
	return &layout.Exception{Kind: layout.KindUpstream,
		Message: fmt.Sprintf("input %s (%s) failed: %s", input.ID, input.Spec.Function, message)}
}

// requireReleased returns ErrTransition if a finished future may not be removed: it is
// pinned, another one uses its result, or its own edges are not settled.
func (c *Cluster) requireReleased(ctx context.Context, tx kv.Reader, row *layout.Row) error {
	pins, err := read.Pins(ctx, tx, c.keys, row)
	if err != nil {
		return err
	}
	if len(pins.Holders) > 0 {
		return fmt.Errorf("future %s is pinned by %s: discard is %w; unpin it first", row.ID, pins.Holders[0], ErrTransition)
	}
	if !row.Dependants && row.Spec.InputsRef == nil {
		return nil
	}
	asked := tx.Get(c.keys.Settling(row.ID))
	prefix := c.keys.DependantsOf(row.ID)
	page, err := tx.GetRange(kv.Prefix(prefix), kv.RangeOptions{Limit: 1}).Wait(ctx)
	if err != nil {
		return err
	}
	mark, err := asked.Wait(ctx)
	switch {
	case err != nil:
		return err
	case len(page.Items) > 0:
		key := layout.ParseKey(page.Items[0].Key)
		return fmt.Errorf("future %s is an input of future %s, which may still need it: discard is %w; cancel or discard "+
			"that one first", row.ID, key.ID, ErrTransition)
	case mark != nil:
		return fmt.Errorf("future %s has just ended, and its edges are not settled: discard is %w; try again", row.ID,
			ErrTransition)
	}
	return nil
}

// isReleased is requireReleased for callers that leave such a future alone.
func (c *Cluster) isReleased(ctx context.Context, tx kv.Reader, row *layout.Row) (bool, error) {
	err := c.requireReleased(ctx, tx, row)
	if errors.Is(err, ErrTransition) {
		return false, nil
	}
	return err == nil, err
}

// Inputs returns the futures that one takes as inputs, in their order.
func (c *Cluster) Inputs(ctx context.Context, id layout.ID, spec *layout.Spec) ([]layout.ID, error) {
	if spec.InputsRef == nil {
		return layout.UnpackIDs(spec.Inputs), nil
	}
	packed, err := pieces.ReadValue(ctx, c, c.keys, id, *spec.InputsRef)
	return layout.UnpackIDs(packed), err
}

// FirstInputs is Inputs for callers that look at the first ones: it returns at
// most limit, and of futures with very many at most 5,000. It returns ErrNotFound
// if the future is gone.
func (c *Cluster) FirstInputs(ctx context.Context, id layout.ID, spec *layout.Spec, limit int) ([]layout.ID, error) {
	if spec.InputsRef == nil {
		ids := layout.UnpackIDs(spec.Inputs)
		return ids[:min(len(ids), limit)], nil
	}
	var ids []layout.ID
	err := c.View(ctx, func(tx kv.Attempt) (err error) {
		ids, err = c.someInputs(ctx, tx.Snapshot(), &layout.Row{ID: id, Spec: spec}, 0, limit)
		return err
	})
	if errors.Is(err, layout.ErrBadRecord) {
		err = fmt.Errorf("inputs of future %s: %w", id, ErrNotFound)
	}
	return ids, err
}

// Dependants returns up to limit of the futures that use the result of one and
// are not over, from the one behind after on, and whether there are more. A zero
// after begins at the first.
func (c *Cluster) Dependants(ctx context.Context, id, after layout.ID, limit int) ([]layout.ID, bool, error) {
	r := kv.Prefix(c.keys.DependantsOf(id))
	if !after.IsZero() {
		r.Begin = kv.After(c.keys.Dependant(id, after))
	}
	return c.edges(ctx, r, limit, func(key *layout.Key) layout.ID { return key.ID })
}

func (c *Cluster) edges(ctx context.Context, r kv.Range, limit int, other func(*layout.Key) layout.ID,
) (ids []layout.ID, more bool, err error) {
	err = c.View(ctx, func(tx kv.Attempt) error {
		page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: limit}).Wait(ctx)
		if err != nil {
			return err
		}
		ids, more = nil, page.More
		for _, item := range page.Items {
			if key := layout.ParseKey(item.Key); key.Kind != nil {
				ids = append(ids, other(&key))
			}
		}
		return nil
	})
	return ids, more, err
}

// someInputs returns inputs of a future from the index first on, at most limit
// and at least one of those that are left.
func (c *Cluster) someInputs(ctx context.Context, tx kv.Reader, row *layout.Row, first, limit int,
) ([]layout.ID, error) {
	packed := []byte(row.Spec.Inputs)
	begin := first * len(layout.ID{})
	if ref := row.Spec.InputsRef; ref != nil {
		piece, err := tx.Get(c.keys.Chunk(row.ID, *ref, begin/layout.ChunkSize)).Wait(ctx)
		if err != nil {
			return nil, err
		}
		packed, begin = piece, begin%layout.ChunkSize
	}
	if begin >= len(packed) {
		return nil, fmt.Errorf("future %s: %w: input %d of %d is missing", row.ID, layout.ErrBadRecord, first+1,
			row.Spec.CountInputs())
	}
	ids := layout.UnpackIDs(packed[begin:])
	return ids[:min(len(ids), limit)], nil
}
