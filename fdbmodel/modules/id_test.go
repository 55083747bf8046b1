package modules_test

import (
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
)

// TestModuleCIDIsThatOfTheLibrary compares content ids with those of the library
// that defines them.
func TestModuleCIDIsThatOfTheLibrary(t *testing.T) {
	t.Parallel()
	const sha256 = 0x12
	rapid.Check(t, func(t *rapid.T) {
		module := rapid.SliceOf(rapid.Byte()).Draw(t, "module")
		want, err := cid.V1Builder{Codec: cid.Raw, MhType: sha256}.Sum(module)
		require.NoError(t, err)
		got, err := modules.CID(module)
		require.NoError(t, err)
		require.Equal(t, want.String(), got)
		parsed, err := cid.Parse(got)
		require.NoError(t, err)
		require.True(t, want.Equals(parsed))
	})
}

// TestOneBadRecordFailsNoList damages the records of one module and of one alias.
func TestOneBadRecordFailsNoList(t *testing.T) {
	t.Parallel()
	db := embedded.OpenMemory(embedded.Options{})
	defer func() { require.NoError(t, db.Close()) }()
	c, err := fdbmodel.Open(t.Context(), db, "c", fdbmodel.Options{})
	require.NoError(t, err)
	good, err := modules.Of(c).Put(t.Context(), []byte("good"), "first")
	require.NoError(t, err)
	bad, err := modules.Of(c).Put(t.Context(), []byte("bad"), "second")
	require.NoError(t, err)
	newer, err := modules.Of(c).Put(t.Context(), []byte("newer"), "third")
	require.NoError(t, err)
	_, err = kv.Transact(t.Context(), db, kv.Retry{}, func(tx kv.Attempt) error {
		tx.Set(c.Keys().ModuleInfo(bad.CID), []byte("\x01no record"))
		tx.Set(c.Keys().ModuleInfo(newer.CID), []byte("\xff"))
		tx.Set(c.Keys().Alias("damaged"), []byte("\x01no record"))
		tx.Set(append(c.Keys().Global(layout.SubModules), 0xff), nil) // not even a key of one
		return nil
	})
	require.NoError(t, err)
	stored, err := modules.Of(c).List(t.Context())
	require.NoError(t, err)
	sizes, aliases := map[string]int64{}, map[string][]string{}
	for _, m := range stored {
		sizes[m.CID], aliases[m.CID] = m.Size, m.Aliases
	}
	require.Equal(t, map[string]int64{good.CID: 4, bad.CID: 0, newer.CID: 0}, sizes)
	require.Equal(t, []string{"second"}, aliases[bad.CID])
}
