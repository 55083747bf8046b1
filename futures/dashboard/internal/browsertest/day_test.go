package browsertest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

// TestPageLeftOpen has pages ask and draw again as often as they do within FUTURA_HOURS hours,
// while what they show changes each time: they hold no more at the end.
func TestPageLeftOpen(t *testing.T) {
	turns := 200
	if hours, _ := strconv.Atoi(os.Getenv("FUTURA_HOURS")); hours > 0 {
		turns = hours * 3600 / 3 // an overview asks every 3 s
	}
	s := newSite(t)
	id := s.fill()
	p := s.newTab()
	p.login(secrets[stack.Admin])
	for range 60 { // a page of a list, which grows no longer
		s.submit("", map[string]any{"function": "go:nowhere", "queue": "reports"})
	}
	for _, view := range [][2]string{{"", "reports"}, {"futures?queue=reports", "reports"},
		{"futures/" + id["blocked"], "Waits for"}} {
		place := view[0]
		p.open(place)
		p.sees("main", view[1])
		p.turn(50)
		heap, nodes := p.held()
		p.turn(turns)
		heapAfter, nodesAfter := p.held()
		t.Logf("%q: after 50 turns %.0f kB and %d nodes, after %d more %.0f kB and %d nodes", place, heap/1000, nodes, turns,
			heapAfter/1000, nodesAfter)
		require.Less(t, heapAfter, heap+1_000_000, place)
		require.LessOrEqual(t, nodesAfter, nodes+200, place)
		p.clean(place)
	}
}

// turn has the page read and draw again, after something has changed.
func (p *tab) turn(times int) {
	p.Helper()
	for done := 0; done < times; {
		n := min(5, times-done)
		var drawn int
		p.do("turn", chromedp.Evaluate(fmt.Sprintf(`import("/ui/app.js").then(async (app) => {
			for (let i = 0; i < %d; i++) await app.refresh();
			return %d;
		})`, n, n), &drawn, awaited))
		done += drawn
		p.submit("", map[string]any{"function": "go:nowhere", "queue": "reports", "args": fmt.Sprint(done)})
	}
}

// held is how many bytes of the page's heap are in use, and how many nodes it has.
func (p *tab) held() (heap float64, nodes int) {
	p.Helper()
	p.do("held", chromedp.ActionFunc(func(ctx context.Context) (err error) {
		if err = heapprofiler.CollectGarbage().Do(ctx); err == nil {
			heap, _, _, _, err = runtime.GetHeapUsage().Do(ctx)
		}
		return err
	}))
	return heap, value[int](p, "document.querySelectorAll('*').length")
}
