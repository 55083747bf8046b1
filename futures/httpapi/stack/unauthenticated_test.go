package stack_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

// TestRequestsWithoutATokenHaveABudget spends the budget of an address with wrong tokens. A holder of a right one at
// the same address passes, and so does what needs none.
func TestRequestsWithoutATokenHaveABudget(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stack.Limits{FailedRequests: 5, OpenRequests: 5})
	url := "http://" + f.address
	for range 5 {
		stacktest.Send(t, "GET", url+"/ping", "", "Authorization", "Bearer wrong").Problem(401, "unauthorized", "token")
	}
	a := stacktest.Send(t, "GET", url+"/ping", "", "Authorization", "Bearer wrong")
	a.Problem(429, "rate_limited", "5 in a minute")
	require.Equal(t, "12", a.Header.Get("Retry-After"))
	require.Equal(t, 200, stacktest.Send(t, "GET", url+"/ping", "", "Authorization", "Bearer "+secret).Status)
	for range 5 {
		require.Equal(t, 200, stacktest.Send(t, "GET", url+"/openapi.json", "").Status)
	}
	require.Equal(t, 429, stacktest.Send(t, "GET", url+"/openapi.json", "").Status)
	require.Equal(t, 200, stacktest.Send(t, "GET", url+"/openapi.json", "", "Authorization", "Bearer "+secret).Status)
}

// TestDocumentsAreCompressedOnce has the description read whole, compressed, and not at all because it has not changed.
func TestDocumentsAreCompressedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stack.Limits{})
	url := "http://" + f.address + "/openapi.json"
	whole := stacktest.Send(t, "GET", url, "")
	packed := stacktest.Send(t, "GET", url, "", "Accept-Encoding", "gzip")
	require.Equal(t, "gzip", packed.Header.Get("Content-Encoding"))
	unpacked, err := gzip.NewReader(bytes.NewReader(packed.Body))
	require.NoError(t, err)
	content, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	require.Equal(t, string(whole.Body), string(content))
	require.Less(t, len(packed.Body), len(content))
	for _, a := range []*stacktest.Answer{whole, packed} {
		again := stacktest.Send(t, "GET", url, "", "If-None-Match", a.Header.Get("ETag"),
			"Accept-Encoding", a.Header.Get("Content-Encoding"))
		require.Equal(t, http.StatusNotModified, again.Status)
		require.Empty(t, again.Body)
	}
	require.NotEqual(t, whole.Header.Get("ETag"), packed.Header.Get("ETag"))
}

// TestAConnectionWithoutATokenHasFewRequests: it ends after 32 answers; one with a token goes on.
func TestAConnectionWithoutATokenHasFewRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stack.Limits{})
	answers := func(header string) (n int) {
		c := f.dial(strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n"+header+"\r\n", 40))
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		for r := bufio.NewReader(c); ; n++ {
			answer, err := http.ReadResponse(r, nil)
			if err != nil {
				return n
			}
			_, err = io.Copy(io.Discard, answer.Body)
			require.NoError(t, err)
		}
	}
	require.Equal(t, 32, answers(""))
	require.Equal(t, 40, answers("Authorization: Bearer "+secret+"\r\n"))
}

// TestAConnectionWithoutATokenHasOneSlack: a peer that reads nothing loses its connection once the slack of all its
// answers is spent, however many it asked for.
func TestAConnectionWithoutATokenHasOneSlack(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stack.Limits{AnswerSlack: 50 * time.Millisecond})
	c := f.dial(strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 30))
	require.NoError(t, c.(*net.TCPConn).SetReadBuffer(1))
	require.Eventually(t, func() bool {
		// What it is sent now is refused, since the server has reset the connection.
		_, err := io.WriteString(c, "GET / HTTP/1.1\r\n")
		return err != nil
	}, time.Minute, 10*time.Millisecond)
}
