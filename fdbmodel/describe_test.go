package fdbmodel

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// enrich adds to a population what it has no key of yet.
func (p *population) enrich(t *testing.T) {
	ctx := context.Background()
	_, held, err := p.c.HoldJanitor(ctx, p.worker.ID(), nil, 1)
	require.NoError(t, err)
	require.True(t, held)
	_, _, err = p.c.Subscribe(ctx, "another", []ID{p.ids[Ready], p.ids[Claimed]})
	require.NoError(t, err)
	_, _, err = p.c.Cancel(ctx, p.ids[Claimed], "not wanted")
	require.NoError(t, err)
	p.c.wakeRing(ctx, kv.NoVersion, demands{{queue: DefaultQueue, function: "go:f"}: 1})
	p.goIdle(t)
	p.write(t, func(tx kv.Tx) { tx.Set(p.c.keys.incoming(), mustRecord(t, &incomingRecord{Writer: "w"})) })
}

func (p *population) items(t *testing.T) []kv.KeyValue {
	var items []kv.KeyValue
	require.NoError(t, p.c.eachKey(context.Background(), p.c.keys.all(), func(item kv.KeyValue) error {
		items = append(items, item)
		return nil
	}))
	return items
}

func TestDescribeEveryKeyOfACluster(t *testing.T) {
	t.Parallel()
	p := populate(t)
	p.enrich(t)
	require.Empty(t, p.check(t).Problems)
	met := map[string]bool{}
	for _, item := range p.items(t) {
		key, value := DescribeKey(item.Key), DescribeValue(item.Key, item.Value)
		require.Empty(t, key.Problem, key.Text)
		require.NotEmpty(t, key.Kind, key.Text)
		require.Equal(t, "check", key.Cluster)
		require.Empty(t, value.Problem, key.Text)
		require.NotContains(t, value.Fields, "unknown_fields", key.Text)
		_, err := json.Marshal([]any{key, value})
		require.NoError(t, err)
		met[key.Kind] = true
	}
	kinds, _ := KeyKinds()
	for _, kind := range kinds {
		require.True(t, met[kind], "the cluster has no key of the kind %q", kind)
	}
	row := p.row(t, Claimed)
	claim := DescribeValue(p.c.keys.state(row.ID, stateClaim), mustStamped(t, row.Claim))
	require.Equal(t, map[string]any{"worker": string(p.worker.ID()), "sequence": int64(4)}, claim.Fields)
	require.Equal(t, 1, claim.Version)
}

func TestDescribeGoldenKeys(t *testing.T) {
	t.Parallel()
	k := newKeyspace("test")
	k.shards = 16
	names := map[string]string{"code info": "module", "code body": "module piece", "mailbox": "mail"}
	for _, c := range goldenKeys(k) {
		d := DescribeKey(c.key)
		want, renamed := names[c.name]
		if !renamed {
			want = c.name
		}
		require.Equal(t, want, d.Kind)
		require.Empty(t, d.Problem)
		require.Equal(t, tuple.String(c.key), d.Text)
		back, err := UnescapeKey(d.Escaped)
		require.NoError(t, err)
		require.Equal(t, c.key, back)
	}
	require.Len(t, goldenKeys(k), len(keyKinds()))
	ready := DescribeKey(k.ready(goldenID, &Spec{Queue: "q", Group: "g", Priority: 5}))
	b, err := json.Marshal(ready.Parts)
	require.NoError(t, err)
	require.JSONEq(t, `{"queue":"q","group":"g","cpu_millis":0,"ram_bytes":0,"gpu_millis":0,"priority":5,`+
		`"id":"01020304-0506-7708-890a-0b0c0d0e0f03"}`, string(b))
	require.Equal(t, goldenID, ready.Part("id"))
	require.Nil(t, ready.Part("none"))
}

// keyOfRecord returns a key that holds such a record.
func keyOfRecord(k keyspace, name string) []byte {
	names := map[string]string{"smallest spec": "spec", "worker": "alive", "module": "code info"}
	if other, ok := names[name]; ok {
		name = other
	}
	for _, c := range goldenKeys(k) {
		if c.name == name {
			return c.key
		}
	}
	return nil
}

func TestDescribeGoldenRecords(t *testing.T) {
	t.Parallel()
	k := newKeyspace("test")
	k.shards = 16
	for _, g := range goldenRecords() {
		key, value := keyOfRecord(k, g.name), g.encode(t)
		d := DescribeValue(key, value)
		require.Empty(t, d.Problem, g.name)
		require.NotContains(t, d.Fields, "unknown_fields", g.name)
		var raw map[string]any
		head := 1
		if g.stamped {
			head += stampLength
			require.Len(t, d.Stamp, 21)
		}
		require.NoError(t, msgpack.Unmarshal(value[head:], &raw))
		require.Len(t, d.Fields, len(raw), g.name)

		newer := append([]byte{recordVersion + 1}, value[1:]...)
		d = DescribeValue(key, newer)
		require.Contains(t, d.Problem, "newer version", g.name)
		require.Equal(t, recordVersion+1, d.Version)
		require.Len(t, d.Fields, len(raw), g.name)
		require.NotEmpty(t, d.Raw)
		for _, bad := range [][]byte{{}, {0}, value[:len(value)-1], append(value[:len(value):len(value)], 0)} {
			require.NotEmpty(t, DescribeValue(key, bad).Problem, "%s %x", g.name, bad)
		}
		raw["zz"] = map[string]any{"inner": []byte{1}}
		more, err := msgpack.Marshal(raw)
		require.NoError(t, err)
		d = DescribeValue(key, append(value[:head:head], more...))
		require.Empty(t, d.Problem, g.name)
		require.Equal(t, map[string]any{"zz": map[string]any{"inner": map[string]any{"bytes": 1, "hex": "01"}}},
			d.Fields["unknown_fields"])
	}
	exception := DescribeValue(k.state(goldenID, stateException), goldenRecords()[5].encode(t)).Fields
	require.Equal(t, map[string]any{"bytes": 1, "text": "e"}, exception["stderr"])
	require.Equal(t, "exit", exception["kind"])
	done := DescribeValue(keyOfRecord(k, "done"), mustRecord(t, &doneEntry{At: 7, IDs: packIDs([]ID{goldenID})}))
	require.Equal(t, []string{goldenID.String()}, done.Fields["ids"])
}

func TestDescribeForeignKeys(t *testing.T) {
	t.Parallel()
	k := newKeyspace("test")
	k.shards = 16
	for _, key := range [][]byte{nil, {}, []byte("abc"), {0xff}, tuple.AppendString(nil, "other"), {2, 'f'}} {
		require.Equal(t, problemForeign, DescribeKey(key).Problem, "%x", key)
		d := DescribeValue(key, []byte{0, 1})
		require.Equal(t, map[string]any{"data": map[string]any{"bytes": 2, "hex": "0001"}}, d.Fields)
		require.Equal(t, formatRaw, d.Format)
	}
	for _, key := range [][]byte{
		k.global("future"), k.shard(3, "cfg"), k.global(subFutures), append(k.spec(goldenID), 0), k.row(goldenID),
		k.state(goldenID, "other"), tuple.AppendString(k.bell("s"), "x"), k.shard(300, subReady), k.shard(3, subResults),
	} {
		d := DescribeKey(key)
		require.Equal(t, problemUnknown, d.Problem, d.Text)
		require.Equal(t, "test", d.Cluster)
		require.Empty(t, d.Kind)
	}
}

func TestDescribeLargePieces(t *testing.T) {
	t.Parallel()
	k := newKeyspace("test")
	d := DescribeValue(k.codeBody("c", 0), []byte(strings.Repeat("é", 1000)))
	data := d.Fields["data"].(map[string]any)
	require.Equal(t, 2000, data["bytes"])
	require.Equal(t, strings.Repeat("é", viewedData/2), data["text"])
	require.Equal(t, true, data["cut"])
}

func TestUnescapeKeyRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{`\`, `\x`, `\x0`, `\xzz`, `\q`} {
		_, err := UnescapeKey(bad)
		require.ErrorIs(t, err, ErrBadSpec, bad)
	}
	key, err := UnescapeKey(`a\x00\\\"\ \;b`)
	require.NoError(t, err)
	require.Equal(t, []byte("a\x00\\\" ;b"), key)
}

func FuzzDescribe(f *testing.F) {
	k := newKeyspace("test")
	k.shards = 16
	for _, g := range goldenRecords() {
		f.Add(keyOfRecord(k, g.name), g.encode(f))
	}
	for _, c := range goldenKeys(k) {
		f.Add(c.key, []byte{recordVersion, 0, 0, 0, 1, 0x81, 0xa1, 'i', 0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0})
	}
	f.Add(k.config(), []byte{recordVersion, 0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Add(k.config(), append([]byte{recordVersion}, slices.Repeat([]byte{0x91}, 100)...))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if len(key) > kv.MaxKeySize || len(value) > kv.MaxValueSize {
			return
		}
		d := DescribeKey(key)
		require.Equal(t, d.Kind == "", d.Problem != "")
		back, err := UnescapeKey(d.Escaped)
		require.NoError(t, err)
		require.Equal(t, len(key), len(back))
		_, err = json.Marshal([]any{d, DescribeValue(key, value)})
		require.NoError(t, err)
	})
}

const keyspacePage = "../docs/reference/keyspace.md"

func TestDocsKeyspace(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(keyspacePage)
	require.NoError(t, err)
	want := replaceTable(t, string(page), "keys", KeyTable())
	want = replaceTable(t, want, "fields", FieldTable())
	if *update {
		require.NoError(t, os.WriteFile(keyspacePage, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "run make generate")
}

// replaceTable puts a generated table between the two comments of its name.
func replaceTable(t *testing.T, page, name, table string) string {
	begin, end := "<!-- "+name+": written by make generate -->\n", "<!-- end of "+name+" -->\n"
	before, rest, found := strings.Cut(page, begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	return before + begin + "\n" + table + "\n" + end + after
}

// TestPackageDocHasEveryKey holds the table in the package documentation.
func TestPackageDocHasEveryKey(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	short := strings.NewReplacer("255-PRIORITY", "255-PRIO", "CPU_MILLIS", "CPU", "RAM_BYTES", "RAM", "GPU_MILLIS", "GPU",
		"DUE_MS", "DUE", "STAMP", "VS", "PIECE", "I", "SEQUENCE", "N")
	documented := regexp.MustCompile(`(?m)\(s, "[^)]*\)|\("[a-z]+"[^)]*\)`).FindAllString(string(source), -1)
	kinds := keyKinds()
	for i := range kinds {
		require.Contains(t, documented, short.Replace(kinds[i].shape()))
	}
	require.Len(t, documented, len(kinds)+1, `all but ("futura", CLUSTER)`)
}

// TestDocsFdbcli has each key and value that the page shows be readable.
func TestDocsFdbcli(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/operating/fdbcli.md")
	require.NoError(t, err)
	kinds := map[string]bool{}
	for _, shown := range regexp.MustCompile("(?m)^`(.*)' is `(.*)'$").FindAllStringSubmatch(string(page), -1) {
		key, err := UnescapeKey(shown[1])
		require.NoError(t, err)
		value, err := UnescapeKey(shown[2])
		require.NoError(t, err)
		d := DescribeKey(key)
		require.Empty(t, d.Problem, d.Text)
		require.Empty(t, DescribeValue(key, value).Problem, d.Text)
		kinds[d.Kind] = true
	}
	for _, kind := range []string{"spec", "claim", "result", "exception", "ready", "delayed", "alive", "claims", "count"} {
		require.True(t, kinds[kind], kind)
	}
}
