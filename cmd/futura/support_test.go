package main

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSupportTellsNoSecrets fills a cluster with secrets wherever users write texts of their own, and
// looks for them in the archive.
func TestSupportTellsNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	s := newShell(t)
	s.ok("submit", "go:charge", "--queue", "orders", "--args", secret, "--tag", secret)
	id := strings.TrimSpace(s.ok("submit", "go:charge", "--queue", "orders", "--args", secret))
	s.ok("cancel", id, "--reason", secret)
	s.ok("lane", "set", "mail", "--width", "1")
	s.ok("submit", "go:send", "--lane", "mail/"+secret)
	s.ok("schedule", "add", "nightly", "go:report", "--cron", "@daily", "--args", secret)
	s.ok("schedule", "pause", "nightly", "--reason", secret)
	s.ok("pause", "queue", "reports", "--reason", secret)
	s.ok("jobs", "append", "numbers", secret)
	file := filepath.Join(t.TempDir(), "support.zip")
	s.ok("support", "--output", file)
	archive, err := zip.OpenReader(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, archive.Close()) }()
	all := map[string]string{}
	for _, part := range archive.File {
		r, err := part.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		all[part.Name] = string(text)
		require.NotContains(t, string(text), secret, part.Name)
		require.NotContains(t, string(text), "could not be read", part.Name)
	}
	require.Len(t, all, len(supportParts())+1)
	for name, want := range map[string]string{
		"failed.json": "cancelled", "waiting.json": "go:send", "cluster.json": "orders", "lanes.json": "mail",
		"schedules.json": "nightly", "pauses.json": "reports", "jobs.json": "numbers", "README.txt": "workers.json",
	} {
		require.Contains(t, all[name], want, name)
	}
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	s.run(exitUsage, "", "support", "--output", file)
	require.Contains(t, all["about.json"], "processors")
}
