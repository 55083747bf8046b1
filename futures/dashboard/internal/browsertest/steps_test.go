package browsertest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

// TestStepsInTheTimeline shows the steps of a future that failed once and sleeps now.
func TestStepsInTheTimeline(t *testing.T) {
	s := newSite(t)
	id := s.submit("", map[string]any{"function": "go:trip", "max_retries": 3})
	p := s.newTab()
	p.login(secrets[stack.Admin])
	p.open("futures/" + id)
	p.sees(".timeline .step", "step sleep")
	p.sees(".why", "It has recorded 4 steps, the last one (sleep, in attempt 2)")
	lines := value[[]string](p, "[...document.querySelectorAll('.timeline li')].map((n) => n.textContent)")
	require.Len(t, lines, 7)
	for i, says := range []string{
		"submitted", "step flightattempt 1, ", "step hotel " + hostile + "attempt 1, ", "attempt 1 failed",
		"step carattempt 2, ", "step sleepattempt 2, until 2030-03-1", "due",
	} {
		require.Contains(t, lines[i], says)
	}
	require.Contains(t, lines[1], " B, took ")
	p.clean("steps")
}

// TestUnusedStepsInTheTimeline shows which step the attempt with the result did not ask for.
func TestUnusedStepsInTheTimeline(t *testing.T) {
	s := newSite(t)
	id := s.submit("30s", map[string]any{"function": "go:changed", "max_retries": 3})
	p := s.newTab()
	p.login(secrets[stack.Admin])
	p.open("futures/" + id)
	p.sees(".timeline .step", "unused: the last attempt did not ask for it")
	unused := "[...document.querySelectorAll('.step')].filter((n) => /unused/.test(n.textContent)).length"
	require.Equal(t, 1, value[int](p, unused))
}

// TestPromisesThatWait lists a promise, and follows it until somebody with its link has answered. Its token is
// nowhere in the page.
func TestPromisesThatWait(t *testing.T) {
	s := newSite(t)
	made := s.must(http.MethodPost, "/api/v1/promises", map[string]any{"label": "order 7", "expires_ms": 3600000})
	endless := s.must(http.MethodPost, "/api/v1/promises", map[string]any{"label": "order 8"})
	id, token := made["id"].(string), made["token"].(string)
	p := s.newTab()
	p.login(secrets[stack.Read])
	p.sees("nav a", "Promises")
	p.open("promises")
	p.sees("td", "order 7")
	p.sees("td", "no end")
	p.holds("document.querySelector('a.id[href$=\"" + id + "\"]')")
	p.open("futures/" + id)
	p.sees("h2", "It waits for an answer")
	p.sees("dd", "whoever has its link, without any other right")
	p.sees("dd", "(in 59 min")
	p.sees(".why", "who has its token, drawn at")
	require.False(t, value[bool](p, "document.documentElement.outerHTML.includes('"+token[4:]+"')"))
	p.open("futures/" + endless["id"].(string))
	p.sees("dd", "it has no end")
	s.must(http.MethodPost, "/api/v1/promises/"+token, true)
	p.open("futures/" + id)
	p.sees(".timeline", "resolved")
	p.holds("!document.body.textContent.includes('It waits for an answer')")
	p.open("promises?state=realized")
	p.sees("td", "order 7")
	p.holds("!document.body.textContent.includes('order 8')")
	p.open("promises?state=any")
	p.sees("td", "order 8")
	p.clean("promises")
}

// TestPromisePageOverPlainHTTP answers a promise by the button of its page, where a browser says of requests only from
// which origin they come.
func TestPromisePageOverPlainHTTP(t *testing.T) {
	s := newSite(t)
	made := s.must(http.MethodPost, "/api/v1/promises", map[string]any{"label": "order 7"})
	p := s.newTab()
	p.do("link", chromedp.Navigate(strings.Replace(s.url, "127.0.0.1", plainHost, 1)+made["path"].(string)),
		chromedp.Click("button[value=true]", chromedp.ByQuery),
		chromedp.WaitVisible(`//p[text()="This is answered. Thank you."]`, chromedp.BySearch))
	require.Equal(t, "realized", s.state(made["id"].(string)))
}
