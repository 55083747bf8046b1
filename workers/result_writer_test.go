package workers

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestAResultIsWholeOrNone has a function write more than it may, and not look at the errors.
func TestAResultIsWholeOrNone(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	ends := make(chan Failure, 1)
	b.start(Options{Slots: 1, Policy: layout.Policy{MaxOutput: 10}, OnFailed: func(f Failure) { ends <- f }},
		map[string]Function{"write": func(ctx context.Context, _ []byte) ([]byte, error) {
			w, err := ResultWriter(ctx)
			for _, part := range []string{"begin", strings.Repeat("much", 5), "end"} {
				_, _ = w.Write([]byte(part))
			}
			return nil, err
		}})
	id := b.one("go:write")
	b.awaitOver(id)
	row := b.row(id)
	require.Equal(t, layout.Failed, row.State(), "%v", row.Result)
	require.Equal(t, layout.KindTooLarge, row.Exception.Kind)
	require.Contains(t, row.Exception.Message, "more than 10 bytes")
	require.Equal(t, id, (<-ends).ID)
}
