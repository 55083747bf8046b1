package fdbmodel

import (
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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
		got, err := ModuleCID(module)
		require.NoError(t, err)
		require.Equal(t, want.String(), got)
		parsed, err := cid.Parse(got)
		require.NoError(t, err)
		require.True(t, want.Equals(parsed))
	})
}
