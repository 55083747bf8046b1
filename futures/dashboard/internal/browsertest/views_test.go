package browsertest

import (
	"net/http"
	"net/url"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

// fill gives a cluster some of everything, with hostile texts wherever one is allowed. It
// returns the ids of futures by what they show.
func (s *site) fill() map[string]string {
	s.Helper()
	id := map[string]string{}
	id["done"] = s.submit("30s", map[string]any{"function": "go:price", "tags": []string{"a=b"},
		"input": map[string]any{"name": hostile, hostile: []any{1, true, nil, map[string]any{"deep": []int{1}}}}})
	id["text"] = s.submit("30s", map[string]any{"function": "go:price", "args": hostile + "\nsecond line"})
	id["failed"] = s.submit("30s", map[string]any{"function": "go:fail", "args": "x", "trace": map[string]string{
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}})
	id["held"] = s.submit("", map[string]any{"function": "go:held"})
	id["lost"] = s.submit("", map[string]any{"function": "go:nowhere", "queue": "reports"})
	id["later"] = s.submit("", map[string]any{"function": "go:price", "delay_ms": 3600000})
	id["blocked"] = s.submit("", map[string]any{"function": "go:price", "codec": "inputs",
		"inputs": []string{id["held"], id["done"]}})
	id["trip"] = s.submit("", map[string]any{"function": "go:trip", "max_retries": 3})
	id["promise"] = s.must(http.MethodPost, "/api/v1/promises", map[string]any{"label": "order 7 " + hostile[:50],
		"expires_ms": 3600000, "tags": []string{"approval"}})["id"].(string)
	s.must(http.MethodPut, "/api/v1/lanes/mail", map[string]any{"width": 1, "rate": 10})
	for range 3 {
		s.submit("", map[string]any{"function": "go:nowhere", "queue": "reports",
			"lane": map[string]any{"kind": "mail", "key": "a/b " + hostile}})
	}
	s.must(http.MethodPost, "/api/v1/schedules", map[string]any{"name": "nightly", "cron": "30 2 * * *",
		"future": map[string]any{"function": "go:price", "args": "n"}})
	s.must(http.MethodPost, "/api/v1/schedules/nightly:trigger", nil)
	s.must(http.MethodPost, "/api/v1/jobs/orders:append", map[string]any{"values": []string{"first " + hostile, "second"}})
	s.must(http.MethodPut, "/api/v1/pauses/function/go:paused", map[string]any{"reason": "not now " + hostile})
	s.must(http.MethodPut, "/api/v1/limits", map[string]any{"pending": 100000})
	batch := s.must(http.MethodPost, "/api/v1/functions/execute/batch", map[string]any{
		"template": map[string]any{"function_id": "go:price"}, "arguments": [][]string{{"one " + hostile}, {"two"}}})
	id["batch"], _ = batch["id"].(string)
	if id["batch"] == "" {
		id["batch"], _ = batch["request_id"].(string)
	}
	require.NotEmpty(s, id["batch"], batch)
	return id
}

// TestViews shows each view, light, dark and narrow, with texts that try to be more.
func TestViews(t *testing.T) {
	s := newSite(t)
	id := s.fill()
	p := s.newTab()
	p.login(secrets[stack.Admin])
	for _, view := range []struct{ place, part, text string }{
		{"", "main", "running"},
		{"", ".wrong", "not now"},
		{"futures", "td", "go:fail"},
		{"futures?state=failed", "td", "the printer is on fire " + hostile},
		{"futures?function=go:price&tag=a%3Db", "td", "go:price"},
		{"futures?lane=" + url.QueryEscape("mail/a/b "+hostile), "td", "go:nowhere"},
		{"count/lane?state=ready", "td", "mail/a/b " + hostile},
		{"count/tag", "td", "a=b"},
		{"pauses", "td", "not now " + hostile},
		{"futures/" + id["done"], ".tree", hostile},
		{"futures/" + id["text"], "pre", hostile + "\nsecond line"},
		{"futures/" + id["failed"], ".bad", "the printer is on fire " + hostile},
		{"futures/" + id["held"], ".why", "third of ten " + hostile},
		{"futures/" + id["lost"], ".why", "reports"},
		{"futures/" + id["later"], ".timeline", "due"},
		{"futures/" + id["blocked"], ".graph", "claimed"},
		{"futures/" + id["trip"], ".timeline .step", "hotel " + hostile},
		{"futures/" + id["promise"], "dd", "whoever has its link"},
		{"promises", "td", "order 7 " + hostile[:50]},
		{"promises?state=any", "td", "blocked"},
		{"functions", "td", "go:held"},
		{"queues", "td", "reports"},
		{"lanes", "td", "mail"},
		{"lanes/mail", "td", "a/b " + hostile},
		{"lanes/mail/" + url.PathEscape("a/b "+hostile), "h1", "a/b " + hostile},
		{"schedules", "td", "nightly"},
		{"schedules/nightly", "td", "by hand"},
		{"jobs", "td", "orders"},
		{"jobs/orders", "td", "first " + hostile},
		{"batches", "td", "go:price"},
		{"batches/" + id["batch"], "td", "one"},
		{"workers", "td", "packer " + hostile},
		{"peers", "main", "takes no peers"},
		{"limits", "td", "100,000"},
		{"objects", "main", "No result is an object"},
	} {
		p.inEachLook(view.place, view.part, view.text)
	}
}

// inEachLook opens a view, light, dark and narrow, and checks it.
func (p *tab) inEachLook(place, part, text string) {
	p.Helper()
	for _, look := range []struct {
		name  string
		width int64
	}{{"light", 1280}, {"dark", 1280}, {"light", 360}} {
		p.look(look.name, look.width)
		p.open(place)
		p.sees(part, text)
		p.clean(place)
		require.LessOrEqual(p, value[int](p, "document.documentElement.scrollWidth"), int(look.width), place)
		p.picture(place + " " + look.name + map[bool]string{true: " narrow"}[look.width < 500])
		if look.width > 500 {
			p.accessible(place + " " + look.name)
		}
	}
}

// accessible checks a view with axe-core, if that is there.
func (p *tab) accessible(where string) {
	p.Helper()
	path := os.Getenv(axeVariable)
	if path == "" {
		return
	}
	if !value[bool](p, "!!window.axe") {
		script, err := os.ReadFile(path)
		require.NoError(p, err)
		p.do("axe", chromedp.Evaluate(string(script), nil))
	}
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML string }
	}
	p.do("axe", chromedp.Evaluate("axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations)", &found,
		awaited))
	for _, v := range found {
		require.NotContains(p, []string{"serious", "critical"}, v.Impact, "%s: %s: %s: %+v", where, v.ID, v.Help, v.Nodes)
	}
}

// TestTroublesThatDifferByNumbers shows each of them, and all of them when there is one more.
func TestTroublesThatDifferByNumbers(t *testing.T) {
	s := newSite(t)
	pause := func(kind string) {
		s.must(http.MethodPut, "/api/v1/lanes/"+kind, map[string]any{"width": 1})
		s.must(http.MethodPost, "/api/v1/lanes/"+kind+":pause", nil)
	}
	pause("mail1")
	pause("mail2")
	p := s.newTab()
	p.login(secrets[stack.Read])
	p.sees(".wrong li", "lanes of mail2 are paused")
	pause("mail3")
	p.sees(".wrong li", "lanes of mail3 are paused")
	p.holds("document.querySelectorAll('.wrong li').length === 3")
	p.sees(".wrong li", "lanes of mail1 are paused")
	p.clean("troubles")
}
