package workers

import (
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/edges"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/reference"
	"github.com/futura-run/futura/fdbmodel/results"
)

// inputsAtOnce is how many inputs one read returns.
const inputsAtOnce = 200

var (
	// errInput is returned for an input that has failed, or is gone.
	errInput = errors.New("an input has no result")
	// errAgain is returned for an input that is made again.
	errAgain = errors.New("the result of an input was lost and is made again")
)

// withInputs returns the arguments of a job with the results of its inputs: in
// place of the references to them, or all of them if the codec says so. It returns
// how the attempt ends if that fails.
func (w *Worker) withInputs(j *job, args []byte) ([]byte, *fdbmodel.Completion) {
	args, err := w.resolve(j, args)
	if err == nil {
		return args, nil
	}
	failed := w.withoutInputs(j, err)
	return nil, &failed
}

// withoutInputs is how an attempt ends whose inputs can't be read.
func (w *Worker) withoutInputs(j *job, err error) fdbmodel.Completion {
	f := &j.future
	if errors.Is(err, results.ErrLost) || errors.Is(err, errAgain) {
		return fdbmodel.Completion{Future: f, Block: true}
	}
	failed := fdbmodel.Completion{Future: f, Permanent: true, Exception: &layout.Exception{Message: err.Error()}}
	switch {
	case errors.Is(err, errInput):
		failed.Exception.Kind = layout.KindUpstream
	case errors.Is(err, reference.ErrTooLarge):
		failed.Exception.Kind = layout.KindTooLarge
	case errors.Is(err, reference.ErrUndecodable), errors.Is(err, reference.ErrBadReference):
		failed.Exception.Kind = layout.KindError
	case errors.Is(err, fdbmodel.ErrUnreachable):
		w.rare.Warn("an input can't be read; putting its future back", "future", f.ID, "error", err)
		failed = fdbmodel.Completion{Future: f, Reject: true}
	default:
		failed = w.withoutArgs(j, err)
	}
	return failed
}

func (w *Worker) resolve(j *job, args []byte) ([]byte, error) {
	f := &j.future
	if f.Spec.Codec == layout.CodecInputs {
		inputs, err := edges.Of(w.cluster).Inputs(j.ctx, f.ID, f.Spec)
		if err != nil {
			return nil, err
		}
		if !isModule(f.Spec.Function) {
			return w.joined(j, inputs, layout.MaxPut)
		}
		args, err := w.joined(j, inputs, maxJoined)
		if errors.Is(err, reference.ErrTooLarge) {
			j.streamed, err = inputs, nil
		}
		return args, err
	}
	references, err := reference.Find(f.Spec.Codec, args)
	inputs := references.IDs()
	if err != nil || len(inputs) == 0 {
		return args, err
	}
	results := make(map[layout.ID]reference.Value, len(inputs))
	size := int64(len(args))
	err = w.eachInput(j, inputs, func(id layout.ID, r *layout.Result) error {
		if size += r.Size; size > layout.MaxPut {
			return tooLarge()
		}
		value, err := w.inputValue(j, id, r)
		results[id] = reference.Value{Codec: r.Codec, Bytes: value}
		return err
	})
	if err != nil {
		return nil, err
	}
	return references.Resolve(layout.MaxPut, func(id layout.ID) (reference.Value, error) {
		return results[id], nil
	})
}

// maxJoined is how many bytes of inputs are read before a module runs. Of more it reads
// the results itself, one after the other.
const maxJoined = 1 << 20

// joined returns the results of inputs one after the other, at most so many bytes.
func (w *Worker) joined(j *job, inputs []layout.ID, most int64) (all []byte, err error) {
	err = w.eachInput(j, inputs, func(id layout.ID, r *layout.Result) error {
		if int64(len(all))+r.Size > most {
			return tooLarge()
		}
		value, err := w.inputValue(j, id, r)
		all = append(all, value...)
		return err
	})
	return all, err
}

func tooLarge() error {
	return fmt.Errorf("%w: more than %d bytes", reference.ErrTooLarge, layout.MaxPut)
}

// eachInput calls fn with the results of inputs, in their order.
func (w *Worker) eachInput(j *job, inputs []layout.ID, fn func(layout.ID, *layout.Result) error) error {
	for len(inputs) > 0 {
		part := inputs[:min(len(inputs), inputsAtOnce)]
		inputs = inputs[len(part):]
		rows, err := w.inputRows(j, part)
		if err != nil {
			return err
		}
		for i, id := range part {
			result, err := resultIn(rows, i, id)
			if err != nil {
				return err
			}
			if err := fn(id, result); err != nil {
				return fmt.Errorf("input %s: %w", id, err)
			}
		}
	}
	return nil
}

// resultIn returns the result of an input, which is row i if it exists.
func resultIn(rows []layout.Row, i int, id layout.ID) (*layout.Result, error) {
	if i >= len(rows) || rows[i].ID != id {
		return nil, fmt.Errorf("%w: future %s does not exist any more", errInput, id)
	}
	switch s := rows[i].State(); {
	case s == layout.Failed:
		return nil, fmt.Errorf("%w: future %s has failed (%s): %s", errInput, id, rows[i].Exception.Kind,
			rows[i].Exception.Message)
	case s != layout.Realized:
		return nil, fmt.Errorf("%w: future %s is %v", errAgain, id, s)
	}
	return rows[i].Result, nil
}

// inputValue returns the result of an input, from this worker's own objects if it
// is one of them.
func (w *Worker) inputValue(j *job, id layout.ID, r *layout.Result) ([]byte, error) {
	if k := j.membership.kept; k != nil && r.Object != "" && r.Size <= layout.MaxPut {
		if value, found := k.read(r.Object, r.Size); found {
			return value, nil
		}
	}
	return results.Of(w.cluster).Value(j.ctx, id, r)
}

// inputRows returns inputs in the order of ids, without those that do not exist:
// from the claim if it has read them.
func (w *Worker) inputRows(j *job, ids []layout.ID) ([]layout.Row, error) {
	known := j.future.Inputs
	if len(known) == 0 {
		return w.cluster.GetMany(j.ctx, ids)
	}
	if slices.EqualFunc(known, ids, func(r layout.Row, id layout.ID) bool { return r.ID == id }) {
		return known, nil
	}
	rows := make([]layout.Row, 0, len(ids))
	for _, id := range ids {
		if at := slices.IndexFunc(known, func(r layout.Row) bool { return r.ID == id }); at >= 0 {
			rows = append(rows, known[at])
		}
	}
	return rows, nil
}
