package futurestore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// FuzzTemplate reads the template of a stored batch.
func FuzzTemplate(f *testing.F) {
	f.Add([]byte(`{"function_id":"f","method":"m","config":{"number_of_nodes":-1,"env_vars":[{"name":"A"}]}}`), int64(1))
	f.Add([]byte(`null`), int64(-1<<63))
	f.Fuzz(func(t *testing.T, template []byte, at int64) {
		b, err := batchOf(&layout.BatchRecord{ID: "b", Template: template, CreatedAt: at, FinishedAt: at})
		if err != nil {
			require.ErrorIs(t, err, layout.ErrBadRecord)
			return
		}
		require.NotNil(t, Submission(&b.Template, "go:f", []string{"http://h/"}))
	})
}

// FuzzHost looks for a target host in what may be a URL.
func FuzzHost(f *testing.F) {
	f.Add("http://Example.com:80/a")
	f.Add("http://[::1%25en0]/")
	f.Fuzz(func(t *testing.T, argument string) {
		host := hostOf([]string{"-x", argument})
		require.LessOrEqual(t, len(host), 2*maxHost) // letters grow when they become small
	})
}
