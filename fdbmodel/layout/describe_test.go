package layout_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

func TestDescribeGoldenKeys(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("test")
	k.Shards = 16
	names := map[string]string{"code info": "module", "code body": "module piece", "mailbox": "mail"}
	for _, c := range modeltest.GoldenKeys(k) {
		d := keyspace.Table().Describe(c.Key)
		want, renamed := names[c.Name]
		if !renamed {
			want = c.Name
		}
		require.Equal(t, want, d.Kind)
		require.Empty(t, d.Problem)
		require.Equal(t, tuple.String(c.Key), d.Text)
		back, err := layout.UnescapeKey(d.Escaped)
		require.NoError(t, err)
		require.Equal(t, c.Key, back)
	}
	require.Len(t, modeltest.GoldenKeys(k), len(keyspace.Table().Kinds()))
	key := k.Ready(modeltest.GoldenID, &layout.Spec{Queue: "q", Owner: "g", Priority: 5})
	b, err := json.Marshal(keyspace.Table().Describe(key).Parts)
	require.NoError(t, err)
	require.JSONEq(t, `{"queue":"q","cpu_millis":0,"ram_bytes":0,"gpu_millis":0,"priority":5,`+
		`"id":"01020304-0506-7708-890a-0b0c0d0e0f03"}`, string(b))
	ready := keyspace.Table().Parse(key)
	require.Equal(t, modeltest.GoldenID, ready.ID)
	require.Equal(t, "q", ready.Text("queue"))
	require.EqualValues(t, 5, ready.Int("priority"))
	require.Empty(t, ready.Text("none"))
	require.Zero(t, ready.Int("none"))
}

func TestUnescapeKeyRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{`\`, `\x`, `\x0`, `\xzz`, `\q`, `\x2orders`, `\x 1a`, `\x+1`} {
		_, err := layout.UnescapeKey(bad)
		require.ErrorIs(t, err, layout.ErrBadKey, bad)
	}
	key, err := layout.UnescapeKey(`a\x00\\\"\ \;b`)
	require.NoError(t, err)
	require.Equal(t, []byte("a\x00\\\" ;b"), key)
}
