package p2p

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuietLog(t *testing.T) {
	t.Parallel()
	for level, want := range map[slog.Level]string{
		slog.LevelInfo:  "",
		slog.LevelDebug: "level=DEBUG msg=warning a.b=1\nlevel=DEBUG msg=error a.b=1\n",
	} {
		var b bytes.Buffer
		log := slog.New(quiet{slog.NewTextHandler(&b, &slog.HandlerOptions{
			Level: level,
			ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		})}).WithGroup("a").With("b", 1)
		log.Debug("debug")
		log.Info("info")
		log.Warn("warning")
		log.Error("error")
		require.Equal(t, want, b.String())
	}
}
