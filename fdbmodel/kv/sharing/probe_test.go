package sharing_test

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
)

// TestAStoppedOwnerIsNotAskedAgainAndAgain has the socket of an owner take connections and not answer, as that of a
// process that is stopped: who follows it makes few, and takes over once the socket is gone.
func TestAStoppedOwnerIsNotAskedAgainAndAgain(t *testing.T) {
	t.Parallel()
	dir := place(t)
	owner := start(t, dir)
	owner.awaitStep(t)
	away := make(chan struct{})
	log := slog.New(slog.NewTextHandler(writerFunc(func(line string) {
		if strings.Contains(line, "does not answer") {
			close(away)
		}
	}), nil))
	second := open(t, dir, sharing.Options{Logger: log})
	put(t, second, "a")
	require.False(t, second.IsOwner())

	hidden := filepath.Join(filepath.Dir(dir), "s")
	l, err := remote.ListenUnix(hidden)
	require.NoError(t, err)
	var asked atomic.Int32
	var accepting sync.WaitGroup
	accepting.Go(func() {
		var all []net.Conn
		for {
			conn, err := l.Accept()
			if err != nil {
				break
			}
			asked.Add(1)
			all = append(all, conn)
		}
		for _, conn := range all {
			_ = conn.Close()
		}
	})
	require.NoError(t, os.Rename(hidden, filepath.Join(dir, "store.sock")))
	require.NoError(t, owner.Process.Kill())
	select {
	case <-away:
	case <-time.After(patience):
		require.Fail(t, "it is not said that the owner does not answer")
	}
	require.LessOrEqual(t, asked.Load(), int32(8))
	require.NoError(t, l.Close())
	accepting.Wait()
	put(t, second, "b")
	require.True(t, second.IsOwner())
}
