package layout_test

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

func TestRecordsGolden(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, g := range modeltest.GoldenRecords() {
		value := g.Encode()
		lines = append(lines, g.Name+" "+hex.EncodeToString(value))
		into := g.Empty()
		require.NoError(t, g.Decode(value, into))
		require.Equal(t, g.Record, into)
	}
	notice, err := msgpack.Marshal(&layout.Notice{ID: modeltest.GoldenID, State: layout.Realized,
		Result: modeltest.GoldenRecords()[6].Record.(*layout.Result)})
	require.NoError(t, err)
	lines = append(lines, "notice "+hex.EncodeToString(notice))
	modeltest.RequireGolden(t, "records.golden", lines)
}

// TestRecordsOfEveryField fails if golden records leave out a field.
func TestRecordsOfEveryField(t *testing.T) {
	t.Parallel()
	for _, g := range modeltest.GoldenRecords() {
		if g.Name == "smallest spec" {
			continue
		}
		v := reflect.ValueOf(g.Record).Elem()
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if tag := field.Tag.Get("msgpack"); tag != "-" && field.Name != "Stamp" {
				require.False(t, v.Field(i).IsZero(), "%s has no %s", g.Name, field.Name)
			}
		}
	}
}

func TestRecordsOfOtherVersions(t *testing.T) {
	t.Parallel()
	for _, g := range modeltest.GoldenRecords() {
		value := g.Encode()
		newer := append([]byte{layout.RecordVersion + 1}, value[1:]...)
		require.ErrorIs(t, g.Decode(newer, g.Empty()), layout.ErrNewerRecord, g.Name)
		require.ErrorIs(t, g.Decode(newer[:1], g.Empty()), layout.ErrNewerRecord, g.Name)
		for _, bad := range [][]byte{nil, {}, {0}, value[:len(value)-1], append(value[:len(value):len(value)], 0)} {
			require.ErrorIs(t, g.Decode(bad, g.Empty()), layout.ErrBadRecord, "%s %x", g.Name, bad)
		}
		// A field that this version does not know is skipped.
		var fields map[string]any
		head := 1
		if g.Stamped {
			head += layout.StampLength
		}
		require.NoError(t, msgpack.Unmarshal(value[head:], &fields))
		fields["unheard_of"] = []string{"x"}
		more, err := msgpack.Marshal(fields)
		require.NoError(t, err)
		into := g.Empty()
		require.NoError(t, g.Decode(append(value[:head:head], more...), into), g.Name)
		require.Equal(t, g.Record, into)
	}
	_, err := layout.AppendNotices(nil, kv.KeyValue{Value: []byte{layout.RecordVersion + 1, 0, 0, 0, 0}})
	require.ErrorIs(t, err, layout.ErrNewerRecord)
}

func TestRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	text := rapid.StringN(0, 20, 60)
	some := rapid.SliceOfN(rapid.Byte(), 1, 40)
	rapid.Check(t, func(t *rapid.T) {
		spec := &layout.Spec{
			Function: text.Draw(t, "function"), Args: some.Draw(t, "args"), Argv: rapid.SliceOfN(text, 1, 4).Draw(t, "argv"),
			Env: rapid.MapOfN(text, text, 1, 4).Draw(t, "env"), Priority: rapid.Uint8().Draw(t, "priority"),
			Requirements: layout.Requirements{CPU: rapid.Int64().Draw(t, "cpu"), RAM: rapid.Int64().Draw(t, "ram")},
			Timeout:      time.Duration(rapid.Int64().Draw(t, "timeout")), SubmittedAt: rapid.Int64().Draw(t, "at"),
		}
		g := modeltest.GoldenRecord{Name: "spec", Record: spec}
		into := new(layout.Spec)
		require.NoError(t, g.Decode(g.Encode(), into))
		require.Equal(t, spec, into)

		result := &layout.Result{
			Token: layout.Token{Worker: layout.WorkerID(text.Draw(t, "worker")), Sequence: rapid.Int64().Draw(t, "sequence")},
			Value: some.Draw(t, "value"), Size: rapid.Int64().Draw(t, "size"), At: rapid.Int64().Draw(t, "result at"),
		}
		g = modeltest.GoldenRecord{Name: "result", Record: result, Stamped: true}
		back := new(layout.Result)
		require.NoError(t, g.Decode(g.Encode(), back))
		require.Equal(t, result, back)

		ids := make([]layout.ID, rapid.IntRange(0, 9).Draw(t, "ids"))
		for i := range ids {
			copy(ids[i][:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		}
		require.Equal(t, ids, layout.UnpackIDs(layout.PackIDs(ids)))
	})
}

func TestKeysGolden(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("test")
	k.Shards = 16
	var lines []string
	for _, c := range modeltest.GoldenKeys(k) {
		require.True(t, k.All().Contains(c.Key), c.Name)
		lines = append(lines, fmt.Sprintf("%s %s %x", c.Name, tuple.String(c.Key), c.Key))
	}
	modeltest.RequireGolden(t, "keys.golden", lines)
	require.True(t, k.RecordRange(modeltest.GoldenID).Contains(k.Spec(modeltest.GoldenID)))
	require.False(t, k.RecordRange(modeltest.GoldenID).Contains(k.Args(modeltest.GoldenID)))
	require.True(t, k.StateRange(modeltest.GoldenID).Contains(k.Subscriber(modeltest.GoldenID, "s")))
	require.False(t, k.StateRange(modeltest.GoldenID).Contains(k.Spec(modeltest.GoldenID)))
}

// TestReadyKeyParses checks that a scan reads back the entries that were
// written.
func TestReadyKeyParses(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("test")
	k.Shards = 16
	rapid.Check(t, func(t *rapid.T) {
		spec := &layout.Spec{
			Function: "go:f", Queue: rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "queue"), Owner: rapid.String().Draw(t, "owner"),
			Priority: rapid.Uint8().Draw(t, "priority"), Requirements: layout.Requirements{
				CPU: rapid.Int64Min(0).Draw(t, "cpu"), RAM: rapid.Int64Min(0).Draw(t, "ram"), GPU: rapid.Int64Min(0).Draw(t, "gpu"),
			},
		}
		var id layout.ID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		item := kv.KeyValue{Key: k.Ready(id, spec), Value: []byte("go:f")}
		prefix := k.ReadyQueue(id.Shard(16), spec.Queue)
		e, end, err := layout.ParseReady(item, prefix, spec.Queue)
		require.NoError(t, err)
		require.Equal(t, layout.ReadyEntry{ID: id, Key: item.Key, Function: "go:f", Class: spec.Class()}, e)
		behind := tuple.AppendUUID(tuple.AppendInt(item.Key[:end:end], 255-int64(spec.Priority)), id)
		require.Equal(t, item.Key, behind, "the class ends before the priority")
		assigned := kv.KeyValue{Key: k.Assigned("w", id, spec), Value: []byte("go:f")}
		e, err = layout.ParseAssigned(assigned, k.AssignedTo("w"))
		require.NoError(t, err)
		want := layout.ReadyEntry{ID: id, Key: assigned.Key, Function: "go:f", Class: spec.Class(), Owner: spec.Owner}
		require.Equal(t, want, e)
	})
}

func FuzzRecords(f *testing.F) {
	for _, g := range modeltest.GoldenRecords() {
		f.Add(g.Encode())
	}
	f.Add([]byte{layout.RecordVersion, 0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{layout.RecordVersion, 0xc6, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, value []byte) {
		if len(value) > kv.MaxValueSize {
			return
		}
		for _, g := range modeltest.GoldenRecords() {
			err := g.Decode(value, g.Empty())
			require.True(t, err == nil || layout.IsUnreadable(err), "%v", err)
		}
		_, err := layout.AppendNotices(nil, kv.KeyValue{Value: value})
		require.True(t, err == nil || layout.IsUnreadable(err), "%v", err)
	})
}

func FuzzRowKeys(f *testing.F) {
	k := layout.NewKeyspace("test")
	k.Shards = 16
	skip := len(k.Row(modeltest.GoldenID))
	for _, g := range modeltest.GoldenRecords() {
		f.Add(k.Spec(modeltest.GoldenID)[skip:], g.Encode())
		f.Add(k.State(modeltest.GoldenID, layout.StateClaim)[skip:], g.Encode())
	}
	f.Add(k.Subscriber(modeltest.GoldenID, "s")[skip:], []byte{1})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		row := layout.Row{ID: modeltest.GoldenID}
		err := row.Add(kv.KeyValue{Key: append(k.Row(modeltest.GoldenID), key...), Value: value}, tuple.NewReader(key))
		require.True(t, err == nil || layout.IsUnreadable(err), "%v", err)
		if row.Spec != nil {
			_ = row.State()
		}
		_, _, _ = layout.ParseReady(kv.KeyValue{Key: key, Value: value}, nil, "q")
		_, _ = layout.ParseAssigned(kv.KeyValue{Key: key, Value: value}, nil)
		_, _, _ = layout.ParseCount(nil, kv.KeyValue{Key: key, Value: value})
	})
}

func FuzzParseID(f *testing.F) {
	f.Add("01234567-89ab-7cde-8f01-23456789ab05")
	f.Add("urn:uuid:01234567-89ab-7cde-8f01-23456789ab05")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := layout.ParseID(s)
		if err != nil {
			require.ErrorIs(t, err, layout.ErrBadID)
			return
		}
		again, err := layout.ParseID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, again)
	})
}
