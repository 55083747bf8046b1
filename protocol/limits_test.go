package protocol_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
)

// hostile are messages that say little and would cost much, as large as limits
// let them be.
func hostile(l protocol.Limits) map[string]string {
	results := func() string {
		var b strings.Builder
		for i := range l.Objects - 2 {
			fmt.Fprintf(&b, `,"%032x":{}`, i)
		}
		return b.String()[1:]
	}
	// Objects need some bytes each.
	padding := `"x":"` + strings.Repeat("x", 13*l.Objects) + `",`
	list := func(of string, n int) string { return strings.TrimSuffix(strings.Repeat(of+",", n), ",") }
	envelope := func(name, field string) string { return `{"type":"` + name + `",` + field + `}` }
	return map[string]string{
		"empty results":   envelope("MsgWorkOrderBatchResponse", `"Results":{`+results()+`}`),
		"empty outcomes":  envelope("MsgWorkOrderBatchResponse", padding+`"outcomes":[`+list("{}", l.Objects-2)+`]`),
		"empty items":     envelope("MsgWorkOrderBatch", padding+`"items":[`+list("{}", l.Objects-2)+`]`),
		"empty arguments": envelope("MsgExecuteBatch", `"arguments":[`+list("[]", l.Lists-2)+`]`),
		"empty texts":     envelope("MsgExecuteBatch", `"arguments":[[`+list(`""`, l.Values-8)+`]]`),
		"numbers":         envelope("MsgCancelOrder", `"indexes":[`+list("0", l.Values-8)+`]`),
		"unknown fields":  envelope("MsgHealthCheck", padding+`"x":[`+list("{}", l.Objects-2)+`]`),
		"repeated results": envelope("MsgWorkOrderBatchResponse",
			list(`"Results":{"`+strings.Repeat("0", 32)+`":{}}`, l.Objects/2-1)),
		"long metadata": envelope("MsgWorkOrderBatchResponse",
			`"Results":{"`+strings.Repeat("0", 32)+`":{"metadata":"`+strings.Repeat("<", l.Bytes-256)+`"}}`),
		"one long text": envelope("MsgHealthCheck", `"x":"`+strings.Repeat(`\"`, l.Bytes/2-64)+`"`),
	}
}

// TestDecodingIsBoundedInMemory decodes hostile messages under the limits of
// gossip, and under those of streams in a long run.
func TestDecodingIsBoundedInMemory(t *testing.T) {
	l, bound := protocol.GossipLimits(), 2<<20
	l.Bytes = 256 << 10
	if os.Getenv("FUTURA_LONG") == "1" {
		l, bound = protocol.DirectLimits(), 512<<20
	}
	for name, message := range hostile(l) {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, len(message), l.Bytes)
			data := []byte(message)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := l.Decode(data)
			runtime.ReadMemStats(&after)
			if err != nil {
				require.True(t, isDocumented(err), "%v", err)
			}
			t.Log(len(data), (after.TotalAlloc-before.TotalAlloc)>>10, "KiB", err)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(bound))
		})
	}
}
