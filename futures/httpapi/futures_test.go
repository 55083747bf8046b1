package httpapi_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

const path = "/api/v1/futures"

// never is an id that no future has.
const never = "01995b4e-6f3a-7c1e-9d2b-0123456789ab"

func TestOtherMediaTypesAreNamed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.send("POST", path, "a=b", "Content-Type", "application/x-www-form-urlencoded").
		Problem(415, "bad_media_type", `"application/x-www-form-urlencoded" is not understood: send JSON`)
}

func TestSubmitAndWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.work()
	var got httpapi.Future
	a := f.send("POST", path+"?wait=1m", `{"function":"go:upper","args":"hello","priority":7,"timeout_ms":60000}`)
	a.Into(http.StatusCreated, &got)
	require.Equal(t, path+"/"+got.ID.String(), a.Header.Get("Location"))
	require.EqualValues(t, "realized", got.State)
	require.Equal(t, &httpapi.Bytes{Encoding: "text", Data: "HELLO"}, got.Result.Value)
	require.Equal(t, 7, got.Priority)
	require.EqualValues(t, 60000, got.TimeoutMS)
	require.EqualValues(t, 5, got.ArgsBytes)
	require.Equal(t, 3, got.MaxRetries)
	require.WithinDuration(t, time.Now(), got.SubmittedAt, time.Minute)

	var again httpapi.Future
	f.send("GET", path+"/"+got.ID.String()+"?wait=1s", "").Into(http.StatusOK, &again)
	require.Equal(t, got, again)
	raw := f.send("GET", path+"/"+got.ID.String()+"/result", "")
	require.Equal(t, "HELLO", string(raw.Body))
	require.Equal(t, "application/octet-stream", raw.Header.Get("Content-Type"))
	require.Equal(t, "nosniff", raw.Header.Get("X-Content-Type-Options"))
	require.Equal(t, "0", raw.Header.Get("Futura-Exit-Code"))
}

func TestBytesThatAreNoText(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.work()
	args := []byte{0xff, 0x00, 'a'}
	var got httpapi.Future
	f.send("POST", path+"?wait=1m", fmt.Sprintf(`{"function":"go:echo","encoding":"base64","args":%q}`,
		base64.StdEncoding.EncodeToString(args))).Into(http.StatusCreated, &got)
	require.Equal(t, "base64", got.Result.Value.Encoding)
	value, err := base64.StdEncoding.DecodeString(got.Result.Value.Data)
	require.NoError(t, err)
	require.Equal(t, args, value)
}

// TestResultsInJSONThatAreNoText shows one whose JSON is not in UTF-8 as bytes alone.
func TestResultsInJSONThatAreNoText(t *testing.T) {
	t.Parallel()
	r := httpapi.Result{Codec: "json"}
	r.SetValue([]byte("\"\xff\""))
	require.Nil(t, r.Output)
	require.Equal(t, &httpapi.Bytes{Encoding: "base64", Data: "Iv8i"}, r.Value)
}

// TestPartsOfArguments has what a range does not have refused as everything else is.
func TestPartsOfArguments(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	var got httpapi.Future
	f.send("POST", path, `{"function":"go:none","args":"hello"}`).Into(http.StatusCreated, &got)
	at := path + "/" + got.ID.String() + "/arguments"
	require.Equal(t, "ell", string(f.send("GET", at, "", "Range", "bytes=1-3").Body))
	refused := f.send("GET", at, "", "Range", "bytes=5-")
	refused.Problem(http.StatusRequestedRangeNotSatisfiable, "bad_range", "5 bytes")
	require.Equal(t, "bytes */5", refused.Header.Get("Content-Range"))
	require.Equal(t, "no-store", refused.Header.Get("Cache-Control"))
}

func TestLargeResultIsFetchedApart(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.work()
	var got httpapi.Future
	f.send("POST", path+"?wait=1m", `{"function":"go:large"}`).Into(http.StatusCreated, &got)
	require.EqualValues(t, 100_000, got.Result.Size)
	require.Nil(t, got.Result.Value)
	require.Len(t, f.send("GET", path+"/"+got.ID.String()+"/result", "").Body, 100_000)
}

func TestPartsOfAResult(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.work()
	var got httpapi.Future
	f.send("POST", path+"?wait=1m", `{"function":"go:large"}`).Into(http.StatusCreated, &got)
	at := path + "/" + got.ID.String() + "/result"
	whole := f.send("GET", at, "")
	tag := whole.Header.Get("ETag")
	require.NotEmpty(t, tag)
	require.Equal(t, "100000", whole.Header.Get("Content-Length"))
	part := f.send("GET", at, "", "Range", "bytes=99000-", "If-Range", tag, "Accept-Encoding", "gzip")
	require.Equal(t, http.StatusPartialContent, part.Status)
	require.Equal(t, "bytes 99000-99999/100000", part.Header.Get("Content-Range"))
	require.Len(t, part.Body, 1000)
	require.Equal(t, http.StatusNotModified, f.send("GET", at, "", "If-None-Match", tag).Status)
	for _, bad := range []string{"bytes=100000-", "bytes=-0", "bytes=-00, -0", "bytes=5-2", "bytes=x", "lines=1-2"} {
		refused := f.send("GET", at, "", "Range", bad)
		refused.Problem(http.StatusRequestedRangeNotSatisfiable, "bad_range", "the result has 100000 bytes")
		require.Equal(t, "bytes */100000", refused.Header.Get("Content-Range"), bad)
	}
	require.Equal(t, http.StatusPartialContent, f.send("GET", at, "", "Range", "bytes=-0,0-1").Status)
	zipped := f.send("GET", at, "", "Accept-Encoding", "gzip")
	require.Equal(t, "gzip", zipped.Header.Get("Content-Encoding"))
	require.Equal(t, "W/"+tag, zipped.Header.Get("ETag"))
	require.Empty(t, zipped.Header.Get("Accept-Ranges"))
	// A part of the compressed answer would not fit one of the plain bytes.
	mixed := f.send("GET", at, "", "Range", "bytes=99000-", "If-Range", zipped.Header.Get("ETag"))
	require.Len(t, mixed.Body, 100_000)
	f.send("GET", at+"?nonsense=1", "").Problem(http.StatusBadRequest, "bad_request", "nonsense")
}

func TestFailureIsShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.work()
	var got httpapi.Future
	f.send("POST", path+"?wait=1m", `{"function":"go:fail"}`).Into(http.StatusCreated, &got)
	require.EqualValues(t, "failed", got.State)
	require.Nil(t, got.Result)
	require.Equal(t, layout.KindError, got.Failure.Kind)
	require.Contains(t, got.Failure.Message, "no luck")
	require.True(t, got.Failure.Final)
	f.send("GET", path+"/"+got.ID.String()+"/result", "").Problem(http.StatusConflict, "future_failed", "no luck")
	f.send("POST", path+"/"+got.ID.String()+":retry", "").Into(http.StatusOK, &got)
	f.send("GET", path+"/"+got.ID.String()+"?wait=1m", "").Into(http.StatusOK, &got)
	require.EqualValues(t, "failed", got.State)
}

func TestKeysMakeSubmitsRepeatable(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	var first, second httpapi.Future
	f.send("POST", path, `{"function":"go:none","args":"1","key":"k"}`).Into(http.StatusCreated, &first)
	f.send("POST", path, `{"function":"go:none","args":"1"}`, "Idempotency-Key", "k").Into(http.StatusOK, &second)
	require.Equal(t, first.ID, second.ID)
	require.Empty(t, second.Unlike)
	f.send("POST", path, `{"function":"go:none","args":"1","key":"k","priority":9,"timeout_ms":5000}`).
		Into(http.StatusOK, &second)
	require.Equal(t, "priority, timeout", second.Unlike)
	require.Equal(t, first.Priority, second.Priority)
	f.send("POST", path, `{"function":"go:none","args":"2","key":"k"}`).Problem(http.StatusConflict, "id_in_use", "in use")
	f.send("POST", path, `{"function":"go:none","key":"k"}`, "Idempotency-Key", "l").
		Problem(http.StatusBadRequest, "bad_request", "differ")
	f.send("POST", path, `{"function":"go:none","id":"`+never+`"}`).Into(http.StatusCreated, &first)
	require.Equal(t, never, first.ID.String())
}

func TestSubmitManyAndList(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	var b strings.Builder
	for i := range 250 {
		fmt.Fprintf(&b, `,{"function":"go:f%d","key":"%d","delay_ms":%d}`, i%2, i, i%5*100_000)
	}
	body := `{"futures":[` + b.String()[1:] + `]}`
	var made struct{ Futures []httpapi.Submitted }
	f.send("POST", path+":submit", body).Into(http.StatusCreated, &made)
	require.Len(t, made.Futures, 250)
	f.send("POST", path+":submit", body).Into(http.StatusCreated, &made)
	for _, s := range made.Futures {
		require.True(t, s.Existed)
		require.Empty(t, s.Unlike)
	}
	count := func(query string) int {
		ids := map[futures.ID]bool{}
		var page struct {
			Futures []httpapi.Future
			Cursor  string
		}
		for {
			cursor := page.Cursor
			page.Cursor = ""
			f.send("GET", path+"?limit=30&cursor="+cursor+query, "").Into(http.StatusOK, &page)
			for i := range page.Futures {
				ids[page.Futures[i].ID] = true
			}
			if page.Cursor == "" {
				return len(ids)
			}
		}
	}
	require.Equal(t, 250, count(""))
	require.Equal(t, 125, count("&function=go:f1"))
	require.Equal(t, 50, count("&state=ready"))
	require.Equal(t, 200, count("&state=delayed&queue=default"))
	for _, s := range layout.States() {
		if s != layout.Ready && s != layout.Delayed {
			require.Zero(t, count("&state="+s.String()))
		}
	}
	require.Zero(t, count("&queue=other"))
	var cluster struct{ Counts []httpapi.Count }
	f.send("GET", "/api/v1/cluster", "").Into(http.StatusOK, &cluster)
	require.Equal(t, []httpapi.Count{
		{Queue: "default", State: "delayed", Futures: 200}, {Queue: "default", State: "ready", Futures: 50},
	}, cluster.Counts)
}

func TestCancelDeleteExplain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	var got httpapi.Future
	f.send("POST", path, `{"function":"go:none"}`).Into(http.StatusCreated, &got)
	at := path + "/" + got.ID.String()
	var why struct{ State, Reason, Text string }
	f.send("GET", at+"/explanation", "").Into(http.StatusOK, &why)
	require.Equal(t, "no_worker", why.Reason)
	f.send("DELETE", at, "").Problem(http.StatusConflict, "wrong_state", "cancel it first")
	f.send("GET", at+"/result", "").Problem(http.StatusConflict, "not_over", "ready")
	var outcome struct{ Outcome, State string }
	f.send("POST", at+":cancel", `{"reason":"not wanted"}`).Into(http.StatusOK, &outcome)
	require.Equal(t, "cancelled", outcome.Outcome)
	f.send("POST", at+":cancel", "").Into(http.StatusOK, &outcome)
	require.Equal(t, "over", outcome.Outcome)
	f.send("GET", at, "").Into(http.StatusOK, &got)
	require.Equal(t, "not wanted", got.Failure.Message)
	require.Equal(t, http.StatusNoContent, f.send("DELETE", at, "").Status)
	for _, gone := range []string{at, at + "/result", at + "/explanation"} {
		f.send("GET", gone, "").Problem(http.StatusNotFound, "not_found", got.ID.String())
	}
}

func TestRunningFutureIsAskedToStop(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.work()
	var got httpapi.Future
	f.send("POST", path+"?wait=1ns", `{"function":"go:block"}`).Into(http.StatusCreated, &got)
	at := path + "/" + got.ID.String()
	require.Eventually(t, func() bool {
		f.send("GET", at, "").Into(http.StatusOK, &got)
		return got.State == "claimed"
	}, time.Minute, time.Millisecond)
	var outcome struct{ Outcome string }
	f.send("POST", at+":cancel", "").Into(http.StatusOK, &outcome)
	require.Equal(t, "requested", outcome.Outcome)
	f.send("GET", at+"?wait=1m", "").Into(http.StatusOK, &got)
	require.EqualValues(t, "failed", got.State)
	require.Equal(t, layout.KindCancelled, got.Failure.Kind)
}

func TestStoppingEndsWaits(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	f := newFixture(t, httpapi.Options{Stack: stack.Options{Stopping: stopping}})
	var got httpapi.Future
	f.send("POST", path, `{"function":"go:none"}`).Into(http.StatusCreated, &got)
	done := make(chan *stacktest.Answer, 1)
	go func() { done <- f.send("GET", path+"/"+got.ID.String()+"?wait=1m", "") }()
	close(stopping)
	(<-done).Into(http.StatusOK, &got)
	require.EqualValues(t, "ready", got.State)
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	for _, c := range []struct {
		method, path, body string
		status             int
		code, says         string
	}{
		{"POST", path, `{"function":"f"}`, 400, "bad_name", "go:"},
		{"POST", path, `{"function":"wasm:none"}`, 404, "not_found", "store one first"},
		{"POST", path, `{}`, 422, "bad_request", "function"},
		{"POST", path, `{"function":"go:f","max_retires":1}`, 422, "bad_request", "max_retires"},
		{"POST", path, `{"function":"go:f","requirements":{"gpu":1}}`, 422, "bad_request", "requirements.gpu"},
		{"POST", path + "?wiat=1m", `{"function":"go:f"}`, 422, "bad_request", "wiat"},
		{"POST", path, `{"function":"go:f","priority":256}`, 422, "bad_request", "255"},
		{"POST", path, `{"function":"go:f","encoding":"base64","args":"%"}`, 400, "bad_request", "base64"},
		{"POST", path, `{"function":"go:f","id":"1"}`, 422, "bad_request", "uuid"},
		{"POST", path, `{"function":"go:f","timeout_ms":9223372036854775807}`, 400, "bad_request", "timeout_ms"},
		{"POST", path, `{"function":"go:f","queue":"\u0000"}`, 400, "bad_name", "queue"},
		{"POST", path, `{"function":"go:f"`, 400, "bad_request", "JSON"},
		{"POST", path, ``, 400, "bad_request", "body"},
		{"POST", path + "?wait=long", `{"function":"go:f"}`, 400, "bad_request", "30s"},
		{"POST", path + "?wait=-1s", `{"function":"go:f"}`, 400, "bad_request", "30s"},
		{"POST", path + ":submit", `{"futures":[]}`, 422, "bad_request", "futures"},
		{"POST", path + ":submit", `{"futures":[{"function":"go:f"},{"function":"f"}]}`, 400, "bad_name", "f"},
		{"GET", path + "?limit=0", "", 422, "bad_request", "limit"},
		{"GET", path + "?state=gone", "", 422, "bad_request", "state"},
		{"GET", path + "?stat=failed", "", 422, "bad_request", "stat"},
		{"GET", path + "?queue=a+b", "", 400, "bad_name", "queue"},
		{"GET", path + "?function=f", "", 400, "bad_name", "go:"},
		{"GET", path + "?function=wasm:none", "", 404, "not_found", "wasm:none"},
		{"GET", path + "?cursor=AAAA", "", 400, "bad_cursor", "cursor"},
		{"GET", path + "?cursor=**", "", 400, "bad_request", "cursor"},
		{"POST", path, `{"function":"go:f","requirements":{"labels":{"a b":"c"}}}`, 400, "bad_future", "label"},
		{"POST", path, `{"function":"go:f","label":"a\u0007b"}`, 400, "bad_future", "printable"},
		{"POST", promises, `{"label":"a\nb"}`, 400, "bad_future", "printable"},
		{"POST", path + ":put?label=a%0Ab", `x`, 400, "bad_future", "printable"},
		{"POST", path, `{"function":"go:f","grow_memory":{"factor":2,"max_bytes":9}}`, 400, "bad_future", "begin with"},
		{"POST", path, `{"function":"go:f","requirements":{"ram_bytes":5},"grow_memory":{"factor":1,"max_bytes":9}}`, 400,
			"bad_future", "a factor above 1"},
		{"POST", path, `{"function":"go:nobody","require_fit":true}`, 409, "unfit_worker", "There is no worker"},
		{"POST", path + ":submit", `{"futures":[{"function":"go:f"},{"function":"go:f","require_fit":true}]}`, 409,
			"unfit_worker", "There is no worker"},
		{"GET", path + "/1", "", 400, "bad_id", "not a future id"},
		{"GET", path + "/" + never, "", 404, "not_found", never},
		{"GET", path + "/" + never + "?wait=soon", "", 400, "bad_request", "30s"},
		{"POST", path + "/" + never + ":cancel", "", 404, "not_found", never},
		{"POST", path + "/" + never + ":retry", "", 404, "not_found", never},
		{"POST", path + "/" + never + ":explode", "", 404, "no_such_path", "openapi.json"},
		{"DELETE", path + "/" + never, "", 404, "not_found", never},
		{"GET", "/nothing", "", 404, "no_such_path", "openapi.json"},
		{"PUT", path, "", 405, "method_not_allowed", "GET or POST"},
		{"GET", path + "/" + never + ":cancel", "", 405, "method_not_allowed", "POST"},
	} {
		f.send(c.method, c.path, c.body).Problem(c.status, c.code, c.says)
	}
	rows, _, err := inspect.List(t.Context(), f.client.Cluster(), inspect.Filter{}, nil, 0)
	require.NoError(t, err)
	require.Empty(t, rows, "what is refused leaves nothing")
}

func TestTypedFunctionTakesJSON(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	f.work()
	const input = `{"item":"tea \u00e9","count":3,"cents":9007199254740993,"unknown":[null]}`
	var got httpapi.Future
	f.send("POST", path+"?wait=1m", `{"function":"go:bill","input":`+input+`}`).Into(http.StatusCreated, &got)
	require.EqualValues(t, "realized", got.State)
	require.Equal(t, layout.CodecJSON, got.Result.Codec)
	require.JSONEq(t, `{"cents":27021597764222979,"for":"tea é"}`, string(got.Result.Output))
	require.Equal(t, string(got.Result.Output), got.Result.Value.Data)
	raw := f.send("GET", path+"/"+got.ID.String()+"/result", "")
	require.Equal(t, "application/json", raw.Header.Get("Content-Type"))
	require.Equal(t, string(got.Result.Output), string(raw.Body))
	out, err := bill.Of(f.client.Future(got.ID)).Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, total{27021597764222979, "tea é"}, out)

	// The same through args; a list shows neither.
	f.send("POST", path+"?wait=1m", `{"function":"go:bill","codec":"json","args":"{\"count\":2,\"cents\":21}"}`).
		Into(http.StatusCreated, &got)
	require.JSONEq(t, `{"cents":42,"for":""}`, string(got.Result.Output))
	require.NotContains(t, string(f.send("GET", path, "").Body), `"output"`)

	// Futures of Go clients are not affected.
	typed, err := bill.Submit(t.Context(), f.client, order{Count: 2, Cents: 4})
	require.NoError(t, err)
	out, err = typed.Await(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 8, out.Cents)

	f.send("POST", path+"?wait=1m", `{"function":"go:bill","input":"text"}`).Into(http.StatusCreated, &got)
	require.EqualValues(t, "failed", got.State)
	require.Equal(t, 1, got.Attempt, "no further attempt could decode them")
	require.Contains(t, got.Failure.Message, "arguments of go:bill: 6 bytes of json do not decode as "+
		"httpapi_test.order: json: cannot unmarshal string")
	for body, want := range map[string]string{
		`{"function":"go:bill","input":{},"args":"x"}`:             "excludes args",
		`{"function":"go:bill","input":{},"codec":"raw"}`:          "excludes args",
		`{"function":"go:bill","input":{},"encoding":"base64"}`:    "excludes args",
		`{"function":"go:bill","codec":"json","args":"{"}`:         "the arguments must be JSON",
		`{"function":"go:bill","codec":"json"}`:                    "the arguments must be JSON",
		`{"function":"go:bill","codec":"json","args":"1 2"}`:       "the arguments must be JSON",
		`{"function":"go:bill","input":{},"codec":"x"}`:            "codec",
		`{"function":"go:bill","input":{},"input":{},"codec":"x"}`: "is there twice",
	} {
		a := f.send("POST", path, body)
		require.GreaterOrEqual(t, a.Status, 400, body)
		require.Less(t, a.Status, 500, body)
		require.Contains(t, string(a.Body), want, body)
	}
}

// TestWholeNumbersWithAPointAreIntegers submits what encoders of languages write that have one type of numbers.
func TestWholeNumbersWithAPointAreIntegers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	var made httpapi.Future
	f.send("POST", path, `{"function":"go:nobody","priority":7.0,"delay_ms":3.6e6,"input":{"n":1.0}}`).
		Into(http.StatusCreated, &made)
	require.EqualValues(t, 7, made.Priority)
	require.NotNil(t, made.DueAt)
	require.Equal(t, `{"n":1.0}`, string(f.send("GET", path+"/"+made.ID.String()+"/arguments", "").Body))
	f.send("POST", path, `{"function":"go:nobody","priority":1.5}`).Problem(422, "bad_request", "expected integer")
}

// TestManyFuturesNameTheOneThatIsWrong has the second of three be invalid in its own way.
func TestManyFuturesNameTheOneThatIsWrong(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	for _, wrong := range []string{`"args":"?","encoding":"base64"`, `"near":"00000000-0000-0000-0000-00000000000"`,
		`"input":1,"args":"x"`, `"id":"00000000-0000-0000-0000-000000000000"`} {
		body := `{"futures":[{"function":"go:f"},{"function":"go:f",` + wrong + `},{"function":"go:f"}]}`
		require.Contains(t, string(f.send("POST", path+":submit", body).Body), "futures[1]", wrong)
	}
}
