package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/steps"
	"github.com/futura-run/futura/internal/taskcontext"
)

// maxOverruns is how often the transaction of a step may take longer than its store keeps it. Each time the store
// has just answered, so that a store or a process that stood still overruns once.
const maxOverruns = 3

// RecordTx implements taskcontext.Steps.
func (l *stepLog) RecordTx(ctx context.Context, step string, of taskcontext.RecordedStep,
	fn func(context.Context, kv.Tx) ([]byte, error),
) (value []byte, version kv.Version, err error) {
	j := l.job
	f, m := &j.future, j.membership
	number, first, again, err := l.numberTx(step)
	if err != nil {
		return nil, kv.NoVersion, err
	}
	record := steps.Record{Token: f.Token, Attempt: f.Attempt(), Codec: of.Codec, Number: number,
		StartedAt: layout.Millis(of.Started), At: layout.Millis(l.Now())}
	e := steps.Entry{Future: f, Name: step, First: first, Ended: j.settled.Load, Record: record, Again: again}
	if err := m.worker.freeze.wait(ctx); err != nil {
		return nil, kv.NoVersion, unrecordedError{err}
	}
	var own *marked // what the function has failed with
	fail := func(err error) error {
		if own = nil; err == nil {
			return nil
		}
		own = &marked{err}
		return own
	}
	overruns := 0
	value, version, err = l.rooms().WriteTx(ctx, m.reg, e, func(ctx context.Context, tx kv.Tx) (value []byte, err error) {
		clk := m.worker.cluster.Clock()
		began := clk.Now()
		ctx, cancel := withTimeout(ctx, clk, kv.TxLifetime)
		defer cancel()
		value, err = fn(ctx, tx)
		if local := kv.LocalOf(tx); err == nil && local != nil {
			err = local.Failed() // fn went on although a submit was refused
		}
		took := clk.Now().Sub(began)
		if took < kv.TxLifetime {
			return value, fail(err)
		}
		if overruns++; overruns < maxOverruns {
			own = nil
			return nil, fmt.Errorf("step %s of future %s took %v: %w", step, f.ID, took, kv.ErrTooOld)
		}
		return nil, fail(Permanent(fmt.Errorf("step %s of future %s took %v with its transaction, and as long %d times "+
			"before; the store keeps it for %v: have it do less, or do what takes long in a step before", step, f.ID,
			took.Round(time.Millisecond), overruns-1, kv.TxLifetime)))
	})
	if kv.MaybeCommitted(err) {
		l.doubt(step, number)
	}
	switch {
	case err == nil:
		j.prove()
		l.mu.Lock()
		defer l.mu.Unlock()
		record.Size = int64(len(value))
		l.note(step, record, version)
		return value, version, nil
	case own != nil && errors.Is(err, own):
		return nil, kv.NoVersion, own.error
	case errors.Is(err, fdbmodel.ErrTooLarge):
		return nil, kv.NoVersion, Permanent(err)
	case kv.Mistaken(err):
		return nil, kv.NoVersion, Permanent(fmt.Errorf("step %s of future %s: %w", step, f.ID, err))
	}
	return nil, kv.NoVersion, unrecordedError{fmt.Errorf("step %s of future %s: %w", step, f.ID, lost(err))}
}

// numberTx gives a step with a transaction its number: that of an earlier try which may have recorded it.
func (l *stepLog) numberTx(step string) (n int, first, again bool, err error) {
	l.mu.Lock()
	n, again = l.unsure[step]
	first = !l.some && !l.job.future.Steps
	l.mu.Unlock()
	if !again {
		n, first, err = l.number()
	}
	return n, first, again, err
}

// doubt notes that a step with a transaction may be on record.
func (l *stepLog) doubt(step string, number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsure == nil {
		l.unsure = map[string]int{}
	}
	l.unsure[step] = number
}
