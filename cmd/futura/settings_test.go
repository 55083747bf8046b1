package main

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSettingsCountAsFlags sets by the environment what commands change only if it is said.
func TestSettingsCountAsFlags(t *testing.T) {
	s := newShell(t)
	s.ok("cluster", "create")
	t.Setenv("FUTURA_LIMITS_SET_PENDING", "7")
	require.Regexp(t, `(?m)^pending +0 +7$`, s.ok("limits", "set"))
	t.Setenv("FUTURA_CLUSTER_SET_MAX_PRIORITY", "9") // below the name of another setting
	s.ok("list")
	require.Regexp(t, `(?m)^highest priority +9$`, s.ok("cluster", "set"))
	s.ok("lane", "set", "mail")
	t.Setenv("FUTURA_LANE_SET_WIDTH", "3")
	t.Setenv("FUTURA_LANE_SET_RATE", "10/s")
	require.Equal(t, "mail: width 3, 10 in 1s", s.ok("lane", "set", "mail"))
	require.Equal(t, "mail: width 2, 10 in 1s", s.ok("lane", "set", "mail", "--width", "2"))
	t.Setenv("FUTURA_SUBMIT_UNIQUE", "nightly")
	s.ok("submit", "go:f")
	_, e := s.run(exitUsage, "", "submit", "go:f")
	require.Contains(t, e, "not unique")
	t.Setenv("FUTURA_WORKER_SLOTS", "0")
	_, e = s.run(exitUsage, "", "worker")
	require.Contains(t, e, "--slots 0")
}

// TestSettingsGoWithCallsThatHaveNoUseForThem sets what only some calls take.
func TestSettingsGoWithCallsThatHaveNoUseForThem(t *testing.T) {
	s := newShell(t)
	id := s.ok("submit", "go:f")
	s.ok("cancel", id)
	for _, name := range []string{"FUTURA_CHECK_YES", "FUTURA_FORK_YES"} {
		t.Setenv(name, "true")
	}
	s.ok("check")
	s.ok("check", "--repair")
	s.ok("check", "--repair", "--dry-run")
	s.ok("fork", id, "--from", "start")
	_, e := s.run(exitUsage, "", "check", "--yes")
	require.Contains(t, e, "go with --repair")
	_, e = s.run(exitUsage, "", "check", "--repair", "--dry-run", "--yes")
	require.Contains(t, e, "leave out --yes")
	_, e = s.run(exitUsage, "", "fork", id, "--yes")
	require.Contains(t, e, "go with a selection")
}

// TestHelpNeedsNoSettings has help and completion work beside a file that can't be read.
func TestHelpNeedsNoSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	s := newShell(t)
	require.NoError(t, os.WriteFile(configFile, []byte("dev: ["), 0o600))
	for _, args := range [][]string{
		{}, {"--help"}, {"help"}, {"help", "submit"}, {"lane"}, {"completion", "bash"}, {"__complete", "sub"},
	} {
		require.NotEmpty(t, s.ok(args...), args)
	}
	_, e := s.run(exitUsage, "", "list")
	require.Contains(t, e, configFile)
}

// TestRestoreTakesTheClusterOfTheEnvironment as any command does.
func TestRestoreTakesTheClusterOfTheEnvironment(t *testing.T) {
	s := newShell(t)
	s.ok("submit", "go:f")
	file := t.TempDir() + "/backup"
	s.ok("backup", file)
	t.Setenv("FUTURA_CLUSTER", "rehearsal")
	require.Regexp(t, `(?m)^cluster +rehearsal$`, s.ok("restore", file))
}

// TestSettingsForAllCalls sets what goes with another flag, for the calls that have that one: others go on as before.
func TestSettingsForAllCalls(t *testing.T) {
	s := newShell(t)
	t.Setenv("FUTURA_SUBMIT_UNIQUE_FOR", "1h")
	s.ok("submit", "go:f")
	_, e := s.run(exitUsage, "", "submit", "go:f", "--unique-until", "claim")
	require.Contains(t, e, "say by what it is unique")
	body, err := (&batchFlags{function: "f", format: formatCSV, skipHeader: true}).body(&app{}, []string{"a"})
	require.NoError(t, err)
	require.Contains(t, string(body), `[["a"]]`)
}

func TestMisspeltVariables(t *testing.T) {
	t.Parallel()
	root := (&app{}).root()
	var said bytes.Buffer
	root.SetErr(&said)
	root.SetOut(io.Discard)
	cmd, _, err := root.Find([]string{"dev"})
	require.NoError(t, err)
	for variable, meant := range map[string]string{
		"FUTURA_STOER=x": "", "FUTURA_STOR=x": "FUTURA_STORE", "FUTURA_STORAGE=x": "FUTURA_STORE",
		"FUTURA_CLUSTERS=x": "FUTURA_CLUSTER", "FUTURA_DEV_SLOT=3": "FUTURA_DEV_SLOTS", "FUTURA_SLOTS=3": "FUTURA_DEV_SLOTS",
		"FUTURA_DEV_TOKENFILE=x": "FUTURA_DEV_TOKEN_FILE", "FUTURA_REMOTE_TOKENS=x": "FUTURA_REMOTE_TOKEN",
		"FUTURA_STOR=": "", "FUTURA_STORE=x": "", "FUTURA_PORT=tcp://10.0.0.1:7420": "", "FUTURA_SERVICE_HOST=10.0.0.1": "",
		"FUTURA_DEV_PORT=x": "", "FUTURA_=x": "", "OTHER_STOR=x": "", "FUTURA_REMOTE_TOKEN=x": "",
	} {
		said.Reset()
		warnOfMisspelt(cmd, []string{variable}, settings(root))
		if meant == "" {
			require.Empty(t, said.String(), variable)
			continue
		}
		require.Contains(t, said.String(), "is ignored: did you mean "+meant+"?", variable)
	}
}
