package futurestore_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
)

// TestHostsHaveAPace of their own: that of the first address, as far as a name of a pace goes.
func TestHostsHaveAPace(t *testing.T) {
	t.Parallel()
	template := batch.Template{Config: batch.Config{RatePerHost: 2}}
	for address, want := range map[string]string{
		"plain": "", "/path": "", "mailto:a@b": "", "https://EXAMPLE.org:80/x": "example.org",
		"http://" + strings.Repeat("x", 65):  strings.Repeat("x", 64),
		"http://x" + strings.Repeat("é", 40): "x" + strings.Repeat("é", 31),
		"http://" + strings.Repeat("Ⱥ", 32):  strings.Repeat("ⱥ", 21), // of 2 bytes, and of 3
	} {
		pace := futurestore.Submission(&template, "go:f", []string{"first", address, "http://other"}).Spec.Pace
		if want == "" {
			want = "other"
		}
		require.Equal(t, &layout.Pace{Key: want, PerSecond: 2, Shared: true}, pace, address)
	}
	require.Nil(t, futurestore.Submission(&template, "go:f", []string{"plain"}).Spec.Pace)
}

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
