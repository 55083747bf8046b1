package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

// TestPromisesFromTheCommandLine makes promises, and completes them by id and by token.
func TestPromisesFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id, token, found := strings.Cut(strings.TrimSpace(s.ok("promise", "new", "--label", "order 7", "--tag", "a",
		"--expires", "1h")), "\n")
	require.True(t, found)
	require.Contains(t, s.ok("explain", id), "futura promise resolve")
	require.Contains(t, s.ok("promise", "list"), id)
	for _, command := range []string{"get", "inspect", "explain", "list"} {
		args := []string{command, id}
		if command == "list" {
			args[1] = "--json"
		}
		require.NotContains(t, s.ok(args...), token)
	}
	require.Contains(t, s.ok("promise", "resolve", token, `{"ok": true}`), "realized")
	require.Contains(t, s.ok("promise", "resolve", id, `{"ok":true}`), "realized already")
	require.Contains(t, s.ok("get", id), `{"ok":true}`)
	_, e := s.run(exitUsage, "", "promise", "resolve", id, "1")
	require.Contains(t, e, "completed otherwise")
	_, e = s.run(exitUsage, "", "promise", "reject", id, "no")
	require.Contains(t, e, "completed otherwise")
	_, e = s.run(exitUsage, "", "promise", "token", id)
	require.Contains(t, e, "a new token is not possible")
	require.NotContains(t, s.ok("promise", "list"), id)
	require.Contains(t, s.ok("promise", "list", "--all", "--tag", "a"), id)

	var made httpapi.MadePromise
	require.NoError(t, json.Unmarshal([]byte(s.ok("promise", "new", "--key", "k", "--json")), &made))
	require.Equal(t, "/api/v1/promises/"+made.Token, made.Path)
	out, e := s.run(exitOK, "", "promise", "new", "--key", "k")
	require.Equal(t, made.ID.String()+"\n", out)
	require.Contains(t, e, "is this one")
	renewed := strings.TrimSpace(s.ok("promise", "token", made.ID.String()))
	_, e = s.run(exitNotFound, "", "promise", "reject", made.Token)
	require.Contains(t, e, "opens no promise")
	out, _ = s.run(exitOK, renewed+"\r\nmore\r\n", "promise", "reject", "-", "too dear", "--json")
	require.JSONEq(t, `{"outcome": "failed", "already": false}`, out)
	require.Contains(t, s.ok("explain", made.ID.String()), "Retry it by hand to have it wait again")
	require.Contains(t, s.ok("retry", made.ID.String()), "blocked")
	out, _ = s.run(exitOK, "as it is", "promise", "resolve", made.ID.String(), "-", "--raw")
	require.Contains(t, out, "realized")
	require.Contains(t, s.ok("get", made.ID.String()), "as it is")
}

// TestPromiseOptionsFromTheCommandLine makes promises with what limits and names them, and lists them in pages.
func TestPromiseOptionsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	var made, again httpapi.MadePromise
	var view httpapi.Future
	require.NoError(t, json.Unmarshal([]byte(s.ok("promise", "new", "--deadline", "2099-12-24T18:00:00Z", "--queue", "q",
		"--expires", "1h", "--tag", "a", "--unique", "only", "--json")), &made))
	require.NoError(t, json.Unmarshal([]byte(s.ok("get", made.ID.String(), "--json")), &view))
	require.Equal(t, 2099, view.Deadline.UTC().Year())
	require.Equal(t, "q", view.Queue)
	require.NotNil(t, view.Unique)
	require.NoError(t, json.Unmarshal([]byte(s.ok("promise", "new", "--unique", "only", "--on-conflict", "return",
		"--json")), &again))
	require.Equal(t, made.ID, again.ID)
	require.Empty(t, again.Token)
	late, _, _ := strings.Cut(s.ok("promise", "new", "--deadline", "2001-12-24T18:00:00Z"), "\n")
	_, e := s.run(exitUsage, "", "promise", "resolve", late, "1")
	require.Contains(t, e, "the promise has expired")
	other, _, _ := strings.Cut(s.ok("promise", "new"), "\n")
	first, e := s.run(exitOK, "", "promise", "list", "--limit", "1")
	_, cursor, found := strings.Cut(strings.TrimSpace(e), "--cursor ")
	require.True(t, found, e)
	both := first + s.ok("promise", "list", "--limit", "1", "--cursor", strings.Trim(cursor, "'"))
	require.Contains(t, both, other)
	require.Contains(t, both, made.ID.String())
}

// TestATokenIsOneLine: who types it ends it with that line, and not with the end of the input.
func TestATokenIsOneLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	_, token, _ := strings.Cut(s.ok("promise", "new"), "\n")
	in := io.MultiReader(strings.NewReader(token+"\n"), iotest.ErrReader(errors.New("more is read")))
	var out, e stacktest.Buffer
	code := run(t.Context(), []string{"promise", "resolve", "-", "1", "--store", s.store}, in, &out, &e)
	require.Equal(t, exitOK, code, &e)
	require.Equal(t, "realized\n", out.String())
}

// TestRefusalsAreUsage have one exit code, those of promises and those of forks.
func TestRefusalsAreUsage(t *testing.T) {
	t.Parallel()
	for _, err := range []error{futures.ErrPromiseConflict, futures.ErrPromiseExpired, futures.ErrPromiseCancelled,
		futures.ErrNoPromise, futures.ErrUnforkable, futures.ErrNoStep, futures.ErrNothingFailed, futures.ErrAmbiguousStep,
		futures.ErrForked} {
		require.Equal(t, exitUsage, exitCode(t.Context(), fmt.Errorf("future 7: %w", err)), err)
	}
}

func TestPromiseCallsThatAreWrong(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	plain := strings.TrimSpace(s.ok("submit", "go:f"))
	const none = "01995b4e-6f3a-7c1e-9d2b-0123456789ab"
	for says, args := range map[string][]string{
		"is not JSON": {"resolve", none, "yes"}, "begins with prm_": {"resolve", "nobody", "1"},
		"can't both be": {"resolve", "-", "-"}, "is not a promise": {"resolve", plain, "1"},
		"--key is empty": {"new", "--key", ""}, "use a time such as": {"new", "--deadline", "tomorrow"},
		"--limit 0": {"list", "--limit", "0"}, "it has passed": {"new", "--deadline", "-1m"},
	} {
		_, e := s.run(exitUsage, "", append([]string{"promise"}, args...)...)
		require.Contains(t, e, says)
	}
	_, e := s.run(exitUsage, `"`+strings.Repeat("x", layout.MaxPut)+`"`, "promise", "resolve", none, "-")
	require.Contains(t, e, "has more than 67108864 bytes")
	id, _, _ := strings.Cut(s.ok("promise", "new", "--deadline", "30m"), "\n")
	require.Regexp(t, `(?m)^deadline +20`, s.ok("get", id))
	s.run(exitNotFound, "", "promise", "resolve", none, "1")
	s.run(exitNotFound, "", "promise", "token", none)
	s.run(exitNotFound, "", "promise", "resolve", "prm_0", "1")
}
