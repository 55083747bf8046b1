package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// measured runs the command on stores of its own.
func measured(t *testing.T, want int, args ...string) (out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code := run(context.Background(), args, &o, &e)
	require.Equal(t, want, code, "%v: %s%s", args, &o, &e)
	return o.String(), e.String()
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("no Go"), 0o600))
	for _, c := range []struct {
		says string
		args []string
	}{
		{"no scenario", []string{"nothing"}},
		{"accepts 1 arg", []string{}},
		{"unknown flag: --what", []string{"latency", "--what"}},
		{"use memory:", []string{"latency", "--store", "nowhere:"}},
		{"--futures -1, --workers 0", []string{"latency", "--futures", "-1"}},
		{"--workers -1", []string{"latency", "--workers", "-1"}},
		{"the page has no such scenario", []string{"page", "--only", "idle/fdb", "--dir", dir}},
		{"at least 2", []string{"demo", "--workers", "1"}},
		{"no such file", []string{"demo", "--typed", "--dir", filepath.Join(dir, "none")}},
		{"no Go files below", []string{"demo", "--dir", text}},
	} {
		out, e := measured(t, exitUsage, c.args...)
		require.Empty(t, out, c.args)
		require.Contains(t, e, c.says, c.args)
	}
}

func TestAScenarioIsATableOrJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	out, progress := measured(t, exitOK, "latency", "--futures", "5", "--json")
	var report map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.Equal(t, "latency", report["scenario"])
	require.Contains(t, report, "p50_ms")
	require.NotEmpty(t, progress)
	out, _ = measured(t, exitOK, "latency", "--futures", "5", "--store", "memory:")
	require.Regexp(t, `(?m)^latency +memory:\ncores `, out)
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, left, "the temporary store is removed")
}

func TestTypedDemo(t *testing.T) {
	t.Parallel()
	var report struct {
		Files    int
		Same     bool   `json:"same_as_local"`
		Vanished string `json:"vanished_worker"`
	}
	out, _ := measured(t, exitOK, "demo", "--typed", "--json", "--dir", "../../fdbmodel")
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.Greater(t, report.Files, 50)
	require.True(t, report.Same)
	require.NotEmpty(t, report.Vanished)
}
