package rest

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLongSpaceIsLeftOut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(" \n\t\r", longSpace)
	body := `{` + long + `"a"` + long + `:"` + strings.Repeat(" ", 2*longSpace) + `\" ` + long[:4] + `"}`
	content, err := io.ReadAll(iotest.OneByteReader(&spaceReader{from: strings.NewReader(body)}))
	require.NoError(t, err)
	require.Equal(t, `{`+long[:longSpace]+`"a"`+long[:longSpace]+`:"`+strings.Repeat(" ", 2*longSpace)+`\" `+long[:4]+`"}`,
		string(content))
}

func TestSpaceReaderChangesNoValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.String())).Draw(t, "value")
		content, err := json.MarshalIndent(value, "", strings.Repeat(" ", rapid.IntRange(0, 100).Draw(t, "indent")))
		require.NoError(t, err)
		got := map[string][]string{}
		require.NoError(t, json.NewDecoder(&spaceReader{from: iotest.HalfReader(bytes.NewReader(content))}).Decode(&got))
		require.Equal(t, value, got)
	})
}
