package browsertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/workers"
)

// account is the state of an actor.
type account struct {
	Cents int64
	Note  string
}

// work runs another worker of the site's cluster, with what add registers.
func (s *site) work(add func(*workers.Worker) error) {
	s.Helper()
	w, err := workers.New(s.client, workers.Options{Slots: 8, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(s, err)
	require.NoError(s, add(w))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	<-w.Ready()
	s.Cleanup(func() {
		cancel()
		require.NoError(s, <-ended)
	})
}

// click clicks the link with a text.
func (t *tab) click(text string) {
	t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('main a, #news a')].find((a) => a.textContent === %q)", text)
	t.holds("!!" + find)
	t.do("click "+text, chromedp.Evaluate(find+".click()", nil))
}

// TestActors lists actors whose keys are hard for a page, and shows one with its state while calls wait for it.
func TestActors(t *testing.T) {
	s := newSite(t)
	accounts := futures.DefineActor[account]("account")
	deposit := futures.DefineMethod(accounts, "deposit", func(_ context.Context, a *account, cents int64) (int64, error) {
		a.Cents, a.Note = a.Cents+cents, hostile
		return a.Cents, nil
	})
	notes := futures.DefineParts[string](accounts, "note")
	note := futures.DefineMethod(accounts, "note", func(ctx context.Context, _ *account, n int) (int, error) {
		for i := range n {
			if err := notes.Set(ctx, futures.ActorKey(ctx), fmt.Sprintf("%03d%s", i, hostile), "text"); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	begun, release := make(chan struct{}, 2), make(chan struct{})
	hold := futures.DefineMethod(accounts, "hold", func(ctx context.Context, _ *account, _ int) (int, error) {
		begun <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return 0, ctx.Err()
	})
	s.work(func(w *workers.Worker) error {
		return errors.Join(w.Register(deposit.Bind()), w.Register(hold.Bind()), w.Register(note.Bind()))
	})
	const busy, fresh = "a/../b", "new"
	keys := []string{"alice", "a/b", busy, ".", "..", hostile, "%2F"}
	for _, key := range keys {
		_, err := deposit.Call(t.Context(), s.client, key, 9007199254740993)
		require.NoError(t, err)
	}
	s.must(http.MethodPut, "/api/v1/lanes/actor.account", map[string]any{"width": 1, "max_waiting": 50})
	for _, key := range []string{busy, fresh} {
		_, err := hold.Submit(t.Context(), s.client, key, 0)
		require.NoError(t, err)
		<-begun
	}
	var waits []string
	for range 2 {
		f, err := deposit.Submit(t.Context(), s.client, busy, 1)
		require.NoError(t, err)
		waits = append(waits, f.ID().String())
	}
	p := s.newTab()
	p.login(secrets[stack.Read])
	p.inEachLook("actors", "td", "up to 50 calls wait")
	p.inEachLook("actors/account", "td", "2 of 50")
	require.ElementsMatch(t, keys, value[[]string](p,
		"[...document.querySelectorAll('section:nth-of-type(2) tbody td:first-child')].map((n) => n.textContent)"))
	p.click(busy)
	p.sees("h1", "Actor account/"+busy)
	p.sees(".tree", "9007199254740993")
	p.sees(".tree", "<script>")
	p.sees(".why", "The first call in line: It waits for its turn on actor account/a/../b: no call is before it")
	p.sees("dd", "2 of 50")
	rows := value[[]string](p, "[...document.querySelectorAll('tbody tr')].map((n) => n.textContent)")
	require.Len(t, rows, 3)
	require.Contains(t, rows[0], "go:account.holdclaimed")
	for i, id := range waits {
		require.Contains(t, rows[i+1], id[len(id)-12:])
		require.Contains(t, rows[i+1], "go:account.deposit")
	}
	p.inEachLook(strings.TrimPrefix(value[string](p, "location.hash"), "#/"), "h1", busy)
	require.Equal(t, []string{"Copy"}, value[[]string](p,
		"[...document.querySelectorAll('main button')].map((b) => b.textContent)"))
	p.click("…" + waits[0][len(waits[0])-12:])
	p.sees("dd", "account/"+busy)
	p.click("account/" + busy)
	p.sees("h1", "Actor account/"+busy)

	p.open("actors/account/" + fresh)
	p.sees(".empty", "It has none: a call that leaves a state makes the actor.")
	p.sees(".empty", "1 admitted, and no call waits.")
	for _, key := range []string{hostile, "%2F"} {
		p.open("actors/account")
		p.click(key)
		p.sees("h1", "Actor account/"+key)
		p.sees(".tree", "9007199254740993")
		p.clean(key)
	}
	for place, text := range map[string]string{
		"actors/account/..":     "No address can contain the name . or ..",
		"actors/account/nobody": "No call waits or runs.",
		"actors/none":           "No actor of this type has a state.",
		"actors/a%20b":          "bad name",
		"actors/a%20b/%00":      "bad name",
		"actors/account?after=" + strings.Repeat("x", 300): "256",
	} {
		p.open(place)
		p.sees("main", text)
	}
	p.open("actors/account/a%2F..%2Fb")
	p.sees("h1", busy)
	_, err := note.Call(t.Context(), s.client, "alice", 101)
	require.NoError(t, err)
	p.open("actors/account/alice")
	p.sees("td", "note/000"+hostile)
	p.open("actors/account/alice?after=" + url.QueryEscape("note/099"+hostile))
	p.sees("td", "note/100"+hostile)
	p.clean("alice")
	p.open("actors/account/a%2F..%2Fb")
	close(release)
	p.sees(".empty", "No call waits or runs.")
	p.sees(".tree", "9007199254740995")
}
