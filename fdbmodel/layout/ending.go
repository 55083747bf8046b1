package layout

// Ending is what a future came to, as its records or a notice say. While the
// future is not over, it is what its last failed attempt came to.
type Ending struct {
	ID    ID
	State State
	// Result is set if the future is realized, and Failure otherwise: the one that
	// ended the future, or its last failed attempt, nil if none has failed. Both
	// are nil in a notice that does not carry the ending.
	Result  *Result
	Failure *Exception
}

// Ending returns what the future came to.
func (r *Row) Ending() Ending {
	e := Ending{ID: r.ID, State: r.State()}
	if e.State == Realized {
		e.Result = r.Result
	} else {
		e.Failure = r.Exception
	}
	return e
}

// Ending returns what the future came to. Without a result and a failure, its
// records say it.
func (n *Notice) Ending() Ending {
	return Ending{ID: n.ID, State: n.State, Result: n.Result, Failure: n.Exception}
}

// Over reports whether the future is over: realized, failed or cancelled.
func (e *Ending) Over() bool { return e.State.Terminal() }

// Whole reports whether the ending is all here: not stored elsewhere, and not
// left out of a notice.
func (e *Ending) Whole() bool {
	switch {
	case e.Result != nil:
		return e.Result.ValueRef == nil && e.Result.StderrRef == nil && e.Result.Object == ""
	case e.Failure != nil:
		return e.Failure.StderrRef == nil
	default:
		return false
	}
}

// Cancelled reports whether the future failed because it was cancelled.
func (e *Ending) Cancelled() bool {
	return e.State == Failed && e.Failure != nil && e.Failure.Kind == KindCancelled
}

// Worker returns the worker of the attempt, empty if there was none.
func (e *Ending) Worker() WorkerID {
	switch {
	case e.Result != nil:
		return e.Result.Worker
	case e.Failure != nil:
		return e.Failure.Worker
	default:
		return ""
	}
}

// At returns when the attempt ended, in milliseconds of Unix time, and 0 if none
// has.
func (e *Ending) At() int64 {
	switch {
	case e.Result != nil:
		return e.Result.At
	case e.Failure != nil:
		return e.Failure.At
	default:
		return 0
	}
}

// Size returns how many bytes the value, the streams and the message have,
// wherever they are stored.
func (e *Ending) Size() int64 {
	part := func(inline []byte, ref *ChunkRef) int64 {
		if ref != nil {
			return ref.Size
		}
		return int64(len(inline))
	}
	switch {
	case e.Result != nil:
		if e.Result.Object != "" {
			return e.Result.Size + part(e.Result.Stderr, e.Result.StderrRef)
		}
		return part(e.Result.Value, e.Result.ValueRef) + part(e.Result.Stderr, e.Result.StderrRef)
	case e.Failure != nil:
		return int64(len(e.Failure.Stdout)+len(e.Failure.Message)) + part(e.Failure.Stderr, e.Failure.StderrRef)
	default:
		return 0
	}
}
