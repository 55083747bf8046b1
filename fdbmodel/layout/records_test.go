package layout

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

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

var GoldenID = ID{1, 2, 3, 4, 5, 6, 0x77, 8, 0x89, 10, 11, 12, 13, 14, 15, 3}

// requireGolden compares lines with a file, and writes it with -update.
func requireGolden(t *testing.T, name string, lines []string) {
	path := filepath.Join("testdata", name)
	text := strings.Join(lines, "\n") + "\n"
	if *fdbmodel.Update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "stored data must stay readable: a change needs a new version of the record")
}

// goldenRecord is one kind of value, with every field set.
type goldenRecord struct {
	Name    string
	record  any
	Stamped bool
	empty   func() any
}

func GoldenRecords() []goldenRecord {
	token := Token{Worker: "0123456789abcdef", Sequence: 7}
	ref := &ChunkRef{Kind: ChunkResult, Token: token.String(), Size: 100_000, Count: 2}
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
		{"claims", &ClaimBatch{IDs: PackIDs([]ID{GoldenID})}, false, func() any { return new(ClaimBatch) }},
		{"done", &DoneEntry{At: 1, IDs: PackIDs([]ID{GoldenID, GoldenID})}, false, func() any { return new(DoneEntry) }},
		{"session", &SessionRecord{Count: 1, At: 2, Opening: "o"}, false, func() any { return new(SessionRecord) }},
		{"janitor", &JanitorRecord{Worker: "w", Count: 1}, false, func() any { return new(JanitorRecord) }},
		{"incoming", &IncomingRecord{Writer: "w", Batch: 1, At: 2}, false, func() any { return new(IncomingRecord) }},
		{"module", &Module{Size: 1, StoredAt: 2}, false, func() any { return new(Module) }},
		{"alias", &AliasRecord{CID: "c", At: 1}, false, func() any { return new(AliasRecord) }},
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

func (g *goldenRecord) Encode(t require.TestingT) []byte {
	value, err := Encode(g.record)
	if g.Stamped {
		value, err = EncodeStamped(g.record)
	}
	require.NoError(t, err)
	return value
}

func (g *goldenRecord) decode(value []byte, into any) error {
	if g.Stamped {
		_, err := DecodeStamped([]byte("\x02key\x00"), value, into)
		return err
	}
	return Decode([]byte("\x02key\x00"), value, into)
}

func TestRecordsGolden(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, g := range GoldenRecords() {
		value := g.Encode(t)
		lines = append(lines, g.Name+" "+hex.EncodeToString(value))
		into := g.empty()
		require.NoError(t, g.decode(value, into))
		require.Equal(t, g.record, into)
	}
	notice, err := msgpack.Marshal(&Notice{ID: GoldenID, State: Realized, Result: GoldenRecords()[6].record.(*Result)})
	require.NoError(t, err)
	lines = append(lines, "notice "+hex.EncodeToString(notice))
	requireGolden(t, "records.golden", lines)
}

// TestRecordsOfEveryField has a field that golden records forget fail.
func TestRecordsOfEveryField(t *testing.T) {
	t.Parallel()
	for _, g := range GoldenRecords() {
		if g.Name == "smallest spec" {
			continue
		}
		v := reflect.ValueOf(g.record).Elem()
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
	for _, g := range GoldenRecords() {
		value := g.Encode(t)
		newer := append([]byte{RecordVersion + 1}, value[1:]...)
		require.ErrorIs(t, g.decode(newer, g.empty()), ErrNewerRecord, g.Name)
		require.ErrorIs(t, g.decode(newer[:1], g.empty()), ErrNewerRecord, g.Name)
		for _, bad := range [][]byte{nil, {}, {0}, value[:len(value)-1], append(value[:len(value):len(value)], 0)} {
			require.ErrorIs(t, g.decode(bad, g.empty()), ErrBadRecord, "%s %x", g.Name, bad)
		}
		// A field that this version does not know is stepped over.
		var fields map[string]any
		head := 1
		if g.Stamped {
			head += StampLength
		}
		require.NoError(t, msgpack.Unmarshal(value[head:], &fields))
		fields["unheard_of"] = []string{"x"}
		more, err := msgpack.Marshal(fields)
		require.NoError(t, err)
		into := g.empty()
		require.NoError(t, g.decode(append(value[:head:head], more...), into), g.Name)
		require.Equal(t, g.record, into)
	}
	_, err := AppendNotices(nil, kv.KeyValue{Value: []byte{RecordVersion + 1, 0, 0, 0, 0}})
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
		require.NoError(t, g.decode(g.Encode(t), into))
		require.Equal(t, spec, into)

		result := &Result{
			Token: Token{Worker: WorkerID(text.Draw(t, "worker")), Sequence: rapid.Int64().Draw(t, "sequence")},
			Value: some.Draw(t, "value"), Size: rapid.Int64().Draw(t, "size"), At: rapid.Int64().Draw(t, "result at"),
		}
		g = goldenRecord{"result", result, true, nil}
		back := new(Result)
		require.NoError(t, g.decode(g.Encode(t), back))
		require.Equal(t, result, back)

		ids := make([]ID, rapid.IntRange(0, 9).Draw(t, "ids"))
		for i := range ids {
			copy(ids[i][:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		}
		require.Equal(t, ids, UnpackIDs(PackIDs(ids)))
	})
}

// namedKey is a key of each kind.
type namedKey struct {
	Name string
	Key  []byte
}

func GoldenKeys(k Keyspace) []namedKey {
	ref := ChunkRef{Kind: ChunkResult, Token: "w.7"}
	spec := &Spec{Queue: "q", Group: "g", Priority: 5, Requirements: Requirements{CPU: 1, RAM: 2, GPU: 3}}
	return []namedKey{
		{"args", k.Args(GoldenID)}, {"spec", k.Spec(GoldenID)}, {"attempts", k.State(GoldenID, StateAttempts)},
		{"cancel", k.State(GoldenID, StateCancel)}, {"claim", k.State(GoldenID, StateClaim)},
		{"exception", k.State(GoldenID, StateException)}, {"result", k.State(GoldenID, StateResult)},
		{"subscriber", k.Subscriber(GoldenID, "s")}, {"ready", k.Ready(GoldenID, spec)},
		{"assignment", k.Assigned("w", GoldenID, spec)},
		{"held", k.Held(&Row{ID: GoldenID, Spec: spec, Attempts: Attempts{Failed: 3}})},
		{"group bell", k.GroupBell("g")}, {"group open", k.GroupOpen("g", "y")},
		{"assigned", k.Worker("w", WorkerAssigned)}, {"delayed", k.Delayed(GoldenID, 9)},
		{"chunk", k.Chunk(GoldenID, ref, 1)}, {"done", tuple.AppendStamp(k.DoneOf(2), [10]byte{1}, 0)},
		{"mailbox", tuple.AppendStamp(k.Mailbox("s"), [10]byte{1}, 0)}, {"bell", k.Bell("s")}, {"session", k.Session("s")},
		{"alive", k.Worker("w", WorkerAlive)}, {"heartbeat", k.Worker("w", WorkerHeartbeat)}, {"claims", k.Claims("w", 7)},
		{"cancelled", k.Cancelled("w", GoldenID)}, {"wake", k.Worker("w", WorkerWake)},
		{"count", k.Count(1, "q", "g", Ready)},
		{"idle", k.Idle("q", "w")}, {"address", k.Address("10.0.0.1:1")}, {"janitor", k.Janitor()},
		{"incoming", k.Incoming()}, {"config", k.Config()},
		{"code info", k.CodeInfo("c")}, {"code body", k.CodeBody("c", 1)}, {"alias", k.Alias("a")},
		{"batch", k.BatchRecord("b")}, {"batch chunk", k.BatchChunk("b", "w")}, {"batch time", k.BatchAt(7, "b")},
	}
}

func TestKeysGolden(t *testing.T) {
	t.Parallel()
	k := NewKeyspace("test")
	k.Shards = 16
	var lines []string
	for _, c := range GoldenKeys(k) {
		require.True(t, k.All().Contains(c.Key), c.Name)
		lines = append(lines, fmt.Sprintf("%s %s %x", c.Name, tuple.String(c.Key), c.Key))
	}
	requireGolden(t, "keys.golden", lines)
	require.True(t, k.RecordRange(GoldenID).Contains(k.Spec(GoldenID)))
	require.False(t, k.RecordRange(GoldenID).Contains(k.Args(GoldenID)))
	require.True(t, k.StateRange(GoldenID).Contains(k.Subscriber(GoldenID, "s")))
	require.False(t, k.StateRange(GoldenID).Contains(k.Spec(GoldenID)))
}

// TestReadyKeyParses has what a scan reads be what was written.
func TestReadyKeyParses(t *testing.T) {
	t.Parallel()
	k := NewKeyspace("test")
	k.Shards = 16
	rapid.Check(t, func(t *rapid.T) {
		spec := &Spec{
			Function: "go:f", Queue: rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "queue"), Group: rapid.String().Draw(t, "group"),
			Priority: rapid.Uint8().Draw(t, "priority"), Requirements: Requirements{
				CPU: rapid.Int64Min(0).Draw(t, "cpu"), RAM: rapid.Int64Min(0).Draw(t, "ram"), GPU: rapid.Int64Min(0).Draw(t, "gpu"),
			},
		}
		var id ID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		item := kv.KeyValue{Key: k.Ready(id, spec), Value: []byte("go:f")}
		prefix := k.ReadyQueue(id.Shard(16), spec.Queue)
		e, end, err := ParseReady(item, prefix, spec.Queue)
		require.NoError(t, err)
		require.Equal(t, ReadyEntry{Id: id, Key: item.Key, Function: "go:f", Class: spec.Class()}, e)
		require.Equal(t, k.readyClass(id.Shard(16), spec.Class()), item.Key[:end])
		assigned := kv.KeyValue{Key: k.Assigned("w", id, spec), Value: []byte("go:f")}
		e, err = ParseAssigned(assigned, k.AssignedTo("w"))
		require.NoError(t, err)
		require.Equal(t, ReadyEntry{Id: id, Key: assigned.Key, Function: "go:f", Class: spec.Class()}, e)
	})
}

func FuzzRecords(f *testing.F) {
	for _, g := range GoldenRecords() {
		f.Add(g.Encode(f))
	}
	f.Add([]byte{RecordVersion, 0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{RecordVersion, 0xc6, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, value []byte) {
		if len(value) > kv.MaxValueSize {
			return
		}
		for _, g := range GoldenRecords() {
			err := g.decode(value, g.empty())
			require.True(t, err == nil || IsUnreadable(err), "%v", err)
		}
		_, err := AppendNotices(nil, kv.KeyValue{Value: value})
		require.True(t, err == nil || IsUnreadable(err), "%v", err)
	})
}

func FuzzRowKeys(f *testing.F) {
	k := NewKeyspace("test")
	k.Shards = 16
	skip := len(k.Row(GoldenID))
	for _, g := range GoldenRecords() {
		f.Add(k.Spec(GoldenID)[skip:], g.Encode(f))
		f.Add(k.State(GoldenID, StateClaim)[skip:], g.Encode(f))
	}
	f.Add(k.Subscriber(GoldenID, "s")[skip:], []byte{1})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		row := Row{ID: GoldenID}
		err := row.Add(kv.KeyValue{Key: append(k.Row(GoldenID), key...), Value: value}, tuple.NewReader(key))
		require.True(t, err == nil || IsUnreadable(err), "%v", err)
		if row.Spec != nil {
			_ = row.State()
		}
		_, _, _ = ParseReady(kv.KeyValue{Key: key, Value: value}, nil, "q")
		_, _ = ParseAssigned(kv.KeyValue{Key: key, Value: value}, nil)
		_, _, _ = ParseCount(nil, kv.KeyValue{Key: key, Value: value})
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
