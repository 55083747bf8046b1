package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	require.Equal(t, "127.0.0.1:2", value("rest-api", "head", "--listen", "127.0.0.1:2"))
	require.Equal(t, "127.0.0.1:2", value("listen", "dev", "--rest-api", "127.0.0.1:2"))
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

// TestImplicitConfigurationOnlyTunes puts each setting into a file that nobody
// names: what leads elsewhere is refused, also for commands that don't have it.
func TestImplicitConfigurationOnlyTunes(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(key, value string) {
		text := key + ": " + value + "\n"
		if command, flag, nested := strings.Cut(key, "."); nested {
			text = command + ": {" + strings.ReplaceAll(flag, ".", ": {") + ": " + value +
				strings.Repeat("}", strings.Count(key, ".")) + "\n"
		}
		require.NoError(t, os.WriteFile(configFile, []byte(text), 0o600))
	}
	refused := []string{
		"store", "dev.store-listen", "dev.token-file", "dev.tokens", "dev.tls-cert", "dev.tls-key", "dev.module-cache",
		"dev.batch-db-server", "dev.install-private", "dev.plain-http", "head.open", "head.batch.server",
		"worker.module-cache", "batch.submit.url", "batch.submit.token-file", "batch.submit.tls-ca", "batch.submit.file",
		"submit.args-file", "submit.env", "migrate.to", "backup.force", "delete.state",
		"function.put.alias", "token.create.role", "serve.store-listen",
	}
	all := settings((&app{}).root())
	for _, key := range refused {
		require.Contains(t, all, key)
		value := "x"
		if all[key].Value.Type() == "bool" {
			value = "true"
		}
		write(key, value)
		_, err := configured(t, "limit", "list")
		require.ErrorAs(t, err, new(usageError), key)
		require.ErrorContains(t, err, key)
		require.ErrorContains(t, err, "--config futura.yaml")
		_, err = configured(t, "limit", "list", "--config", configFile)
		require.NoError(t, err, key)
	}
	for key, value := range map[string]string{
		"cluster": "mine", "list.limit": "7", "dev.slots": "3", "dev.listen": "127.0.0.1:1", "dev.drain": "1m",
		"worker.queue": "[a, b]", "json": "true",
	} {
		write(key, value)
		_, err := configured(t, "limit", "list")
		require.NoError(t, err, key)
	}
	// A setting that is new is refused until it is known to be harmless.
	for key, flag := range all {
		if strings.HasSuffix(flag.Name, "file") || strings.Contains(flag.Name, "url") ||
			strings.Contains(flag.Name, "token") || strings.Contains(flag.Name, "dir") {
			require.False(t, isHarmless(flag), key)
		}
	}
}

func TestFilesWithPasswordsAreForTheirUserAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "futura.yaml")
	content := "head: {batch-db-server: \"mongodb://user:password@db/\"}\n"
	require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
	_, err := configured(t, "limit", "list", "--config", file)
	require.ErrorContains(t, err, "head.batch-db-server has a password")
	require.ErrorContains(t, err, "chmod 600 "+file)
	require.NotContains(t, err.Error(), "user:password")
	require.NoError(t, os.Chmod(file, 0o600))
	_, err = configured(t, "limit", "list", "--config", file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte("head: {batch-db-server: \"mongodb://db/\"}\n"), 0o600))
	require.NoError(t, os.Chmod(file, 0o644))
	_, err = configured(t, "limit", "list", "--config", file)
	require.NoError(t, err)
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
		if err == nil {
			require.NoError(t, checkLocal(e.URL))
		}
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

// TestEndpointsLeadToThisMachine plants endpoints in a store's directory.
func TestEndpointsLeadToThisMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, endpointFile)
	for at, local := range map[string]bool{
		"http://127.0.0.1:7420": true, "https://[::1]:7420": true, "http://0.0.0.0:1": true, "http://203.0.113.7:80": false,
		"http://example.com": false, "http://localhost.example.com": false, "http://127.0.0.1@203.0.113.7/": false, "": false,
	} {
		require.NoError(t, (&endpoint{URL: at, PID: os.Getpid()}).write(dir))
		_, err := (&app{store: "embedded:" + dir}).connect(&headFlags{})
		if local {
			require.NoError(t, err, at)
		} else {
			require.ErrorContains(t, err, path, at)
		}
	}
	ended := exec.Command(os.Args[0], "-test.run=^$")
	require.NoError(t, ended.Run())
	require.NoError(t, (&endpoint{URL: "http://127.0.0.1:7420", PID: ended.Process.Pid, Token: "secret"}).write(dir))
	_, err := (&app{store: "embedded:" + dir}).connect(&headFlags{})
	require.ErrorContains(t, err, "its head has ended", "another process may have the address")
	require.NoError(t, os.Chmod(path, 0o644))
	_, err = readEndpoint(dir)
	require.ErrorContains(t, err, "chmod 600 "+path)
}

// TestKeysOfB7sSetTheirFlags reads the part of a configuration that b7s has.
func TestKeysOfB7sSetTheirFlags(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "b7s.yaml")
	require.NoError(t, os.WriteFile(file, []byte(
		"head:\n  batch:\n    server: mongodb://127.0.0.1:1/\n    db-name: mine\n    requeue-interval: 30m\n"), 0o600))
	for flag, values := range map[string][2]string{
		"batch-db-server":        {"", "mongodb://127.0.0.1:1/"},
		"batch-db-name":          {"b7s-db", "mine"},
		"batch-requeue-interval": {"1h0m0s", "30m0s"},
		"batch-resume-delay":     {"1m0s", "1m0s"},
	} {
		for i, args := range [][]string{{"head"}, {"head", "--config", file}} {
			found, err := configured(t, flag, args...)
			require.NoError(t, err)
			require.Equal(t, values[i], found, flag)
		}
	}
}

// TestNamesOfOneFlag has two names of a flag set in two places: the first place counts, whatever the name there.
func TestNamesOfOneFlag(t *testing.T) {
	file := filepath.Join(t.TempDir(), "futura.yaml")
	content := "head:\n  batch:\n    server: mongodb://file/\nsubmit:\n  max-retries: 1\n"
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	value := func(flag string, args ...string) string {
		found, err := configured(t, flag, append(args, "--config", file)...)
		require.NoError(t, err)
		return found
	}
	require.Equal(t, "mongodb://file/", value("batch-db-server", "head"))
	require.Equal(t, "1", value("retries", "submit"))
	require.Equal(t, "5", value("retries", "submit", "--retries", "5"))
	require.Equal(t, "6", value("retries", "submit", "--max-retries", "6"))
	t.Setenv("FUTURA_HEAD_BATCH_DB_SERVER", "mongodb://environment/")
	t.Setenv("FUTURA_SUBMIT_RETRIES", "4")
	require.Equal(t, "mongodb://environment/", value("batch-db-server", "head"))
	require.Equal(t, "4", value("retries", "submit"))
}

// TestTimesInAFile has times and dates in a file as the command line has them.
func TestTimesInAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "futura.yaml")
	require.NoError(t, os.WriteFile(file, []byte("schedule:\n  add:\n    from: 2026-12-01T08:00:00Z\n"+
		"    except: [2026-12-25, 12-26]\nusage:\n  from: 2026-11-01\n"), 0o600))
	for _, c := range [][]string{
		{"2026-12-01T08:00:00Z", "from", "schedule", "add"}, {"[2026-12-25,12-26]", "except", "schedule", "add"},
		{"2026-11-01", "from", "usage"},
	} {
		found, err := configured(t, c[1], append(c[2:], "--config", file)...)
		require.NoError(t, err)
		require.Equal(t, c[0], found)
	}
}
