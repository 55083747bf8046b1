package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// landlockVariable makes the test's binary a process behind Landlock alone.
const landlockVariable = "FUTURA_WASM_TEST_LANDLOCK"

// hostileChild takes over where the test's binary is a child: a call with the
// arguments "attack" and a name first does what code does that has broken out.
func hostileChild() {
	if os.Getenv(landlockVariable) != "" {
		os.Exit(behindLandlock())
	}
	if os.Getenv(childVariable) == "" {
		return
	}
	os.Exit(childProcess(func(c *child, kind byte, body []byte) error {
		if kind == frameCompile && bytes.Contains(body, []byte(starved)) {
			return c.answer(c.engine.unloaded(fmt.Errorf("%w: %w", errCompilerPanic, syscall.ENOMEM)))
		}
		if kind == frameRun {
			if _, call, _, err := decodeRun(body); err == nil && len(call.args) == 2 && call.args[0] == "attack" {
				if call.args[1] == stays {
					_ = unix.Close(answerPipe)
					select {}
				}
				if err := attacks()[call.args[1]](); err == nil {
					return fmt.Errorf("the attack %q succeeded", call.args[1])
				}
			}
		}
		return c.handle(kind, body)
	}))
}

// starved is exported by a module for whose code its compiler gets no memory.
const starved = "starved"

// TestAModuleForWhoseCodeThereIsNoMemoryMayRunLater has a compiler get memory for all but its result.
func TestAModuleForWhoseCodeThereIsNoMemoryMayRunLater(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1})
	module := assembler{pages: 1, functions: []function{{export: starved}}}.module()
	failure := requireKind(t, KindUnloadable, e.Check(t.Context(), starved, module))
	require.ErrorIs(t, failure, errCompilerMemory)
	require.ErrorContains(t, failure, "try again in")
	stillWorks(t, e)
}

// stays is the name of an attack that ends no call.
const stays = "close the pipe of answers, and stay"

// TestAChildThatAnswersNoMoreIsEnded has a call return whose process has broken out, and neither answers nor ends.
func TestAChildThatAnswersNoMoreIsEnded(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 1})
	inv := of("good", printing(1, 1, "good"))
	inv.Args = []string{"attack", stays}
	_, err := e.Run(t.Context(), inv)
	requireKind(t, KindLost, err)
	stillWorks(t, e)
}

// mustDie is the beginning of the names of attacks that end the process.
const mustDie = "dies: "

// attacks return an error if they fail and the process lives on. One that succeeds
// does no harm: a signal is 0, which only asks whether another could be sent.
func attacks() map[string]func() error {
	call := func(number uintptr, arguments ...uintptr) func() error {
		return func() error {
			all := [6]uintptr{}
			copy(all[:], arguments)
			if _, _, errno := unix.Syscall6(number, all[0], all[1], all[2], all[3], all[4], all[5]); errno != 0 {
				return errno
			}
			return nil
		}
	}
	parent := uintptr(os.Getppid())
	self := []byte("/proc/self/exe\x00")
	path := uintptr(unsafe.Pointer(&self[0]))
	return map[string]func() error{
		"read a file":         func() error { _, err := os.Open("/etc/passwd"); return err },
		"read its own memory": func() error { _, err := os.Open("/proc/self/mem"); return err },
		"list a directory":    func() error { _, err := os.ReadDir("/"); return err },
		"write a file":        func() error { return os.WriteFile(filepath.Join(os.TempDir(), "planted"), nil, 0o600) },
		"remove a file":       func() error { return os.Remove(filepath.Join(os.TempDir(), "planted")) },
		"make a directory":    func() error { return os.Mkdir(filepath.Join(os.TempDir(), "planted directory"), 0o700) },
		"change a mode":       func() error { return os.Chmod(os.TempDir(), 0o777|os.ModeSticky) },
		"link":                func() error { return os.Symlink("/", filepath.Join(os.TempDir(), "planted link")) },
		"signal by I/O":       call(unix.SYS_FCNTL, 0, unix.F_SETOWN, parent),
		"dump":                call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1),
		"the parent's limits": call(unix.SYS_PRLIMIT64, parent, unix.RLIMIT_NOFILE),
		"more descriptors": func() error {
			return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: openFiles + 1, Max: openFiles})
		},
		mustDie + "socket":         call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0),
		mustDie + "unix socket":    call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM, 0, path),
		mustDie + "execve":         call(unix.SYS_EXECVE, path, 0, 0),
		mustDie + "execveat":       call(unix.SYS_EXECVEAT, ^uintptr(99), path, 0, 0, 0),
		mustDie + "ptrace":         call(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0, 0),
		mustDie + "kill":           call(unix.SYS_KILL, parent, 0),
		mustDie + "tgkill":         call(unix.SYS_TGKILL, parent, parent, 0),
		mustDie + "tkill":          call(unix.SYS_TKILL, parent, 0),
		mustDie + "queue a signal": call(unix.SYS_RT_SIGQUEUEINFO, parent, 0, path),
		mustDie + "pidfd":          call(unix.SYS_PIDFD_OPEN, parent, 0),
		mustDie + "read memory":    call(unix.SYS_PROCESS_VM_READV, parent, path, 1, path, 1, 0),
		mustDie + "write memory":   call(unix.SYS_PROCESS_VM_WRITEV, parent, path, 1, path, 1, 0),
		mustDie + "io_uring":       call(unix.SYS_IO_URING_SETUP, 1, path),
		mustDie + "bpf":            call(unix.SYS_BPF, 0, path, 8),
		mustDie + "namespace":      call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
		mustDie + "mount":          call(unix.SYS_MOUNT, path, path, 0, 0, 0),
		mustDie + "user":           call(unix.SYS_SETUID, 0),
		mustDie + "keyring":        call(unix.SYS_KEYCTL, 0, 0, 0),
		mustDie + "start a process": func() error { // fork, which is clone on newer processors
			return exec.Command("/proc/self/exe").Start()
		},
	}
}

func TestChildrenThatBreakOutReachNothing(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess, PoolSize: 2})
	standing, missing := e.Walls()
	if !slices.Contains(standing, wallSeccomp) {
		t.Skipf("this kernel has no seccomp: %v", missing)
	}
	for name := range attacks() {
		inv := of("good", printing(1, 1, "good"))
		inv.Args = []string{"attack", name}
		out, err := e.Run(context.Background(), inv)
		switch {
		case !strings.HasPrefix(name, mustDie):
			require.NoError(t, err, name)
			require.Equal(t, "good", string(out.Stdout), name)
		case strings.HasSuffix(name, "start a process"):
			// The runtime opens files first, which fails without an end.
			if err != nil {
				requireKind(t, KindPanic, err)
			}
		default:
			require.Error(t, err, name)
			require.Contains(t, requireKind(t, KindPanic, err).Message, "bad system call", name)
		}
		stillWorks(t, e)
	}
}

// TestWallsStand holds what a current kernel gives every build.
func TestWallsStand(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess})
	standing, missing := e.Walls()
	t.Log(standing, missing)
	for _, wall := range []string{wallPrivileges, wallLimits} {
		require.Contains(t, standing, wall, missing)
	}
	require.Len(t, append(standing, missing...), 4)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.backend.(*processes).idle[0].command.Process.Pid))
	require.NoError(t, err)
	require.Contains(t, string(status), "NoNewPrivs:\t1\n")
	if slices.Contains(standing, wallSeccomp) {
		require.Contains(t, string(status), "Seccomp:\t2\n")
	}
	inside := newExecutor(t, Config{Isolation: IsolationInProcess})
	standing, missing = inside.Walls()
	require.Empty(t, standing)
	require.NotEmpty(t, missing)
}

// TestParentKeepsItsRights has a child started, and then does what children
// can't.
func TestParentKeepsItsRights(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationProcess})
	stillWorks(t, e)
	_, err := os.ReadDir(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, exec.Command("/proc/self/exe", "-test.run=^$").Run())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	status, err := os.ReadFile("/proc/self/status") // of the main thread
	require.NoError(t, err)
	require.Contains(t, string(status), "Seccomp:\t0\n")
}

// behindLandlock tries what Landlock alone must refuse. Its exit code says what
// did not hold, and is 9 where this build can't have it.
func behindLandlock() int {
	dropPrivileges()
	parent, err := strconv.Atoi(os.Getenv(landlockVariable))
	if err != nil {
		return 1
	}
	if err := closeFileSystem(); err != nil {
		fmt.Println(err)
		return 9
	}
	refused := func(err error) bool { return errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) }
	done := make(chan int)
	for range 4 { // on several threads
		go func() {
			runtime.LockOSThread()
			_, err := os.Open("/etc/passwd")
			_, listing := os.ReadDir("/")
			_, dialing := net.Dial("tcp", "127.0.0.1:9")
			switch {
			case !refused(err), !refused(os.Mkdir(filepath.Join(os.TempDir(), "planted"), 0o700)), !refused(listing):
				done <- 2
			case !refused(dialing):
				done <- 3
			case !refused(syscall.Kill(parent, 0)):
				done <- 4
			default:
				done <- 0
			}
		}()
	}
	for range 4 {
		if code := <-done; code != 0 {
			return code
		}
	}
	return 0
}

func TestLandlockAlone(t *testing.T) {
	t.Parallel()
	version, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if int(version) < 6 {
		t.Skipf("this kernel's Landlock is of version %d, and 6 is tested", int(version))
	}
	binary := "/proc/self/exe"
	if long {
		binary = filepath.Join(t.TempDir(), "static.test")
		build := exec.Command("go", "test", "-c", "-tags", "pebblegozstd", "-o", binary, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		text, err := build.CombinedOutput()
		require.NoError(t, err, "%s", text)
	}
	command := exec.Command(binary)
	command.Env = append(os.Environ(), fmt.Sprint(landlockVariable, "=", os.Getpid()))
	text, err := command.CombinedOutput()
	if command.ProcessState.ExitCode() == 9 && !long {
		t.Skipf("in this build: %s", text)
	}
	require.NoError(t, err, "%s", text)
}
