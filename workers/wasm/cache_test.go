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
	p, err := e.load(ctx, assembler{functions: []function{{export: "_start"}}}.module(), 0)
	require.NoError(t, err)
	require.NotNil(t, p)
}

// TestModulesThatCanNeverRun export nothing, or nothing that can be called.
func TestModulesThatCanNeverRun(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e, err := newEngine(ctx, (&Config{}).limits(), "", false, 1)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.close(ctx)) }()
	for name, module := range map[string]assembler{
		"no export":   {},
		"two results": {functions: []function{{export: "f", results: 2, body: append(constant(0), constant(0)...)}}},
	} {
		_, err := e.load(ctx, module.module(), 0)
		var failure *Error
		require.ErrorAs(t, err, &failure, name)
		require.Equal(t, KindUnloadable, failure.Kind)
		require.Contains(t, failure.Message, "GOOS=wasip1", name)
	}
}
