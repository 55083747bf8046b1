package rest_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// work runs a worker until the test ends.
func work(t *testing.T, client *futures.Client) *workers.Worker {
	t.Helper()
	w, err := workers.New(client, workers.Options{Name: "tester", Slots: 2})
	require.NoError(t, err)
	require.NoError(t, w.Register("upper", func(_ context.Context, in []byte) ([]byte, error) {
		return bytes.ToUpper(in), nil
	}))
	require.NoError(t, w.Register("fail", func(context.Context, []byte) ([]byte, error) {
		return nil, errors.New("no luck")
	}))
	storetest.Background(t, w.Run)
	<-w.Ready()
	return w
}

type executed struct {
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
	Message   string `json:"message"`
	Results   []struct {
		Result struct {
			Stdout, Stderr string
			ExitCode       int `json:"exit_code"`
		}
		Peers     []string
		Frequency float64
	}
	Cluster struct{ Peers []string }
}

const executePath = "/api/v1/functions/execute"

func TestASingleRunAnswersInTheShapeOfB7s(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	f := newFixture(t, rest.Options{Client: client})
	w := work(t, client)
	var ran executed
	body := `{"function_id":"go:upper","method":"","parameters":[{"value":"ignored"}],"topic":"",
		"config":{"stdin":"hello","number_of_nodes":1}}`
	f.send("POST", executePath, body, "Idempotency-Key", "once").Into(200, &ran)
	require.Equal(t, "200", ran.Code)
	require.Equal(t, "HELLO", ran.Results[0].Result.Stdout)
	require.Equal(t, []string{string(w.ID())}, ran.Results[0].Peers)
	require.Equal(t, ran.Results[0].Peers, ran.Cluster.Peers)
	var again executed
	f.send("POST", executePath, body, "Idempotency-Key", "once").Into(200, &again)
	require.Equal(t, ran, again)
	f.send("POST", "/api/v1/functions/requests/result", `{"id":"`+ran.RequestID+`"}`).Into(200, &again)
	require.Equal(t, ran, again)
	f.send("POST", executePath, `{"function_id":"go:fail"}`).Into(200, &ran)
	require.Equal(t, "500", ran.Code)
	require.Equal(t, "error: no luck", ran.Message)
	require.Equal(t, "no luck", ran.Results[0].Result.Stderr)
	require.Equal(t, -1, ran.Results[0].Result.ExitCode)
}

func TestSingleRunsThatCantBe(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{Client: newClient(t)})
	f.send("POST", executePath, `{"function_id":"none","method":"echo.wasm"}`).Problem(404, "no_such_function", "install")
	f.send("POST", executePath, `{"function_id":"my func","method":"x"}`).Problem(404, "no_such_function", "install")
	f.send("POST", executePath, `{"method":"m"}`).Problem(400, "bad_batch", "function_id")
	f.send("POST", executePath, `{"function_id":"f","parameters":["a"]}`).Problem(400, "bad_request", "parameters")
	for _, config := range []string{`"number_of_nodes":101`, `"concurrency":2`, `"rate_per_host":1`} {
		field := strings.Trim(strings.Split(config, ":")[0], `"`)
		f.send("POST", executePath, `{"function_id":"f","config":{`+config+`}}`).
			Problem(400, "not_supported", "config."+field)
	}
	f.send("POST", executePath, `{"function_id":"f","config":{"threshold":1.5}}`).Problem(400, "bad_batch", "threshold")
	f.send("POST", executePath, `{"function_id":"f","config":{"result_aggregation":{"enable":true,"type":"mean"}}}`).
		Problem(400, "not_supported", "config.result_aggregation.type")
	f.send("POST", "/api/v1/functions/requests/result", `{"id":"x"}`).Problem(400, "bad_id", "")
	f.send("POST", "/api/v1/functions/requests/result", `{"id":"01995b4e-6f3a-7c1e-9d2b-012345678901"}`).
		Problem(404, "not_found", "")
	alone := newFixture(t, rest.Options{})
	for _, path := range []string{executePath, "/api/v1/functions/install", "/api/v1/functions/requests/result"} {
		alone.send("POST", path, `{}`).Problem(501, "no_cluster", "cluster")
	}
}

// TestARunThatIsNotOverIsAskedForLater stops the server while a run waits for a
// worker.
func TestARunThatIsNotOverIsAskedForLater(t *testing.T) {
	t.Parallel()
	client, stopping := newClient(t), make(chan struct{})
	f := newFixture(t, rest.Options{Client: client, Stack: stack.Options{Stopping: stopping}})
	close(stopping)
	var ran executed
	f.send("POST", executePath, `{"function_id":"go:upper","config":{"stdin":"a"}}`).Into(200, &ran)
	require.Equal(t, "202", ran.Code)
	require.Contains(t, ran.Message, "requests/result")
	work(t, client)
	id, err := client.Future(parse(t, ran.RequestID)).Await(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, id)
	f.send("POST", "/api/v1/functions/requests/result", `{"id":"`+ran.RequestID+`"}`).Into(200, &ran)
	require.Equal(t, "A", ran.Results[0].Result.Stdout)
}

func TestTheFuturesAPIIsServedToo(t *testing.T) {
	t.Parallel()
	safe := stack.Options{Tokens: stack.NewTokens("admin", adminToken)}
	f := newFixture(t, rest.Options{Client: newClient(t), Stack: safe})
	bearer := []string{"Authorization", "Bearer " + adminToken, "Content-Type", "application/json"}
	var future struct{ ID, State string }
	f.send("POST", "/api/v1/futures", `{"function":"go:upper"}`, bearer...).Into(201, &future)
	require.Equal(t, "ready", future.State)
	f.send("POST", "/api/v1/futures/"+future.ID+":cancel", "", bearer...).Into(200, &struct{}{})
	require.Contains(t, string(f.send("GET", "/metrics", "", bearer...).Body), "futura_futures{")
	require.Contains(t, string(f.send("GET", "/metrics", "", bearer...).Body), "futura_http_requests_running")
}
