package stack

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSessionsEnd begins sessions by links and ends them in each way.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	_, err := CreateToken(path, "boss", "admin", time.Time{})
	require.NoError(t, err)
	now := time.Now()
	reader, err := CreateToken(path, "reader", "read", now.Add(2*time.Hour))
	require.NoError(t, err)
	tokens, err := OpenTokens(path, nil)
	require.NoError(t, err)
	tokens.now = func() time.Time { return now }
	tokens.Add("own", "own secret of this server", Admin)

	require.Empty(t, tokens.NewLink("guess"))
	link := tokens.NewLink(reader)
	_, ok := tokens.Find(link)
	require.False(t, ok, "a link is no token")
	_, ok = tokens.Login(reader)
	require.False(t, ok, "a token is no link")
	first, ok := tokens.Login(link)
	require.True(t, ok)
	_, ok = tokens.Login(link)
	require.False(t, ok, "it works once")
	found, ok := tokens.Find(first)
	require.True(t, ok)
	require.Equal(t, Read, found.Role)
	require.Equal(t, "reader", found.Name)
	require.True(t, found.Expires.Equal(now.Add(2*time.Hour).Truncate(time.Second)), "with its token")
	require.NotEmpty(t, tokens.NewLink(first), "a session makes links to itself")

	late := tokens.NewLink(reader)
	now = now.Add(LinkTime)
	_, ok = tokens.Login(late)
	require.False(t, ok, "it was good for an hour")
	own, ok := tokens.Login(tokens.NewLink("own secret of this server"))
	require.True(t, ok)
	second, ok := tokens.Login(tokens.NewLink(reader))
	require.True(t, ok)
	tokens.Logout(first)
	_, ok = tokens.Find(first)
	require.False(t, ok)
	_, ok = tokens.Find(second)
	require.True(t, ok)
	require.NoError(t, RevokeToken(path, "reader"))
	now = now.Add(reloadTime)
	_, ok = tokens.Find(second)
	require.False(t, ok, "its token was revoked")

	found, ok = tokens.Find(own)
	require.True(t, ok)
	require.Equal(t, Admin, found.Role)
	now = now.Add(SessionTime)
	_, ok = tokens.Find(own)
	require.False(t, ok, "a session lasts a day")
}

// TestSessionsAreBounded begins more than there may be: the oldest give way, and those that
// have ended take no room.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	tokens, now := NewTokens("own", "secret"), time.Now()
	tokens.now = func() time.Time { return now }
	var sessions []string
	for range maxLogins + 2 {
		now = now.Add(time.Millisecond)
		session, ok := tokens.Login(tokens.NewLink("secret"))
		require.True(t, ok)
		sessions = append(sessions, session)
	}
	require.Len(t, tokens.logins.sessions, maxLogins)
	require.Empty(t, tokens.logins.links)
	for i, session := range sessions {
		_, ok := tokens.Find(session)
		require.Equal(t, i >= 2, ok, i)
	}
	now = now.Add(SessionTime)
	_, ok := tokens.Login(tokens.NewLink("secret"))
	require.True(t, ok)
	require.Len(t, tokens.logins.sessions, 1)
}

// TestSessionsOfOneToken begins more than there may be with one token: those of others stay.
func TestSessionsOfOneToken(t *testing.T) {
	t.Parallel()
	tokens, now := NewTokens("boss", "secret"), time.Now()
	tokens.now = func() time.Time { return now }
	tokens.Add("reader", "public", Read)
	s := New(Options{Tokens: tokens})
	boss, ok := tokens.Login(tokens.NewLink("secret"))
	require.True(t, ok)
	link := tokens.NewLink("secret")
	var first, last string
	for i := range maxLogins + 20 {
		now = now.Add(time.Millisecond)
		require.NotEmpty(t, tokens.NewLink("public"))
		last = tokens.newSession(s.options.Tokens.own[1].sum, time.Time{})
		if i == 0 {
			first = last
		}
	}
	require.Len(t, tokens.logins.sessions, maxLogins)
	require.Len(t, tokens.logins.links, maxLogins)
	for secret, lives := range map[string]bool{boss: true, first: false, last: true} {
		_, ok = tokens.Find(secret)
		require.Equal(t, lives, ok)
	}
	_, ok = tokens.Login(link)
	require.True(t, ok)
}

// TestSessionIsNotProlonged begins a session with a session, and with a link of that: both end
// with it.
func TestSessionIsNotProlonged(t *testing.T) {
	t.Parallel()
	tokens, now := NewTokens("own", "secret"), time.Now()
	tokens.now = func() time.Time { return now }
	s := New(Options{Tokens: tokens})
	secretOf := func(w *httptest.ResponseRecorder) string {
		require.Equal(t, http.StatusCreated, w.Code, w.Body)
		var made Session
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &made))
		return made.Token
	}
	stolen := secretOf(ask(s, "POST", "/api/v1/sessions", "secret", ""))
	now = now.Add(SessionTime - time.Minute)
	again := secretOf(ask(s, "POST", "/api/v1/sessions", stolen, ""))
	byLink, ok := tokens.Login(tokens.NewLink(again))
	require.True(t, ok)
	for _, secret := range []string{stolen, again, byLink} {
		_, ok = tokens.Find(secret)
		require.True(t, ok)
	}
	now = now.Add(time.Minute)
	for _, secret := range []string{stolen, again, byLink} {
		_, ok = tokens.Find(secret)
		require.False(t, ok)
	}
}

// ask sends a request to a stack.
func ask(s *Stack, method, path, token, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// TestLoginOverHTTP logs in with what is valid, and with what is not.
func TestLoginOverHTTP(t *testing.T) {
	t.Parallel()
	tokens := NewTokens("own", "secret")
	s := New(Options{Tokens: tokens})
	for body, status := range map[string]int{
		"": 400, "{}": 400, `{"link":"guess"}`: 401, `{"link":"secret"}`: 401, `{"other":"x"}`: 422,
		`{"link":"` + strings.Repeat("a", 1000) + `"}`: 422, strings.Repeat(" ", 8<<10): 413,
	} {
		require.Equal(t, status, ask(s, "POST", "/api/v1/sessions", "", body).Code, body)
	}
	require.Equal(t, 401, ask(s, "POST", "/api/v1/sessions", "guess", "").Code)
	require.Equal(t, 401, ask(s, "POST", "/api/v1/links", "", "").Code)
	require.Equal(t, 201, ask(s, "POST", "/api/v1/sessions", "secret", "").Code)
	require.Equal(t, 403, ask(s, "POST", "/api/v1/sessions", "", `{"link":"x"}`, "Origin", "https://example.com").Code,
		"a page of another origin can't log this browser in")
	w := ask(s, "GET", "/api/v1/sessions/this", "secret", "")
	require.JSONEq(t, `{"name":"own","role":"admin"}`, w.Body.String())
	require.Empty(t, w.Header().Get("Set-Cookie"))
	var made struct{ Until time.Time }
	tokens.own[0].Expires = time.Now().Add(time.Minute)
	require.NoError(t, json.Unmarshal(ask(s, "POST", "/api/v1/links", "secret", "").Body.Bytes(), &made))
	require.True(t, made.Until.Equal(tokens.own[0].Expires), "a link is good no longer than its token")
	tokens.own[0].Expires = time.Time{}
	open := New(Options{})
	require.JSONEq(t, `{"role":"admin"}`, ask(open, "GET", "/api/v1/sessions/this", "", "").Body.String())
	require.Equal(t, 409, ask(open, "POST", "/api/v1/links", "", "").Code)

	s.options.Tokens.Add("reader", "other", Read)
	require.JSONEq(t, `{"tokens":[{"name":"own","role":"admin","expired":false},
		{"name":"reader","role":"read","expired":false}]}`, ask(s, "GET", "/api/v1/tokens", "secret", "").Body.String())
	require.Equal(t, 403, ask(s, "GET", "/api/v1/tokens", "other", "").Code)
	require.JSONEq(t, `{"tokens":[]}`, ask(open, "GET", "/api/v1/tokens", "", "").Body.String())
}

// TestSite serves the files of pages, and nothing beside them.
func TestSite(t *testing.T) {
	t.Parallel()
	s := New(Options{Tokens: NewTokens("own", "secret"), Hosts: []string{"127.0.0.1"}})
	s.Site("/ui/", fstest.MapFS{
		"index.html": {Data: []byte("<!doctype html>")}, "app.js": {Data: []byte("go()")},
		"views/one.js": {Data: []byte("x")},
	})
	for path, media := range map[string]string{
		"/ui/": "text/html; charset=utf-8", "/ui/app.js": "text/javascript; charset=utf-8",
		"/ui/views/one.js": "text/javascript; charset=utf-8",
	} {
		w := ask(s, "GET", path, "", "")
		require.Equal(t, 200, w.Code, path)
		require.Equal(t, media, w.Header().Get("Content-Type"))
		policy := w.Header().Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			require.Contains(t, policy, part)
		}
		require.NotContains(t, policy, "unsafe")
		require.Equal(t, 304, ask(s, "GET", path, "", "", "If-None-Match", w.Header().Get("ETag")).Code)
	}
	require.Equal(t, "/ui/", ask(s, "GET", "/ui", "", "").Header().Get("Location"))
	require.Equal(t, "/ui/", ask(s, "GET", "/", "", "", "Accept", "text/html").Header().Get("Location"))
	for _, path := range []string{"/ui/../metrics", "/ui/none.js", "/ui/views/", "/ui/index.html", "/ui/%2e%2e/app.js"} {
		w := ask(s, "GET", path, "", "")
		body, err := io.ReadAll(w.Body)
		require.NoError(t, err)
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusMovedPermanently, http.StatusTemporaryRedirect},
			w.Code, "%s %s", path, body)
	}
	r := httptest.NewRequest("GET", "http://evil.example/ui/", nil)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	require.Equal(t, http.StatusMisdirectedRequest, w.Code)
}
