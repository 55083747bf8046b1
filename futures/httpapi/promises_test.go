package httpapi_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

const promises = "/api/v1/promises"

// form is the header of a form.
var form = []string{"Content-Type", "application/x-www-form-urlencoded"}

func (f *fixture) makePromise(body string) (made httpapi.MadePromise) {
	f.Helper()
	f.send("POST", promises, body).Into(http.StatusCreated, &made)
	require.NotEmpty(f, made.Token)
	require.Equal(f, promises+"/"+made.Token, made.Path)
	return made
}

// stranger sends a request without a token of the server.
func (f *fixture) stranger(method, path, body string, headers ...string) *stacktest.Answer {
	f.Helper()
	return stacktest.Send(f.T, method, f.url+path, body, headers...)
}

func (f *fixture) valueOf(id futures.ID) string {
	f.Helper()
	r, err := f.client.Future(id).Await(f.Context())
	require.NoError(f, err)
	require.Equal(f, futures.CodecJSON, r.Codec)
	return string(r.Value)
}

func TestPromiseByHoldersOfRights(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{Token: "x"})
	made := f.makePromise(`{"label": "order 7", "tags": ["approval"], "key": "k", "expires_ms": 60000}`)
	var again httpapi.MadePromise
	f.send("POST", promises, `{"label": "order 7", "tags": ["approval"], "key": "k"}`).Into(http.StatusOK, &again)
	require.Equal(t, made.ID, again.ID)
	require.True(t, again.Existed)
	require.Empty(t, again.Token)
	at := path + "/" + made.ID.String()
	var explained httpapi.Explanation
	f.send("GET", at+"/explanation", "").Into(http.StatusOK, &explained)
	require.EqualValues(t, "unresolved", explained.Reason)
	var renewed httpapi.MadePromise
	f.send("POST", at+":token", "").Into(http.StatusOK, &renewed)
	f.stranger("POST", made.Path, "1").Problem(404, "bad_promise_token", "opens no promise")
	var done httpapi.Completed
	f.send("POST", at+":resolve", `{"value": {"approved": true}}`).Into(http.StatusOK, &done)
	require.Equal(t, httpapi.Completed{ID: made.ID, State: "realized"}, done)
	f.send("POST", at+":resolve", `{"value": {"approved":true}}`).Into(http.StatusOK, &done)
	require.True(t, done.Already)
	f.send("POST", at+":resolve", `{"value": 1}`).Problem(409, "promise_conflict", "another value")
	f.send("POST", at+":reject", `{"message": "no"}`).Problem(409, "promise_conflict", "a value")
	f.send("POST", at+":token", "").Problem(409, "wrong_state", "realized")
	require.Equal(t, `{"approved":true}`, f.valueOf(made.ID))
	rejected := f.makePromise("")
	f.send("POST", path+"/"+rejected.ID.String()+":reject", `{"message": "no"}`).Into(http.StatusOK, &done)
	require.Equal(t, httpapi.Completed{ID: rejected.ID, State: "failed"}, done)
	var list struct {
		Futures []httpapi.Future `json:"futures"`
	}
	f.send("GET", path+"?function=promise&state=failed", "").Into(http.StatusOK, &list)
	require.Len(t, list.Futures, 1)
	f.send("POST", promises, `{"expires_ms": 9223372036854775807}`).Problem(400, "bad_request", "expires_ms")
	f.send("POST", path, `{"function": "promise"}`).Problem(400, "bad_name", "promise")
	plain, err := f.client.Submit(t.Context(), futures.Task{Function: "go:f"})
	require.NoError(t, err)
	f.send("POST", path+"/"+plain.ID().String()+":resolve", `{"value": 1}`).Problem(409, "no_promise", "not a promise")
	f.stranger("POST", promises, "").Problem(401, "unauthorized", "submit")
	f.stranger("POST", at+":resolve", `{"value": 1}`).Problem(401, "unauthorized", "submit")
}

// TestPromiseWithAllOptions is made with each field that there is, and by the key of a header.
func TestPromiseWithAllOptions(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	const id = "01995b4e-6f3a-7c1e-9d2b-0123456789ab"
	deadline := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	f.makePromise(`{"id": "` + id + `", "label": "order 7", "queue": "q", "tags": ["a", "b"], "expires_ms": 60000,
		"deadline": "` + deadline.Format(time.RFC3339Nano) + `", "unique": {"key": "only one"}}`)
	var view httpapi.Future
	f.send("GET", path+"/"+id, "").Into(http.StatusOK, &view)
	require.Equal(t, "order 7", view.Label)
	require.Equal(t, "q", view.Queue)
	require.Equal(t, []string{"a", "b"}, view.Tags)
	require.Equal(t, deadline, view.Deadline.UTC())
	require.WithinDuration(t, view.SubmittedAt.Add(time.Minute), *view.ExpiresAt, time.Second)
	require.NotNil(t, view.Unique)
	var first, again httpapi.MadePromise
	f.send("POST", promises, "", "Idempotency-Key", "k").Into(http.StatusCreated, &first)
	f.send("POST", promises, "", "Idempotency-Key", "k").Into(http.StatusOK, &again)
	require.Equal(t, first.ID, again.ID)
	f.send("POST", promises, `{"key": "k"}`, "Idempotency-Key", "k").Into(http.StatusOK, &again)
	require.Equal(t, first.ID, again.ID)
	f.send("POST", promises, `{"key": "other"}`, "Idempotency-Key", "k").Problem(400, "bad_request", "differ")
}

func TestPromiseByItsToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{Token: "x"})
	large := `"` + strings.Repeat("x", 100_000) + `"`
	for name, c := range map[string]struct {
		body, want string
		headers    []string
	}{
		"JSON":              {`{"paid": true}`, `{"paid":true}`, []string{"Content-Type", "application/json; charset=utf-8"}},
		"without a type":    {`[1, 2]`, `[1,2]`, nil},
		"another JSON":      {`{"id": 1}`, `{"id":1}`, []string{"Content-Type", "application/cloudevents+json"}},
		"null":              {"null", "null", nil},
		"an empty value":    {"value=", `""`, form},
		"large":             {large, large, nil},
		"a form":            {"b=2&a=x+y", `{"a":"x y","b":"2"}`, form},
		"a form with lists": {"a=1&a=2", `{"a":["1","2"]}`, form},
		"a value":           {"value=true", "true", form},
		"a value of text":   {"value=yes", `"yes"`, form},
		"several values":    {"value=1&value=2", `{"value":["1","2"]}`, form},
		"a value and more":  {"value=1&by=Ada", `{"by":"Ada","value":"1"}`, form},
	} {
		made := f.makePromise("")
		var link httpapi.PromiseLink
		f.stranger("POST", made.Path, c.body, c.headers...).Into(http.StatusOK, &link)
		require.Equal(t, httpapi.PromiseLink{ID: made.ID, State: "realized"}, link, name)
		require.Equal(t, c.want, f.valueOf(made.ID), name)
		f.stranger("POST", made.Path, c.body, c.headers...).Into(http.StatusOK, &link)
		require.True(t, link.Already, name)
		f.stranger("POST", made.Path, `{"paid": false}`).Problem(409, "promise_conflict", "another value")
		f.stranger("POST", made.Path+":reject", "").Problem(409, "promise_conflict", "a value")
	}
	made := f.makePromise("")
	for _, headers := range [][]string{nil, form, {"Content-Type", "application/json"}} {
		f.stranger("POST", made.Path, "", headers...).Problem(400, "bad_request", "send null as JSON for none")
	}
	for body, headers := range map[string][]string{"{": nil, "%zz": form} {
		f.stranger("POST", made.Path, body, headers...).Problem(400, "bad_request", "the body is not")
	}
	for _, latin := range []string{"\"caf\xe9\"", "{\"caf\xe9\": 1}"} {
		f.stranger("POST", made.Path, latin).Problem(400, "bad_request", "not JSON in UTF-8")
	}
	f.stranger("POST", made.Path, "value=%22caf%e9%22", form...).Problem(400, "bad_future", "not JSON in UTF-8")
	f.stranger("POST", made.Path, `"\ud800"`).Problem(400, "bad_request", "half of a surrogate pair")
	f.stranger("POST", made.Path, "value=%22%5Cud800%22", form...).Problem(400, "bad_request", "half of a surrogate pair")
	for _, latin := range []string{"a=caf%e9", "caf%e9=a", "value=caf%e9"} {
		f.stranger("POST", made.Path, latin, form...).Problem(400, "bad_request", "not in UTF-8")
	}
	f.stranger("POST", made.Path+":reject", "message=caf%e9", form...).Problem(400, "bad_request", "not in UTF-8")
	f.stranger("POST", made.Path, "<x/>", "Content-Type", "text/xml").Problem(415, "bad_media_type", "send JSON")
	f.stranger("POST", made.Path, `"`+strings.Repeat("x", httpapi.MaxPromiseBody)+`"`).Problem(413, "too_large", "limit")
	f.stranger("DELETE", made.Path, "").Problem(401, "unauthorized", "")
	f.stranger("PUT", made.Path, "1").Problem(401, "unauthorized", "")
	f.stranger("POST", made.Path+":reject", `{"mesage": "no"}`).Problem(400, "bad_request", `"mesage"`)
	for _, wrong := range []string{"mesage=no", "message=no&reason=dear", "message=no&message=dear"} {
		f.stranger("POST", made.Path+":reject", wrong, form...).Problem(400, "bad_request", "one, message, once")
	}
	var link httpapi.PromiseLink
	f.stranger("POST", made.Path+":reject", "message=too+dear", form...).Into(http.StatusOK, &link)
	require.Equal(t, "failed", link.State)
	f.stranger("POST", made.Path+":reject", `{"message": "too dear"}`).Into(http.StatusOK, &link)
	require.True(t, link.Already)
	f.stranger("POST", made.Path, "1").Problem(409, "promise_conflict", "too dear")
}

func TestPromiseThatIsOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{Token: "x"})
	late := f.makePromise(`{"deadline": "2001-01-01T00:00:00Z"}`)
	f.stranger("POST", late.Path, "1").Problem(410, "promise_expired", "deadline")
	cancelled := f.makePromise("")
	f.send("POST", path+"/"+cancelled.ID.String()+":cancel", "").Into(http.StatusOK, &struct{}{})
	f.stranger("POST", cancelled.Path, "1").Problem(410, "promise_cancelled", "cancelled")
	f.send("DELETE", path+"/"+cancelled.ID.String(), "")
	f.stranger("POST", cancelled.Path, "1").Problem(404, "bad_promise_token", "")
	f.send("POST", path+"/"+cancelled.ID.String()+":resolve", `{"value": 1}`).Problem(404, "not_found", "")
}

// TestPromiseIsNotCompletedByAPreview opens a link as a browser and a preview do.
func TestPromiseIsNotCompletedByAPreview(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{Token: "x"})
	made := f.makePromise(`{"label": "<b>7</b>", "expires_ms": 60000}`)
	for range 3 {
		var link httpapi.PromiseLink
		f.stranger("GET", made.Path, "").Into(http.StatusOK, &link)
		require.Equal(t, "blocked", link.State)
		require.NotNil(t, link.Expires)
		f.stranger("HEAD", made.Path, "")
	}
	page := f.stranger("GET", made.Path, "", "Accept", "text/html,application/xhtml+xml")
	require.Equal(t, "text/html; charset=utf-8", page.Header.Get("Content-Type"))
	require.Contains(t, string(page.Body), `<form method="post" action="`+made.Path+`">`)
	require.Contains(t, string(page.Body), "&lt;b&gt;7&lt;/b&gt;")
	require.Equal(t, "same-origin", page.Header.Get("Referrer-Policy"), "its forms say where they come from")
	for _, only := range []string{"default-src 'none'", "form-action 'self'", "base-uri 'none'",
		"frame-ancestors 'none'"} {
		require.Contains(t, page.Header.Get("Content-Security-Policy"), only)
	}
	require.Equal(t, "no-store", page.Header.Get("Cache-Control"))
	foreign := append([]string{"Origin", "https://elsewhere.example", "Sec-Fetch-Site", "cross-site"}, form...)
	f.stranger("POST", made.Path, "value=true", foreign...).Problem(403, "foreign_origin", "")
	own := append([]string{"Origin", f.url, "Sec-Fetch-Site", "same-origin", "Accept", "text/html"}, form...)
	done := f.stranger("POST", made.Path, "value=true", own...)
	require.Equal(t, http.StatusOK, done.Status)
	require.Contains(t, string(done.Body), "This is answered")
	require.NotContains(t, string(done.Body), "<form")
	require.Equal(t, "true", f.valueOf(made.ID))
}

// TestPromiseOfABrowserThatIsRefused gets pages where programs get problems, with the same status.
func TestPromiseOfABrowserThatIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{Token: "x"})
	browser := append([]string{"Accept", "text/html,*/*;q=0.8"}, form...)
	answered := f.makePromise(`{"label": "order 7"}`)
	f.stranger("POST", answered.Path, "true").Into(http.StatusOK, &struct{}{})
	late := f.makePromise(`{"label": "order 8", "deadline": "2001-01-01T00:00:00Z"}`)
	cancelled := f.makePromise(`{"label": "order 9"}`)
	f.send("POST", path+"/"+cancelled.ID.String()+":cancel", "").Into(http.StatusOK, &struct{}{})
	for at, want := range map[string]struct {
		status     int
		said, name string
	}{
		answered.Path:             {409, "answered before, and otherwise", "order 7"},
		answered.Path + ":reject": {409, "answered before, and otherwise", "order 7"},
		late.Path:                 {410, "its time is over", "order 8"},
		cancelled.Path:            {410, "it was cancelled", "order 9"},
		answered.Path[:len(answered.Path)-4] + "AAAA": {404, "This link opens nothing", "Promise"},
	} {
		answer := "value=2"
		if strings.HasSuffix(at, ":reject") {
			answer = "message=no"
		}
		page := f.stranger("POST", at, answer, browser...)
		require.Equal(t, want.status, page.Status, at)
		require.Equal(t, "text/html; charset=utf-8", page.Header.Get("Content-Type"))
		require.Contains(t, page.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
		require.Contains(t, string(page.Body), want.said)
		require.Contains(t, string(page.Body), "<h1>"+want.name+"</h1>")
		require.NotContains(t, string(page.Body), "<form")
	}
	f.stranger("POST", answered.Path, "value=2", form...).Problem(409, "promise_conflict", "")
	f.stranger("POST", answered.Path, "%zz", browser...).Problem(400, "bad_request", "not a form")
}

// TestPromiseThatIsOverHasNoEnd leaves out when it would have ended.
func TestPromiseThatIsOverHasNoEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{Token: "x"})
	for _, action := range []string{"", ":reject"} {
		made := f.makePromise(`{"expires_ms": 60000}`)
		var link httpapi.PromiseLink
		f.stranger("GET", made.Path, "").Into(http.StatusOK, &link)
		require.NotNil(t, link.Expires)
		for _, method := range []string{"POST", "GET"} {
			link = httpapi.PromiseLink{}
			f.stranger(method, made.Path+map[string]string{"POST": action}[method], "null").Into(http.StatusOK, &link)
			require.Nil(t, link.Expires)
		}
	}
}

// TestPromiseTokensAreNotRepeated has one sent where an id belongs.
func TestPromiseTokensAreNotRepeated(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{Token: "x"})
	made := f.makePromise("")
	for _, at := range []string{"/" + made.Token, "/x" + made.Token + "/steps", "/" + made.Token + "/explanation"} {
		answer := f.send("GET", path+at, "")
		require.Equal(t, 400, answer.Status)
		require.Contains(t, string(answer.Body), "prm_…")
		require.NotContains(t, string(answer.Body), strings.TrimPrefix(made.Token, futures.PromiseTokenPrefix))
	}
	answer := f.send("POST", path, `{"function": "go:f", "after": ["`+made.Token+`"]}`)
	require.Equal(t, 422, answer.Status)
	require.NotContains(t, string(answer.Body), made.Token)
}

// TestPromiseTokensThatAreWrongHaveABudget spends the budget of an address with wrong tokens. One
// with a right one is not counted before.
func TestPromiseTokensThatAreWrongHaveABudget(t *testing.T) {
	t.Parallel()
	var log stacktest.Buffer
	f := newFixture(t, httpapi.Options{Token: "x", Stack: stack.Options{
		AccessLog: true, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Limits: stack.Limits{FailedRequests: 5, OpenRequests: 2},
	}})
	made := f.makePromise("")
	for range 9 {
		f.stranger("POST", made.Path, "1").Into(http.StatusOK, &struct{}{})
	}
	wrong := made.Path[:len(made.Path)-4] + "AAAA"
	for _, at := range []string{wrong, promises + "/nothing", wrong + ":reject", wrong, promises + "/prm_"} {
		f.stranger("POST", at, "").Problem(404, "bad_promise_token", "opens no promise")
	}
	f.stranger("POST", wrong, "1").Problem(429, "rate_limited", "5 in a minute")
	f.stranger("POST", made.Path, "1").Problem(429, "rate_limited", "5 in a minute")
	f.send("POST", made.Path, "1").Into(http.StatusOK, &struct{}{})
	f.send("POST", wrong, "1").Problem(404, "bad_promise_token", "")
	f.send("GET", made.Path+"/nothing", "").Problem(404, "no_such_path", `/api/v1/promises/prm_…`)
	f.send("GET", "/nothing/"+made.Token, "").Problem(404, "no_such_path", `/nothing/prm_…`)
	bare := strings.TrimPrefix(made.Token, futures.PromiseTokenPrefix)
	f.send("GET", promises+"/"+bare, "").Problem(404, "bad_promise_token", "")
	f.send("DELETE", made.Path, "").Problem(405, "method_not_allowed", "GET or POST")
	require.Contains(t, log.String(), "/api/v1/promises/prm_…")
	require.NotContains(t, log.String(), bare)
	require.NotContains(t, log.String(), wrong)
}

// TestARetryOfManyLeavesPromisesAlone: a rejection is for good, unless the promise is named.
func TestARetryOfManyLeavesPromisesAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	made := f.makePromise("")
	f.stranger("POST", made.Path+":reject", "message=no", form...).Into(http.StatusOK, &struct{}{})
	var done httpapi.Bulk
	f.send("POST", path+":retry?function=promise", "").Into(http.StatusOK, &done)
	require.Zero(t, done)
	f.stranger("POST", made.Path, "1").Problem(409, "promise_conflict", "no")
	f.send("POST", path+"/"+made.ID.String()+":retry", "").Into(http.StatusOK, &struct{}{})
	f.stranger("POST", made.Path, "1").Into(http.StatusOK, &struct{}{})
}
