package browsertest

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

// attacks are what the page of another server on this machine does to pages at a URL. Each
// returns what it got.
const attacks = `(async (at, id) => {
  const got = {}, all = [];
  const attack = (name, what) => all.push((async () => what())().then(
    (v) => { got[name] = v; }, () => { got[name] = "refused"; }));
  const post = { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}", credentials: "include" };
  attack("read", async () => (await fetch(at + "/api/v1/cluster", { credentials: "include" })).status);
  const cancel = at + "/api/v1/futures/" + id + ":cancel";
  attack("blind", async () => (await fetch(cancel, { method: "POST", mode: "no-cors" })).status);
  attack("json", async () => (await fetch(cancel, post)).status);
  attack("script", async () => (await import(at + "/ui/api.js")).session);
  const opened = (to) => new Promise((yes, no) => { to.onopen = () => yes("open"); to.onerror = () => no(); });
  attack("events", () => opened(new EventSource(at + "/api/v1/futures/" + id + "/events", { withCredentials: true })));
  attack("socket", () => opened(new WebSocket(at.replace("http", "ws") + "/api/v1/futures")));
  attack("frame", async () => {
    const frame = document.createElement("iframe");
    await new Promise((yes) => { frame.onload = yes; frame.src = at + "/ui/"; document.body.append(frame); });
    try { return frame.contentWindow.localStorage.length; } catch { return "refused"; }
  });
  const form = document.createElement("form");
  Object.assign(form, { method: "POST", target: "sink", enctype: "text/plain" });
  form.action = at + "/api/v1/futures:cancel?state=ready";
  const sink = document.createElement("iframe");
  sink.name = "sink";
  document.body.append(sink, form);
  attack("form", () => new Promise((yes) => { sink.onload = () => yes("sent"); form.submit(); }));
  await Promise.all(all);
  got.storage = JSON.stringify({ ...localStorage });
  return got;
})`

// TestForeignPages lets a page of another server on this machine, in the browser that is logged
// in, try to use that login.
func TestForeignPages(t *testing.T) {
	s := newSite(t)
	id := s.submit("", map[string]any{"function": "go:nowhere"})
	p := s.newTab()
	p.login(secrets[stack.Admin])
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><body>"))
	}))
	t.Cleanup(other.Close)
	foreign := p.beside()
	var got map[string]any
	foreign.do("attacks", chromedp.Navigate(other.URL), chromedp.Evaluate(
		fmt.Sprintf("%s(%q, %q)", attacks, s.url, id), &got, awaited))
	for name, outcome := range map[string]any{
		"read": "refused", "json": "refused", "script": "refused", "events": "refused", "socket": "refused",
		"frame": "refused", "form": "sent", "storage": "{}",
	} {
		require.Equal(t, outcome, got[name], name)
	}
	foreign.do("open", chromedp.Evaluate("window.opened = window.open("+fmt.Sprintf("%q", s.url+"/ui/")+"); null", nil))
	foreign.holds("window.opened.closed") // its opener holds no page of another origin
	require.Equal(t, "ready", s.state(id))
	p.do("again", chromedp.Reload())
	p.sees("#who", "admin (admin)")
}

// TestSessionThatEnds asks for a login, says why, and goes on where it was: with a link that is
// opened in the same tab, and after a login in another one.
func TestSessionThatEnds(t *testing.T) {
	s := newSite(t)
	p := s.newTab()
	p.login(secrets[stack.Admin])
	p.open("futures?state=failed")
	p.sees("h1", "Futures")
	end := func() {
		t.Helper()
		s.tokens.Logout(value[string](p, "localStorage.getItem('futura-session')"))
		p.sees("[role=alert]", "until the server is started again")
		require.Empty(t, value[string](p, "document.getElementById('who').textContent"))
	}
	end()
	p.do("link", chromedp.Evaluate("location.hash = 'login="+s.tokens.NewLink(secrets[stack.Submit])+"'", nil))
	p.sees("#who", "submit (submit)")
	p.holds("location.hash === '#/futures?state=failed' && document.querySelector('h1').textContent === 'Futures'")
	end()
	second := p.beside()
	second.login(secrets[stack.Read])
	p.sees("#who", "read (read)")
	p.sees("h1", "Futures")
	end()
	p.do("paste", chromedp.SendKeys("#token", s.url+"/ui/#login="+s.tokens.NewLink(secrets[stack.Admin])+"\r"))
	p.sees("#who", "admin (admin)")
	p.clean("logins")
}

// look has a page ask its server now.
var look = chromedp.Evaluate("document.dispatchEvent(new Event('visibilitychange'))", nil)

// TestServerThatHangs says so, though its connections stay open.
func TestServerThatHangs(t *testing.T) {
	s := newSite(t)
	p := s.newTab()
	p.login(secrets[stack.Admin])
	p.do("hang", chromedp.Evaluate(`window.real = [window.fetch, window.setTimeout];
		window.setTimeout = (f, ms) => window.real[1].call(window, f, ms === 15000 ? 50 : ms);
		window.fetch = (_, { signal }) =>
			new Promise((_, no) => signal.addEventListener("abort", () => no(signal.reason)));`, nil))
	p.do("now", look)
	p.sees("[role=alert]", "It is busy, or was stopped.")
	p.do("goes on", chromedp.Evaluate("[window.fetch, window.setTimeout] = window.real; null", nil))
	p.do("now", look)
	p.holds("!document.querySelector('.failure')")
	p.do("slow", chromedp.Evaluate(`window.waits = []; window.late = 0; performance.now = () => window.late += 1e6;
		window.setTimeout = (f, ms) => {
			window.waits.push(ms);
			return window.real[1].call(window, f, ms);
		};
		null`, nil), look)
	p.holds("window.waits.includes(30000)") // it asks again soon, however late the answer was
	p.clean("hang")
}

// bomb is a PNG of few bytes and very many pixels.
func bomb(width, height uint32) []byte {
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	line := make([]byte, 1+width/8)
	for range height {
		_, _ = z.Write(line)
	}
	_ = z.Close()
	out := []byte("\x89PNG\r\n\x1a\n")
	chunk := func(kind string, content []byte) {
		out = binary.BigEndian.AppendUint32(out, uint32(len(content)))
		from := len(out)
		out = append(append(out, kind...), content...)
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[from:]))
	}
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	chunk("IHDR", append(header, 1, 0, 0, 0, 0))
	chunk("IDAT", packed.Bytes())
	chunk("IEND", nil)
	return out
}

// TestHostileValues shows values of every codec that are made to hurt a page.
func TestHostileValues(t *testing.T) {
	s := newSite(t)
	p := s.newTab()
	p.login(secrets[stack.Admin])
	keys := strings.Repeat("\x81", 60) + "\xa1x" + strings.Repeat("\xc0", 60) // maps whose keys are maps
	for _, value := range []struct{ name, codec, content, part, text string }{
		{"keys that are maps", "msgpack", keys, ".tree", "1 parts"},
		{"long integers", "msgpack", "\x91\xcf" + strings.Repeat("\xff", 8), ".tree", "18446744073709551615"},
		{"an array of 4 billion", "msgpack", "\xdd\xff\xff\xff\xff", "pre", "dd ff ff ff ff"},
		{"deep msgpack", "msgpack", strings.Repeat("\x91", 60000) + "\xc0", "pre", "91 91"},
		{"prototypes", "msgpack", "\x81\xa9__proto__\x81\xa5pwned\xc3", ".tree", "__proto__"},
		{"deep JSON", "raw", strings.Repeat("[", 30000) + strings.Repeat("]", 30000), "pre", "[[[["},
		{"deep JSON with fields", "json", strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000), "pre",
			`{"a":{"a":`},
		{"long integers of JSON", "json", `{"id":12345678901234567890,"r":1e400,"__proto__":{"pwned":1}}`, ".tree",
			"12345678901234567890"},
		{"a page", "raw", "<!doctype html><script>window.pwned=1</script>", "pre", "<script>"},
		{"an image with a script", "raw", `<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1"/>`, "pre",
			"onload"},
		{"an image of 2 gigapixels", "raw", string(bomb(20000, 20000)), "section", "codec raw"},
		{"a broken image", "raw", "\x89PNG\r\n\x1a\n", "section", "8 B"},
		{"text of the other direction", "raw", "\u202egnp.exe\u2066\x1b[2J", "pre", "exe"},
	} {
		id := s.submit("", map[string]any{"function": "go:nowhere", "codec": value.codec, "encoding": "base64",
			"args": base64.StdEncoding.EncodeToString([]byte(value.content))})
		p.open("futures/" + id)
		p.sees("h1", id)
		p.sees(value.part, value.text)
		p.clean(value.name)
	}
}

// TestHostileAddresses opens places that name what no address can.
func TestHostileAddresses(t *testing.T) {
	s := newSite(t)
	s.must(http.MethodPut, "/api/v1/lanes/mail", map[string]any{"width": 1})
	p := s.newTab()
	p.login(secrets[stack.Admin])
	for place, text := range map[string]string{
		"lanes/mail/..":              "No address can contain the name",
		"lanes/mail/a%2F..%2F..%2Fb": "Lane mail/a/../../b",
		"schedules/..":               "No address can contain the name",
		"futures/%00":                "Future",
		"futures/..%2F..%2Fmetrics":  "Future",
		"%E0%A4%A":                   "There is no such view",
		"__proto__":                  "There is no such view",
		"futures?state=__proto__":    "Futures",
		"futures?tag=a%1b%5b201~%0a": "bad name",
	} {
		p.open(place)
		p.sees("main", text)
	}
	p.do("#main", chromedp.Evaluate("location.hash = '#main'", nil)) // where the link to the content leads
	p.sees("main", "What is wrong")
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(t, p.problems)
}
