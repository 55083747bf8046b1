package main

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures"
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
	all := s.support(file)
	for name, text := range all {
		require.NotContains(t, text, secret, name)
		require.NotContains(t, text, "could not be read", name)
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

// support writes an archive and returns its files.
func (s *shell) support(file string) map[string]string {
	s.ok("support", "--output", file)
	archive, err := zip.OpenReader(file)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, archive.Close()) }()
	all := map[string]string{}
	for _, part := range archive.File {
		r, err := part.Open()
		require.NoError(s.t, err)
		text, err := io.ReadAll(r)
		require.NoError(s.t, err)
		require.NoError(s.t, r.Close())
		all[part.Name] = string(text)
	}
	return all
}

// TestSupportHasTheLanesThatCanBeRead though one kind of lanes can't.
func TestSupportHasTheLanesThatCanBeRead(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("lane", "set", "bad")
	s.ok("lane", "set", "good")
	s.past(func(c *futures.Client, tx kv.Tx) { tx.Set(c.Cluster().Keys().LaneKind("bad"), []byte{0xff}) })
	all := s.support(filepath.Join(t.TempDir(), "support.zip"))
	require.Contains(t, all["lanes.json"], `"good"`)
	require.Regexp(t, `(?m)^lanes.json .*: some could not be read: .*bad`, all["README.txt"])
}
