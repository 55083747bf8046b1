package stack_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "0123456789abcdef"

// fixture is a stack with a few routes, served by a server.
type fixture struct {
	*testing.T
	address string
	stack   *stack.Stack
	// reading receives a value for each /read that has begun, written the error of
	// each /write that has ended.
	reading chan struct{}
	written chan error
	// holding receives a value for each /hold and /events; release ends them.
	holding chan struct{}
	release chan struct{}
}

func newFixture(t *testing.T, l stack.Limits) *fixture {
	t.Helper()
	tokens := stack.NewTokens("first", secret)
	tokens.Add("second", "second-"+secret, stack.Admin)
	f := &fixture{
		T: t, reading: make(chan struct{}, 1000), written: make(chan error, 1000), holding: make(chan struct{}, 1000),
		release: make(chan struct{}), stack: stack.New(stack.Options{Title: "test", Tokens: tokens, Limits: l}),
	}
	route := func(method, path string, p stack.Permission, handle func(http.ResponseWriter, *http.Request) error) {
		f.stack.Handle(stack.Route{Permission: p, Handle: handle, Stream: path == "/events", Operation: huma.Operation{
			Method: method, Path: path, OperationID: path, MaxBodyBytes: 64 << 20,
		}})
	}
	route("GET", "/ping", stack.Read, func(w http.ResponseWriter, _ *http.Request) error {
		return stack.WriteJSON(w, http.StatusOK, "pong")
	})
	route("POST", "/read", stack.Submit, f.read)
	route("GET", "/write", stack.Read, func(w http.ResponseWriter, _ *http.Request) error {
		_, err := w.Write(make([]byte, 1<<30))
		f.written <- err
		return nil
	})
	for _, path := range []string{"/hold", "/events"} {
		route("GET", path, stack.Read, func(w http.ResponseWriter, r *http.Request) error {
			if err := stack.Reserve(r.Context(), 1<<20); err != nil {
				return err
			}
			f.holding <- struct{}{}
			<-f.release
			return nil
		})
	}
	route("POST", "/compute", stack.Submit, func(_ http.ResponseWriter, r *http.Request) error {
		content, err := stack.Body(r, 64<<20)
		if err == nil {
			_, err = io.Copy(io.Discard, content)
		}
		if err == nil {
			f.holding <- struct{}{}
			<-f.release
		}
		return err
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.address = listener.Addr().String()
	server, served := f.stack.Server(nil), make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		close(f.release)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, server.Shutdown(ctx))
		require.NoError(t, <-served)
	})
	return f
}

func (f *fixture) read(w http.ResponseWriter, r *http.Request) error {
	content, err := stack.Body(r, 64<<20)
	if err != nil {
		return err
	}
	f.reading <- struct{}{}
	n, err := io.Copy(io.Discard, content)
	if err != nil {
		return err
	}
	return stack.WriteJSON(w, http.StatusOK, n)
}

// dial opens a connection and sends text.
func (f *fixture) dial(text string) net.Conn {
	f.Helper()
	c, err := (&net.Dialer{}).DialContext(f.Context(), "tcp", f.address)
	require.NoError(f, err)
	f.Cleanup(func() { _ = c.Close() })
	_, _ = io.WriteString(c, text) // the server may have closed it in favour of another
	return c
}

// post returns the header of a request with a body of length bytes.
func post(token string, length int) string {
	return fmt.Sprintf("POST /read HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n",
		token, length)
}

// ask sends a whole request on a connection of its own.
func (f *fixture) ask(method, path, token, body string) (*http.Response, string) {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, "http://"+f.address+path, strings.NewReader(body))
	require.NoError(f, err)
	r.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(r)
	require.NoError(f, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(f, err)
	return response, string(content)
}

// answer reads one answer, and checks that the connection ends after it.
func (f *fixture) answer(c net.Conn) (int, string) {
	f.Helper()
	reader := bufio.NewReader(c)
	response, err := http.ReadResponse(reader, nil)
	require.NoError(f, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(f, err)
	require.True(f, response.Close, "the connection ends with the answer")
	_, err = reader.ReadByte()
	require.Error(f, err)
	return response.StatusCode, string(content)
}

// TestARefusedRequestDoesNotWaitForItsBody declares bodies and sends none.
func TestARefusedRequestDoesNotWaitForItsBody(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stack.Limits{})
	chunked := strings.Replace(post("wrong", 0), "Content-Length: 0", "Transfer-Encoding: chunked", 1)
	for text, want := range map[string]int{
		post("wrong", 100): 401, post("", 1<<30): 401, post(secret, 65<<20): 413, chunked: 401,
		strings.Replace(post(secret, 100), "POST /read", "POST /nothing", 1):                   404,
		strings.Replace(post(secret, 100), "POST /read", "DELETE /read", 1):                    405,
		strings.Replace(post("wrong", 100), "\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n", 1): 401,
	} {
		status, content := f.answer(f.dial(text))
		require.Equal(t, want, status, "%s%s", text, content)
	}
}

// TestHeadersAreSmall sends a header of many short fields, one as large as allowed, and one that is larger by a byte.
func TestHeadersAreSmall(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stack.Limits{})
	const begin = "GET /ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
	of := func(size int) string {
		return begin + "a: " + strings.Repeat("x", size-len(begin)-len("a: \r\n\r\n")) + "\r\n\r\n"
	}
	for text, want := range map[string]int{
		begin + strings.Repeat("a:\r\n", 32<<10/4): http.StatusRequestHeaderFieldsTooLarge,
		of(16 << 10):   http.StatusUnauthorized, // it was read
		of(16<<10 + 1): http.StatusRequestHeaderFieldsTooLarge,
	} {
		status, content := f.answer(f.dial(text))
		require.Equal(t, want, status, content)
	}
}

// TestBrokenBodiesAreTheirClientsFault sends bodies that end early or are not
// chunked as they say.
func TestBrokenBodiesAreTheirClientsFault(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stack.Limits{})
	short := f.dial(post(secret, 100) + "x")
	require.NoError(t, short.(*net.TCPConn).CloseWrite())
	status, content := f.answer(short)
	require.Equal(t, http.StatusBadRequest, status, content)
	require.Contains(t, content, "cut off")
	chunked := strings.Replace(post(secret, 0), "Content-Length: 0", "Transfer-Encoding: chunked", 1)
	for _, body := range []string{"z\r\n", "ffffffffffffffffff\r\n", "1;" + strings.Repeat("x", 10_000) + "\r\n"} {
		status, content := f.answer(f.dial(chunked + body))
		require.Equal(t, http.StatusBadRequest, status, content)
		require.Contains(t, content, "bad_request")
	}
}

// TestBodiesThatDoNotComeAreCut declares bodies that come slowly or never.
func TestBodiesThatDoNotComeAreCut(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stack.Limits{BodySlack: 50 * time.Millisecond})
	status, content := f.answer(f.dial(post(secret, 1000)))
	require.Equal(t, http.StatusRequestTimeout, status, content)
	slow := f.dial(post(secret, 1000))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := slow.Write([]byte("x")); err != nil {
				return
			}
		}
	}()
	status, content = f.answer(slow)
	require.Equal(t, http.StatusRequestTimeout, status, content)
	require.NoError(t, slow.Close())
	<-done
}

// TestReadersThatDoNotReadAreCut requests a gigabyte and reads none of it.
func TestReadersThatDoNotReadAreCut(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stack.Limits{AnswerSlack: 50 * time.Millisecond})
	f.dial("GET /write HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + secret + "\r\n\r\n")
	require.Error(t, <-f.written)
}

// TestIdleAndSlowConnectionsGiveWay opens 400 connections that send nothing and
// 100 that begin a body, and sends requests meanwhile.
func TestIdleAndSlowConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	const places = 64
	f := newFixture(t, stack.Limits{Connections: places, AddressConnections: places})
	for range 400 {
		f.dial("")
	}
	for i := range 100 {
		f.dial([]string{post("", 100), post(secret, 100), "GET /ping HT"}[i%3])
		if i%10 == 0 {
			response, content := f.ask("GET", "/ping", secret, "")
			require.Equal(t, http.StatusOK, response.StatusCode, content)
		}
	}
	// Admitted requests are not closed in favour of others.
	held := f.dial("GET /hold HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer " + secret + "\r\n\r\n")
	<-f.holding
	for range 2 * places {
		f.dial("")
	}
	response, content := f.ask("POST", "/read", secret, "a body")
	require.Equal(t, http.StatusOK, response.StatusCode, content)
	f.release <- struct{}{}
	status, content := f.answer(held)
	require.Equal(t, http.StatusOK, status, content)
}

// TestSlowBodiesOfOneLeaveRoomForOthers lets one client hold its whole share.
func TestSlowBodiesOfOneLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stack.Limits{Memory: 8 << 20, ClientMemory: 4 << 20, MemoryWait: 50 * time.Millisecond})
	for range 4 {
		c := f.dial(post(secret, 32<<20))
		<-f.reading
		go func() { _, _ = c.Write(make([]byte, 1<<20)) }()
	}
	require.Eventually(t, func() bool { return f.heldBytes() >= 2<<20 }, time.Minute, time.Millisecond)
	for range 4 {
		response, content := f.ask("POST", "/read", "second-"+secret, strings.Repeat("x", 1<<20))
		require.Equal(t, http.StatusOK, response.StatusCode, content)
	}
	large := strings.Repeat("x", 5<<20)
	response, content := f.ask("POST", "/read", "second-"+secret, large)
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode, content)
	require.NotEmpty(t, response.Header.Get("Retry-After"))
	require.LessOrEqual(t, f.heldBytes(), int64(8<<20))
}

// heldBytes returns the held bytes that /metrics shows.
func (f *fixture) heldBytes() (n int64) {
	f.Helper()
	_, content := f.ask("GET", "/metrics", secret, "")
	for line := range strings.Lines(content) {
		if text, ok := strings.CutPrefix(line, "futura_http_held_bytes "); ok {
			var v float64
			_, err := fmt.Sscan(text, &v)
			require.NoError(f, err)
			return int64(v)
		}
	}
	require.Fail(f, "no metric", content)
	return 0
}

// TestAllRequestsTogetherAreBounded lets requests hold the whole budget.
func TestAllRequestsTogetherAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stack.Limits{Memory: 3 << 20, ClientMemory: 3 << 20, MemoryWait: 10 * time.Millisecond})
	var asks sync.WaitGroup
	for range 3 {
		asks.Go(func() { f.ask("GET", "/hold", secret, "") })
		<-f.holding
	}
	response, content := f.ask("GET", "/hold", "second-"+secret, "")
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode, content)
	require.Equal(t, "2", response.Header.Get("Retry-After"))
	for range 3 {
		f.release <- struct{}{}
	}
	asks.Wait()
	asks.Go(func() { f.ask("GET", "/hold", "second-"+secret, "") })
	<-f.holding
	f.release <- struct{}{}
	asks.Wait()
}

// TestStreamsAreCounted opens more event streams than the limit allows.
func TestStreamsAreCounted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stack.Limits{Streams: 3, ClientStreams: 2})
	var asks sync.WaitGroup
	open := func(token string) {
		asks.Go(func() { f.ask("GET", "/events", token, "") })
		<-f.holding
	}
	open(secret)
	open(secret)
	response, content := f.ask("GET", "/events", secret, "")
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode, content)
	open("second-" + secret)
	response, content = f.ask("GET", "/events", "second-"+secret, "")
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode, content)
	f.release <- struct{}{}
	f.release <- struct{}{}
	f.release <- struct{}{}
	asks.Wait()
	open(secret)
	f.release <- struct{}{}
	asks.Wait()
}

// TestLargeRequestsTakeTurns lets a client compute on large bodies: it has one
// turn, and none for a body that does not come.
func TestLargeRequestsTakeTurns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stack.Limits{Turns: 2, ClientTurns: 1, BodySlack: time.Minute})
	const large = 1 << 20
	trickled := f.dial(post(secret, 2*large) + strings.Repeat("x", large))
	<-f.reading
	var asks sync.WaitGroup
	for _, token := range []string{secret, secret, "second-" + secret} {
		asks.Go(func() {
			response, content := f.ask("POST", "/compute", token, strings.Repeat("x", large))
			assert.Equal(t, http.StatusOK, response.StatusCode, content)
		})
	}
	<-f.holding
	<-f.holding
	response, content := f.ask("POST", "/read", secret, "small")
	require.Equal(t, http.StatusOK, response.StatusCode, content)
	require.Empty(t, f.holding, "the client's other request waits")
	f.release <- struct{}{}
	f.release <- struct{}{}
	<-f.holding
	f.release <- struct{}{}
	asks.Wait()
	require.NoError(t, trickled.Close())
}

func TestARouteMustDeclareItsPermission(t *testing.T) {
	t.Parallel()
	s := stack.New(stack.Options{})
	op := huma.Operation{Method: "GET", Path: "/x", OperationID: "x"}
	require.PanicsWithValue(t, "stack: GET /x declares no permission", func() { s.Handle(stack.Route{Operation: op}) })
	require.Panics(t, func() {
		stack.Register(s, 0, op, func(context.Context, *struct{}) (*struct{}, error) { return &struct{}{}, nil })
	})
}

func TestTheFirstPageHelps(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stack.Limits{})
	response, content := f.ask("GET", "/", "", "")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, content, `"docs":"/docs"`)
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+f.address+"/", nil)
	require.NoError(t, err)
	r.Header.Set("Accept", "text/html,*/*")
	page, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	require.NoError(t, err)
	defer page.Body.Close()
	require.Contains(t, page.Header.Get("Content-Type"), "text/html")
}
