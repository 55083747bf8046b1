package inspect_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

func TestDescribeEveryKeyOfACluster(t *testing.T) {
	t.Parallel()
	p := modeltest.Populate(t)
	p.Enrich(t)
	require.Empty(t, p.Check(t).Problems)
	met := map[string]bool{}
	for _, item := range p.Items(t) {
		key, value := keyspace.Table().Describe(item.Key), inspect.DescribeValue(item.Key, item.Value)
		require.Empty(t, key.Problem, key.Text)
		require.NotEmpty(t, key.Kind, key.Text)
		require.Equal(t, "check", key.Cluster)
		require.Empty(t, value.Problem, key.Text)
		require.NotContains(t, value.Fields, "unknown_fields", key.Text)
		_, err := json.Marshal([]any{key, value})
		require.NoError(t, err)
		met[key.Kind] = true
	}
	kinds, _ := keyspace.Table().Names()
	for _, kind := range kinds {
		require.True(t, met[kind], "the cluster has no key of the kind %q", kind)
	}
	row := p.Row(t, layout.Claimed)
	claim := inspect.DescribeValue(p.C.Keys().State(row.ID, layout.StateClaim), layout.EncodeStamped(row.Claim))
	require.Equal(t, map[string]any{"worker": string(p.Worker.ID()), "sequence": p.Claim.Sequence}, claim.Fields)
	require.Equal(t, 1, claim.Version)
}

func TestDescribeGoldenRecords(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("test")
	k.Shards = 16
	for _, g := range modeltest.GoldenRecords() {
		key, value := modeltest.KeyOfRecord(k, g.Name), g.Encode()
		d := inspect.DescribeValue(key, value)
		require.Empty(t, d.Problem, g.Name)
		require.NotContains(t, d.Fields, "unknown_fields", g.Name)
		var raw map[string]any
		head := 1
		if g.Stamped {
			head += layout.StampLength
			require.Len(t, d.Stamp, 21)
		}
		require.NoError(t, msgpack.Unmarshal(value[head:], &raw))
		require.Len(t, d.Fields, len(raw), g.Name)

		newer := append([]byte{layout.RecordVersion + 1}, value[1:]...)
		d = inspect.DescribeValue(key, newer)
		require.Contains(t, d.Problem, "newer version", g.Name)
		require.Equal(t, layout.RecordVersion+1, d.Version)
		require.Len(t, d.Fields, len(raw), g.Name)
		require.Equal(t, g.Name == "worker", d.Raw == "", "that has a secret")
		for _, bad := range [][]byte{{}, {0}, value[:len(value)-1], append(value[:len(value):len(value)], 0)} {
			require.NotEmpty(t, inspect.DescribeValue(key, bad).Problem, "%s %x", g.Name, bad)
		}
		raw["zz"] = map[string]any{"inner": []byte{1}}
		more, err := msgpack.Marshal(raw)
		require.NoError(t, err)
		d = inspect.DescribeValue(key, append(value[:head:head], more...))
		require.Empty(t, d.Problem, g.Name)
		require.Equal(t, map[string]any{"zz": map[string]any{"inner": map[string]any{"bytes": 1, "hex": "01"}}},
			d.Fields["unknown_fields"])
	}
	exception := inspect.DescribeValue(k.State(modeltest.GoldenID, layout.StateException),
		modeltest.GoldenRecords()[5].Encode()).Fields
	require.Equal(t, map[string]any{"bytes": 1, "text": "e"}, exception["stderr"])
	require.Equal(t, "exit", exception["kind"])
	done := inspect.DescribeValue(modeltest.KeyOfRecord(k, "done"),
		layout.Encode(&layout.DoneEntry{At: 7, IDs: layout.PackIDs([]layout.ID{modeltest.GoldenID})}))
	require.Equal(t, []string{modeltest.GoldenID.String()}, done.Fields["ids"])
}

func TestDescribeForeignKeys(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("test")
	k.Shards = 16
	for _, key := range [][]byte{nil, {}, []byte("abc"), {0xff}, tuple.AppendString(nil, "other"), {2, 'f'}} {
		require.Equal(t, layout.ProblemForeign, keyspace.Table().Describe(key).Problem, "%x", key)
		d := inspect.DescribeValue(key, []byte{0, 1})
		require.Equal(t, map[string]any{"data": map[string]any{"bytes": 2, "hex": "0001"}}, d.Fields)
		require.Equal(t, inspect.FormatRaw, d.Format)
	}
	for _, key := range [][]byte{
		k.Global("future"), k.Shard(3, "cfg"), k.Global(layout.SubFutures), append(k.Spec(modeltest.GoldenID), 0),
		k.Row(modeltest.GoldenID),
		k.State(modeltest.GoldenID, "other"), tuple.AppendString(k.SessionWake("s"), "x"), k.Shard(300, layout.SubReady),
		k.Shard(3, layout.SubResults),
	} {
		d := keyspace.Table().Describe(key)
		require.Equal(t, layout.ProblemUnknown, d.Problem, d.Text)
		require.Equal(t, "test", d.Cluster)
		require.Empty(t, d.Kind)
	}
}

func TestDescribeLargePieces(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("test")
	d := inspect.DescribeValue(k.ModulePiece("c", 0), []byte(strings.Repeat("é", 1000)))
	data := d.Fields["data"].(map[string]any)
	require.Equal(t, 2000, data["bytes"])
	require.Equal(t, strings.Repeat("é", inspect.ViewedData/2), data["text"])
	require.Equal(t, true, data["cut"])
}

// TestDescribeHostileRecords shows records of a field that no version has: nested
// deeply, and claiming to hold more than there is.
func TestDescribeHostileRecords(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("test")
	field := []byte{layout.RecordVersion, 0x81, 0xa2, 'z', 'z'}
	for depth, deeper := range map[int]bool{20: false, 100: true, 90_000: true} {
		value := append(slices.Concat(field, bytes.Repeat([]byte{0x91}, depth)), 0xc0)
		d := inspect.DescribeValue(k.Config(), value)
		require.Empty(t, d.Problem)
		shown, err := json.Marshal(d)
		require.NoError(t, err)
		require.Equal(t, deeper, strings.Contains(string(shown), "nested deeper than 32"), depth)
	}
	for _, claim := range [][]byte{
		{0xdd, 0, 0, 0xff, 0xff}, {0xdf, 0, 0, 0xff, 0xff, 0xa0}, {0xdd, 0xff, 0xff, 0xff, 0xff},
	} {
		d := inspect.DescribeValue(k.Config(), slices.Concat(field, bytes.Repeat(claim, 15_000)))
		require.Contains(t, d.Problem, layout.ErrBadRecord.Error())
	}
}

func FuzzDescribe(f *testing.F) {
	k := layout.NewKeyspace("test")
	k.Shards = 16
	for _, g := range modeltest.GoldenRecords() {
		f.Add(modeltest.KeyOfRecord(k, g.Name), g.Encode())
	}
	for _, c := range modeltest.GoldenKeys(k) {
		f.Add(c.Key, []byte{layout.RecordVersion, 0, 0, 0, 1, 0x81, 0xa1, 'i', 0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0})
	}
	f.Add(k.Config(), []byte{layout.RecordVersion, 0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Add(k.Config(), append([]byte{layout.RecordVersion}, slices.Repeat([]byte{0x91}, 100)...))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if len(key) > kv.MaxKeySize || len(value) > kv.MaxValueSize {
			return
		}
		d := keyspace.Table().Describe(key)
		require.Equal(t, d.Kind == "", d.Problem != "")
		back, err := layout.UnescapeKey(d.Escaped)
		require.NoError(t, err)
		require.Equal(t, len(key), len(back))
		_, err = json.Marshal([]any{d, inspect.DescribeValue(key, value)})
		require.NoError(t, err)
	})
}

// TestDocsFdbcli checks that each key and value that the page shows is
// readable, and that the key is in its shard.
func TestDocsFdbcli(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operating/fdbcli.md")
	require.NoError(t, err)
	keys, kinds := layout.NewKeyspace("default"), map[string]bool{}
	keys.Shards = layout.DefaultShards
	gets := regexp.MustCompile("(?m)^(?:fdb> get |`)(\\\\x02.*?)(?:' is .*)?$")
	for _, read := range gets.FindAllStringSubmatch(string(page), -1) {
		key, err := layout.UnescapeKey(read[1])
		require.NoError(t, err)
		parsed := keyspace.Table().Parse(key)
		require.True(t, keys.Holds(&parsed), read[1])
	}
	for _, shown := range regexp.MustCompile("(?m)^`(.*)' is `(.*)'$").FindAllStringSubmatch(string(page), -1) {
		key, err := layout.UnescapeKey(shown[1])
		require.NoError(t, err)
		value, err := layout.UnescapeKey(shown[2])
		require.NoError(t, err)
		d := keyspace.Table().Describe(key)
		require.Empty(t, d.Problem, d.Text)
		require.Empty(t, inspect.DescribeValue(key, value).Problem, d.Text)
		kinds[d.Kind] = true
	}
	for _, kind := range []string{"spec", "claim", "result", "exception", "ready", "delayed", "alive", "claims", "count",
		"lane kind", "lane", "line"} {
		require.True(t, kinds[kind], kind)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	key := layout.NewKeyspace("check").Worker("w", layout.WorkerAlive)
	for _, value := range []layout.Record{&layout.WorkerInfo{Queues: []string{"q"}, Secret: "hush"}} {
		shown, err := json.Marshal(inspect.DescribeValue(key, layout.Encode(value)))
		require.NoError(t, err)
		require.NotContains(t, string(shown), "hush")
		require.Contains(t, string(shown), "not shown")
	}
}
