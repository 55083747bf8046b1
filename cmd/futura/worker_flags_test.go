package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestObjectFlags(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for says, args := range map[string][]string{
		"--object-listen and": {"--object-disk", "5"}, "needs --object-dir": {"--object-disk", "5", "--object-memory", "9"},
		"--object-above, --object-dir": {"--object-above", "5"}, "need --object-memory": {"--object-plain-text"},
		"--object-plain-text needs":        {"--object-memory", "9", "--object-plain-text"},
		"--object-above -2":                {"--object-memory", "9", "--object-above", "-2"},
		"HOST:PORT":                        {"--object-memory", "9", "--object-listen", "foo"},
		"--object-plain-text in a network": {"--object-memory", "9", "--object-listen", "0.0.0.0:0"},
	} {
		_, e := s.run(exitUsage, "", append([]string{"worker"}, args...)...)
		require.Contains(t, e, says)
	}
}

func TestMetricsFlags(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for says, args := range map[string][]string{
		"needs --tokens or --token-file": {"--metrics-listen", "127.0.0.1:0"},
		"--tokens needs":                 {"--tokens", "x"}, "--plain-http needs": {"--plain-http"},
		"no such file": {"--metrics-listen", "127.0.0.1:0", "--token-file", filepath.Join(t.TempDir(), "none")},
		"HOST:PORT":    {"--metrics-listen", "7430", "--tokens", "x"},
		"--plain-http in a network that you trust": {"--metrics-listen", "0.0.0.0:0", "--tokens", "x"},
	} {
		_, e := s.run(exitUsage, "", append([]string{"worker"}, args...)...)
		require.Contains(t, e, says)
	}
}

// TestModuleTimeoutFlag has an hour by default, and none by an explicit 0.
func TestModuleTimeoutFlag(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]struct {
		option time.Duration
		says   string
	}{
		"":    {time.Hour, "for 1h0m0s"},
		"90s": {90 * time.Second, "for 1m30s"},
		"0":   {-1, "for ever"},
	} {
		var f workerFlags
		flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
		f.add(flags)
		if value != "" {
			require.NoError(t, flags.Set("module-timeout", value))
		}
		require.NoError(t, f.check(flags))
		require.Equal(t, want.option, f.options.ModuleTimeout)
		require.Contains(t, describeTimeout(max(f.options.ModuleTimeout, 0)), want.says)
	}
}

// TestOneGetWritesAFile has a second call for the same unfinished file.
func TestOneGetWritesAFile(t *testing.T) {
	t.Parallel()
	part := filepath.Join(t.TempDir(), "part")
	first, err := openPart(part)
	require.NoError(t, err)
	_, err = openPart(part)
	require.ErrorIs(t, err, errWritten)
	require.NoError(t, os.Rename(part, part+"-whole"))
	second, err := openPart(part)
	require.NoError(t, err, "the first one is done")
	require.NoError(t, second.Close())
	require.NoError(t, first.Close())
}
