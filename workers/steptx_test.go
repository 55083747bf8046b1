package workers

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/internal/taskcontext"
)

// cutOff is a store that calls something after the first commit of a step, whose result it does not tell.
type cutOff struct {
	kv.Database
	call func()
}

func (d *cutOff) Begin(o kv.Options) kv.Tx {
	tx := d.Database.Begin(o)
	if o.Tag == "futura-step" {
		tx = &cutOffTx{tx, d}
	}
	return tx
}

type cutOffTx struct {
	kv.Tx
	db *cutOff
}

func (t *cutOffTx) Commit(ctx context.Context) (kv.Committed, error) {
	done, err := t.Tx.Commit(ctx)
	if call := t.db.call; call != nil && err == nil {
		t.db.call = nil
		call()
		return kv.Committed{Version: kv.NoVersion}, kv.ErrUnknownResult
	}
	return done, err
}

// TestAStepWithEffectsIsTriedAgainOnce has the time of a step end after a commit with an unknown result. Another try
// finds what it has written.
func TestAStepWithEffectsIsTriedAgainOnce(t *testing.T) {
	t.Parallel()
	db := &cutOff{Database: storetest.New(t)}
	b := bedOn(t, db, layout.Config{}, nil)
	row, runs := []byte("balance"), 0
	b.start(Options{Slots: 1}, map[string]Function{"order": func(ctx context.Context, _ []byte) ([]byte, error) {
		log := ctx.Value(taskcontext.StepsKey{}).(taskcontext.Steps)
		step, _, err := log.Ask(ctx, "pay")
		if err != nil {
			return nil, err
		}
		pay := func(ctx context.Context) (value []byte, err error) {
			of := taskcontext.RecordedStep{Codec: layout.CodecRaw, Started: log.Now()}
			value, _, err = log.RecordTx(ctx, step, of, func(ctx context.Context, tx kv.Tx) ([]byte, error) {
				runs++
				was, err := tx.Get(row).Wait(ctx)
				tx.Set(row, append([]byte("+1"), was...))
				return append([]byte("was "), was...), err
			})
			return value, err
		}
		bounded, cancel := context.WithCancel(ctx)
		db.call = cancel
		if _, err := pay(bounded); !kv.MaybeCommitted(err) {
			return []byte("it is known"), err
		}
		return pay(ctx)
	}})
	id := b.one("go:order")
	b.awaitOver(id)
	require.Equal(t, "was ", string(b.row(id).Result.Value))
	require.Equal(t, 1, runs)
	require.Equal(t, []string{"pay"}, b.steps(id))
	require.NoError(t, b.cluster.View(b.ctx, func(tx kv.Attempt) error {
		value, err := tx.Get(row).Wait(b.ctx)
		require.Equal(t, "+1", string(value))
		return err
	}))
}
