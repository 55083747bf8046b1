package protocol_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/protocol"
)

// edited returns the message of a golden file with one field, named by its path,
// set to some JSON, or removed if that is empty.
func edited(t *testing.T, file, path, to string) []byte {
	var message map[string]any
	require.NoError(t, json.Unmarshal(readGolden(t, file), &message))
	at := message
	parts := strings.Split(path, "/")
	for _, part := range parts[:len(parts)-1] {
		switch next := at[part].(type) {
		case map[string]any:
			at = next
		case []any:
			at = next[0].(map[string]any)
		}
	}
	last := parts[len(parts)-1]
	delete(at, last)
	if to != "" {
		at[last] = json.RawMessage(to)
	}
	data, err := json.Marshal(message)
	require.NoError(t, err)
	return data
}

func quoted(n int) string { return `"` + strings.Repeat("a", n) + `"` }

// item returns results with one entry.
func item(result string) string { return `{"819d14a6924e21da42dca8f9ae4a657e":` + result + `}` }

func TestInvalidMessagesAreRefused(t *testing.T) {
	t.Parallel()
	const order, result, hello = "work_order_batch", "work_order_batch_response_captured", "futura_hello"
	const ours, outcome = "futura_work_order_batch", "futura_work_order_batch_response"
	for _, c := range []struct {
		file, path, to string
		kind           error
		says           string
	}{
		{order, "chunk_id", "", protocol.ErrInvalid, "chunk_id is missing"},
		{order, "request_id", "", protocol.ErrInvalid, "request_id is missing"},
		{order, "arguments", "", protocol.ErrInvalid, "arguments is missing"},
		{order, "arguments", "[]", protocol.ErrInvalid, "arguments is missing"},
		{order, "arguments", "null", protocol.ErrInvalid, "arguments is missing"},
		{order, "arguments", `[[1]]`, protocol.ErrMalformed, "arguments"},
		{order, "arguments", `[[` + quoted(batch.MaxArguments+1) + `]]`, protocol.ErrLimit, "arguments[0]"},
		{order, "template", "", protocol.ErrInvalid, "template.function_id is missing"},
		{order, "template/method", "", protocol.ErrInvalid, "template.method is missing"},
		{order, "template/method", `"../echo.wasm"`, protocol.ErrInvalid, "template.method"},
		{order, "template/method", `"dir/echo.wasm"`, protocol.ErrInvalid, "template.method"},
		{order, "template/method", `"dir\\echo.wasm"`, protocol.ErrInvalid, "template.method"},
		{order, "template/method", `".."`, protocol.ErrInvalid, "template.method"},
		{order, "template/method", `"."`, protocol.ErrInvalid, "template.method"},
		{order, "template/method", `"a\u0000b"`, protocol.ErrInvalid, "template.method"},
		{order, "template/function_id", `"a/b"`, protocol.ErrInvalid, "template.function_id"},
		{order, "template/function_id", quoted(protocol.MaxName + 1), protocol.ErrLimit, "at most 256"},
		{order, "chunk_id", `"../../esc"`, protocol.ErrInvalid, "hex digits"},
		{order, "chunk_id", `"a b"`, protocol.ErrInvalid, "hex digits"},
		{order, "chunk_id", `"a\n"`, protocol.ErrInvalid, "hex digits"},
		{order, "chunk_id", quoted(protocol.MaxID + 1), protocol.ErrLimit, "at most 128"},
		{order, "request_id", `"x"`, protocol.ErrInvalid, "request_id"},
		{order, "template/config/number_of_nodes", "-2", protocol.ErrInvalid, "number_of_nodes"},
		{order, "template/config/number_of_nodes", "1000001", protocol.ErrInvalid, "number_of_nodes"},
		{order, "template/config/timeout", "-1", protocol.ErrInvalid, "timeout"},
		{order, "template/config/threshold", "1.5", protocol.ErrInvalid, "threshold"},
		{order, "template/config/consensus_algorithm", `"paxos"`, protocol.ErrInvalid, "consensus_algorithm"},
		{order, "template/config/stdin", quoted(batch.MaxItem + 1), protocol.ErrLimit, "stdin"},
		{order, "carrier", `{"a":` + quoted(protocol.MaxCarrier) + `}`, protocol.ErrLimit, "carrier"},
		{order, "items", `[{"id":"a","trace":{"a":` + quoted(protocol.MaxCarrier) + `}},{"id":"b"}]`, protocol.ErrLimit,
			"items.trace"},
		{order, "carrier", `{"a":1}`, protocol.ErrMalformed, "carrier"},
		{"roll_call", "function_id", "", protocol.ErrInvalid, "function_id is missing"},
		{"roll_call", "consensus", "3", protocol.ErrInvalid, "consensus"},
		{"roll_call", "consensus", "-1", protocol.ErrMalformed, "consensus"},
		{"roll_call_response", "code", "202", protocol.ErrMalformed, "code"},
		{"roll_call_response", "code", `"2020"`, protocol.ErrInvalid, "three digits"},
		{"roll_call_response", "code", `"ok"`, protocol.ErrInvalid, "three digits"},
		{"health_check", "code", `"200"`, protocol.ErrMalformed, "code"},
		{"install_function", "cid", "", protocol.ErrInvalid, "cid is missing"},
		{"install_function", "cid", `"../x"`, protocol.ErrInvalid, "cid"},
		{"install_function", "manifest_url", quoted(protocol.MaxText + 1), protocol.ErrLimit, "manifest_url"},
		{"execute_batch", "max_attempts", "-1", protocol.ErrMalformed, "max_attempts"},
		{"execute_batch", "arguments", "", protocol.ErrInvalid, "arguments is missing"},
		{"execute", "method", "", protocol.ErrInvalid, "method is missing"},
		{result, "Results", `{"x":{}}`, protocol.ErrInvalid, "MD5"},
		{result, "Results", `{"819D14A6924E21DA42DCA8F9AE4A657E":{}}`, protocol.ErrInvalid, "MD5"},
		{result, "Results", item(`{"result":{"exit_code":1e9}}`), protocol.ErrMalformed, "exit_code"},
		{result, "Results", item(`{"result":{"exit_code":4294967296}}`), protocol.ErrInvalid, "exit_code"},
		{result, "Results", item(`{"metadata":` + quoted(protocol.MaxMetadata) + `}`), protocol.ErrLimit, "metadata"},
		{result, "RequestID", "", protocol.ErrInvalid, "request_id is missing"},
		{result, "ChunkID", "", protocol.ErrInvalid, "chunk_id is missing"},
		{result, "chunk_id", `"abc"`, protocol.ErrInvalid, "two spellings of chunk_id differ"},
		{result, "strand_id", `"abc"`, protocol.ErrInvalid, "two spellings of chunk_id differ"},
		{result, "request_id", `"abc"`, protocol.ErrInvalid, "two spellings of request_id differ"},
		{order, "strand_id", `"abc"`, protocol.ErrInvalid, "two spellings of chunk_id differ"},
		{"execute_batch_response", "strands", `{}`, protocol.ErrInvalid, "chunks and strands"},
		{"execute_batch_response", "chunks", `{"../x":{}}`, protocol.ErrInvalid, "chunks"},
		{hello, "incarnation", `"abc"`, protocol.ErrInvalid, "16 hex digits"},
		{hello, "capacity/slots", "-1", protocol.ErrInvalid, "slots"},
		{hello, "running", `["x"]`, protocol.ErrInvalid, "running"},
		{hello, "kept", `[{}]`, protocol.ErrInvalid, "kept.chunk_id is missing"},
		{ours, "ticket", quoted(protocol.MaxOrderMAC + 1), protocol.ErrLimit, "ticket"},
		{ours, "priority", "256", protocol.ErrInvalid, "priority"},
		{ours, "items", `[{"id":"a"}]`, protocol.ErrInvalid, "items has 1 entries, arguments 2"},
		{ours, "items/id", `"x"`, protocol.ErrInvalid, "items.id"},
		{ours, "items/args", `"?"`, protocol.ErrMalformed, "base64"},
		{outcome, "outcomes/index", "-1", protocol.ErrInvalid, "outcomes.index"},
		{outcome, "outcomes/retry_ms", "-1", protocol.ErrInvalid, "outcomes.retry_ms"},
		{outcome, "outcomes/snooze_ms", "-1", protocol.ErrInvalid, "outcomes.snooze_ms"},
		{outcome, "outcomes", `[{"blob":{"id":"../x"}}]`, protocol.ErrInvalid, "outcomes.blob.id"},
		{outcome, "outcomes", `[{"blob":{"id":"x","size":-1}}]`, protocol.ErrInvalid, "outcomes.blob.size"},
		{"futura_cancel_order", "indexes", `[-1]`, protocol.ErrInvalid, "indexes"},
		{"futura_goodbye", "returned", `[{}]`, protocol.ErrInvalid, "returned.chunk_id is missing"},
		{"futura_ack", "code", `"x"`, protocol.ErrInvalid, "three digits"},
		{order, "type", "", protocol.ErrUnknownType, `""`},
		{order, "type", `"MsgNews"`, protocol.ErrUnknownType, "MsgNews"},
		{order, "type", `7`, protocol.ErrMalformed, "type"},
	} {
		t.Run(c.file+" "+c.path+" "+c.says, func(t *testing.T) {
			t.Parallel()
			m, err := protocol.Decode(edited(t, c.file, c.path, c.to))
			require.ErrorIs(t, err, c.kind)
			require.ErrorContains(t, err, c.says)
			require.Nil(t, m)
		})
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	t.Parallel()
	for _, nonsense := range []string{
		"", "\n", "{", "[]", "null", "7", `"MsgHealthCheck"`, `{"type":"MsgHealthCheck"}{}`, `{"type":"MsgHealthCheck"`,
		"\xff",
	} {
		m, err := protocol.Decode([]byte(nonsense))
		require.Error(t, err, "%q", nonsense)
		require.True(t, isDocumented(err), "%v", err)
		require.Nil(t, m)
	}
}

func TestLimitsAreExact(t *testing.T) {
	t.Parallel()
	l := protocol.Limits{
		Bytes: 400, Depth: 4, Objects: 4, Lists: 4, Values: 20, Items: 2, Arguments: 3, ArgumentBytes: 8,
	}
	order := func(arguments string, rest string) string {
		return `{"type":"MsgExecuteBatch","template":{"function_id":"f","method":"m"},"arguments":` + arguments + rest + `}`
	}
	for _, c := range []struct {
		message, says string
	}{
		{order(`[["a","b","c"],["12345678"]]`, ""), ""},
		{order(`[["a"],["b"],["c"]]`, ""), "3 items: at most 2"},
		{order(`[["a","b","c","d"]]`, ""), "4 arguments for one item: at most 3"},
		{order(`[["12345","6789"]]`, ""), "9 bytes for one item: at most 8"},
		{order(`[["a"]]`, `,"x":[[{}]]`), ""},
		{order(`[["a"]]`, `,"x":[[{"y":{}}]]`), "more than 4 deep"},
		{order(`[["a"]]`, `,"x":{},"y":{}`), ""},
		{order(`[["a"]]`, `,"x":{},"y":{},"z":{}`), "5 objects: at most 4"},
		{order(`[["a"]]`, `,"x":[],"y":[]`), ""},
		{order(`[["a"]]`, `,"x":[],"y":[],"z":[]`), "5 lists: at most 4"},
		{order(`[["a"]]`, `,"x":[1,2,3,4,5,6,7,8]`), ""},
		{order(`[["a"]]`, `,"x":[1,2,3,4,5,6,7,8,9,0,1,2]`), "values: at most 20"},
		{order(`[["a"]]`, `,"x":"{{{{{[[[[[,,,,,,,,,,,,,,,,,,,,,,,,\"{{{{{{"`), ""},
		{order(`[["a"]]`, `,"x":"`+strings.Repeat("x", 400)+`"`), "at most 400"},
	} {
		_, err := l.Decode([]byte(c.message))
		if c.says == "" {
			require.NoError(t, err, c.message)
			continue
		}
		require.ErrorIs(t, err, protocol.ErrLimit, c.message)
		require.ErrorContains(t, err, c.says)
	}
	_, err := l.Encode(&protocol.ExecuteBatch{
		Template: protocol.Template{FunctionID: "f", Method: "m"}, Arguments: [][]string{{"a"}, {"b"}, {"c"}},
	}, protocol.DialectChunk)
	require.ErrorIs(t, err, protocol.ErrLimit)
	l.Bytes = 10
	_, err = l.Encode(&protocol.HealthCheck{Code: 200}, protocol.DialectChunk)
	require.ErrorIs(t, err, protocol.ErrLimit)
}

// TestSparseObjectsAreRefused holds a message of empty objects to its size: they
// cost many times their bytes.
func TestSparseObjectsAreRefused(t *testing.T) {
	t.Parallel()
	message := func(objects, padding int) []byte {
		return fmt.Appendf(nil, `{"type":"MsgHealthCheck","x":[%s{}],"y":"%s"}`, strings.Repeat("{},", objects-2),
			strings.Repeat("y", padding))
	}
	for _, c := range []struct {
		objects, padding int
		refused          bool
	}{{1000, 0, false}, {1001, 0, true}, {1001, 13_100, false}, {5000, 13_100, true}} {
		_, err := protocol.Decode(message(c.objects, c.padding))
		require.Equal(t, c.refused, err != nil, "%+v: %v", c, err)
	}
}

func TestEverySpellingIsRead(t *testing.T) {
	t.Parallel()
	want, err := protocol.Decode(readGolden(t, "work_order_batch_response"))
	require.NoError(t, err)
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(readGolden(t, "work_order_batch_response_captured"), &fields))
	request, chunk, results := fields["RequestID"], fields["ChunkID"], fields["Results"]
	for _, ids := range []map[string]json.RawMessage{
		{"RequestID": request, "ChunkID": chunk, "Results": results},
		{"request_id": request, "chunk_id": chunk, "results": results},
		{"requestid": request, "CHUNK_ID": chunk, "RESULTS": results},
		{"RequestID": request, "request_id": request, "ChunkID": chunk, "chunk_id": chunk, "Results": results},
		{"request_id": request, "StrandID": chunk, "results": results},
		{"request_id": request, "strand_id": chunk, "results": results, "other": results},
	} {
		message := maps.Clone(ids)
		message["type"] = fields["type"]
		data, err := json.Marshal(message)
		require.NoError(t, err)
		got, err := protocol.Decode(data)
		require.NoError(t, err, "%s", data)
		_, ofStrand := ids["StrandID"]
		_, ofPlainStrand := ids["strand_id"]
		require.Equal(t, ofStrand || ofPlainStrand,
			got.(*protocol.WorkOrderBatchResponse).Dialect == protocol.DialectStrand)
		copyDialect(got, want)
		require.Equal(t, want, got)
	}
}

// TestTheLastTypeCounts holds the type of a message to that which JSON of Go
// finds, which other readers use.
func TestTheLastTypeCounts(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		`{"type":"MsgAck","code":"200","type":"MsgHealthCheck"}`:    "",
		`{"type":"MsgAck","code":200,"type":"MsgHealthCheck"}`:      "MsgHealthCheck",
		`{"code":200,"type":"MsgHealthCheck","TYPE":"MsgGoodbye"}`:  "MsgGoodbye",
		`{"code":200,"TYPE":"MsgGoodbye","type":"MsgHealthCheck"}`:  "MsgHealthCheck",
		`{"type":"MsgHealthCheck","x":{"a":1,"type":"MsgGoodbye"}}`: "MsgHealthCheck",
		`{"type":"MsgHealthCheck","x":"\",\"type\":\"MsgGoodbye"}`:  "MsgHealthCheck",
		`{"x":1,"type":"MsgHealthCheck"` + " \t\r\n}\n":             "MsgHealthCheck",
		`{"x":1, "type": "MsgHealthCheck" }`:                        "MsgHealthCheck",
		`{"x":1,"t\u0079pe":"MsgHealthCheck"}`:                      "MsgHealthCheck",
		`{"type":"MsgHealthCheck","x":[{"a":1,"type":"MsgGoodbye"}`: "",
		`{"x":"{","y":1,"type":"MsgHealthCheck"}`:                   "MsgHealthCheck",
	} {
		m, err := protocol.Decode([]byte(message))
		if want == "" {
			require.ErrorIs(t, err, protocol.ErrMalformed, message)
			continue
		}
		require.NoError(t, err, message)
		require.Equal(t, want, m.Type(), message)
	}
}

func TestAttemptsFitTheWire(t *testing.T) {
	t.Parallel()
	m := &protocol.ExecuteBatch{
		Template: protocol.Template{FunctionID: "f", Method: "m"}, Arguments: [][]string{{}}, MaxAttempts: math.MaxUint64,
	}
	data, err := protocol.Encode(m, protocol.DialectChunk)
	require.NoError(t, err)
	require.Contains(t, string(data), `"max_attempts":4294967295,`)
	require.Equal(t, uint64(math.MaxUint64), m.MaxAttempts, "the message is not changed")
	got, err := protocol.Decode([]byte(strings.Replace(string(data), "4294967295", "18446744073709551615", 1)))
	require.NoError(t, err)
	require.Equal(t, uint64(math.MaxUint32), got.(*protocol.ExecuteBatch).MaxAttempts)
}

func TestOnlyRunsThatSucceededAreOK(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code protocol.Code
		exit int
		ok   bool
	}{{"200", 0, true}, {"200", 1, false}, {"", 0, false}, {"500", 0, false}, {"500", 3, false}, {"202", 0, false}} {
		var result protocol.ItemResult
		result.Code, result.Result.ExitCode = c.code, c.exit
		require.Equal(t, c.ok, result.OK(), "%+v", c)
		outcome := protocol.Outcome{Code: c.code, ExitCode: c.exit}
		require.Equal(t, c.ok, outcome.OK(), "%+v", c)
	}
	require.False(t, (&protocol.Outcome{Code: protocol.CodeOK, Kind: "lost"}).OK())
}

func TestDialectsOmitWhatTheyLack(t *testing.T) {
	t.Parallel()
	order := ownGoldens()[2].message.(*protocol.WorkOrderBatch)
	plain := *order
	plain.Template.Method = "m"
	for _, d := range []protocol.Dialect{protocol.DialectChunk, protocol.DialectStrand} {
		data, err := protocol.Encode(&plain, d)
		require.NoError(t, err)
		for _, field := range []string{"ticket", "items", "priority"} {
			require.NotContains(t, string(data), field)
		}
		module := *order
		module.Template = protocol.Template{FunctionID: "f"}
		module.Module = "bafymodule"
		_, err = protocol.Encode(&module, d)
		require.ErrorIs(t, err, protocol.ErrInvalid, "a worker of b7s needs a method")
		_, err = protocol.Encode(&module, protocol.DialectFutura)
		require.NoError(t, err)
		for _, own := range ownGoldens() {
			if !strings.Contains(own.file, "work_order_batch") {
				_, err := protocol.Encode(own.message, d)
				require.ErrorIs(t, err, protocol.ErrDialect)
			}
		}
	}
	data, err := protocol.Encode(&protocol.RollCall{FunctionID: "f", RequestID: "a", Batch: true}, protocol.DialectStrand)
	require.NoError(t, err)
	require.NotContains(t, string(data), "batch")
	require.Equal(t, []string{"chunk", "strand", "futura", "unknown"}, []string{
		protocol.DialectChunk.String(), protocol.DialectStrand.String(), protocol.DialectFutura.String(),
		protocol.Dialect(9).String(),
	})
}
