package modeltest

import (
	"bytes"
	"context"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
)

// BeforeCommits is a store that calls a function once, before the next commit of a
// transaction with its tag.
type BeforeCommits struct {
	kv.Database
	Call map[string]func()
}

type beforeTx struct {
	kv.Tx
	db  *BeforeCommits
	tag string
}

// Begin implements kv.Database.
func (d *BeforeCommits) Begin(o kv.Options) kv.Tx { return &beforeTx{d.Database.Begin(o), d, o.Tag} }

func (t *beforeTx) Commit(ctx context.Context) (kv.Committed, error) {
	if call := t.db.Call[t.tag]; call != nil {
		delete(t.db.Call, t.tag)
		call()
	}
	return t.Tx.Commit(ctx)
}

// Interrupted is the cluster for an operation whose next commit with a tag comes after
// what another process does meanwhile.
func (s *Stage) Interrupted(tag string, meanwhile func()) *fdbmodel.Cluster {
	db := &BeforeCommits{s.Faults, map[string]func(){tag: meanwhile}}
	c, err := fdbmodel.Open(s.Ctx, db, "unknown", fdbmodel.Options{Clock: s.Clock, Config: s.C.Config()})
	require.NoError(s.T, err)
	return c
}

// Vanishing is the cluster for an operation whose stored pieces are gone before each commit with a tag. The number
// says how often they were.
func (s *Stage) Vanishing(tag string) (*fdbmodel.Cluster, *int) {
	calls, times := map[string]func(){}, new(int)
	var vanish func()
	vanish = func() {
		calls[tag] = vanish
		*times++
		var stored [][]byte
		require.NoError(s.T, s.C.EachKey(s.Ctx, s.C.Keys().All(), func(item kv.KeyValue) error {
			if bytes.Contains(item.Key, []byte("\x02chunks\x00")) {
				stored = append(stored, item.Key)
			}
			return nil
		}))
		s.past(func(tx kv.Attempt) error {
			for _, key := range stored {
				tx.Clear(key)
			}
			return nil
		})
	}
	calls[tag] = vanish
	db := &BeforeCommits{s.Faults, calls}
	c, err := fdbmodel.Open(s.Ctx, db, "unknown", fdbmodel.Options{Clock: s.Clock, Config: s.C.Config()})
	require.NoError(s.T, err)
	return c, times
}

// Store writes a value past the model.
func (s *Stage) Store(key, value []byte) {
	s.T.Helper()
	s.past(func(tx kv.Attempt) error { tx.Set(key, value); return nil })
}

// Read returns what a key has, past the model, nil if nothing.
func (s *Stage) Read(key []byte) (value []byte) {
	s.T.Helper()
	s.past(func(tx kv.Attempt) (err error) {
		value, err = tx.Get(key).Wait(s.Ctx)
		return err
	})
	return value
}

func (s *Stage) past(do func(kv.Attempt) error) {
	s.T.Helper()
	_, err := kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, do)
	require.NoError(s.T, err)
}

// Problems are what an audit finds.
func (s *Stage) Problems() []audit.Problem {
	s.T.Helper()
	report, err := audit.Check(s.Ctx, s.C, audit.Options{})
	require.NoError(s.T, err)
	return report.Problems
}
