//go:build linux

package b7s

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"github.com/futura-run/futura/workers/wasm"
)

// Variables that name programs, and those that the first process of the tests
// gives to the second.
const (
	persistNode = "FUTURA_B7S_PERSIST"
	batchedNode = "FUTURA_B7S_BATCHED"
	builtDir    = "FUTURA_B7S_BUILT"
	network     = "FUTURA_B7S_NETWORK"
)

// TestMain builds what the tests start and runs them in a process whose network
// has nothing but the loopback interface: b7s's nodes look for gateways and for
// other nodes.
func TestMain(m *testing.M) {
	wasm.ChildMain()
	if os.Getenv(builtDir) == "" {
		os.Exit(runInNetwork())
	}
	if os.Getenv(network) == "own" {
		if err := raiseLoopback(); err != nil {
			fmt.Println("the loopback interface:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func runInNetwork() int {
	if os.Getenv(persistNode) == "" && os.Getenv(batchedNode) == "" {
		fmt.Printf("SKIP: %s and %s name no node of b7s, its tests did not run; see CONTRIBUTING.md\n",
			persistNode, batchedNode)
		return 0
	}
	dir, err := os.MkdirTemp("", "futura-b7s-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = build(dir)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	child, err := start(ownNetwork(), builtDir+"="+dir, network+"=own")
	if err != nil {
		fmt.Printf("no network namespace (%v): b7s's nodes run in the host's network\n", err)
		child, err = start(&syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, builtDir+"="+dir, network+"=host")
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	go func() {
		for s := range signals {
			_ = child.Process.Signal(s)
		}
	}()
	_ = child.Wait()
	if child.ProcessState.Exited() {
		return child.ProcessState.ExitCode()
	}
	fmt.Println("the tests ended with", child.ProcessState)
	return 1
}

// build makes the stand-in for b7s's runtime, a function for the project's
// workers, and the project's commands.
func build(dir string) error {
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	runtime := exec.Command(compiler, "-O2", "-static", "-o", filepath.Join(dir, runtimeName), "testdata/runtime.c")
	commands := exec.Command("go", "build", "-tags", "pebblegozstd", "-o", dir, "./cmd/futura", "./cmd/futura-bench")
	commands.Dir = "../../.."
	module := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, moduleName), ".")
	module.Dir = "testdata/echo"
	module.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	for _, c := range []*exec.Cmd{runtime, commands, module} {
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", c, err, out)
		}
	}
	return nil
}

// built is a program that build made.
func built(name string) string { return filepath.Join(os.Getenv(builtDir), name) }

// start runs the tests in another process, which ends with this one.
func start(attributes *syscall.SysProcAttr, variables ...string) (*exec.Cmd, error) {
	child := exec.Command(os.Args[0], os.Args[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.Env = append(os.Environ(), variables...)
	child.SysProcAttr = attributes
	return child, child.Start()
}

// ownNetwork asks for a network namespace, and for a user namespace if the user
// may not have the other without it.
func ownNetwork() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if uid := os.Geteuid(); uid != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attributes
}

// raiseLoopback switches the loopback interface on, which is down in a new
// namespace.
func raiseLoopback() error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(socket) }()
	request := struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP}
	copy(request.name[:], "lo")
	_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), syscall.SIOCSIFFLAGS,
		uintptr(unsafe.Pointer(&request)))
	if failed != 0 {
		return failed
	}
	return nil
}
