package futures

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/taskcontext"
)

// Tx is the transaction of a StepTx. Rows of the application have keys that do not begin with the tuple of "futura".
// A write of another key fails the attempt for good, and so do SetReadVersion, Commit and Cancel.
type Tx struct {
	kv.Tx
	whole     kv.Tx // for what Futura writes
	client    *Client
	submitted []*TxFutures
}

// Submit creates futures if the step is recorded, each with at most 16 KiB of arguments. It returns the errors of
// Client.SubmitTx.
func (t *Tx) Submit(ctx context.Context, tasks ...Task) ([]*Future, error) {
	for i := range tasks {
		if ref, calls := actors.OfLane(tasks[i].Lane); calls {
			if err := t.client.ensureActors(ctx, ref.Type); err != nil {
				return nil, err
			}
		}
	}
	s, err := t.client.SubmitTx(ctx, t.whole, tasks)
	if err != nil {
		return nil, err
	}
	t.submitted = append(t.submitted, s)
	return s.Futures, nil
}

// end is called once it is known what became of the transaction. t may be nil.
func (t *Tx) end(ctx context.Context, version kv.Version, committed bool) {
	if t == nil {
		return
	}
	for _, s := range t.submitted {
		if committed {
			s.Committed(ctx, version)
		} else if s.done != nil {
			s.done()
		}
	}
}

// StepTx is Step for effects in the store of the cluster: what fn writes with the transaction, rows of the
// application and futures, calls of actors among them, is committed together with the record of the step. So those
// effects happen exactly once, whatever dies: either the step is recorded and they are there, or neither, and a
// later attempt runs it.
//
// fn runs again if its reads conflict with another transaction, so it must have no effects but those. It has
// five seconds, when its context ends, and 10 MB of writes, in keys of at most 10,000 bytes and values of at most
// 100,000, as every transaction of FoundationDB; the value that it returns has at most 4 KiB, encoded. More
// fails the future for good; of five seconds, the third time in succession, since the store or the process may have
// stood still. What fn submits does not exist before the step is recorded, so that fn can't await
// it. An error of fn is returned, and nothing is written. A commit with an unknown result is
// tried again, unless the step turns out to be on record. Otherwise it is as Step: also its
// options, of which StepRetries makes a new transaction each time, and ErrStepLost. The worker must have access to
// the store.
func StepTx[T any](ctx context.Context, name string, fn func(context.Context, *Tx) (T, error), options ...StepOption,
) (T, error) {
	return step(ctx, name, options, func(ctx context.Context, s *asked) (value T, err error) {
		client, err := FromContext(ctx)
		if err != nil {
			return value, err
		}
		of := taskcontext.RecordedStep{Codec: CodecMsgpack, Started: s.log.Now()}
		return runStep(ctx, s.log, func(ctx context.Context) (T, error) {
			return recordTx(ctx, s, client, of, fn)
		}, &s.options)
	})
}

func recordTx[T any](ctx context.Context, s *asked, client *Client, of taskcontext.RecordedStep,
	fn func(context.Context, *Tx) (T, error),
) (value T, err error) {
	var last *Tx
	encoded, version, err := s.log.RecordTx(ctx, s.name, of, func(ctx context.Context, tx kv.Tx) ([]byte, error) {
		last.end(ctx, kv.NoVersion, false) // it was an attempt that did not commit
		rows := &rowsTx{Tx: tx}
		last = &Tx{Tx: rows, whole: tx, client: client}
		made, err := fn(ctx, last)
		if rows.refused != nil {
			return nil, rows.refused
		}
		if err != nil {
			return nil, err
		}
		return encodeStep(s.name, &made)
	})
	last.end(ctx, version, err == nil)
	if err != nil {
		return value, err
	}
	of.Value = encoded
	return recordedValue[T](s.name, &of)
}
