package layout_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

func TestUniqueKeysAreShownInWholeCharacters(t *testing.T) {
	t.Parallel()
	for ahead := range 3 {
		key := strings.Repeat("x", ahead) + strings.Repeat("日", 100)
		shown := layout.ShowUniqueKey(key)
		require.True(t, utf8.ValidString(shown), "%q", shown)
		require.LessOrEqual(t, len(shown), 128)
		require.Contains(t, shown, "日")
	}
	require.Equal(t, "order 7", layout.ShowUniqueKey("order 7"))
}
