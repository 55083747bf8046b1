package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// fullScript fills a small file system of its own, looks at the store, tries to
// write, and does the same after mounting it read-only. $1 is the command, $2 an
// empty directory.
const fullScript = `
mount -t tmpfs -o size=3m tmpfs "$2" || exit 77
cd "$2"
"$1" submit go:price --args '{}' || exit 10
head -c 8000000 /dev/zero > fill 2> /dev/null
look() {
	"$1" list | grep -q go:price || exit 11
	"$1" check || exit 12
	"$1" backup "$2.backup" || exit 13
	rm "$2.backup"
	"$1" submit go:price --args '{}'; [ $? = 4 ] || exit 14
	"$1" dev --listen 127.0.0.1:0 && exit 15
	[ ! -e .futura/token ] || exit 16
}
echo "on a full disk" >&2
look "$1" "$2"
mount -o remount,ro "$2" || exit 77
echo "on a read-only mount" >&2
look "$1" "$2"
mount -o remount,rw "$2" && rm fill
"$1" submit go:price --args '{}' || exit 17
[ "$("$1" list --json | grep -c '"id"')" = 2 ] || exit 18
`

// TestFullAndReadOnlyDisk needs a mount of its own.
func TestFullAndReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mount")
	require.NoError(t, os.Mkdir(dir, 0o755))
	cmd := exec.Command("sh", "-c", fullScript, "sh", os.Args[0], dir)
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	var said bytes.Buffer
	cmd.Stderr = &said
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 77 {
		t.Skipf("this machine allows no mounts: %v", err)
	}
	require.NoError(t, err, said.String())
	full, readOnly, found := strings.Cut(said.String(), "on a read-only mount\n")
	require.True(t, found)
	require.Contains(t, full, "no space left on device: free some space; what only reads still works")
	require.Contains(t, readOnly, "read-only file system: mount it writable; what only reads still works")
}

func TestFailureIsSaidOnce(t *testing.T) {
	t.Parallel()
	require.Equal(t, "worker a: store has failed: x\nother", said(errors.Join(
		errors.New("worker a: store has failed: x"), errors.New("store has failed: x"), errors.New("other"))))
}
