//go:build fdb

package bank

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/internal/fdbtest"
)

// ignored are goroutines that live as long as the process.
func ignored() []goleak.Option { return []goleak.Option{fdbtest.IgnoreClient()} }

// TestMoneyOnFoundationDB is TestMoneyOfKilledProcesses with three processes on a server of FoundationDB, which is
// struck like them.
func TestMoneyOnFoundationDB(t *testing.T) {
	s := startServer(t)
	random := source(t)
	for left, n := rounds(t, 3, 5, 200), 0; left > 0; left, n = left-roundsOfBank, n+1 {
		c := &crew{t: t, random: random, store: "fdb:" + s.ClusterFile(t), cluster: fmt.Sprint("bank", n),
			journal: filepath.Join(t.TempDir(), "journal")}
		c.server = &server{
			kill: func() { s.Kill(0) }, restart: func() error { return s.Restart(0) },
			signal: func(of os.Signal) error { return s.Signal(0, of) },
		}
		c.run(min(left, roundsOfBank))
	}
}

// startServer starts a server of the test's own, or skips the test where there is none.
func startServer(t *testing.T) *fdbtest.Server {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := fdbtest.Start(ctx)
	if errors.Is(err, exec.ErrNotFound) && os.Getenv(fdbtest.RequireVariable) != "1" {
		s = nil
		s.ClusterFile(t)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s
}
