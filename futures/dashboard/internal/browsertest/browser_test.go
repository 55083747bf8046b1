package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// hostile is in all texts that a page shows: it becomes neither markup nor a script.
const hostile = `"'><img src=x onerror="window.pwned=1"><script>window.pwned=2</script>{{7*7}}</td>`

// patience bounds what a page needs to show.
const patience = time.Minute

// plainHost is a name of the server that browsers take for one of another machine, reached by plain HTTP.
const plainHost = "futura.example"

// axeVariable names axe-core's script, which looks for what a screen reader or a keyboard can't
// use.
const axeVariable = "FUTURA_AXE"

// picturesVariable names a directory for pictures of the views.
const picturesVariable = "FUTURA_PICTURES"

func TestMain(m *testing.M) {
	if browserPath() == "" {
		fmt.Println("SKIP: no Chromium was found: the pages are not tested in a browser (Debian: apt-get install chromium)")
		return
	}
	if os.Getenv(axeVariable) == "" {
		fmt.Println("SKIP:", axeVariable, "names no axe-core: the pages are not checked for keyboards and screen readers")
	}
	os.Exit(m.Run())
}

func browserPath() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// tab is a page of a browser.
type tab struct {
	*site
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// newTab opens a browser of its own, and a page in it.
func (s *site) newTab() *tab {
	s.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browserPath()), chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(time.Minute), chromedp.WindowSize(1280, 900),
		chromedp.Flag("host-resolver-rules", "MAP "+plainHost+" 127.0.0.1"))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	t := &tab{site: s, ctx: ctx}
	s.Cleanup(func() { cancel(); stop() })
	chromedp.ListenTarget(ctx, t.hear)
	require.NoError(s, chromedp.Run(ctx, log.Enable()))
	return t
}

// beside opens another tab of the same browser.
func (t *tab) beside() *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(t.ctx)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Run(ctx))
	return &tab{site: t.site, ctx: ctx}
}

// hear notes what goes wrong in a page: exceptions, dialogs, and what its policy refused.
func (t *tab) hear(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = e.ExceptionDetails.Error()
	case *page.EventJavascriptDialogOpening:
		problem = "a dialog of " + e.Message
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError && !strings.Contains(e.Entry.Text, "status of 4") {
			problem = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if problem != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.problems = append(t.problems, problem)
	}
}

// do runs actions within the patience.
func (t *tab) do(what string, actions ...chromedp.Action) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		bounded, done := context.WithTimeout(t.ctx, patience)
		defer done()
		text := ""
		_ = chromedp.Run(bounded, chromedp.Text("body", &text))
		require.NoError(t, err, "%s; the page shows:\n%s\nproblems: %v", what, text, t.problems)
	}
}

// open goes to a place of the page, in the same document.
func (t *tab) open(place string) {
	t.Helper()
	t.do(place, chromedp.Evaluate(fmt.Sprintf("location.hash = %q", "#/"+place), nil))
}

// sees waits until a part of the page shows a text.
func (t *tab) sees(part, text string) {
	t.Helper()
	t.holds(fmt.Sprintf("[...document.querySelectorAll(%q)].some((n) => n.textContent.includes(%q))", part, text))
}

// holds waits until an expression of the page is true. One that fails, since a part is not there yet, is not.
func (t *tab) holds(expression string) {
	t.Helper()
	t.do(expression, chromedp.Poll("(() => { try { return "+expression+"; } catch { return false; } })()", nil,
		chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(patience)))
}

// value returns an expression of the page.
func value[T any](t *tab, expression string) (v T) {
	t.Helper()
	t.do(expression, chromedp.Evaluate(expression, &v))
	return v
}

// awaited waits for the promise that an expression is.
func awaited(o *runtime.EvaluateParams) *runtime.EvaluateParams { return o.WithAwaitPromise(true) }

// press clicks the button with a text.
func (t *tab) press(text string) {
	t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('button')].filter((b) => b.textContent === %q).at(-1)", text)
	t.holds("!!" + find)
	t.do("press "+text, chromedp.Evaluate(find+".click()", nil))
}

// clean checks that nothing has gone wrong in the page, and that no text became more than one.
func (t *tab) clean(where string) {
	t.Helper()
	require.True(t, value[bool](t, "window.pwned === undefined"), where)
	require.Zero(t, value[int](t, "document.querySelectorAll('main script, main img[src=x], main iframe').length"), where)
	require.False(t, value[bool](t, "document.body.textContent.includes('undefined')"), "%s shows undefined:\n%s", where,
		value[string](t, "document.querySelector('main').innerText"))
	require.False(t, value[bool](t, "document.body.textContent.includes('NaN')"), where)
	require.False(t, value[bool](t, "document.body.textContent.includes('[object')"), where)
	t.mu.Lock()
	defer t.mu.Unlock()
	require.Empty(t, t.problems, where)
}

// picture stores what the page looks like, if pictures are wanted.
func (t *tab) picture(name string) {
	t.Helper()
	dir := os.Getenv(picturesVariable)
	if dir == "" {
		return
	}
	var content []byte
	t.do(name, chromedp.FullScreenshot(&content, 100))
	file := strings.NewReplacer("/", "-", "?", "-", " ", "-").Replace(name) + ".png"
	require.NoError(t, os.WriteFile(filepath.Join(dir, file), content, 0o600))
}

// scheme makes the page light or dark, and sets its width.
func (t *tab) look(scheme string, width int64) {
	t.Helper()
	t.do(scheme, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme},
	}), chromedp.EmulateViewport(width, 900))
}

// login opens the page with a session of a role.
func (t *tab) login(secret string) {
	t.Helper()
	link := t.tokens.NewLink(secret)
	require.NotEmpty(t, link)
	t.do("login", chromedp.Navigate(t.url+"/ui/#login="+link))
	t.sees("h1", "Overview")
}
