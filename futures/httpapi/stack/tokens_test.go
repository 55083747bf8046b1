package stack

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTokensAreReadAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	reader, err := CreateToken(path, "reader", "read", time.Time{})
	require.NoError(t, err)
	require.Len(t, reader, 64)
	var log bytes.Buffer
	tokens, err := OpenTokens(path, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	now := time.Now()
	tokens.now = func() time.Time { return now }
	found, ok := tokens.Find(reader)
	require.True(t, ok)
	require.Equal(t, []any{"reader", Read}, []any{found.Name, found.Role})

	// Another token is created and expires.
	admin, err := CreateToken(path, "boss", "admin", now.Add(time.Hour))
	require.NoError(t, err)
	_, ok = tokens.Find(admin)
	require.False(t, ok, "the file was read less than a second ago")
	now = now.Add(reloadTime)
	found, ok = tokens.Find(admin)
	require.True(t, ok)
	require.Equal(t, Admin, found.Role)
	now = now.Add(time.Hour)
	_, ok = tokens.Find(admin)
	require.False(t, ok, "it has expired")

	// A token is revoked while the server runs.
	require.NoError(t, RevokeToken(path, "reader"))
	now = now.Add(reloadTime)
	_, ok = tokens.Find(reader)
	require.False(t, ok)
	require.ErrorIs(t, RevokeToken(path, "reader"), ErrNoToken)
	_, err = CreateToken(path, "boss", "read", time.Time{})
	require.ErrorIs(t, err, ErrTokenExists)

	// An invalid file leaves the tokens unchanged.
	again, err := CreateToken(path, "reader", "submit", time.Time{})
	require.NoError(t, err)
	now = now.Add(reloadTime)
	_, ok = tokens.Find(again)
	require.True(t, ok)
	require.NoError(t, os.WriteFile(path, []byte("nonsense"), 0o600))
	require.ErrorContains(t, tokens.Reload(), "line 1")
	now = now.Add(reloadTime)
	_, ok = tokens.Find(again)
	require.True(t, ok)
	require.Contains(t, log.String(), "keeping the previous ones")
	for _, wrong := range []string{"", "wrong", again[1:], again + "0"} {
		_, ok = tokens.Find(wrong)
		require.False(t, ok, wrong)
	}
}

// TestAFileOfTokensMayComeLater creates the file after it was opened.
func TestAFileOfTokensMayComeLater(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	var log bytes.Buffer
	tokens, err := OpenTokens(path, slog.New(slog.NewTextHandler(&log, nil)))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, tokens.Reload(), "there was none")
	now := time.Now()
	tokens.now = func() time.Time { return now }
	now = now.Add(reloadTime)
	_, ok := tokens.Find("none")
	require.False(t, ok)
	secret, err := CreateToken(path, "a", "read", time.Time{})
	require.NoError(t, err)
	now = now.Add(reloadTime)
	_, ok = tokens.Find(secret)
	require.True(t, ok)
	require.Empty(t, log.String())
	require.NoError(t, os.Remove(path))
	require.ErrorIs(t, tokens.Reload(), os.ErrNotExist)
	_, ok = tokens.Find(secret)
	require.True(t, ok, "it stays in force")
}

func TestTokensCreatedAtOnceAreAllKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	const n = 20
	var creators sync.WaitGroup
	for i := range n {
		creators.Go(func() {
			_, err := CreateToken(path, fmt.Sprint("t", i), "read", time.Time{})
			require.NoError(t, err)
		})
	}
	creators.Wait()
	tokens, err := ListTokens(path)
	require.NoError(t, err)
	require.Len(t, tokens, n)
}

// TestAFullFileOfTokensStaysReadable adds a token that has no room.
func TestAFullFileOfTokensStaysReadable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	const line = "%05d read 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n"
	var content bytes.Buffer
	n := 0
	for ; content.Len()+len("# name role sha256 [expires]\n")+80 < maxTokenFile; n++ {
		fmt.Fprintf(&content, line, n)
	}
	require.NoError(t, os.WriteFile(path, content.Bytes(), 0o600))
	_, err := CreateToken(path, strings.Repeat("x", maxTokenName), "submit", time.Time{})
	require.ErrorIs(t, err, ErrBadTokens)
	require.ErrorContains(t, err, "revoke")
	tokens, err := ListTokens(path)
	require.NoError(t, err)
	require.Len(t, tokens, n)
}

func TestSecretsAreNotStored(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	secret, err := CreateToken(path, "a", "admin", time.Time{})
	require.NoError(t, err)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(content), secret)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)
	require.NoError(t, os.Chmod(path, 0o644))
	_, err = OpenTokens(path, nil)
	require.ErrorIs(t, err, ErrBadTokens)
	require.ErrorContains(t, err, "chmod 600")
}

func TestFilesOfTokensThatAreWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const sum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	for content, says := range map[string]string{
		"a read": "2 words", "a boss " + sum: "read, submit or admin", "a read 00": "SHA-256", "a public " + sum: "no role",
		"ä read " + sum: "the name", "a read " + sum + " soon": "soon", "a read " + sum + "\na admin " + sum: "another",
	} {
		path := filepath.Join(dir, "tokens")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := OpenTokens(path, nil)
		require.ErrorIs(t, err, ErrBadTokens)
		require.ErrorContains(t, err, says, "%q", content)
	}
	_, err := OpenTokens(filepath.Join(dir, "none"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = CreateToken(filepath.Join(dir, "other"), "a b", "read", time.Time{})
	require.ErrorIs(t, err, ErrBadTokens)
}

// FuzzTokens parses arbitrary token files, and parses them again after writing
// them.
func FuzzTokens(f *testing.F) {
	f.Add([]byte("a read 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 2026-11-21T00:00:00Z\n# x\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		tokens, err := parseTokens(content)
		if err != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "tokens")
		require.NoError(t, writeTokens(path, tokens))
		again, err := ListTokens(path)
		require.NoError(t, err)
		require.Len(t, again, len(tokens))
		for i := range tokens {
			require.Equal(t, tokens[i].sum, again[i].sum)
			require.Equal(t, tokens[i].Name, again[i].Name)
			require.Equal(t, tokens[i].Role, again[i].Role)
			require.True(t, tokens[i].Expires.Truncate(time.Second).Equal(again[i].Expires))
		}
	})
}
