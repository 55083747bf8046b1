package futurestore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel/modules"
)

// TestAnEntryNamesTheExport resolves a method that is a file, and one that names an
// export itself.
func TestAnEntryNamesTheExport(t *testing.T) {
	t.Parallel()
	d := newData(t)
	module, err := modules.Of(d.cluster).Put(t.Context(), []byte("plain"), "plain")
	require.NoError(t, err)
	file, entry := suiteFunction, batch.Config{Entry: "main"}
	start, err := futurestore.Function(t.Context(), d.cluster, &file)
	require.NoError(t, err)
	file.Config = entry
	got, err := futurestore.Function(t.Context(), d.cluster, &file)
	require.NoError(t, err)
	require.Equal(t, start+"/main", got)
	want := "wasm:" + module.CID + "/main"
	for _, method := range []string{"", "main"} {
		got, err := futurestore.Function(t.Context(), d.cluster,
			&batch.Template{FunctionID: "plain", Method: method, Config: entry})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = futurestore.Function(t.Context(), d.cluster,
		&batch.Template{FunctionID: "plain", Method: "other", Config: entry})
	require.ErrorIs(t, err, batch.ErrBadBatch)
	require.ErrorContains(t, err, "names another export")
	err = batch.Validate(&batch.Template{FunctionID: "go:f", Config: entry}, [][]string{nil})
	require.ErrorContains(t, err, "a Go function has no exports")
}
