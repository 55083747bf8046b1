package wasm

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestChildHasNothingOfItsParent(t *testing.T) {
	t.Parallel()
	file, err := os.Open("module.go")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1})
	stillWorks(t, e)
	proc := fmt.Sprintf("/proc/%d/", e.backend.(*processes).idle[0].command.Process.Pid)

	environment, err := os.ReadFile(proc + "environ")
	require.NoError(t, err)
	variables := strings.Split(strings.TrimSuffix(string(environment), "\x00"), "\x00")
	require.ElementsMatch(t, []string{"FUTURA_WASM_CHILD=1", "GOMAXPROCS=2", "GOTRACEBACK=single"}, variables)

	descriptors, err := os.ReadDir(proc + "fd")
	require.NoError(t, err)
	for _, descriptor := range descriptors {
		target, err := os.Readlink(proc + "fd/" + descriptor.Name())
		require.NoError(t, err)
		require.Regexp(t, `^(pipe|anon_inode):`, target, descriptor.Name())
	}
	directory, err := os.Readlink(proc + "cwd")
	require.NoError(t, err)
	require.Equal(t, "/", directory)

	limits, err := os.ReadFile(proc + "limits")
	require.NoError(t, err)
	require.NotRegexp(t, `Max data size +unlimited +`, string(limits))
}

// parentVariable makes the test binary a parent that runs an endless function.
const parentVariable = "FUTURA_WASM_TEST_PARENT"

func TestParentForKill(t *testing.T) {
	if os.Getenv(parentVariable) == "" {
		t.Skip("is a part of TestChildrenDieWithTheirParent")
	}
	e, err := New(context.Background(), Config{Isolation: IsolationProcess, PoolSize: 1})
	require.NoError(t, err)
	inv := of("endless", starting(1, endless()).module())
	require.NoError(t, e.Check(context.Background(), inv.CID, starting(1, endless()).module()))
	pool := e.backend.(*processes)
	fmt.Printf("\nchild %d\n", pool.idle[0].command.Process.Pid)
	_, err = e.Run(context.Background(), inv)
	t.Error("the function ended", err)
}

func TestChildrenDieWithTheirParent(t *testing.T) {
	t.Parallel()
	parent := exec.Command("/proc/self/exe", "-test.run=^TestParentForKill$")
	parent.Env = append(os.Environ(), parentVariable+"=1", "TMPDIR="+t.TempDir())
	output, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	var child int
	lines := bufio.NewScanner(output)
	for child == 0 && lines.Scan() {
		_, _ = fmt.Sscanf(lines.Text(), "child %d", &child)
	}
	require.NotZero(t, child)
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.Eventually(t, func() bool { return isGone(child) }, 20*time.Second, 5*time.Millisecond)
}

// isGone reports whether a process has ended, even if its parent has not waited
// for it.
func isGone(pid int) bool {
	if syscall.Kill(pid, 0) == syscall.ESRCH {
		return true
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(status), ") ")
	return err != nil || strings.HasPrefix(state, "Z")
}

func TestTemporaryDirectoryGoesWithTheExecutor(t *testing.T) {
	t.Parallel()
	e, err := New(context.Background(), Config{Isolation: IsolationProcess})
	require.NoError(t, err)
	stillWorks(t, e)
	dir := e.backend.(*processes).temporary
	found, err := filepath.Glob(filepath.Join(dir, "code-*", "*.code"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, e.Close(context.Background()))
	require.NoDirExists(t, dir)
}
