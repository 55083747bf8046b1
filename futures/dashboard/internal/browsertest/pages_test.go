package browsertest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// damage makes records unreadable.
func (s *site) damage(keys ...[]byte) {
	s.Helper()
	_, err := s.client.Cluster().Transact(s.Context(), kv.Options{}, func(tx kv.Attempt) error {
		for _, key := range keys {
			tx.Set(key, []byte{layout.RecordVersion, 0xc1})
		}
		return nil
	})
	require.NoError(s, err)
}

// TestJobsThatCantBeRead has two jobs and a consumer damaged: the rest of the log is shown, and a page leads on behind
// each of the jobs.
func TestJobsThatCantBeRead(t *testing.T) {
	s := newSite(t)
	values := make([]string, 60)
	for i := range values {
		values[i] = fmt.Sprint("value ", i+1)
	}
	s.must(http.MethodPost, "/api/v1/jobs/orders:append", map[string]any{"values": values})
	keys := joblog.Keys(s.client.Cluster().Keys())
	s.damage(keys.Job("orders", 11), keys.Job("orders", 12), keys.Progress("orders", "price"))
	p := s.newTab()
	p.login(secrets[stack.Admin])
	p.open("jobs")
	p.sees("td", "price: can't be read")
	p.open("jobs/orders") // its last 50 begin with the 11th
	p.sees(".bad", "Job 11 can't be read")
	p.sees("td", "price")
	p.sees("td .bad", "can't be read")
	next := `[...document.querySelectorAll("a")].find((a) => a.textContent === "Newer")`
	p.do("next", chromedp.Evaluate(next+".click()", nil))
	p.sees(".bad", "Job 12 can't be read")
	p.do("next", chromedp.Evaluate(next+".click()", nil))
	p.sees("td", "value 60")
	p.holds("!" + next)
}

// TestFilterOfABatchStays changes the filter of a list of a batch's items.
func TestFilterOfABatchStays(t *testing.T) {
	s := newSite(t)
	id := s.fill()
	p := s.newTab()
	p.login(secrets[stack.Admin])
	p.open("futures?batch=" + id["batch"])
	p.sees("td", "go:price")
	p.do("state", chromedp.Evaluate(`{
		const state = document.querySelector("select[name=state]");
		state.value = "failed";
		state.dispatchEvent(new Event("change"));
	}`, nil))
	p.sees("main", "No future is like this.")
	require.Contains(t, value[string](p, "location.hash"), "batch="+id["batch"])
	p.clean("filter")
}

// TestPagesOfABatch has a batch of more chunks than a page shows, and an item that failed without output.
func TestPagesOfABatch(t *testing.T) {
	s := newSite(t)
	id := s.fill()["batch"]
	p := s.newTab()
	p.login(secrets[stack.Admin])
	p.do("chunks", chromedp.Evaluate(`window.real = window.fetch;
		window.fetch = (url, o) => {
			const at = new URL(url), after = Number(at.searchParams.get("after"));
			const json = (value) => Promise.resolve(new Response(JSON.stringify(value)));
			if (at.pathname.endsWith("/chunks")) {
				const chunks = Array.from({ length: 50 }, (_, i) => ({ id: String(after + i + 1), worker: "w", peer: "w",
					state: "done", items: 1, created_at: "2026-01-01T00:00:00Z" }));
				return json(after ? { chunks: chunks.slice(0, 7) } : { chunks, next: "50" });
			}
			if (at.pathname.endsWith("/results")) {
				window.output = at.searchParams.get("output");
				return json({ items: [{ index: 0, state: "permanently_failed", reason: "too hot",
					result: { stdout: "", left_out: 3 << 20 } }] });
			}
			return window.real(url, o);
		}; null`, nil))
	p.open("batches/" + id)
	p.sees("td", "too hot (3 MiB more)")
	require.Equal(t, "640", value[string](p, "window.output"))
	p.holds(`[...document.querySelectorAll("td")].some((td) => td.textContent === "50")`)
	p.do("next", chromedp.Evaluate(`[...document.querySelectorAll("a")].
		find((a) => a.textContent === "Next page").click()`, nil))
	p.holds(`[...document.querySelectorAll("td")].some((td) => td.textContent === "57")`)
	p.sees("a", "First page")
	p.clean("chunks")
}

// TestPagesBehindWhatIsGone asks for a page behind a batch that was deleted, and for one behind the last schedule.
func TestPagesBehindWhatIsGone(t *testing.T) {
	s := newSite(t)
	p := s.newTab()
	p.login(secrets[stack.Read])
	p.open("batches?after=7f0c7a2e-6f1b-4c6e-9d0a-3f2b8c1d4e5f")
	p.sees("[role=alert]", "does not exist any more")
	p.open("batches")
	p.sees("main", "There are no batches.")
	for _, view := range []string{"schedules", "jobs"} {
		p.open(view + "?after=zzz")
		p.holds(fmt.Sprintf(`[...document.querySelectorAll("a")].some((a) => a.textContent === "First page" &&
			a.hash === %q)`, "#/"+view))
	}
	p.clean("gone")
}

// TestOtherQueuesLeadNowhere has the row of all queues that are not counted one by one: no list has its name.
func TestOtherQueuesLeadNowhere(t *testing.T) {
	s := newSite(t)
	p := s.newTab()
	p.login(secrets[stack.Admin])
	p.do("counts", chromedp.Evaluate(`window.real = window.fetch;
		window.fetch = (url, o) => (String(url).endsWith("/cluster") ? Promise.resolve(new Response(JSON.stringify({ counts: [
			{ queue: "(other)", state: "ready", futures: 1234 }, { queue: "(other)", state: "failed", futures: 5 },
			{ queue: "mail", state: "ready", futures: 6 }] }))) : window.real(url, o)); null`, nil))
	p.open("queues")
	p.sees("td", "1,234")
	p.sees("td a", "mail")
	p.holds("![...document.querySelectorAll('td a')].some((a) => decodeURIComponent(a.href).includes('(other)'))")
	p.clean("others")
}
