package kvtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// forgetful is a store whose transactions forget to clear.
type forgetful struct{ kv.Database }

type forgetfulTx struct{ kv.Tx }

func (f forgetful) Begin(o kv.Options) kv.Tx { return forgetfulTx{f.Database.Begin(o)} }

func (forgetfulTx) Clear([]byte) {}

func TestDifferencesAreShrunk(t *testing.T) {
	t.Parallel()
	stores := pair{ctx: t.Context(), a: newReference(t), b: forgetful{newReference(t)}}
	var found problem
	for seed := uint64(1); found.text == ""; seed++ {
		require.Less(t, seed, uint64(100))
		found = stores.compare(NewProgram(seed))
	}
	require.Regexp(t, `(?s)at least in these [1-9] steps:.*  t\d clear ".*\n- .*\n\+ `, found.text)
	require.Equal(t, found, stores.compare(NewProgram(found.seed)), "the same again")
}

func TestStoresThatFailAreNotEqual(t *testing.T) {
	t.Parallel()
	closed := newReference(t)
	require.NoError(t, closed.Close())
	found := pair{ctx: t.Context(), a: newReference(t), b: closed}.compare(NewProgram(1))
	require.Contains(t, found.text, kv.ErrClosed.Error())
}
