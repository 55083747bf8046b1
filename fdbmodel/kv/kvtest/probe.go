package kvtest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

// probe reads within one attempt of a transaction and notes each answer as a
// line. Errors that another attempt cures end the attempt; others are answers.
type probe struct {
	kv.Tx
	b     *bundle
	lines []string
	err   error
}

// expect runs fn as often as it takes and compares what its reads noted.
// Nothing that fn writes is committed.
func (b *bundle) expect(fn func(*probe), want ...string) {
	b.Helper()
	require.Equal(b, want, b.observe(fn))
}

func (b *bundle) observe(fn func(*probe)) []string {
	b.Helper()
	var lines []string
	for lines == nil {
		require.NoError(b, b.ctx.Err())
		p := &probe{Tx: b.db.Begin(kv.Options{}), b: b, lines: []string{}}
		fn(p)
		p.Cancel()
		require.True(b, p.err == nil || kv.Retryable(p.err))
		if p.err == nil {
			lines = p.lines
		}
	}
	return lines
}

// note adds an answer, or what prevented it.
func (p *probe) note(err error, format string, args ...any) {
	switch {
	case err == nil:
		p.lines = append(p.lines, fmt.Sprintf(format, args...))
	case kv.Retryable(err):
		p.err = err
	default:
		p.lines = append(p.lines, condition(err))
	}
}

// condition names what err is, without what a store adds to it.
func condition(err error) string {
	for _, sentinel := range []error{kv.ErrUnreadable, kv.ErrBadStampOffset, kv.ErrIllegalKey, kv.ErrUsed} {
		if errors.Is(err, sentinel) {
			return sentinel.Error()
		}
	}
	return err.Error()
}

// get notes name=value.
func (p *probe) get(name string) { p.getFrom(p.Tx, name) }

func (p *probe) getFrom(r kv.Reader, name string) {
	value, err := r.Get(p.b.key(name)).Wait(p.b.ctx)
	p.note(err, "%s=%s", name, show(value))
}

// scan notes the rows of a range, and an ellipsis where there may be more.
func (p *probe) scan(from, to string, o kv.RangeOptions) { p.scanFrom(p.Tx, from, to, o) }

func (p *probe) scanFrom(r kv.Reader, from, to string, o kv.RangeOptions) {
	page, err := r.GetRange(p.b.span(from, to), o).Wait(p.b.ctx)
	p.note(err, "%s", p.b.showPage(page))
}

// set writes value at the case's key of that name.
func (p *probe) set(name, value string) { p.Set(p.b.key(name), []byte(value)) }

func show(value []byte) string {
	if value == nil {
		return "<absent>"
	}
	return string(value)
}

func (b *bundle) showPage(page kv.Page) string {
	var rows []string
	for _, item := range page.Items {
		rows = append(rows, strings.TrimPrefix(string(item.Key), string(b.prefix))+"="+show(item.Value))
	}
	if page.More {
		rows = append(rows, "...")
	}
	return strings.Join(rows, " ")
}

// get reads the named key with all retries.
func (b *bundle) get(name string) string {
	b.Helper()
	return strings.TrimPrefix(b.observe(func(p *probe) { p.get(name) })[0], name+"=")
}

// scan reads a range with all retries.
func (b *bundle) scan(from, to string) string {
	b.Helper()
	return b.observe(func(p *probe) { p.scan(from, to, kv.RangeOptions{}) })[0]
}
