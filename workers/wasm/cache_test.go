package wasm

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCodeThatCannotBeStored takes away the directory for compiled code, as a full
// disk does: modules are compiled all the same.
func TestCodeThatCannotBeStored(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "cache")
	e, err := newEngine(ctx, (&Config{}).limits(), dir, false, 1)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.close(ctx)) }()
	require.NoError(t, os.RemoveAll(dir))
	p, err := e.load(ctx, assembler{}.module(), 0)
	require.NoError(t, err)
	require.NotNil(t, p)
}
