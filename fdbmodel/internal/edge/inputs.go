package edge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// MaxLinks is the maximum number of edges that one submit makes.
const MaxLinks = 500

// Inputs are the inputs of futures that one transaction links, each read once. The
// transaction conflicts with what ends an input, makes it run again or removes it, and not
// with a claim, or with others that use it.
type Inputs struct {
	keys layout.Keyspace
	tx   kv.Tx
	// Both are nil until an input is asked for: most transactions have none.
	asked map[layout.ID]read.Pending
	rows  map[layout.ID]*layout.Row // nil for a future that does not exist
}

// NewInputs returns the inputs of a transaction.
func NewInputs(tx kv.Tx, keys layout.Keyspace) *Inputs { return &Inputs{keys: keys, tx: tx} }

// Ask requests inputs, unless they are known.
func (in *Inputs) Ask(ids []layout.ID, known map[layout.ID]*layout.Row) {
	if len(ids) > 0 && in.asked == nil {
		in.asked, in.rows = map[layout.ID]read.Pending{}, map[layout.ID]*layout.Row{}
	}
	for _, id := range ids {
		if row := known[id]; row != nil {
			in.rows[id] = row
		} else if _, asked := in.asked[id]; !asked {
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

// Made says that the transaction makes a future, or has read it. All inputs were
// asked for before.
func (in *Inputs) Made(row *layout.Row) {
	if in.rows != nil {
		in.rows[row.ID] = row
	}
}

func (in *Inputs) get(ctx context.Context, id layout.ID) (*layout.Row, error) {
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

// noInputError is returned for an input that does not exist.
type noInputError struct{ user, input layout.ID }

// Error implements error.
func (e *noInputError) Error() string {
	return fmt.Sprintf("future %s: %v: an input does not exist: %s: submit it first", e.user, layout.ErrBadSpec, e.input)
}

// Unwrap returns ErrBadSpec.
func (e *noInputError) Unwrap() error { return layout.ErrBadSpec }

// failure is that of a future that was accepted, and whose input does not exist.
func (e *noInputError) failure() *layout.Exception {
	return &layout.Exception{Kind: layout.KindUpstream,
		Message: fmt.Sprintf("input %s does not exist: it was removed, or never submitted", e.input)}
}

// link links inputs to a future: those that are not over notify it when they end, and
// none is removed before the future ends. It returns how many it has to wait for. It
// returns a failure, and links nothing, if an input has failed, and a noInputError.
func (in *Inputs) link(ctx context.Context, user *layout.Row, inputs []layout.ID,
) (waiting int, failure *layout.Exception, err error) {
	id, listed := user.ID, user.Spec.ListsInputs()
	for _, input := range inputs {
		row, err := in.get(ctx, input)
		switch {
		case err != nil:
			return 0, nil, err
		case row == nil:
			return 0, nil, &noInputError{id, input}
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

// Begin links a new future to its inputs, all of which were asked for. The future is
// blocked if it has to wait, or if an input has failed, of which it returns the failure.
// resolve says that its edges are to be marked.
func (in *Inputs) Begin(ctx context.Context, row *layout.Row) (resolve bool, failure *layout.Exception, err error) {
	in.Made(row)
	switch {
	case !row.Spec.HasInputs():
		return false, nil, nil
	case row.Spec.InputsRef != nil:
		row.Blocked = &layout.BlockedRecord{}
		return true, nil, nil
	}
	waiting, failure, err := in.link(ctx, row, layout.UnpackIDs(row.Spec.Inputs))
	switch {
	case err != nil:
		return false, nil, err
	case failure != nil:
		row.Blocked = &layout.BlockedRecord{}
		return false, failure, nil
	case waiting > 0 || in.haveObjects(row):
		row.Blocked = &layout.BlockedRecord{Linked: row.Spec.CountInputs(), Objects: in.haveObjects(row)}
	}
	return row.Blocked != nil && waiting == 0, nil, nil
}

// haveObjects reports whether results of inputs of a future are objects, or are to
// be. All of those were asked for. Defaults to the inputs in its spec.
func (in *Inputs) haveObjects(row *layout.Row, inputs ...layout.ID) bool {
	if len(inputs) == 0 {
		inputs = layout.UnpackIDs(row.Spec.Inputs)
	}
	return slices.ContainsFunc(inputs, func(id layout.ID) bool {
		input := in.rows[id]
		return input != nil && (input.Spec.AsObject || input.Object() != "")
	})
}

// maxChain is how much of the failures further up the message of an upstream
// failure contains, in bytes.
const maxChain = 2 << 10

// upstream returns the failure of a future that takes the result of one that failed. It
// names the chain: its nearest links, and its origin.
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

// Some returns inputs of a future from the index first on, at most limit
// and at least one of those that are left.
func Some(ctx context.Context, tx kv.Reader, keys layout.Keyspace, row *layout.Row, first, limit int,
) ([]layout.ID, error) {
	packed := []byte(row.Spec.Inputs)
	begin := max(0, first) * len(layout.ID{})
	if ref := row.Spec.InputsRef; ref != nil {
		piece, err := tx.Get(keys.Chunk(row.ID, *ref, begin/layout.ChunkSize)).Wait(ctx)
		if err != nil {
			return nil, err
		}
		packed, begin = piece, begin%layout.ChunkSize
	}
	if begin+len(layout.ID{}) > len(packed) {
		return nil, fmt.Errorf("future %s: %w: input %d of %d is missing", row.ID, layout.ErrBadRecord, first+1,
			row.Spec.CountInputs())
	}
	ids := layout.UnpackIDs(packed[begin:])
	return ids[:min(len(ids), limit)], nil
}
