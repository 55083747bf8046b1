package stack

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWholeNumbersOfAnyForm decodes what JSON Schema takes for an integer into fields of integers, and leaves a
// function's own as it is.
func TestWholeNumbersOfAnyForm(t *testing.T) {
	t.Parallel()
	type body struct {
		Large int64           `json:"large"`
		Small uint8           `json:"small"`
		List  []int           `json:"list"`
		Real  float64         `json:"real"`
		Text  string          `json:"text"`
		Input json.RawMessage `json:"input"`
	}
	var got body
	require.NoError(t, Unmarshal([]byte(` {"input": {"a": 1.0, "large": 2.0}, "large": -2e3, "small": 255.0,
		"list": [1, 20e-1, 3.0E+0, -0.0], "real": 1.50, "text": "1.0"} `), &got))
	require.Equal(t, body{-2000, 255, []int{1, 2, 3, 0}, 1.5, "1.0", json.RawMessage(`{"a": 1.0, "large": 2.0}`)}, got)
	require.NoError(t, Unmarshal([]byte(`{"large": 9223372036854775807.00}`), &got))
	require.EqualValues(t, 1<<63-1, got.Large)
	for text, says := range map[string]string{
		`{"large": 1.5}`: "1.5 is too much, or no whole number", `{"small": 256.0}`: "small: 256",
		`{"large": 9223372036854775807.5}`: "no whole number", `{"large": 1e19}`: "is too much",
		`{"large": 1e999999999}`: "1e999999999", `{"large": 1e-99999999999999999999}`: "no whole number",
		`{"large": 1.` + strings.Repeat("0", 1000) + `}`: "no whole number", `{"text": 1.0}`: "string",
		`{"large": 1.0, "small": "x"}`: "small",
	} {
		require.ErrorContains(t, Unmarshal([]byte(text), new(body)), says, text)
	}
}

// TestMemoryThatIsRefusedIsNotUsed has a request get no room for much, and then what it holds already.
func TestMemoryThatIsRefusedIsNotUsed(t *testing.T) {
	t.Parallel()
	l := Limits{Memory: 4 * step, ClientMemory: 2 * step, MemoryWait: time.Millisecond}.withDefaults()
	m := newMemory(&l)
	q := &request{memory: m, client: m.enter("a")}
	defer q.end()
	require.NoError(t, q.take(t.Context(), 1))
	require.Error(t, q.take(t.Context(), 3*step))
	require.NoError(t, q.take(t.Context(), 1), "it holds a whole step")
}
