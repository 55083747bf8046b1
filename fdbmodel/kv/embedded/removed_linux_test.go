package embedded_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

// TestARemovedStoreFails removes the directory of a store that is open, or what is in it: no commit is acknowledged
// from then on, also if another store is in its place.
func TestARemovedStoreFails(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(dir string) error{
		"directory": os.RemoveAll,
		"files": func(dir string) error {
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			for _, file := range files {
				if err == nil {
					err = os.Remove(file)
				}
			}
			return err
		},
		"replaced": func(dir string) error {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			return os.Mkdir(dir, 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, dir := context.Background(), filepath.Join(t.TempDir(), "store")
			s, err := embedded.Open(ctx, dir, embedded.Options{})
			require.NoError(t, err)
			set := func() error {
				tx := s.Begin(kv.Options{})
				tx.Set([]byte("key"), []byte("value"))
				_, err := tx.Commit(ctx)
				return err
			}
			require.NoError(t, set())
			require.NoError(t, remove(dir))
			require.ErrorIs(t, set(), kv.ErrUnknownResult)
			err = set()
			require.ErrorIs(t, err, kv.ErrStoreFailed)
			require.ErrorContains(t, err, "were removed while it was open")
			require.Error(t, s.Close())
		})
	}
}
