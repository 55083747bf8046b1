package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

// fullScript fills a small file system of its own, looks at the store, tries to
// write, and does the same after mounting it read-only. It serves the store each
// time, until that is stopped, and once more on a full disk that gets room when a
// line comes in. $1 is the command, $2 an empty directory.
const fullScript = `
exec 3<&0
mount -t tmpfs -o size=3m tmpfs "$2" || exit 77
cd "$2"
"$1" submit go:price --args '{}' >&2 || exit 10
head -c 8000000 /dev/zero > fill 2> /dev/null
look() {
	"$1" list | grep -q go:price || exit 11
	"$1" check >&2 || exit 12
	"$1" backup "$2.backup" >&2 || exit 13
	rm "$2.backup"
	"$1" submit go:price --args '{}'; [ $? = 4 ] || exit 14
	XDG_CONFIG_HOME="$2/none" "$1" serve --listen 127.0.0.1:0; [ $? = 4 ] || exit 15
	"$1" serve --listen 127.0.0.1:0 --json || exit 16
	"$1" dev --listen 127.0.0.1:0 --json || exit 17
	[ ! -e .futura/token ] || exit 18
}
echo "on a full disk" >&2
look "$1" "$2"
mount -o remount,ro "$2" || exit 77
echo "on a read-only mount" >&2
look "$1" "$2"
mount -o remount,rw "$2"
echo "on a disk that gets room" >&2
(read line <&3 && rm fill) &
"$1" dev --listen 127.0.0.1:0 --json || exit 19
"$1" submit go:price --args '{}' >&2 || exit 20
[ "$("$1" list --json | grep -c '"id"')" = 2 ] || exit 21
`

// TestFullAndReadOnlyDisk needs a mount of its own.
func TestFullAndReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir, config := filepath.Join(t.TempDir(), "mount"), t.TempDir()
	require.NoError(t, os.Mkdir(dir, 0o755))
	cmd := exec.Command("sh", "-c", fullScript, "sh", os.Args[0], dir)
	cmd.Env = append(os.Environ(), mainVariable+"=1", configurationVariable+"="+config)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	var said stacktest.Buffer
	cmd.Stderr = &said
	room, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	if err := cmd.Start(); err != nil {
		t.Skipf("this machine allows no mounts: %v", err)
	}
	servers := json.NewDecoder(out)
	for range 4 {
		answersReads(t, nextServer(t, cmd, servers, &said), config)
	}
	e := nextServer(t, cmd, servers, &said)
	_, err = io.WriteString(room, "now\n")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, last, _ := strings.Cut(said.String(), "on a disk that gets room\n")
		return strings.Contains(last, "there is room again") && strings.Contains(last, "worker registered")
	}, time.Minute, time.Millisecond, "%s", &said)
	stop(t, e)
	require.NoError(t, cmd.Wait(), "%s", &said)
	full, readOnly, found := strings.Cut(said.String(), "on a read-only mount\n")
	require.True(t, found)
	readOnly, _, _ = strings.Cut(readOnly, "on a disk that gets room\n")
	require.Contains(t, full, "no space left on device: free some space; what only reads still works")
	require.Contains(t, readOnly, "read-only file system: mount it writable; what only reads still works")
	for _, log := range []string{full, readOnly} {
		require.LessOrEqual(t, strings.Count(log, "the janitor's role failed"), 1)
		require.Contains(t, log, "for a token: name a file with --token-file")
		require.Contains(t, log, "this worker runs nothing before the store can be written")
		require.Equal(t, 2, strings.Count(log, "it does not say where this process is"))
	}
	require.NotContains(t, full, "can't reach the store")
	require.Contains(t, readOnly, "can't reach the store: free some space or mount it writable")
}

// nextServer returns the endpoint of the next process that the script starts to serve the store. It skips the test
// where the machine allows no mounts.
func nextServer(t *testing.T, cmd *exec.Cmd, servers *json.Decoder, said *stacktest.Buffer) *endpoint {
	var e endpoint
	if err := servers.Decode(&e); err != nil {
		_ = cmd.Wait()
		if cmd.ProcessState.ExitCode() == 77 {
			t.Skip("this machine allows no mounts")
		}
		require.NoError(t, err, "code %d: %s", cmd.ProcessState.ExitCode(), said)
	}
	return &e
}

// answersReads requires that a server of a store that takes no writes reads it, says so of what writes, and has a
// token of the user. Then it stops it.
func answersReads(t *testing.T, e *endpoint, config string) {
	token, err := readToken(filepath.Join(config, "futura", ownTokenFile))
	require.NoError(t, err)
	require.Equal(t, token, e.Token)
	status, text := ask(t, e, "GET", "/api/v1/futures", token, "")
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, "go:price")
	status, text = ask(t, e, "POST", "/api/v1/futures", token, `{"function":"go:price"}`)
	require.Equal(t, http.StatusServiceUnavailable, status, text)
	require.Contains(t, text, "store_read_only")
	status, text = ask(t, e, "GET", "/api/v1/overview", token, "")
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, "the store can't be written: ")
	stop(t, e)
}

// stop has the process of an endpoint end, as its service does.
func stop(t *testing.T, e *endpoint) { require.NoError(t, syscall.Kill(e.PID, syscall.SIGTERM)) }

func TestFailureIsSaidOnce(t *testing.T) {
	t.Parallel()
	require.Equal(t, "worker a: store has failed: x\nother", said(errors.Join(
		errors.New("worker a: store has failed: x"), errors.New("store has failed: x"), errors.New("other"))))
}
