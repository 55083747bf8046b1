package ratelog

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/clock"
)

func TestEventsThatAreLeftOutAreCounted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := clock.NewVirtual(time.Unix(0, 0))
	l := New(slog.New(slog.NewTextHandler(&out, nil)), now)
	lines := func() []string { return strings.Split(strings.TrimSpace(out.String()), "\n") }
	for i := range 1000 {
		l.Warn("a kind", "n", i)
	}
	l.Warn("another kind")
	require.Len(t, lines(), 2)
	now.Advance(Interval - 1)
	l.Warn("a kind")
	require.Len(t, lines(), 2)
	now.Advance(1)
	l.Warn("a kind", "n", "later")
	require.Contains(t, lines()[2], "n=later omitted=1000")
	l.Warn("a kind")
	l.Close()
	require.Len(t, lines(), 4)
	require.Contains(t, lines()[3], `msg="a kind" omitted=1`)
	l.Close()
	require.Len(t, lines(), 4, "what was logged is forgotten")
}
