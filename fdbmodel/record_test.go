package fdbmodel

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

var goldenID = ID{1, 2, 3, 4, 5, 6, 0x77, 8, 0x89, 10, 11, 12, 13, 14, 15, 3}

// requireGolden compares lines with a file, and writes it with -update.
func requireGolden(t *testing.T, name string, lines []string) {
	path := filepath.Join("testdata", name)
	text := strings.Join(lines, "\n") + "\n"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "stored data must stay readable: a change needs a new version of the record")
}

// goldenRecord is one kind of value, with every field set.
type goldenRecord struct {
	name    string
	record  any
	stamped bool
	empty   func() any
}

func goldenRecords() []goldenRecord {
	token := Token{Worker: "0123456789abcdef", Sequence: 7}
	ref := &ChunkRef{Kind: chunkResult, Token: token.String(), Size: 100_000, Count: 2}
	return []goldenRecord{
		{"spec", &Spec{
			Function: "go:f", Codec: CodecMsgpack, Args: []byte("abc"), ArgsSize: 3, ArgsRef: ref, ArgsKey: true,
			Argv: []string{"a", "b"}, Env: map[string]string{"K": "v"}, Queue: "q", Group: "g", Held: true, Parallel: 2,
			Pace:   &Pace{Key: "example.com", PerSecond: 0.5},
			Tenant: "t", Priority: 200,
			Requirements: Requirements{CPU: 1500, RAM: 1 << 30, GPU: 500, Labels: map[string]string{"zone": "a"}},
			MaxRetries:   3, Backoff: Backoff{Base: time.Second, Max: time.Minute}, Timeout: time.Hour,
			AllowReconstruction: true, Session: "fedcba9876543210", Trace: map[string]string{"traceparent": "00"},
			SubmittedAt: 1_900_000_000_000,
		}, false, func() any { return new(Spec) }},
		{"smallest spec", &Spec{Function: "go:f"}, false, func() any { return new(Spec) }},
		{"claim", &Claim{Token: token}, true, func() any { return new(Claim) }},
		{"attempts", &Attempts{Failed: 1, Crashes: 2, PutBack: 3, Due: 4, Assigned: "w", Why: "y"}, false,
			func() any { return new(Attempts) }},
		{"cancel", &CancelRequest{Reason: "r", At: 5}, false, func() any { return new(CancelRequest) }},
		{"exception", &Exception{
			Kind: KindExit, Message: "m", Attempt: 2, Worker: token.Worker, Final: true, Permanent: true, At: 6, ExitCode: 7,
			Stdout: []byte("o"), Stderr: []byte("e"), StderrRef: ref, Truncated: true, FailedOn: []WorkerID{"v", "w"},
		}, false, func() any { return new(Exception) }},
		{"result", &Result{
			Token: token, Codec: CodecRaw, Value: []byte("v"), ValueRef: ref, Size: 1, ExitCode: 2, Stderr: []byte("e"),
			StderrRef: ref, Truncated: true, Attempt: 3, RunTime: time.Second, At: 8,
		}, true, func() any { return new(Result) }},
		{"worker", &WorkerInfo{
			Address: "10.0.0.1:1", Name: "n", Queues: []string{"q"}, Functions: []string{"go:f", AnyModule},
			Capacity: Resources{Slots: 4, CPU: 4000, RAM: 1 << 33, GPU: 1000}, StartedAt: 9, Opening: "o",
			Process: 10, Version: "v", Connection: "x",
		}, false, func() any { return new(WorkerInfo) }},
		{"heartbeat", &Heartbeat{Count: 1, Free: Resources{Slots: 2}, Running: 3, At: 4}, false,
			func() any { return new(Heartbeat) }},
		{"idle", &Resources{Slots: 1, CPU: 2, RAM: 3, GPU: 4}, false, func() any { return new(Resources) }},
		{"claims", &claimBatch{IDs: packIDs([]ID{goldenID})}, false, func() any { return new(claimBatch) }},
		{"done", &doneEntry{At: 1, IDs: packIDs([]ID{goldenID, goldenID})}, false, func() any { return new(doneEntry) }},
		{"session", &sessionRecord{Count: 1, At: 2, Opening: "o"}, false, func() any { return new(sessionRecord) }},
		{"janitor", &janitorRecord{Worker: "w", Count: 1}, false, func() any { return new(janitorRecord) }},
		{"incoming", &incomingRecord{Writer: "w", Batch: 1, At: 2}, false, func() any { return new(incomingRecord) }},
		{"module", &Module{Size: 1, StoredAt: 2}, false, func() any { return new(Module) }},
		{"alias", &aliasRecord{CID: "c", At: 1}, false, func() any { return new(aliasRecord) }},
		{"batch", &BatchRecord{
			Template: []byte("{}"), Queue: "q", MaxAttempts: 1, Items: 2, Status: 3, Reason: "r", Made: true, CreatedAt: 4,
			FinishedAt: 5, Maker: "m", Digest: []byte("d"),
		}, false, func() any { return new(BatchRecord) }},
		{"batch chunk", &BatchChunk{Worker: "w", Items: 1, Status: 2, CreatedAt: 3}, false,
			func() any { return new(BatchChunk) }},
		{"config", &Config{
			Format: 1, Shards: 16, Heartbeat: 5 * time.Second, DeadAfter: 15 * time.Second, Retention: time.Hour,
		}, false, func() any { return new(Config) }},
	}
}

func (g *goldenRecord) encode(t require.TestingT) []byte {
	value, err := encodeRecord(g.record)
	if g.stamped {
		value, err = encodeStamped(g.record)
	}
	require.NoError(t, err)
	return value
}

func (g *goldenRecord) decode(value []byte, into any) error {
	if g.stamped {
		_, err := decodeStamped([]byte("\x02key\x00"), value, into)
		return err
	}
	return decodeRecord([]byte("\x02key\x00"), value, into)
}

func TestRecordsGolden(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, g := range goldenRecords() {
		value := g.encode(t)
		lines = append(lines, g.name+" "+hex.EncodeToString(value))
		into := g.empty()
		require.NoError(t, g.decode(value, into))
		require.Equal(t, g.record, into)
	}
	notice, err := msgpack.Marshal(&Notice{ID: goldenID, State: Realized, Result: goldenRecords()[6].record.(*Result)})
	require.NoError(t, err)
	lines = append(lines, "notice "+hex.EncodeToString(notice))
	requireGolden(t, "records.golden", lines)
}

// TestRecordsOfEveryField has a field that golden records forget fail.
func TestRecordsOfEveryField(t *testing.T) {
	t.Parallel()
	for _, g := range goldenRecords() {
		if g.name == "smallest spec" {
			continue
		}
		v := reflect.ValueOf(g.record).Elem()
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if tag := field.Tag.Get("msgpack"); tag != "-" && field.Name != "Stamp" {
				require.False(t, v.Field(i).IsZero(), "%s has no %s", g.name, field.Name)
			}
		}
	}
}

func TestRecordsOfOtherVersions(t *testing.T) {
	t.Parallel()
	for _, g := range goldenRecords() {
		value := g.encode(t)
		newer := append([]byte{recordVersion + 1}, value[1:]...)
		require.ErrorIs(t, g.decode(newer, g.empty()), ErrNewerRecord, g.name)
		require.ErrorIs(t, g.decode(newer[:1], g.empty()), ErrNewerRecord, g.name)
		for _, bad := range [][]byte{nil, {}, {0}, value[:len(value)-1], append(value[:len(value):len(value)], 0)} {
			require.ErrorIs(t, g.decode(bad, g.empty()), ErrBadRecord, "%s %x", g.name, bad)
		}
		// A field that this version does not know is stepped over.
		var fields map[string]any
		head := 1
		if g.stamped {
			head += stampLength
		}
		require.NoError(t, msgpack.Unmarshal(value[head:], &fields))
		fields["unheard_of"] = []string{"x"}
		more, err := msgpack.Marshal(fields)
		require.NoError(t, err)
		into := g.empty()
		require.NoError(t, g.decode(append(value[:head:head], more...), into), g.name)
		require.Equal(t, g.record, into)
	}
	_, err := appendNotices(nil, kv.KeyValue{Value: []byte{recordVersion + 1, 0, 0, 0, 0}})
	require.ErrorIs(t, err, ErrNewerRecord)
}

func TestRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	text := rapid.StringN(0, 20, 60)
	some := rapid.SliceOfN(rapid.Byte(), 1, 40)
	rapid.Check(t, func(t *rapid.T) {
		spec := &Spec{
			Function: text.Draw(t, "function"), Args: some.Draw(t, "args"), Argv: rapid.SliceOfN(text, 1, 4).Draw(t, "argv"),
			Env: rapid.MapOfN(text, text, 1, 4).Draw(t, "env"), Priority: rapid.Uint8().Draw(t, "priority"),
			Requirements: Requirements{CPU: rapid.Int64().Draw(t, "cpu"), RAM: rapid.Int64().Draw(t, "ram")},
			Timeout:      time.Duration(rapid.Int64().Draw(t, "timeout")), SubmittedAt: rapid.Int64().Draw(t, "at"),
		}
		g := goldenRecord{"spec", spec, false, nil}
		into := new(Spec)
		require.NoError(t, g.decode(g.encode(t), into))
		require.Equal(t, spec, into)

		result := &Result{
			Token: Token{Worker: WorkerID(text.Draw(t, "worker")), Sequence: rapid.Int64().Draw(t, "sequence")},
			Value: some.Draw(t, "value"), Size: rapid.Int64().Draw(t, "size"), At: rapid.Int64().Draw(t, "result at"),
		}
		g = goldenRecord{"result", result, true, nil}
		back := new(Result)
		require.NoError(t, g.decode(g.encode(t), back))
		require.Equal(t, result, back)

		ids := make([]ID, rapid.IntRange(0, 9).Draw(t, "ids"))
		for i := range ids {
			copy(ids[i][:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		}
		require.Equal(t, ids, unpackIDs(packIDs(ids)))
	})
}

// namedKey is a key of each kind.
type namedKey struct {
	name string
	key  []byte
}

func goldenKeys(k keyspace) []namedKey {
	ref := ChunkRef{Kind: chunkResult, Token: "w.7"}
	spec := &Spec{Queue: "q", Group: "g", Priority: 5, Requirements: Requirements{CPU: 1, RAM: 2, GPU: 3}}
	return []namedKey{
		{"args", k.args(goldenID)}, {"spec", k.spec(goldenID)}, {"attempts", k.state(goldenID, stateAttempts)},
		{"cancel", k.state(goldenID, stateCancel)}, {"claim", k.state(goldenID, stateClaim)},
		{"exception", k.state(goldenID, stateException)}, {"result", k.state(goldenID, stateResult)},
		{"subscriber", k.subscriber(goldenID, "s")}, {"ready", k.ready(goldenID, spec)},
		{"assignment", k.assigned("w", goldenID, spec)},
		{"held", k.held(&Row{ID: goldenID, Spec: spec, Attempts: Attempts{Failed: 3}})},
		{"group bell", k.groupBell("g")}, {"group open", k.groupOpen("g", "y")},
		{"assigned", k.worker("w", workerAssigned)}, {"delayed", k.delayed(goldenID, 9)},
		{"chunk", k.chunk(goldenID, ref, 1)}, {"done", tuple.AppendStamp(k.doneOf(2), [10]byte{1}, 0)},
		{"mailbox", tuple.AppendStamp(k.mailbox("s"), [10]byte{1}, 0)}, {"bell", k.bell("s")}, {"session", k.session("s")},
		{"alive", k.worker("w", workerAlive)}, {"heartbeat", k.worker("w", workerHeartbeat)}, {"claims", k.claims("w", 7)},
		{"cancelled", k.cancelled("w", goldenID)}, {"wake", k.worker("w", workerWake)},
		{"count", k.count(1, "q", "g", Ready)},
		{"idle", k.idle("q", "w")}, {"address", k.address("10.0.0.1:1")}, {"janitor", k.janitor()},
		{"incoming", k.incoming()}, {"config", k.config()},
		{"code info", k.codeInfo("c")}, {"code body", k.codeBody("c", 1)}, {"alias", k.alias("a")},
		{"batch", k.batchRecord("b")}, {"batch chunk", k.batchChunk("b", "w")}, {"batch time", k.batchAt(7, "b")},
	}
}

func TestKeysGolden(t *testing.T) {
	t.Parallel()
	k := newKeyspace("test")
	k.shards = 16
	var lines []string
	for _, c := range goldenKeys(k) {
		require.True(t, k.all().Contains(c.key), c.name)
		lines = append(lines, fmt.Sprintf("%s %s %x", c.name, tuple.String(c.key), c.key))
	}
	requireGolden(t, "keys.golden", lines)
	require.True(t, k.recordRange(goldenID).Contains(k.spec(goldenID)))
	require.False(t, k.recordRange(goldenID).Contains(k.args(goldenID)))
	require.True(t, k.stateRange(goldenID).Contains(k.subscriber(goldenID, "s")))
	require.False(t, k.stateRange(goldenID).Contains(k.spec(goldenID)))
}

// TestReadyKeyParses has what a scan reads be what was written.
func TestReadyKeyParses(t *testing.T) {
	t.Parallel()
	k := newKeyspace("test")
	k.shards = 16
	rapid.Check(t, func(t *rapid.T) {
		spec := &Spec{
			Function: "go:f", Queue: rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "queue"), Group: rapid.String().Draw(t, "group"),
			Priority: rapid.Uint8().Draw(t, "priority"), Requirements: Requirements{
				CPU: rapid.Int64Min(0).Draw(t, "cpu"), RAM: rapid.Int64Min(0).Draw(t, "ram"), GPU: rapid.Int64Min(0).Draw(t, "gpu"),
			},
		}
		var id ID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		item := kv.KeyValue{Key: k.ready(id, spec), Value: []byte("go:f")}
		prefix := k.readyQueue(id.shard(16), spec.Queue)
		e, end, err := parseReady(item, prefix, spec.Queue)
		require.NoError(t, err)
		require.Equal(t, readyEntry{id: id, key: item.Key, function: "go:f", class: spec.class()}, e)
		require.Equal(t, k.readyClass(id.shard(16), spec.class()), item.Key[:end])
		assigned := kv.KeyValue{Key: k.assigned("w", id, spec), Value: []byte("go:f")}
		e, err = parseAssigned(assigned, k.assignedTo("w"))
		require.NoError(t, err)
		require.Equal(t, readyEntry{id: id, key: assigned.Key, function: "go:f", class: spec.class()}, e)
	})
}

func FuzzRecords(f *testing.F) {
	for _, g := range goldenRecords() {
		f.Add(g.encode(f))
	}
	f.Add([]byte{recordVersion, 0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{recordVersion, 0xc6, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, value []byte) {
		if len(value) > kv.MaxValueSize {
			return
		}
		for _, g := range goldenRecords() {
			err := g.decode(value, g.empty())
			require.True(t, err == nil || isUnreadable(err), "%v", err)
		}
		_, err := appendNotices(nil, kv.KeyValue{Value: value})
		require.True(t, err == nil || isUnreadable(err), "%v", err)
	})
}

func FuzzRowKeys(f *testing.F) {
	k := newKeyspace("test")
	k.shards = 16
	skip := len(k.row(goldenID))
	for _, g := range goldenRecords() {
		f.Add(k.spec(goldenID)[skip:], g.encode(f))
		f.Add(k.state(goldenID, stateClaim)[skip:], g.encode(f))
	}
	f.Add(k.subscriber(goldenID, "s")[skip:], []byte{1})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		row := Row{ID: goldenID}
		err := row.add(kv.KeyValue{Key: append(k.row(goldenID), key...), Value: value}, tuple.NewReader(key))
		require.True(t, err == nil || isUnreadable(err), "%v", err)
		if row.Spec != nil {
			_ = row.State()
		}
		_, _, _ = parseReady(kv.KeyValue{Key: key, Value: value}, nil, "q")
		_, _ = parseAssigned(kv.KeyValue{Key: key, Value: value}, nil)
		_, _, _ = parseCount(nil, kv.KeyValue{Key: key, Value: value})
	})
}

func FuzzParseID(f *testing.F) {
	f.Add("01234567-89ab-7cde-8f01-23456789ab05")
	f.Add("urn:uuid:01234567-89ab-7cde-8f01-23456789ab05")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err != nil {
			require.ErrorIs(t, err, ErrBadID)
			return
		}
		again, err := ParseID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, again)
	})
}
