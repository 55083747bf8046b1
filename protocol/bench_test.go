package protocol_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
)

// chunkOf returns an order of n items and its results, as b7s has them and as
// Futura has them.
func chunkOf(n int) (order *protocol.WorkOrderBatch, results, outcomes *protocol.WorkOrderBatchResponse) {
	order = &protocol.WorkOrderBatch{
		Template:  protocol.Template{FunctionID: function, Method: "echo.wasm"},
		RequestID: request, ChunkID: part,
	}
	results = &protocol.WorkOrderBatchResponse{RequestID: request, ChunkID: part}
	results.Results = map[string]protocol.ItemResult{}
	outcomes = &protocol.WorkOrderBatchResponse{RequestID: request, ChunkID: part, OrderMAC: "t"}
	for i := range n {
		argument := fmt.Sprint("https://example.com/dir1/dir2/resource/some-random-slug-", i)
		order.Arguments = append(order.Arguments, []string{argument})
		id, result := itemOf(protocol.CodeOK, protocol.Output{Stdout: argument}, protocol.Usage{WallClock: 2116963}, argument)
		results.Results[id] = result
		outcomes.Outcomes = append(outcomes.Outcomes, protocol.Outcome{
			Index: i, Code: protocol.CodeOK, Value: []byte(argument), Usage: result.Usage,
		})
	}
	return order, results, outcomes
}

func BenchmarkCodec(b *testing.B) {
	order, results, outcomes := chunkOf(1000)
	for _, c := range []struct {
		name    string
		message protocol.Message
		dialect protocol.Dialect
	}{
		{"order", order, protocol.DialectChunk}, {"results", results, protocol.DialectChunk},
		{"outcomes", outcomes, protocol.DialectFutura},
	} {
		data, err := protocol.Encode(c.message, c.dialect)
		require.NoError(b, err)
		b.Run("encode/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				_, _ = protocol.Encode(c.message, c.dialect)
			}
		})
		b.Run("decode/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				_, _ = protocol.Decode(data)
			}
		})
	}
}
