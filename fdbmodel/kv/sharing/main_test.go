package sharing_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel/kv/sharing"
)

// patience bounds the wait for what must come, on the busiest machine.
const patience = time.Minute

// dirVariable names the store of a child.
const dirVariable = "FUTURA_TEST_SHARED_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(dirVariable); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// place returns a new directory whose path is short enough for a socket.
func place(t testing.TB) string {
	dir, err := os.MkdirTemp("", "fs")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "store")
}

// open opens a store until the end of the test.
func open(t testing.TB, dir string, o sharing.Options) *sharing.Database {
	db, err := sharing.Open(t.Context(), dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}
