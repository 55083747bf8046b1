package layout_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

func TestCheckHolder(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"report", "a:b", "übersicht", strings.Repeat("n", 64)} {
		require.NoError(t, layout.CheckHolder(good))
	}
	for _, bad := range []string{"", "no name", "a/b", "a\x7f", "a\u202eb", "a\u200bb", "a\u0085", "a\u00a0b", "\xff",
		strings.Repeat("n", 65)} {
		err := layout.CheckHolder(bad)
		require.ErrorIs(t, err, layout.ErrBadName)
		if bad != "" {
			require.NotContains(t, err.Error(), `pin by ""`)
		}
	}
}
