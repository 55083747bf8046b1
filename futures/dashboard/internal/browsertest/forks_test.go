package browsertest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/workers"
)

// chargeable has the site run go:charge, which records two steps and then fails until its code is mended.
func (s *site) chargeable() (mended *atomic.Bool) {
	s.Helper()
	mended = &atomic.Bool{}
	s.work(func(w *workers.Worker) error {
		return w.Register("charge", func(ctx context.Context, _ []byte) ([]byte, error) {
			for _, name := range []string{"reserve " + hostile, "pay"} {
				if _, err := futures.Step(ctx, name, func(context.Context) (int, error) { return 1, nil }); err != nil {
					return nil, err
				}
			}
			if !mended.Load() {
				return nil, workers.Permanent(errors.New("no card"))
			}
			return []byte("charged"), nil
		})
	})
	return mended
}

// enter has a field of a dialog say something, as a person who leaves it.
func (t *tab) enter(name, text string) {
	t.Helper()
	field := fmt.Sprintf("document.querySelector('dialog [name=%s]')", name)
	t.holds("!!" + field)
	t.do(name, chromedp.Evaluate(fmt.Sprintf("%[1]s.value = %[2]q; %[1]s.dispatchEvent(new Event('change')); null", field,
		text), nil))
}

// TestFork forks one future from each kind of point, and sees what is kept, the fork, and where it came from.
func TestFork(t *testing.T) {
	s := newSite(t)
	mended := s.chargeable()
	id := s.submit("30s", map[string]any{"function": "go:charge"})
	mended.Store(true)
	p := s.newTab()
	p.login(secrets[stack.Submit])
	p.open("futures/" + id)
	p.sees(".step", "pay")
	p.press("Fork …")
	p.sees("dialog", "Kept: 2 steps (reserve "+hostile+", pay). What failed runs again")
	p.enter("from", "start")
	p.sees("dialog", "All of it runs again.")
	p.enter("from", "step:pay")
	p.sees("dialog", "Kept: 1 step (reserve "+hostile+"). Runs again: 1 step (pay), and what follows.")
	p.accessible("fork")
	p.do("name", chromedp.SendKeys("dialog [name=name]", "fix\r")) // Enter goes on
	p.sees("#news", "It was forked: …")
	p.sees("h2", "Forks")
	p.sees("td", "at step pay")
	fork := value[string](p, "document.querySelector('#news a').title")
	p.press("Fork …")
	p.enter("from", "start")
	p.enter("name", "fix")
	p.press("Fork it")
	p.sees("#news .bad", "it was forked otherwise under this name")
	p.press("Fork …")
	p.enter("name", "a\u200eb")
	p.press("Fork it")
	p.sees("#news .bad", "bad name")
	p.press("Fork …")
	p.press("Back")
	p.holds("!document.querySelector('dialog')")

	p.open("futures/" + fork)
	p.sees("h1", "realized")
	p.sees(".timeline", "as a fork of …"+id[len(id)-12:]+", at step pay")
	p.sees(".step", "reserve "+hostile+"copied from its source")
	p.clean("fork")
	const buttons = "[...document.querySelectorAll('button')].filter((b) => /Fork/.test(b.textContent)).length"
	require.Equal(t, 1, value[int](p, buttons), "who may submit sees the button")
	reader := s.newTab()
	reader.login(secrets[stack.Read])
	reader.open("futures/" + id)
	reader.inEachLook("futures/"+id, "td", "at step pay")
	require.Zero(t, value[int](reader, buttons))
	reader.open("futures?function=go:charge")
	reader.sees("td", "charge")
	require.Zero(t, value[int](reader, buttons))
}

// give fills the fields of the last value of a step.
func (t *tab) give(step, value string) {
	t.Helper()
	for name, text := range map[string]string{"[name=step]": step, "[name=value]": value} {
		field := fmt.Sprintf("[...document.querySelectorAll('dialog %s')].at(-1)", name)
		t.holds("!!" + field)
		t.do(name, chromedp.Evaluate(fmt.Sprintf("%[1]s.value = %[2]q; %[1]s.dispatchEvent(new Event('change')); null", field,
			text), nil))
	}
}

// TestForkWithValues gives steps values, and says what is wrong with some.
func TestForkWithValues(t *testing.T) {
	s := newSite(t)
	s.work(func(w *workers.Worker) error {
		return w.Register("book", func(ctx context.Context, _ []byte) ([]byte, error) {
			seat, err := futures.Step(ctx, "seat", func(context.Context) (int64, error) { return 1, nil })
			if err != nil {
				return nil, err
			}
			paid, err := futures.Step(ctx, "pay "+hostile, func(context.Context) (string, error) {
				return "", workers.Permanent(errors.New("no card"))
			})
			return fmt.Append(nil, "seat ", seat, " ", paid), err
		})
	})
	const large = "9007199254740993" // which a float can't be
	failed := s.submit("30s", map[string]any{"function": "go:book", "tags": []string{"booked"}})
	p := s.newTab()
	p.login(secrets[stack.Submit])
	p.open("futures/" + failed)
	p.press("Fork …")
	p.press("Give a step a value")
	p.holds("document.activeElement.name === 'step'")
	p.give("seat", "paid")
	p.sees("dialog .bad", "This is not JSON")
	p.holds("document.querySelector('dialog [name=value]').getAttribute('aria-invalid') === 'true'")
	p.accessible("fork with a bad value")
	p.press("Fork it")
	p.holds("document.querySelector('dialog textarea:invalid') === document.activeElement")
	p.give("", "7")
	p.sees("dialog .bad", "Name the step that has this value.")
	p.give("seat", large)
	p.press("Give a step a value")
	p.give("seat", "8")
	p.sees("dialog .bad", "This step has two values.")
	p.press("Leave it out")
	p.press("Give a step a value")
	p.give("pay "+hostile, `"by card"`)
	p.press("Give a step a value") // which stays empty
	p.accessible("fork with values")
	p.press("Fork it")
	p.sees("#news", "It was forked: …")
	fork := value[string](p, "document.querySelector('#news a').title")
	p.open("futures/" + fork)
	p.sees("h1", "realized")
	p.sees("main", "seat "+large+" by card")
	p.clean("fork with values")

	p.open("futures?tag=booked&state=failed")
	p.press("Fork all …")
	p.sees("dialog", "1 futures would be forked")
	p.press("Give a step a value")
	p.give("pay "+hostile, "by card")
	p.sees("dialog [role=status]", "A value of a step is wrong.")
	p.give("sleep", "0")
	p.sees("dialog", "0 futures would be forked; 1 can't be.")
	p.give("pay "+hostile, `"by hand"`)
	p.sees("dialog", "1 futures would be forked")
	p.enter("name", "hand")
	p.press("Fork them")
	p.sees("#news", "1 futures were forked")
	p.open("futures?label=hand")
	p.sees("td", "realized")
	p.press("Fork all …")
	p.press("Back")
	p.clean("fork all with values")
}

// TestForkAll forks what a filter finds, in two parts under one name, after a preview.
func TestForkAll(t *testing.T) {
	s := newSite(t)
	mended := s.chargeable()
	for range 5 {
		s.submit("30s", map[string]any{"function": "go:charge", "tags": []string{"ours"}})
	}
	s.submit("30s", map[string]any{"function": "go:fail", "tags": []string{"ours"}})
	mended.Store(true)
	p := s.newTab()
	p.login(secrets[stack.Submit])
	p.open("futures?tag=ours")
	p.press("Fork all …")
	p.sees("dialog", "Fork all futures with state failed, tag ours")
	p.sees("dialog", "5 futures would be forked; 1 can't be.")
	p.sees("dialog li", "after step pay, the last of 2, with 2 kept")
	p.accessible("fork all")
	p.enter("from", "mail "+hostile)
	p.sees("dialog", "0 futures would be forked; 6 can't be.")
	p.enter("from", "\u200e")
	p.sees("dialog .bad", "bad name")
	p.enter("from", "failed")
	p.enter("limit", "2")
	p.sees("dialog", "2 futures would be forked; 1 can't be.")
	p.press("Fork them")
	p.holds("document.querySelector('dialog input:invalid').name === 'name'") // none without a name
	p.enter("name", "fix")
	p.press("Fork them")
	p.sees("#news", "2 futures were forked; 1 can't be.")

	p.press("Fork all …")
	p.enter("name", "fix")
	p.sees("dialog", "3 futures would be forked; 2 were before, under this name; 1 can't be.")
	p.press("Fork them")
	p.sees("#news", "3 futures were forked; 2 were before, under this name; 1 can't be")
	p.click("The forks")
	p.holds("document.querySelectorAll('tbody tr').length === 5 && location.hash === '#/futures?label=fix'")
	p.holds("[...document.querySelectorAll('.badge')].every((b) => b.textContent === 'realized')")
	p.open("futures?label=fix&state=realized")
	p.press("Fork all …")
	p.enter("from", "start")
	p.enter("name", "fix")
	p.sees("dialog", "0 futures would be forked. Left alone: 5 forks of this name.")
	p.press("Back")
	p.open("futures?error=no+card")
	p.holds("document.querySelectorAll('tbody tr').length === 5")
	p.clean("fork all")
}
