package protocol_test

import (
	"encoding/json"
	"fmt"

	"github.com/futura-run/futura/protocol"
)

// A head orders a chunk from a worker of b7s, and reads its answer.
func Example() {
	order := &protocol.WorkOrderBatch{
		Template:  protocol.Template{FunctionID: "bafyresize", Method: "echo.wasm"},
		RequestID: "c72cb3bc-42bf-402b-86b5-3cc3a32c30bc",
		ChunkID:   "6c718538-331d-4c4a-9ca1-ed465d13fc12",
		Arguments: [][]string{{"one"}},
	}
	data, err := protocol.Encode(order, protocol.DialectChunk)
	if err != nil {
		panic(err)
	}
	fmt.Println(json.Valid(data))

	answer := `{"RequestID":"c72cb3bc-42bf-402b-86b5-3cc3a32c30bc","ChunkID":"6c718538-331d-4c4a-9ca1-ed465d13fc12",` +
		`"Results":{"` + order.Template.ItemID([]string{"one"}) + `":{"code":"200","result":{"stdout":"one"}}},` +
		`"type":"MsgWorkOrderBatchResponse"}`
	message, err := protocol.Decode([]byte(answer))
	if err != nil {
		panic(err)
	}
	for _, result := range message.(*protocol.WorkOrderBatchResponse).Results {
		fmt.Println(result.OK(), result.Result.Stdout)
	}
	// Output:
	// true
	// true one
}
