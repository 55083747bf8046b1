package stack_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

// TestServesTLS sends requests over TLS, on a bounded number of connections,
// while others begin no handshake.
func TestServesTLS(t *testing.T) {
	t.Parallel()
	lender := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(lender.Close)
	s := stack.New(stack.Options{Limits: stack.Limits{Connections: 2, AddressConnections: 2}})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server, served := s.Server(&tls.Config{Certificates: lender.TLS.Certificates, MinVersion: tls.VersionTLS12}),
		make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	for range 4 {
		silent, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = silent.Close() })
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+listener.Addr().String()+"/openapi.json", nil)
	require.NoError(t, err)
	transport := lender.Client().Transport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	response, err := transport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "HTTP/1.1", response.Proto)
	require.NoError(t, server.Shutdown(context.Background()))
	require.NoError(t, <-served)
}
