package httpapi_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/transfer"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

// hook is a promise that webhooks complete, with what they were answered.
type hook struct {
	id    futures.ID
	token string
	value string // that of those that don't lie

	mu    sync.Mutex
	first []string // the values of those that were the first
	same  []string // the values of those that were told that it had them already
	other int      // how many were told that it has another one
}

// call is one webhook: whose it is, with what token and value.
type call struct {
	to           *hook
	token, value string
	opens        bool
}

// answered notes what a webhook was answered.
func (h *hook) answered(t *testing.T, c *call, status int, body string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !c.opens && status == http.StatusNotFound && strings.Contains(body, "bad_promise_token"):
	case !c.opens:
		t.Errorf("a token that is wrong: %d %s", status, body)
	case status == http.StatusOK && strings.Contains(body, `"already":true`):
		h.same = append(h.same, c.value)
	case status == http.StatusOK:
		h.first = append(h.first, c.value)
	case status == http.StatusConflict && strings.Contains(body, "promise_conflict"):
		h.other++
	default:
		t.Errorf("%d %s", status, body)
	}
}

// TestManyPromisesByConcurrentWebhooks has 10,000 promises completed by webhooks that repeat
// themselves, lie, and try tokens of others: each promise has one value, and no token is anywhere
// that others see.
func TestManyPromisesByConcurrentWebhooks(t *testing.T) {
	t.Parallel()
	n := 10_000
	if testing.Short() {
		n = 300
	}
	var log stacktest.Buffer
	f := newFixture(t, httpapi.Options{Token: "x", Stack: stack.Options{
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), AccessLog: true,
		Limits: stack.Limits{FailedRequests: 1 << 20, OpenRequests: 1},
	}})
	hooks := f.makeHooks(n)
	calls := callsOf(hooks)
	rand.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	each(calls, func(client *http.Client, c *call) {
		status, body, err := post(client, f.url+promises+"/"+c.token, c.value)
		if err != nil {
			t.Error(err)
			return
		}
		c.to.answered(t, c, status, body)
	})
	for _, h := range hooks {
		require.Len(t, h.first, 1, "exactly one webhook is the first")
		value := f.valueOf(h.id)
		require.Equal(t, value, h.first[0])
		for _, same := range h.same {
			require.Equal(t, value, same)
		}
		require.Equal(t, 4, 1+len(h.same)+h.other)
	}
	report, err := audit.Check(t.Context(), f.client.Cluster(), audit.Options{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	seen := f.shown(t, hooks)
	seen["log"] = []byte(log.String())
	secrets := secretsOf(t, hooks)
	require.True(t, secrets.areIn([]byte("x"+hooks[0].token)), "the search finds none")
	for what, content := range seen {
		require.NotEmpty(t, content, what)
		require.False(t, secrets.areIn(content), "the %s has a token", what)
	}
}

// makeHooks makes promises, some of which others depend on.
func (f *fixture) makeHooks(n int) []*hook {
	hooks := make([]*hook, n)
	var all sync.WaitGroup
	for part := range 8 {
		all.Go(func() {
			for i := part; i < n; i += 8 {
				p, err := futures.NewPromise[int](f.Context(), f.client, futures.Label("order"))
				if err != nil {
					f.Error(err)
					return
				}
				hooks[i] = &hook{id: p.ID(), token: p.Token(), value: fmt.Sprintf(`{"order":%d}`, i)}
			}
		})
	}
	all.Wait()
	require.False(f, f.Failed())
	return hooks
}

// callsOf returns for each promise webhooks that say the same, one that lies, and two with tokens that
// are those of no promise, and of another one.
func callsOf(hooks []*hook) (calls []call) {
	for i, h := range hooks {
		secret := h.token[len(h.token)-32:]
		mixed := strings.TrimSuffix(h.token, secret) + hooks[(i+1)%len(hooks)].token[len(h.token)-32:]
		changed := []byte(h.token)
		if at := len(changed) - 20; changed[at] == 'A' {
			changed[at] = 'B'
		} else {
			changed[at] = 'A'
		}
		calls = append(calls, call{h, h.token, h.value, true}, call{h, h.token, h.value, true},
			call{h, h.token, h.value, true}, call{h, h.token, `{"order":-1}`, true},
			call{h, mixed, `{"order":-2}`, false}, call{h, string(changed), `{"order":-3}`, false})
	}
	return calls
}

// each has concurrent clients make calls.
func each(calls []call, do func(*http.Client, *call)) {
	var all sync.WaitGroup
	const clients = 32
	for part := range clients {
		all.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			for i := part; i < len(calls); i += clients {
				do(&http.Client{Transport: transport}, &calls[i])
			}
		})
	}
	all.Wait()
}

func post(client *http.Client, url, body string) (status int, answer string, err error) {
	response, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// shown returns what others see of promises: lists, explanations, pages, the store and its backup.
func (f *fixture) shown(t *testing.T, hooks []*hook) map[string][]byte {
	seen := map[string][]byte{}
	for cursor := ""; ; {
		var page struct {
			Futures []httpapi.Future `json:"futures"`
			Cursor  string           `json:"cursor"`
		}
		a := f.send("GET", path+"?function=promise&limit=1000&cursor="+cursor, "").Into(http.StatusOK, &page)
		seen["list"] = append(seen["list"], a.Body...)
		if cursor = page.Cursor; cursor == "" {
			break
		}
	}
	for _, h := range hooks[:50] {
		at := path + "/" + h.id.String()
		for _, part := range []string{"", "/explanation", "/graph", "/result"} {
			seen["future"] = append(seen["future"], f.send("GET", at+part, "").Body...)
		}
	}
	for _, page := range []string{"/", "/metrics", "/docs", "/openapi.json", "/api/v1/overview", "/api/v1/cluster"} {
		seen["page"] = append(seen["page"], f.send("GET", page, "").Body...)
	}
	c := f.client.Cluster()
	require.NoError(t, c.EachKey(t.Context(), c.Keys().All(), func(item kv.KeyValue) error {
		seen["store"] = append(append(seen["store"], item.Key...), item.Value...)
		return nil
	}))
	file, err := os.Create(filepath.Join(t.TempDir(), "backup"))
	require.NoError(t, err)
	defer file.Close()
	_, err = transfer.Backup(t.Context(), f.db, f.client.Cluster().Name(), file, transfer.Options{IgnoreLive: true})
	require.NoError(t, err)
	seen["backup"], err = os.ReadFile(file.Name())
	require.NoError(t, err)
	return seen
}

// secrets are what tokens begin to be secret with, as bytes and as text.
type secrets map[string]bool

const secretStart = 12

func secretsOf(t *testing.T, hooks []*hook) secrets {
	all := secrets{}
	for _, h := range hooks {
		text := h.token[len(h.token)-32:] // 24 bytes; what is before has the id
		secret, err := base64.RawURLEncoding.DecodeString(text)
		require.NoError(t, err)
		all[string(secret[:secretStart])], all[text[:secretStart]] = true, true
		all[string(secret[12:])] = true
	}
	return all
}

// areIn reports whether a text has one of them.
func (s secrets) areIn(content []byte) bool {
	for i := range len(content) - secretStart + 1 {
		if s[string(content[i:i+secretStart])] {
			return true
		}
	}
	return false
}
