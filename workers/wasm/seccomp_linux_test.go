//go:build amd64 || arm64

package wasm

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestAThreadWithAFilterOfItsOwnIsToldOf: the kernel filters no thread then, and says so by the number of that one.
func TestAThreadWithAFilterOfItsOwnIsToldOf(t *testing.T) {
	t.Parallel()
	filtered, done := make(chan error), make(chan struct{})
	defer close(done)
	go func() {
		runtime.LockOSThread() // it ends with this goroutine
		dropPrivileges()
		all := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: allow}
		program := unix.SockFprog{Len: 1, Filter: &all}
		_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
		if errno != 0 {
			filtered <- errno
			return
		}
		filtered <- nil
		<-done
	}()
	if err := <-filtered; err != nil {
		t.Skip("the kernel has no filters: ", err)
	}
	raised := make(chan error)
	go func() {
		runtime.LockOSThread()
		dropPrivileges()
		raised <- filterSystemCalls()
	}()
	require.ErrorContains(t, <-raised, "has a filter of its own")
}
