package protocol_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/protocol"
)

const (
	function = "6a8b0d75c70889c18791629ab0d1d1e1d2556de9c7c922a2796d934c2b500f1f"
	request  = "c72cb3bc-42bf-402b-86b5-3cc3a32c30bc"
	part     = "6c718538-331d-4c4a-9ca1-ed465d13fc12"
	chunk    = request + ":" + part
	request2 = "be88b3b7-0d0f-4f7c-9a50-3f2f5a4c8e11"
	strand   = request2 + ":1e16c2c9-7f62-4a3b-8d0e-5b1d6c7f8a90"
	request3 = "d4f99406-5d3f-4a7e-8c1c-2b9a7f0e6d34"
	chunk3   = request3 + ":0b6f8a52-97c1-4e0d-a3f4-6d2c1b7e9f80"
	request4 = "cd5cb92a-6b1e-4c55-9f3d-8e7a2d4c1b06"
	peerA    = "12D3KooWNbW985igznpKwHAf1pxByyNeipQFtEFLynNrWhsEHkL9"
	peerB    = "12D3KooWH7RrtuB1YgXFB4piS776eyRrPfK34y2wL8tkTEwNoQfp"
)

// golden is a message in a file of testdata/golden, and what it says.
type golden struct {
	file    string
	dialect protocol.Dialect
	message protocol.Message
	// more are fields that Encode adds to those of the file.
	more map[string]any
}

func goldens() []golden {
	return append(append(b7sGoldens(), batchGoldens()...), ownGoldens()...)
}

func TestGoldensAreReadAndWritten(t *testing.T) {
	t.Parallel()
	for _, g := range goldens() {
		t.Run(g.file, func(t *testing.T) {
			t.Parallel()
			file := readGolden(t, g.file)
			got, err := protocol.Decode(file)
			require.NoError(t, err)
			require.Equal(t, g.message, got)
			for _, m := range []protocol.Message{g.message, got} {
				data, err := protocol.Encode(m, g.dialect)
				require.NoError(t, err)
				require.Equal(t, canonical(t, file, g.more), canonical(t, data, nil))
				require.NotContains(t, string(data), "\n")
			}
			again, err := protocol.Decode(append(file, '\n'))
			require.NoError(t, err)
			require.Equal(t, got, again)
		})
	}
}

func TestEveryMessageHasAGolden(t *testing.T) {
	t.Parallel()
	types, files := map[string]bool{}, map[string]bool{}
	for _, g := range goldens() {
		types[g.message.Type()] = true
		require.False(t, files[g.file], g.file)
		files[g.file] = true
	}
	for _, k := range protocol.Kinds() {
		require.True(t, types[k.Type], k.Type)
		require.Equal(t, k, protocol.KindOf(k.New()))
	}
	entries, err := filepath.Glob("testdata/golden/*.json")
	require.NoError(t, err)
	for _, entry := range entries {
		require.True(t, files[strings.TrimSuffix(filepath.Base(entry), ".json")], entry)
	}
	require.Len(t, entries, len(files))
}

// TestItemIDsOfGoldens holds the ids that nodes of b7s made to what they ran.
func TestItemIDsOfGoldens(t *testing.T) {
	t.Parallel()
	template := &protocol.Template{FunctionID: function, Method: "echo.wasm"}
	checked := 0
	check := func(results map[string]protocol.ItemResult) {
		for id, result := range results {
			require.Equal(t, id, template.ItemID(result.Arguments))
			require.Equal(t, template.Invocation(), result.Invocation)
			checked++
		}
	}
	for _, g := range goldens() {
		switch m := g.message.(type) {
		case *protocol.WorkOrderBatchResponse:
			check(m.Results)
		case *protocol.ExecuteBatchResponse:
			for _, chunk := range m.Chunks {
				check(chunk.Results)
			}
		}
	}
	require.Equal(t, 11, checked)
	template = &protocol.Template{FunctionID: "myfunc", Method: "echo.wasm"}
	require.Equal(t, "1138b0725982d052a0c247eeb46ac1e4", template.ItemID(nil))
}

func readGolden(t testing.TB, name string) []byte {
	data, err := os.ReadFile(filepath.Join("testdata", "golden", name+".json"))
	require.NoError(t, err)
	return data
}

// canonical returns JSON with the fields of each object in the order of their
// names, and more of them at the top.
func canonical(t require.TestingT, data []byte, more map[string]any) string {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	var fields map[string]any
	require.NoError(t, d.Decode(&fields))
	for name, value := range more {
		fields[name] = value
	}
	sorted, err := json.Marshal(fields)
	require.NoError(t, err)
	return string(sorted)
}

func b7sGoldens() []golden {
	usage := protocol.Usage{WallClock: 2116963, CPUSystem: 1436000, MemoryMaxKB: 56428}
	solo := protocol.NodeResult{Code: protocol.CodeOK, Result: protocol.Output{Stdout: "solo"}, Usage: usage}
	config := protocol.Config{Runtime: &protocol.Runtime{}, Aggregation: &protocol.Aggregation{}, Nodes: 1}
	withInput := config
	withInput.Environment = []batch.EnvVar{{Name: "BLS_REQUEST_PATH", Value: "/x"}}
	withInput.Stdin = "hi"
	trace := protocol.Envelope{Carrier: protocol.Carrier{
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}}
	return []golden{
		{file: "health_check", message: &protocol.HealthCheck{Code: 200}},
		{file: "install_function", message: &protocol.InstallFunction{
			ManifestURL: "http://127.0.0.1:8088/manifest.json", CID: function,
		}},
		{file: "install_function_response", message: &protocol.InstallFunctionResponse{
			Code: protocol.CodeAccepted, Message: "installed", CID: function,
		}},
		{file: "roll_call", message: &protocol.RollCall{FunctionID: function, RequestID: request, Batch: true}},
		{file: "roll_call_response", message: &protocol.RollCallResponse{
			Code: protocol.CodeAccepted, FunctionID: function, RequestID: request, BatchSupport: true,
		}},
		{file: "roll_call_strand", dialect: protocol.DialectStrand, message: &protocol.RollCall{
			FunctionID: function, RequestID: request,
		}},
		{file: "roll_call_response_strand", dialect: protocol.DialectStrand, message: &protocol.RollCallResponse{
			Code: protocol.CodeAccepted, FunctionID: function, RequestID: request,
		}},
		{file: "roll_call_attributes", message: &protocol.RollCall{
			Envelope: trace, FunctionID: function, RequestID: request, Consensus: protocol.ConsensusPBFT, Batch: true,
			Attributes: &protocol.Attributes{
				Values: []protocol.Parameter{{Name: "region", Value: "eu"}}, Attested: true,
				Attestors: protocol.Attestors{Each: []string{peerA}, OneOf: []string{peerB}},
			},
		}},
		{file: "execute", message: &protocol.Execute{
			FunctionID: function, Method: "echo.wasm", Arguments: []string{"solo"}, Config: config,
			Topic: protocol.TopicGeneral,
		}},
		{file: "execute_response", message: &protocol.ExecuteResponse{
			RequestID: request4, Code: protocol.CodeOK, Results: map[string]protocol.NodeResult{peerA: solo},
			Cluster: protocol.Nodes{Peers: []string{peerA}},
		}},
		{file: "work_order", message: &protocol.WorkOrder{
			FunctionID: function, Method: "echo.wasm", Arguments: []string{"solo"}, Config: withInput, RequestID: request4,
			Timestamp: time.Date(2026, 11, 21, 0, 3, 16, 453391622, time.UTC),
		}},
		{file: "work_order_response", message: &protocol.WorkOrderResponse{
			RequestID: request4, Code: protocol.CodeOK, Result: solo,
		}},
		{file: "form_cluster", message: &protocol.FormCluster{
			RequestID: request4, Peers: []string{peerA}, Consensus: protocol.ConsensusRaft,
			Connections: []protocol.PeerInfo{{ID: peerA, Addresses: []string{"/ip4/127.0.0.1/tcp/9527"}}},
		}},
		{file: "form_cluster_response", message: &protocol.FormClusterResponse{
			RequestID: request4, Code: protocol.CodeOK, Consensus: protocol.ConsensusRaft,
		}},
		{file: "disband_cluster", message: &protocol.DisbandCluster{RequestID: request4}},
	}
}
