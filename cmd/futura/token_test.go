package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNamedTokens makes a token for a server that runs, uses and revokes it.
func TestNamedTokens(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	tokens := filepath.Join(t.TempDir(), "tokens")
	first := strings.TrimSpace(s.ok("token", "create", "first", "--role", "read", "--tokens", tokens))
	e, log, stop := startDev(t, "--store", s.store, "--tokens", tokens, "--access-log")
	status, _ := ask(t, &e, "GET", "/api/v1/futures", first, "")
	require.Equal(t, http.StatusOK, status)
	status, _ = ask(t, &e, "POST", "/api/v1/futures", first, "{}")
	require.Equal(t, http.StatusForbidden, status)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "principal=first") }, time.Minute,
		time.Millisecond)
	second := strings.TrimSpace(s.ok("token", "create", "second", "--expires", "1h", "--tokens", tokens))
	becomes := func(secret string, want int) {
		require.Eventually(t, func() bool {
			status, _ := ask(t, &e, "GET", "/api/v1/futures", secret, "")
			return status == want
		}, time.Minute, 10*time.Millisecond)
	}
	becomes(second, http.StatusOK)
	listed := s.ok("token", "list", "--tokens", tokens)
	require.Regexp(t, `first +read +never`, listed)
	require.Regexp(t, `second +submit +20`, listed)
	require.NotContains(t, listed, first)
	revoked := s.ok("token", "revoke", "first", "--tokens", tokens, "--json")
	require.JSONEq(t, `{"outcome":"revoked","name":"first"}`, revoked)
	becomes(first, http.StatusUnauthorized)
	require.NotContains(t, log.String(), first)
	require.Equal(t, exitOK, stop())

	s.run(exitNotFound, "", "token", "revoke", "first", "--tokens", tokens)
	s.run(exitNotFound, "", "token", "revoke", "first", "--tokens", tokens+"-none")
	_, text := s.run(exitUsage, "", "token", "create", "second", "--tokens", tokens)
	require.Contains(t, text, "a token with this name exists")
	_, text = s.run(exitUsage, "", "token", "create", "third", "--role", "boss", "--tokens", tokens)
	require.Contains(t, text, "read, submit or admin")
	require.NoError(t, os.Chmod(tokens, 0o644))
	_, text = s.run(exitUsage, "", "dev", "--listen", "127.0.0.1:0", "--tokens", tokens)
	require.Contains(t, text, "chmod 600")
}

// TestDevKeepsItsToken starts dev twice on one store, with tokens in its
// directory.
func TestDevKeepsItsToken(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	e, _, stop := startDev(t, "--store", s.store)
	reader := strings.TrimSpace(s.ok("token", "create", "reader", "--role", "read"))
	require.Eventually(t, func() bool {
		status, _ := ask(t, &e, "GET", "/api/v1/futures", reader, "")
		return status == http.StatusOK
	}, time.Minute, 10*time.Millisecond, "the first token makes the file")
	require.Equal(t, exitOK, stop())
	dir, _ := embeddedDir(s.store)
	info, err := os.Stat(filepath.Join(dir, ownTokenFile))
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)
	again, _, _ := startDev(t, "--store", s.store)
	require.Equal(t, e.Token, again.Token)
	for _, token := range []string{e.Token, reader} {
		status, _ := ask(t, &again, "GET", "/api/v1/futures", token, "")
		require.Equal(t, http.StatusOK, status)
	}
}
