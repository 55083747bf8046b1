//go:build unix

package wasm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAChildThatAsksWithoutEndIsCutOff has a child send more than the parent may keep, or what is no question.
func TestAChildThatAsksWithoutEndIsCutOff(t *testing.T) {
	t.Parallel()
	f := newFlow(t.Context(), &call{})
	frame := append(appendAsk(nil, &askPart{function: "step_put", left: 1}), make([]byte, mebibyte)...)
	var err error
	for sent := 0; err == nil; sent += mebibyte {
		require.Less(t, sent, maxAsked)
		err = f.ask(nil, frame)
	}
	require.ErrorIs(t, err, errFrame)
	require.LessOrEqual(t, len(f.asked), maxAsked)
	require.ErrorIs(t, newFlow(t.Context(), &call{}).ask(nil, []byte{200}), errFrame)
	require.ErrorIs(t, f.fetch(nil, nil), errFrame)
}
