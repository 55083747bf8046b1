package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
)

// TestAClientsTraceGoesOn has a message with the context of a trace, and one without.
func TestAClientsTraceGoesOn(t *testing.T) {
	t.Parallel()
	var got []http.Header
	c := &peerClients{host: "head", handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header)
	})}
	traced := protocol.Carrier{"traceparent": "00-a-b-01", "tracestate": "c=d", "authorization": "x"}
	for _, carrier := range []protocol.Carrier{nil, traced} {
		c.execute(t.Context(), "peer", &protocol.ExecuteBatch{Envelope: protocol.Envelope{Carrier: carrier}})
	}
	require.Len(t, got, 2)
	for _, name := range []string{"traceparent", "tracestate"} {
		require.Empty(t, got[0].Values(name))
		require.Equal(t, []string{traced[name]}, got[1].Values(name))
	}
	require.Empty(t, got[1].Get("Authorization"))
}
