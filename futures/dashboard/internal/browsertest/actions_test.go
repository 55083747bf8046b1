package browsertest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

// state is a future's, as the API says.
func (s *site) state(id string) string {
	s.Helper()
	return s.must(http.MethodGet, "/api/v1/futures/"+id, nil)["state"].(string)
}

// TestActions does what a role may do, and sees that the API says the same.
func TestActions(t *testing.T) {
	s := newSite(t)
	id := s.fill()
	p := s.newTab()
	p.login(secrets[stack.Admin])

	p.open("futures/" + id["lost"])
	p.press("Cancel …")
	p.do("reason", chromedp.SetValue("#answer", "no more "+hostile))
	p.press("Cancel it")
	p.sees("#news", "It was cancelled.")
	p.sees("h1", "failed")
	p.sees("main", "no more "+hostile)
	require.Equal(t, "failed", s.state(id["lost"]))
	p.press("Retry")
	p.sees("h1", "ready")
	p.press("Pin")
	p.press("Unpin")

	p.open("futures/" + id["later"])
	p.press("Run now")
	p.sees("h1", "realized")
	p.press("Delete …")
	p.press("Back")
	require.Equal(t, "realized", s.state(id["later"]))

	p.open("queues")
	p.press("Pause …")
	p.do("reason", chromedp.SetValue("#answer", "for now"))
	p.press("Pause it")
	p.sees("td", "for now")
	require.Contains(t, fmt.Sprint(s.must(http.MethodGet, "/api/v1/pauses", nil)), "for now")
	p.press("Resume")
	p.holds("![...document.querySelectorAll('td')].some((n) => n.textContent.includes('for now'))")

	p.open("lanes/mail")
	p.press("Pause")
	p.press("Resume")
	p.open("schedules")
	p.press("Run now")
	p.sees("#news", "Its future was submitted.")
	p.press("Pause")
	p.sees("td", "paused")
	p.open("schedules/nightly")
	p.press("Resume")
	p.press("Remove …")
	p.press("Remove …")
	p.sees("h1", "Schedules")
	_, status := s.call(stack.Admin, http.MethodGet, "/api/v1/schedules/nightly", nil)
	require.Equal(t, http.StatusNotFound, status)
	p.clean("actions")
}

// TestBulk changes all that a filter finds, after it was counted, and leaves others alone.
func TestBulk(t *testing.T) {
	s := newSite(t)
	var failed []string
	for i := range 30 {
		future := map[string]any{"function": "go:fail", "args": fmt.Sprint(i), "tags": []string{"ours"}}
		if i%3 == 0 {
			future["tags"] = []string{"theirs"}
		}
		failed = append(failed, s.submit("30s", future))
	}
	p := s.newTab()
	p.login(secrets[stack.Admin])
	p.open("futures?tag=ours")
	p.sees("td", "go:fail")
	p.press("Retry all …")
	p.sees("dialog", "20 futures.")
	p.press("Back")
	p.holds("!document.querySelector('dialog')")
	require.Equal(t, "failed", s.state(failed[1]))
	p.press("Delete all …")
	p.sees("dialog", "20 futures.")
	p.press("Delete them")
	p.sees("#news", "20 of 20 futures were changed.")
	for i, id := range failed {
		_, status := s.call(stack.Read, http.MethodGet, "/api/v1/futures/"+id, nil)
		require.Equal(t, map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[i%3 == 0], status)
	}
	p.clean("bulk")
}

// TestRoles shows to a role what it may do, and no more; the API refuses the rest.
func TestRoles(t *testing.T) {
	s := newSite(t)
	id := s.fill()
	for role, buttons := range map[stack.Permission][]string{
		stack.Read:   {"Copy", "Copy", "Download", "Log out"},
		stack.Submit: {"Copy", "Copy", "Download", "Fork …", "Log out", "Pin", "Retry"},
		stack.Admin:  {"Copy", "Copy", "Delete …", "Download", "Fork …", "Log out", "Pin", "Retry"},
	} {
		p := s.newTab()
		p.login(secrets[role])
		p.open("futures/" + id["failed"])
		p.sees("h1", "failed")
		require.Equal(t, buttons, value[[]string](p,
			"[...document.querySelectorAll('button')].map((b) => b.textContent).sort()"), role)
		for _, view := range []string{"", "queues", "functions", "lanes", "lanes/mail", "schedules", "schedules/nightly",
			"futures?state=failed"} {
			p.open(view)
			p.holds("!document.querySelector('[aria-busy]')")
			if role == stack.Read {
				require.Zero(t, value[int](p, "document.querySelectorAll('main button:not([type=submit])').length - "+
					"[...document.querySelectorAll('main button')].filter((b) => b.textContent === 'Copy').length"), view)
			}
		}
		p.clean(role.String())
	}
	_, status := s.call(stack.Read, http.MethodPost, "/api/v1/futures/"+id["failed"]+":retry", nil)
	require.Equal(t, http.StatusForbidden, status)
	_, status = s.call(stack.Submit, http.MethodPost, "/api/v1/futures:delete?state=failed", nil)
	require.Equal(t, http.StatusForbidden, status)
}

// TestLogin logs in by a link, which works once, and by a token, and is asked again at the end.
func TestLogin(t *testing.T) {
	s := newSite(t)
	p := s.newTab()
	link := s.tokens.NewLink(secrets[stack.Submit])
	p.do("link", chromedp.Navigate(s.url+"/ui/#login="+link))
	p.sees("#who", "submit (submit)")
	require.Equal(t, "#/", value[string](p, "location.hash"), "the secret leaves the address")
	require.Empty(t, value[string](p, "document.cookie"))
	p.do("again", chromedp.Reload())
	p.sees("#who", "submit (submit)")

	stranger := s.newTab()
	stranger.do("link", chromedp.Navigate(s.url+"/ui/#login="+link))
	stranger.sees("[role=alert]", "the link was used")
	stranger.do("token", chromedp.SetValue("#token", "guess"))
	stranger.press("Log in")
	stranger.sees("[role=alert]", "This token is not valid.")
	stranger.do("token", chromedp.SendKeys("#token", secrets[stack.Read]+"\r"))
	stranger.sees("#who", "read (read)")
	kept := value[string](stranger, "JSON.stringify({...localStorage})")
	require.NotContains(t, kept, secrets[stack.Read], "the token is not kept")

	session := value[string](p, "localStorage.getItem('futura-session')")
	p.press("Log out")
	p.sees("[role=alert]", "You have logged out.")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/api/v1/sessions/this", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+session)
	w, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, w.Body.Close())
	require.Equal(t, http.StatusUnauthorized, w.StatusCode)
}

// TestKeyboard reaches a future and what can be done with it by keys alone.
func TestKeyboard(t *testing.T) {
	s := newSite(t)
	id := s.submit("30s", map[string]any{"function": "go:fail", "args": "x"})
	p := s.newTab()
	p.login(secrets[stack.Submit])
	// tabTo presses the tab key until what has the focus shows a text.
	tabTo := func(text string) {
		t.Helper()
		for range 60 {
			p.do("tab", chromedp.KeyEvent("\t"))
			if value[string](p, "document.activeElement.textContent.trim()") == text {
				require.NotEqual(t, "none", value[string](p, "getComputedStyle(document.activeElement).outlineStyle"), text)
				return
			}
		}
		require.Fail(t, "not reached by keys", text)
	}
	tabTo("Futures")
	p.do("enter", chromedp.KeyEvent("\r"))
	p.sees("h1", "Futures")
	tabTo("…" + id[len(id)-12:])
	p.do("enter", chromedp.KeyEvent("\r"))
	p.sees("h1", id)
	tabTo("Retry")
	p.do("enter", chromedp.KeyEvent("\r"))
	p.sees("#news", "It runs again")
	p.clean("keyboard")
}

// TestWhatIsOpenedStaysOpen changes a page under a reader: focus, selection and what was opened stay.
func TestWhatIsOpenedStaysOpen(t *testing.T) {
	s := newSite(t)
	id := s.fill()
	p := s.newTab()
	p.login(secrets[stack.Admin])
	p.open("futures")
	p.sees("td", "go:fail")
	focus := fmt.Sprintf("document.querySelector('a[title=%q]')", id["failed"])
	p.do("focus", chromedp.Evaluate(focus+".focus(); window.kept = document.activeElement", nil))
	added := s.submit("30s", map[string]any{"function": "go:price", "args": "new"})
	p.holds(fmt.Sprintf("!!document.querySelector('a[title=%q]')", added))
	require.True(t, value[bool](p, "document.activeElement === window.kept && window.kept.title === '"+id["failed"]+"'"))

	p.open("futures/" + id["blocked"])
	p.sees("summary", "As a table")
	const details = "[...document.querySelectorAll('summary')].find((n) => n.textContent === 'As a table').parentNode.open"
	p.do("open", chromedp.Evaluate(details+" = true", nil))
	s.must(http.MethodPut, "/api/v1/futures/"+id["blocked"]+"/pins/test", nil)
	p.sees("dd", "test")
	require.True(t, value[bool](p, details))
	p.clean("open")
}

// TestServerThatGoesAway says so, and goes on when it is back.
func TestServerThatGoesAway(t *testing.T) {
	s := newSite(t)
	p := s.newTab()
	p.login(secrets[stack.Read])
	p.do("offline", chromedp.Evaluate("window.real = window.fetch; "+
		"window.fetch = () => Promise.reject(new TypeError('gone'))", nil), look)
	p.sees("[role=alert]", "The server does not answer.")
	p.do("online", chromedp.Evaluate("window.fetch = window.real; null", nil), look)
	p.holds("!document.querySelector('.failure')")
}
