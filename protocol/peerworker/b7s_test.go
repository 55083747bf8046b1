package peerworker

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// slugRunner prints the first argument, as the runtime of the captures did, and fails if
// there is a second one.
type slugRunner struct{}

func (slugRunner) RunModule(ctx context.Context, call workers.ModuleCall) (workers.ModuleOutcome, error) {
	if _, err := call.Load(ctx); err != nil {
		return workers.ModuleOutcome{}, err
	}
	out := strings.Join(call.Argv[:min(1, len(call.Argv))], "")
	if len(call.Argv) > 1 {
		switch call.Argv[1] {
		case "large":
			out = strings.Repeat("x", 3<<20)
		case "memory":
			out = fmt.Sprint(call.MemoryLimit)
		case "method":
			out = call.Method
		case "env":
			out = fmt.Sprint(call.Env, string(call.Stdin))
		default:
			return workers.ModuleOutcome{
				Kind: "exit", Message: "exit code 3", ExitCode: 3, Stdout: []byte(out), Stderr: []byte("lab: asked to fail"),
			}, nil
		}
	}
	return workers.ModuleOutcome{Stdout: []byte(out)}, nil
}

// captured returns a message that a node of b7s sent.
func captured(t testing.TB, name string) []byte {
	data, err := os.ReadFile(filepath.Join("..", "testdata", "golden", name+".json"))
	require.NoError(t, err)
	return bytes.TrimSpace(data)
}

// functionServer serves a function of b7s.
func functionServer(t testing.TB) string { return codeServer(t, []byte("\x00asm\x01\x00\x00\x00")) }

func codeServer(t testing.TB, codes ...[]byte) string {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	files := tar.NewWriter(zip)
	for i, code := range codes {
		name := strings.Repeat("echo", i+1) + ".wasm"
		require.NoError(t, files.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(code))}))
		_, err := files.Write(code)
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(files.Close(), zip.Close()))
	sum := sha256.Sum256(packed.Bytes())
	mux := http.NewServeMux()
	mux.HandleFunc("/manifest.json", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"runtime":{"url":"/fn.tar.gz","checksum":"%x"}}`, sum)
	})
	mux.HandleFunc("/broken.json", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"runtime":{"url":"/fn.tar.gz","checksum":"%x"}}`, sha256.Sum256(nil))
	})
	mux.HandleFunc("/fn.tar.gz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(packed.Bytes()) // the client notices
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// b7sHead is a head that speaks b7s's protocol alone.
type b7sHead struct {
	*fakeHead
	handler Handler
}

func (h *b7sHead) receive(message []byte) { h.handler.Received(h.t.Context(), h.id, message) }
func (h *b7sHead) publish(message []byte) { h.handler.Published(h.t.Context(), h.id, message) }

// next returns the next message of the worker.
func (h *b7sHead) next() []byte {
	h.t.Helper()
	select {
	case m := <-h.sent:
		return m
	case <-time.After(testTime):
		require.FailNow(h.t, "no message")
		return nil
	}
}

// runB7S runs a worker for a head of b7s, with the function of the captures.
func runB7S(t testing.TB, change func(*Options)) (*running, *b7sHead) {
	n := newMemory()
	n.b7s = true
	h := newHead(t, n, headID)
	o := options(n)
	o.Modules, o.PrivateSources, o.Labels = slugRunner{}, true, map[string]string{"zone": "a"}
	if change != nil {
		change(&o)
	}
	w := run(t, o)
	head := &b7sHead{h, n.handler}
	install := captured(t, "install_function")
	install = bytes.ReplaceAll(install, []byte("http://127.0.0.1:8088"), []byte(functionServer(t)))
	head.publish(install)
	require.JSONEq(t, string(captured(t, "install_function_response")), string(head.next()))
	return w, head
}

func TestHeadsOfB7S(t *testing.T) {
	t.Parallel()
	w, h := runB7S(t, nil)
	for _, dialect := range []string{"", "_strand"} {
		h.publish(captured(t, "roll_call"+dialect))
		require.JSONEq(t, string(captured(t, "roll_call_response"+dialect)), string(h.next()), dialect)
		h.receive(captured(t, "work_order_batch"+dialect))
		sameResults(t, captured(t, "work_order_batch_response"+dialect), h.next())
	}
	h.receive(captured(t, "work_order"))
	sameResults(t, captured(t, "work_order_response"), h.next())
	w.idle()
	require.Empty(t, h.hellos, "a head of b7s is not greeted")
}

// sameResults compares messages but for what a run used.
func sameResults(t testing.TB, want, got []byte) {
	t.Helper()
	strip := func(data []byte) any {
		var v any
		require.NoError(t, json.Unmarshal(data, &v))
		return withoutUsage(t, v)
	}
	require.Equal(t, strip(want), strip(got))
}

func withoutUsage(t testing.TB, v any) any {
	fields, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for name, value := range fields {
		if usage, ok := value.(map[string]any); ok && name == "usage" {
			require.Positive(t, usage["wall_clock_time"])
			delete(fields, name)
			continue
		}
		fields[name] = withoutUsage(t, value)
	}
	return fields
}

// b7sOrderOf is an order of the function of the captures.
func b7sOrderOf(t testing.TB, arguments ...[]string) *protocol.WorkOrderBatch {
	m, err := protocol.Decode(captured(t, "work_order_batch"))
	require.NoError(t, err)
	o := m.(*protocol.WorkOrderBatch)
	o.ChunkID, o.Arguments = uuid.NewString(), arguments
	return o
}

// answer sends an order and returns the results by their items.
func (h *b7sHead) answer(o *protocol.WorkOrderBatch) []protocol.ItemResult {
	h.t.Helper()
	data, err := protocol.Encode(o, protocol.DialectChunk)
	require.NoError(h.t, err)
	h.receive(data)
	return h.answered(o)
}

// answered returns the results of the reply to an order that comes next.
func (h *b7sHead) answered(o *protocol.WorkOrderBatch) []protocol.ItemResult {
	h.t.Helper()
	m, err := protocol.Decode(h.next())
	require.NoError(h.t, err)
	r := m.(*protocol.WorkOrderBatchResponse)
	require.Equal(h.t, o.ChunkID, r.ChunkID)
	results := make([]protocol.ItemResult, len(o.Arguments))
	for i, arguments := range o.Arguments {
		results[i] = r.Results[o.Template.ItemID(arguments)]
		require.Equal(h.t, arguments, results[i].Arguments)
	}
	return results
}

// TestMemoryIsInPagesForHeadsOfB7S has heads bound the memory of a run as b7s's runtime does.
func TestMemoryIsInPagesForHeadsOfB7S(t *testing.T) {
	t.Parallel()
	_, h := runB7S(t, nil)
	order := b7sOrderOf(t, []string{"a", "memory"})
	order.Template.Config.Runtime = &protocol.Runtime{Memory: 30}
	require.Equal(t, fmt.Sprint(30*protocol.MemoryPage), h.answer(order)[0].Result.Stdout)
	require.EqualValues(t, math.MaxInt64/protocol.MemoryPage*protocol.MemoryPage,
		memoryOf(&protocol.Config{Runtime: &protocol.Runtime{Memory: math.MaxUint64}}, protocol.MemoryPage))
}

// TestRuntimeOfHeadsOfB7S has heads name the export that is called, and bound a run in milliseconds.
func TestRuntimeOfHeadsOfB7S(t *testing.T) {
	t.Parallel()
	_, h := runB7S(t, nil)
	for entry, method := range map[string]string{"": "", "_start": "", "second": "second"} {
		order := b7sOrderOf(t, []string{"a", "method"})
		order.Template.Config.Runtime = &protocol.Runtime{Entry: entry, RunTime: math.MaxUint64}
		require.Equal(t, method, h.answer(order)[0].Result.Stdout, entry)
	}
	order := b7sOrderOf(t, []string{"a"})
	order.Template = protocol.Template{FunctionID: "go:wait"}
	order.Template.Config.Runtime = &protocol.Runtime{RunTime: 1}
	require.Contains(t, h.answer(order)[0].Result.Stderr, "timeout")
}

func TestResultsForHeadsOfB7S(t *testing.T) {
	t.Parallel()
	w, h := runB7S(t, func(o *Options) { o.MaxItems = 5 })
	order := b7sOrderOf(t, []string{"a", "fail"}, []string{"b", "env"}, []string{"c"}, []string{"c"})
	order.Template.Config.Environment = []batch.EnvVar{{Name: "X", Value: "1"}}
	order.Template.Config.Stdin = "in"
	all := h.answer(order)
	require.Equal(t, protocol.CodeError, all[0].Code)
	require.Equal(t, protocol.Output{Stdout: "a", Stderr: "lab: asked to fail", ExitCode: 3}, all[0].Result)
	require.Equal(t, protocol.Output{Stdout: "map[X:1]in"}, all[1].Result, "nothing of the process's environment")
	require.True(t, all[2].OK())
	w.idle()
	// Outputs that don't fit into the reply are failures, not silence.
	large := b7sOrderOf(t, []string{"1", "large"}, []string{"2", "large"}, []string{"3", "large"})
	all = h.answer(large)
	require.True(t, all[0].OK(), all[0].Result.Stderr)
	require.True(t, all[1].OK(), all[1].Result.Stderr)
	require.Equal(t, protocol.CodeError, all[2].Code)
	require.Contains(t, all[2].Result.Stderr, "no room in the reply")
	w.idle()
	// What is not taken is answered at once.
	order = b7sOrderOf(t, []string{"1"}, []string{"2"}, []string{"3"}, []string{"4"}, []string{"5"}, []string{"6"})
	require.Equal(t, protocol.CodeUnavailable, h.answer(order)[5].Code)
	order = b7sOrderOf(t, []string{"1"})
	order.Template.Method = "other.wasm"
	require.Equal(t, protocol.CodeNotFound, h.answer(order)[0].Code)
	order = b7sOrderOf(t, []string{"1"})
	order.Template.Config.Consensus = "raft"
	require.Equal(t, protocol.CodeNotImplemented, h.answer(order)[0].Code)
	order = b7sOrderOf(t, []string{"x"})
	order.Template = protocol.Template{FunctionID: "go:double"}
	require.Equal(t, `["x"]["x"]`, h.answer(order)[0].Result.Stdout)
	w.idle()
}

// TestAResultThatCantBeReadFailsAlone has one of two large results be gone when the reply is made.
func TestAResultThatCantBeReadFailsAlone(t *testing.T) {
	t.Parallel()
	w, h := runB7S(t, nil)
	order := b7sOrderOf(t, []string{"gone"}, []string{"here"})
	order.Dialect = protocol.DialectChunk
	c := newChunk(w.Worker, chunkName{headID, order.ChunkID}, order, 2, nil)
	c.order = &b7sOrder{WorkOrderBatch: order}
	w.replyB7S(t.Context(), c, []ended{
		{index: 0, size: 2, outcome: &protocol.Outcome{Code: protocol.CodeOK, Blob: &protocol.Blob{ID: "gone", Size: 2}}},
		{index: 1, size: 2, outcome: &protocol.Outcome{Index: 1, Code: protocol.CodeOK, Value: []byte("ok")}},
	})
	all := h.answered(order)
	require.Equal(t, protocol.CodeError, all[0].Code)
	require.Contains(t, all[0].Result.Stderr, "can't be read")
	require.Equal(t, "ok", all[1].Result.Stdout)
}

func TestRollCallsThatAreNotAnswered(t *testing.T) {
	t.Parallel()
	w, h := runB7S(t, func(o *Options) { o.MaxChunks = 1 })
	call := func(change func(*protocol.RollCall)) {
		m, err := protocol.Decode(captured(t, "roll_call"))
		require.NoError(t, err)
		change(m.(*protocol.RollCall))
		data, err := protocol.Encode(m, protocol.DialectChunk)
		require.NoError(t, err)
		h.publish(data)
	}
	zone := func(name, value string) *protocol.Attributes {
		return &protocol.Attributes{Values: []protocol.Parameter{{Name: name, Value: value}}}
	}
	call(func(m *protocol.RollCall) { m.FunctionID = "other" })
	call(func(m *protocol.RollCall) { m.FunctionID = "go:other" })
	call(func(m *protocol.RollCall) { m.Consensus = protocol.ConsensusRaft })
	call(func(m *protocol.RollCall) { m.Attributes = zone("zone", "b") })
	call(func(m *protocol.RollCall) { m.Attributes = zone("other", "") })
	call(func(m *protocol.RollCall) { m.Attributes = &protocol.Attributes{Attested: true} })
	h.handler.Published(t.Context(), "12D3KooWStranger", captured(t, "roll_call"))
	h.publish([]byte("{"))
	h.receive([]byte("{"))
	h.receive(captured(t, "roll_call"))
	h.publish(captured(t, "work_order_batch")) // b7s runs those; nobody asked this worker
	h.handler.Received(t.Context(), "12D3KooWStranger", captured(t, "work_order_batch"))
	require.Empty(t, h.sent)
	require.EqualValues(t, 2, w.Stats().Garbage)
	call(func(m *protocol.RollCall) { m.Attributes = zone("zone", "a") })
	call(func(m *protocol.RollCall) { m.FunctionID = "go:double" })
	for range 2 {
		require.Contains(t, string(h.next()), "MsgRollCallResponse")
	}
	waits := b7sOrderOf(t, []string{"x"})
	waits.Template = protocol.Template{FunctionID: "go:wait"}
	waits.Template.Config.Timeout = 1
	data, err := protocol.Encode(waits, protocol.DialectChunk)
	require.NoError(t, err)
	h.receive(data)
	h.receive(data)                   // twice is once
	call(func(*protocol.RollCall) {}) // it is full
	require.Contains(t, string(h.next()), "timeout")
	w.idle()
	require.Empty(t, h.sent)
	require.EqualValues(t, 1, w.Stats().ChunksTaken)
}

func TestInstalledFunctionsAreRemembered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, h := runB7S(t, func(o *Options) { o.State = dir })
	waits := b7sOrderOf(t, []string{"x"})
	waits.Template = protocol.Template{FunctionID: "go:wait"}
	data, err := protocol.Encode(waits, protocol.DialectChunk)
	require.NoError(t, err)
	h.receive(data)
	w.crash()

	n := newMemory()
	n.b7s = true
	head := &b7sHead{newHead(t, n, headID), nil}
	o := options(n)
	o.Modules, o.State = slugRunner{}, dir
	w = run(t, o)
	head.handler = n.handler
	w.idle() // the order is forgotten: its head waits no longer
	require.True(t, head.answer(b7sOrderOf(t, []string{"a"}))[0].OK())
	require.Empty(t, head.sent)
}

func TestFunctionsThatAreNotInstalled(t *testing.T) {
	t.Parallel()
	url, two := functionServer(t), codeServer(t, []byte("\x00asm1"), []byte("\x00asm2"))
	refused := make(chan string, 10)
	for what, c := range map[string]struct {
		url, cid string
		private  bool
		check    error
	}{
		"private": {url: url + "/manifest.json", cid: "x"},
		"broken":  {url: url + "/broken.json", cid: "x", private: true},
		"missing": {url: url + "/none", cid: "x", private: true},
		"no url":  {cid: "x_y", private: true},
		"bad":     {url: url + "/manifest.json", cid: "x", private: true, check: errors.New("it does not compile")},
		"room":    {url: url + "/manifest.json", cid: "x", private: true},
		"both":    {url: two + "/manifest.json", cid: "x", private: true},
		"many":    {url: url + "/manifest.json", cid: "x", private: true},
	} {
		n, h, o := withHead(t)
		o.Modules, o.PrivateSources, o.Logger = slugRunner{}, c.private, logTo(refused)
		o.CheckModule = func(context.Context, string, []byte) error { return c.check }
		switch what {
		case "room":
			o.ModuleCache = 1
		case "both":
			o.ModuleCache = 9
		}
		w := run(t, o)
		for i := 0; what == "many" && i < maxFunctions; i++ {
			w.functionsOfB7S.known[fmt.Sprint(i)] = installedFunction{}
		}
		m := &protocol.InstallFunction{ManifestURL: c.url, CID: c.cid}
		data, err := protocol.Encode(m, protocol.DialectChunk)
		require.NoError(t, err)
		n.handler.Received(t.Context(), headID, data)
		select {
		case why := <-refused:
			t.Log(what, why)
		case <-time.After(testTime):
			require.FailNow(t, what)
		}
		stored, err := modules.Of(w.node.cluster).List(t.Context())
		require.NoError(t, err)
		require.Empty(t, stored, what)
		require.NoError(t, w.end())
		require.Empty(t, h.sent, what)
		require.False(t, w.functionsOfB7S.runs(headID, c.cid), what)
	}
}
