package browsertest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

// TestButtonsActOnce presses a button twice before the first answer.
func TestButtonsActOnce(t *testing.T) {
	s := newSite(t)
	s.must(http.MethodPost, "/api/v1/schedules", map[string]any{"name": "nightly", "cron": "30 2 * * *",
		"future": map[string]any{"function": "go:price", "args": "n"}})
	p := s.newTab()
	p.login(secrets[stack.Admin])
	p.open("schedules/nightly")
	p.sees("button", "Run now")
	p.do("twice", chromedp.Evaluate(`window.sent = 0; window.real = window.fetch;
		window.fetch = (url, o) => { window.sent += o.method === "POST"; return window.real(url, o); };
		{
			const run = [...document.querySelectorAll("button")].find((b) => b.textContent === "Run now");
			run.click();
			run.click();
		}`, nil))
	p.sees("#news", "Its future was submitted.")
	require.Equal(t, 1, value[int](p, "window.sent"))
	p.press("Run now")
	p.holds("window.sent === 2")
	p.clean("twice")
}

// TestWhatIsOlderIsNotShown has the answer to a poll come after that to a later one.
func TestWhatIsOlderIsNotShown(t *testing.T) {
	s := newSite(t)
	id := s.submit("", map[string]any{"function": "go:nowhere"})
	p := s.newTab()
	p.login(secrets[stack.Admin])
	p.open("futures/" + id)
	p.sees("h1", "ready")
	p.do("hold", chromedp.Evaluate(fmt.Sprintf(`window.real = window.fetch; window.asked = 0;
		window.fetch = async (url, o) => {
			const answer = await window.real(url, o);
			if (o.method === "GET" && String(url).endsWith(%q) && ++window.asked === 1) {
				await new Promise((go) => { window.release = go; });
			}
			return answer;
		}; null`, id), nil), look)
	p.holds("!!window.release")
	p.press("Cancel …")
	p.press("Cancel it")
	p.sees("h1", "failed")
	p.do("release", chromedp.Evaluate(`new MutationObserver(() => {
			window.back ||= document.querySelector("h1").textContent.includes("ready");
		}).observe(document.querySelector("main"), { subtree: true, childList: true, characterData: true });
		window.release(); window.asked = 1; null`, nil), look)
	p.holds("window.asked > 2")
	require.False(t, value[bool](p, "!!window.back"))
	p.clean("older")
}

// TestAnswerThatIsCutOff has the bytes of an answer stay away behind its head.
func TestAnswerThatIsCutOff(t *testing.T) {
	s := newSite(t)
	p := s.newTab()
	p.login(secrets[stack.Admin])
	p.do("hang", chromedp.Evaluate(`window.real = [window.fetch, window.setTimeout];
		window.setTimeout = (f, ms) => window.real[1].call(window, f, ms === 15000 ? 50 : ms);
		window.fetch = async (_, { signal }) => new Response(new ReadableStream({
			start(to) { signal.addEventListener("abort", () => to.error(signal.reason)); },
		}), { headers: { "Content-Type": "application/json" } });`, nil), look)
	p.sees("[role=alert]", "The server does not answer.")
	p.do("goes on", chromedp.Evaluate("[window.fetch, window.setTimeout] = window.real; null", nil), look)
	p.holds("!document.querySelector('.failure')")
	p.clean("cut off")
}

// TestQuestionsEndWithTheirView leaves a future, and a session, while a question is open.
func TestQuestionsEndWithTheirView(t *testing.T) {
	s := newSite(t)
	id := s.submit("", map[string]any{"function": "go:nowhere"})
	p := s.newTab()
	p.login(secrets[stack.Admin])
	ask := func() {
		p.open("futures/" + id)
		p.press("Cancel …")
		p.sees("dialog", "Cancel this future?")
	}
	ask()
	p.open("queues")
	p.sees("h1", "Queues")
	p.holds("!document.querySelector('dialog')")
	require.Equal(t, "ready", s.state(id))
	ask()
	s.tokens.Logout(value[string](p, "localStorage.getItem('futura-session')"))
	p.sees("[role=alert]", "Your session has ended")
	p.holds("!document.querySelector('dialog')")
	p.clean("questions")
}

// TestCopyWithoutAClipboard says what it has done on a page of plain HTTP.
func TestCopyWithoutAClipboard(t *testing.T) {
	s := newSite(t)
	p := s.newTab()
	p.login(secrets[stack.Read])
	p.open("futures")
	p.sees("code", "futura list")
	p.do("none", chromedp.Evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined }); null", nil))
	p.press("Copy")
	p.sees("button", "Selected")
	require.Equal(t, "futura list", value[string](p, "String(getSelection())"))
	p.clean("copy")
}

// TestAnEndedSessionAsksForItsToken goes to another view once the session has ended: the field has the focus.
func TestAnEndedSessionAsksForItsToken(t *testing.T) {
	s := newSite(t)
	p := s.newTab()
	p.login(secrets[stack.Read])
	s.tokens.Logout(value[string](p, "localStorage.getItem('futura-session')"))
	p.open("queues")
	p.sees("[role=alert]", "Your session has ended")
	require.Equal(t, "token", value[string](p, "document.activeElement.id"))
	p.clean("ended")
}
