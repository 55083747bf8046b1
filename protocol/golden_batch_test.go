package protocol_test

import "github.com/futura-run/futura/protocol"

// itemOf returns the result of an item of the template of the goldens.
func itemOf(code protocol.Code, output protocol.Output, usage protocol.Usage, arguments ...string) (
	string, protocol.ItemResult,
) {
	template := &protocol.Template{FunctionID: function, Method: "echo.wasm"}
	return template.ItemID(arguments), protocol.ItemResult{
		NodeResult: protocol.NodeResult{Code: code, Result: output, Usage: usage},
		Invocation: template.Invocation(), Arguments: arguments,
	}
}

func batchGoldens() []golden {
	usage := protocol.Usage{WallClock: 2116963, CPUSystem: 1436000, MemoryMaxKB: 56428}
	usage1 := protocol.Usage{WallClock: 1984015, CPUUser: 702000, CPUSystem: 1120000, MemoryMaxKB: 56428}
	id1, slug1 := itemOf(protocol.CodeOK, protocol.Output{Stdout: "https://example.com/slug-1"}, usage1,
		"https://example.com/slug-1")
	id3, slug3 := itemOf(protocol.CodeOK, protocol.Output{Stdout: "https://example.com/slug-3"}, usage,
		"https://example.com/slug-3")
	failedID, failed := itemOf(protocol.CodeError, protocol.Output{
		Stdout: "https://example.com/slug-0", Stderr: "lab: asked to fail", ExitCode: 3,
	}, protocol.Usage{}, "https://example.com/slug-0", "fail")
	idleID, idle := itemOf("", protocol.Output{}, protocol.Usage{}, "https://example.com/slug-2")
	argID, arg := itemOf(protocol.CodeOK, protocol.Output{Stdout: "arg-0"}, usage, "arg-0")
	results := func(id string, result protocol.ItemResult) map[string]protocol.ItemResult {
		return map[string]protocol.ItemResult{id: result}
	}
	template := protocol.Template{FunctionID: function, Method: "echo.wasm", Config: protocol.Config{
		Runtime: &protocol.Runtime{}, Aggregation: &protocol.Aggregation{}, Nodes: 2,
	}}
	two := &protocol.WorkOrderBatchResponse{RequestID: request, ChunkID: chunk, Results: map[string]protocol.ItemResult{
		id1: slug1, id3: slug3,
	}}
	one := &protocol.WorkOrderBatchResponse{
		RequestID: request2, ChunkID: strand, Results: results(id1, slug1), Dialect: protocol.DialectStrand,
	}
	reply := protocol.ExecuteBatchResponse{
		RequestID: request3, Code: protocol.CodeOK,
		Chunks: map[string]protocol.ChunkResults{chunk3: {Peer: peerA, Results: results(argID, arg)}},
	}
	single, strands := reply, reply
	single.AsSingle, strands.AsSingle = true, true
	strands.Dialect = protocol.DialectStrand
	plain := map[string]any{"request_id": request, "chunk_id": chunk}
	return []golden{
		{file: "execute_batch", message: &protocol.ExecuteBatch{
			Template:  protocol.Template{FunctionID: function, Method: "echo.wasm", Config: protocol.Config{Nodes: 2}},
			Arguments: [][]string{{"arg-0"}, {"arg-1"}, {"arg-2"}}, MaxAttempts: 3,
		}},
		{file: "execute_batch_response", message: &reply},
		{file: "execute_batch_response_captured", message: &single},
		{file: "execute_batch_response_captured_strand", dialect: protocol.DialectStrand, message: &strands},
		{file: "work_order_batch", message: &protocol.WorkOrderBatch{
			Template: template, RequestID: request, ChunkID: chunk,
			Arguments: [][]string{{"https://example.com/slug-1"}, {"https://example.com/slug-3"}},
		}},
		{file: "work_order_batch_strand", dialect: protocol.DialectStrand, message: &protocol.WorkOrderBatch{
			Template: template, RequestID: request2, ChunkID: strand, Dialect: protocol.DialectStrand,
			Arguments: [][]string{{"https://example.com/slug-1"}},
		}},
		{file: "work_order_batch_minimal", message: &protocol.WorkOrderBatch{
			Template: protocol.Template{FunctionID: function, Method: "echo.wasm"}, RequestID: request, ChunkID: part,
			Arguments: [][]string{{"arg-0"}},
		}},
		{file: "work_order_batch_response", message: two},
		{file: "work_order_batch_response_strand", dialect: protocol.DialectStrand, message: one},
		// What a worker of b7s sends has one spelling of each id; ours has both.
		{file: "work_order_batch_response_captured", message: two, more: plain},
		{file: "work_order_batch_response_captured_strand", dialect: protocol.DialectStrand, message: one,
			more: map[string]any{"request_id": request2, "strand_id": strand}},
		{file: "work_order_batch_response_captured_failed", more: plain, message: &protocol.WorkOrderBatchResponse{
			RequestID: request, ChunkID: chunk,
			Results: map[string]protocol.ItemResult{failedID: failed, idleID: idle},
		}},
	}
}

func ownGoldens() []golden {
	later := int64(30_000)
	own := []golden{
		{file: "futura_hello", message: &protocol.Hello{
			Version: "1.0.0", Incarnation: "00c0ffee00c0ffee", Name: "edge-1",
			Capacity: protocol.Capacity{Slots: 4, CPUMillis: 4000, RAMBytes: 8 << 30},
			Labels:   map[string]string{"region": "eu"}, Functions: []string{"go:resize", "wasm:*"}, MaxChunk: 500,
			Kept: []protocol.Kept{{ChunkID: chunk, OrderMAC: "t1"}}, Running: []string{strand},
		}},
		{file: "futura_hello_response", message: &protocol.HelloResponse{
			Code: protocol.CodeOK, Head: "head-1", HeartbeatMS: 2000, DeadAfterMS: 10000,
			Wanted: []string{chunk}, Unknown: []string{strand},
		}},
		{file: "futura_work_order_batch", message: &protocol.WorkOrderBatch{
			Template: protocol.Template{FunctionID: "go:resize"}, RequestID: request, ChunkID: part,
			Arguments: [][]string{{}, {}}, OrderMAC: "t1", Priority: 9, Dialect: protocol.DialectFutura,
			Items: []protocol.OrderItem{
				{ID: "0198f3c2-7f62-7a3b-8d0e-5b1d6c7f8a90", Attempt: 1, TimeoutMS: 1500, Codec: "json", Args: []byte("[1]")},
				{ID: "0198f3c2-7f62-7a3b-8d0e-5b1d6c7f8a91", Attempt: 3, Trace: protocol.Carrier{
					"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "vendor=1",
				}},
			},
		}},
		{file: "futura_work_order_batch_response", message: &protocol.WorkOrderBatchResponse{
			RequestID: request, ChunkID: part, OrderMAC: "t1", Partial: true, Dialect: protocol.DialectFutura,
			Outcomes: []protocol.Outcome{
				{Code: protocol.CodeOK, Value: []byte("1"), Codec: "json", Usage: protocol.Usage{WallClock: 2116963}},
				{
					Index: 1, Code: protocol.CodeError, Kind: "exit", Message: "exit code 3", ExitCode: 3,
					Stdout: []byte{0, 255}, Stderr: []byte("no"), Truncated: true,
				},
				{Index: 2, Code: protocol.CodeOK, Blob: &protocol.Blob{
					ID: "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy", Size: 64 << 20,
				}},
				{Index: 3, Code: protocol.CodeError, Kind: "error", Message: "no such user", Permanent: true},
				{Index: 4, Code: protocol.CodeError, Kind: "error", Message: "too many requests", RetryMS: &later},
				{Index: 5, Code: protocol.CodeAccepted, SnoozeMS: 60_000},
				{Index: 6, Code: protocol.CodeUnavailable, Message: "the worker stops"},
			},
		}},
		{file: "futura_work_order_progress", message: &protocol.WorkOrderProgress{
			ChunkID: chunk, OrderMAC: "t1", Running: 2, Done: 7, Items: []int{7, 8},
			Order: []protocol.OrderItem{{ID: "6c718538-331d-4c4a-9ca1-ed465d13fc12", Attempt: 2}},
		}},
		{file: "futura_cancel_order", message: &protocol.CancelOrder{
			ChunkID: chunk, Indexes: []int{3}, Reason: "cancelled by its owner",
		}},
		{file: "futura_take_back", message: &protocol.TakeBack{
			ChunkID: chunk, Indexes: []int{4, 5}, Reason: "others are idle",
		}},
		{file: "futura_goodbye", message: &protocol.Goodbye{
			Returned: []protocol.Returned{{ChunkID: chunk, Indexes: []int{4, 5}}},
		}},
		{file: "futura_ack", message: &protocol.Ack{Code: protocol.CodeAccepted, Message: "taken", ChunkID: chunk}},
	}
	for i := range own {
		own[i].dialect = protocol.DialectFutura
	}
	return own
}
