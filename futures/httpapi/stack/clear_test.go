package stack_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

// taken is what a route of TestRequestsAreTakenAsAWholeOrNotAtAll takes.
type taken struct {
	Tag  string   `query:"tag"`
	Tags []string `query:"tags,explode"`
	Body *struct {
		_     struct{} `additionalProperties:"false"`
		Args  string   `json:"args,omitempty"`
		Input any      `json:"input,omitempty"`
		Value any      `json:"value,omitempty"`
	} `required:"false"`
}

// ownTaken is a body that is a function's own.
type ownTaken struct {
	Body *stack.OwnJSON `required:"false"`
}

// bytesTaken is a body of bytes.
type bytesTaken struct {
	RawBody []byte `contentType:"application/wasm"`
}

type nothing struct{}

// TestRequestsAreTakenAsAWholeOrNotAtAll sends what a server would otherwise pass over, or change.
func TestRequestsAreTakenAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	made := stack.New(stack.Options{Title: "test"})
	stack.Register(made, stack.Submit, huma.Operation{Method: "POST", Path: "/taken", OperationID: "taken"},
		func(context.Context, *taken) (*nothing, error) { return nil, nil })
	stack.Register(made, stack.Submit, huma.Operation{Method: "POST", Path: "/bytes", OperationID: "bytes"},
		func(context.Context, *bytesTaken) (*nothing, error) { return nil, nil })
	own := huma.Operation{Method: "POST", Path: "/own", OperationID: "own", SkipValidateBody: true}
	stack.Register(made, stack.Submit, own,
		func(_ context.Context, in *ownTaken) (*nothing, error) {
			_, err := in.Body.Check()
			return nil, err
		})
	server := httptest.NewServer(made.Handler())
	t.Cleanup(server.Close)
	many, deep := "["+strings.Repeat("1,", 60_000)+"1]", strings.Repeat("[", 40)+strings.Repeat("]", 40)
	for _, c := range []struct {
		path, body string
		headers    []string
		status     int
		says       string
	}{
		{"/taken?tag=a&tags=b&tags=c", "", nil, 204, ""},
		{"/taken?tag=a&tag=b", "", nil, 400, `"tag" is there 2 times`},
		{"/taken?tag=a;b", "", nil, 400, "the query can't be read"},
		{"/taken?tag=%zz", "", nil, 400, "the query can't be read"},
		{"/taken", "", []string{"Idempotency-Key", "k"}, 204, ""},
		{"/taken", "", []string{"Idempotency-Key", ""}, 400, "Idempotency-Key is empty"},
		{"/taken", `{}`, []string{"Content-Encoding", "identity"}, 204, ""},
		{"/taken", `{}`, []string{"Content-Encoding", "gzip"}, 415, "use none"},
		{"/bytes", "x", []string{"Content-Encoding", "br"}, 415, "use none"},
		{"/bytes", "x", []string{"Content-Type", "application/wasm"}, 204, ""},
		{"/bytes", "x", []string{"Content-Type", "text/plain"}, 415, "send application/wasm"},
		{"/taken", `{"args":"é\ud83d\ude00\\ud800\n"}`, nil, 204, ""},
		{"/taken", "{\"args\":\"\xff\"}", nil, 400, "not UTF-8"},
		{"/taken", "{\"input\":\"\xff\"}", nil, 400, "not UTF-8"},
		{"/taken", `{"args":"\ud800"}`, nil, 400, `\ud800 is half of a surrogate pair`},
		{"/taken", `{"args":"\ude00\ud83d"}`, nil, 400, `\ude00 is half of a surrogate pair`},
		{"/taken", `{"args":"\ud83d\u0041"}`, nil, 400, `\ud83d is half of a surrogate pair`},
		{"/taken", `{"Args":"a"}`, nil, 422, "unexpected property"},
		{"/taken", `{"args":"a","args":"b"}`, nil, 400, `the field "args" is there twice`},
		{"/taken", `{"input":{"a":1,"a":2}}`, nil, 204, ""},
		{"/taken", `{"input":` + many + `,"value":` + deep + `}`, nil, 204, ""},
		{"/taken", `{"args":` + deep + `}`, nil, 400, "more than 32 deep"},
		{"/own", "", nil, 204, ""},
		{"/own", many, nil, 204, ""},
		{"/own", deep, nil, 204, ""},
		{"/own", `{"a":1e400,"a":"b"}`, nil, 204, ""},
		{"/own", "null", nil, 204, ""},
		{"/own", `{"a":`, nil, 400, "unexpected end of JSON input"},
		{"/own", `{} {}`, nil, 400, "invalid character"},
		{"/own", "\"\xff\"", nil, 400, "not UTF-8"},
	} {
		got := stacktest.Send(t, "POST", server.URL+c.path, c.body, c.headers...)
		if c.status == http.StatusNoContent {
			require.Equal(t, c.status, got.Status, "%s %s: %s", c.path, c.body, got.Body)
			continue
		}
		code := map[int]string{415: "bad_media_type"}[c.status]
		if code == "" {
			code = "bad_request"
		}
		got.Problem(c.status, code, c.says)
	}
}
