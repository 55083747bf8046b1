package protocol_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/protocol"
)

// TestWhatIsWrittenIsTaken has messages be larger, or more, once they are written than they look: none is written that
// the other side refuses.
func TestWhatIsWrittenIsTaken(t *testing.T) {
	t.Parallel()
	bytes := func(n int) string { return strings.Repeat("\xff", n) } // each is a character of three bytes in JSON
	order := func(o protocol.WorkOrderBatch) *protocol.WorkOrderBatch {
		o.RequestID, o.ChunkID, o.Template.FunctionID = "a", "a", "go:f"
		return &o
	}
	argument := func(text string) *protocol.WorkOrderBatch {
		return order(protocol.WorkOrderBatch{Arguments: [][]string{{text}}})
	}
	results := func(metadata string) *protocol.WorkOrderBatchResponse {
		result := protocol.ItemResult{NodeResult: protocol.NodeResult{Metadata: protocol.Raw(metadata)}}
		return &protocol.WorkOrderBatchResponse{RequestID: "a", ChunkID: "a",
			Results: map[string]protocol.ItemResult{strings.Repeat("0", 32): result}}
	}
	traced := func(context string) *protocol.Ack {
		return &protocol.Ack{Envelope: protocol.Envelope{Carrier: protocol.Carrier{"a": context}}}
	}
	direct, few := protocol.DirectLimits(), protocol.DirectLimits()
	few.Objects, few.Lists, few.Values = 20, 20, 40
	outcomes := func(n int) *protocol.WorkOrderBatchResponse {
		return &protocol.WorkOrderBatchResponse{RequestID: "a", ChunkID: "a", Outcomes: make([]protocol.Outcome, n)}
	}
	for name, c := range map[string]struct {
		limits protocol.Limits
		m      protocol.Message
		fits   bool
	}{
		"text that is none":       {direct, &protocol.Ack{Message: bytes(protocol.MaxText/3 + 1)}, false},
		"text that fits":          {direct, &protocol.Ack{Message: bytes(protocol.MaxText / 3)}, true},
		"text in UTF-8":           {direct, &protocol.Ack{Message: strings.Repeat("é", protocol.MaxText/2)}, true},
		"argument":                {direct, argument(bytes(batch.MaxArguments)), false},
		"argument that fits":      {direct, argument(bytes(batch.MaxArguments / 3)), true},
		"carrier":                 {direct, traced(bytes(5000)), false},
		"deep metadata":           {direct, results(strings.Repeat("[", 20) + strings.Repeat("]", 20)), false},
		"many outcomes":           {few, outcomes(20), false},
		"as many as there may be": {few, outcomes(10), true},
	} {
		data, err := c.limits.Encode(c.m, protocol.DialectFutura)
		if !c.fits {
			require.ErrorIs(t, err, protocol.ErrLimit, name)
			continue
		}
		require.NoError(t, err, name)
		_, err = c.limits.Decode(data)
		require.NoError(t, err, name)
	}
	environment := order(protocol.WorkOrderBatch{Arguments: [][]string{{}}})
	environment.Template.Config.Environment = []batch.EnvVar{{Name: "a", Value: bytes(batch.MaxItem / 2)}}
	_, err := protocol.Encode(environment, protocol.DialectFutura)
	require.ErrorIs(t, err, protocol.ErrLimit)
	for name, line := range map[string]interface{ Line() ([]byte, error) }{
		"request": &protocol.BlobRequest{ID: strings.Repeat("<", 200)},
		"answer":  &protocol.BlobResponse{Message: bytes(64)},
	} {
		_, err := line.Line()
		require.ErrorIs(t, err, protocol.ErrLimit, name)
	}
}

// TestErrorsAreShort has messages have values that are long and wrong: what is said of them fits into an answer.
func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		`{"code":%s,"type":"MsgHealthCheck"}`, `{"consensus":%s,"type":"MsgRollCall"}`,
		`{"timestamp":"%s","type":"MsgWorkOrder"}`, `{"%[1]s":1,"results":{"%[1]s":1},"type":"MsgExecuteResponse"}`,
	} {
		_, err := protocol.Decode(fmt.Appendf(nil, message, strings.Repeat("1", 1<<20)))
		require.ErrorIs(t, err, protocol.ErrMalformed)
		require.Less(t, len(err.Error()), 500, message)
	}
}
