package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// configured returns the value of a flag after a command line was read.
func configured(t *testing.T, flag string, args ...string) (string, error) {
	t.Helper()
	root := (&app{}).root()
	cmd, rest, err := root.Find(args)
	require.NoError(t, err)
	var found string
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		found = cmd.Flags().Lookup(flag).Value.String()
		return nil
	}
	cmd.Args = nil
	_ = rest
	root.SetArgs(args)
	err = root.Execute()
	return found, err
}

func TestFlagOverEnvironmentOverFileOverDefault(t *testing.T) {
	file := filepath.Join(t.TempDir(), "futura.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
store: "memory:"
dev:
  listen: 127.0.0.1:1
  slots: 3
  queue: [a, b]
  drain: 5s
function:
  put:
    alias: mine
`), 0o600))
	value := func(flag string, args ...string) string {
		found, err := configured(t, flag, args...)
		require.NoError(t, err)
		return found
	}
	require.Equal(t, "embedded:./.futura", value("store", "list"))
	require.Equal(t, "memory:", value("store", "list", "--config", file))
	t.Setenv("FUTURA_CONFIG", file)
	require.Equal(t, "memory:", value("store", "list"))
	require.Equal(t, "127.0.0.1:1", value("listen", "dev"))
	require.Equal(t, "3", value("slots", "dev"))
	require.Equal(t, "[a,b]", value("queue", "dev"))
	require.Equal(t, "5s", value("drain", "dev"))
	require.Equal(t, "mine", value("alias", "function", "put"))
	require.Equal(t, "0", value("slots", "worker"), "another command's section")
	t.Setenv("FUTURA_DEV_SLOTS", "4")
	t.Setenv("FUTURA_DEV_QUEUE", "c,d")
	t.Setenv("FUTURA_STORE", "fdb:x")
	require.Equal(t, "4", value("slots", "dev"))
	require.Equal(t, "[c,d]", value("queue", "dev"))
	require.Equal(t, "fdb:x", value("store", "list"))
	require.Equal(t, "5", value("slots", "dev", "--slots", "5"))
	require.Equal(t, "memory:", value("store", "list", "--store", "memory:"))
}

func TestConfigurationMistakes(t *testing.T) {
	t.Parallel()
	for content, says := range map[string]string{
		"stor: x":                   `no setting "stor"`,
		"dev: {slot: 3}":            `no setting "dev.slot"`,
		"dev: {slots: many}":        "dev.slots",
		"dev: {slots: [1, 2]}":      "one value",
		"dev: {slots: {a: 1}}":      `"dev.slots.a"`,
		"list: {config: x}":         `"list.config"`,
		"config: x":                 `"config"`,
		"dev: [":                    "yaml",
		"\x00":                      "yaml",
		"store: memory:\nstore: x:": "yaml",
	} {
		file := filepath.Join(t.TempDir(), "futura.yaml")
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, err := configured(t, "slots", "dev", "--config", file)
		require.ErrorContains(t, err, says, content)
		require.ErrorAs(t, err, new(usageError), content)
		require.ErrorContains(t, err, file, content)
	}
	_, err := configured(t, "slots", "dev", "--config", "none.yaml")
	require.ErrorContains(t, err, "none.yaml")
}

// FuzzConfiguration reads any file as settings of dev.
func FuzzConfiguration(f *testing.F) {
	for _, content := range []string{
		"store: \"memory:\"\ndev:\n  slots: 3\n  queue: [a, b]\n", "head:\n  batch:\n    server: x\n    db-name: y\n",
		"dev: {slots: [1, 2]}", "a: &a [*a]", "dev: {<<: {slots: 1}}", "? [a]\n: b", "dev: !!binary x", "1: 2", "- a", "dev:",
	} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file := filepath.Join(t.TempDir(), "futura.yaml")
		require.NoError(t, os.WriteFile(file, content, 0o600))
		if _, err := configured(t, "slots", "dev", "--config", file); err != nil {
			require.ErrorAs(t, err, new(usageError))
			require.ErrorContains(t, err, file)
		}
	})
}

// FuzzEndpoint reads what may lie in the directory of a store.
func FuzzEndpoint(f *testing.F) {
	f.Add([]byte(`{"url":"http://127.0.0.1:1","token":"t","pid":7,"store":"remote:unix:s"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, endpointFile), content, 0o600))
		e, err := readEndpoint(dir)
		if err != nil {
			require.ErrorContains(t, err, dir)
			return
		}
		require.NoError(t, e.write(dir))
		again, err := readEndpoint(dir)
		require.NoError(t, err)
		require.Equal(t, e, again)
	})
}
