package away

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/internal/clock"
)

const patience = 10 * time.Second

// TestAnOutageIsTwoLines has requests fail and stay open during an outage: the log has its begin and its end.
func TestAnOutageIsTwoLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := clock.NewVirtual(time.Unix(0, 0))
	w := New(slog.New(slog.NewTextHandler(&out, nil)), now)
	lines := func() []string { return strings.Split(strings.TrimSpace(out.String()), "\n") }
	ask := func(takes time.Duration, err error) {
		require.Equal(t, err, w.Await(t.Context(), patience, func(context.Context) error {
			now.Advance(takes)
			return err
		}))
	}
	ask(patience-1, nil)
	require.Empty(t, out.String())
	failed := errors.New("no")
	ask(patience, failed)
	require.Len(t, lines(), 1)
	require.Contains(t, lines()[0], "level=WARN")
	require.Contains(t, lines()[0], "does not answer")
	require.Contains(t, lines()[0], "waited=10s")
	ask(time.Hour, failed)
	require.Len(t, lines(), 1, "the outage goes on")
	ask(2*patience, nil)
	require.Len(t, lines(), 2)
	require.Contains(t, lines()[1], "level=INFO")
	require.Contains(t, lines()[1], "waited=1h0m30s")
	ask(0, nil)
	require.Len(t, lines(), 2)
	now.Advance(time.Hour)
	require.Len(t, lines(), 2, "what has ended is watched no more")
	ask(patience, nil)
	require.Len(t, lines(), 4, "the next outage has lines of its own")
}

// TestTheLineHasTheLastErrorOfATransactionThatIsRepeated.
func TestTheLineHasTheLastErrorOfATransactionThatIsRepeated(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := clock.NewVirtual(time.Unix(0, 0))
	w := New(slog.New(slog.NewTextHandler(&out, nil)), now)
	db := embedded.OpenMemory(embedded.Options{})
	defer func() { require.NoError(t, db.Close()) }()
	retry := kv.Retry{Sleep: func(context.Context, time.Duration) error { now.Advance(time.Second); return nil }}
	tries := 0
	require.NoError(t, w.Await(t.Context(), patience, func(ctx context.Context) error {
		_, err := kv.Transact(ctx, db, retry, func(kv.Attempt) error {
			if tries++; tries <= 20 {
				return errors.Join(kv.ErrUnavailable, errors.New("it is locked"))
			}
			return nil
		})
		return err
	}))
	require.Equal(t, 1, strings.Count(out.String(), "it is locked"))
	require.Contains(t, out.String(), "waited=20s")
}
