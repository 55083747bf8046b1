//go:build amd64 || arm64

package wasm

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// What the kernel does about a system call.
const (
	allow  = unix.SECCOMP_RET_ALLOW
	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	kill   = unix.SECCOMP_RET_KILL_PROCESS
)

// Where a filter finds what it looks at. The processors are little endian.
const (
	offsetOfCall      = 0
	offsetOfArch      = 4
	offsetOfArguments = 16
	argumentSize      = 8
	wordSize          = 4
)

// x32Calls is where the calls of another ABI begin.
const x32Calls = 1 << 30

// filterSystemCalls allows all threads of this process what the runtime of Go and
// pipes need.
func filterSystemCalls() error {
	raw, err := bpf.Assemble(callFilter(uint32(os.Getpid())))
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, instruction := range raw {
		filter[i] = unix.SockFilter{Code: instruction.Op, Jt: instruction.Jt, Jf: instruction.Jf, K: instruction.K}
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	other, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	switch {
	case errno != 0:
		return errno
	case other != 0: // the kernel has filtered none
		return fmt.Errorf("thread %d has a filter of its own", other)
	}
	return nil
}

// callFilter is the filter of a process. What it doesn't name fails with EPERM, so
// that a runtime that asks for something new goes on without it.
func callFilter(pid uint32) []bpf.Instruction {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetOfArch, Size: wordSize},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: kill},
		bpf.LoadAbsolute{Off: offsetOfCall, Size: wordSize},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Calls, SkipTrue: 1},
		bpf.RetConstant{Val: absent},
	}
	answer := func(call uint32, answer ...bpf.Instruction) {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: uint8(len(answer))})
		program = append(program, answer...)
	}
	for _, call := range allowedCalls() {
		answer(call, bpf.RetConstant{Val: allow})
	}
	// A thread, and no process.
	answer(unix.SYS_CLONE, argument(0), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.CLONE_THREAD, SkipTrue: 1},
		bpf.RetConstant{Val: kill}, bpf.RetConstant{Val: allow})
	// Its arguments can't be looked at. C libraries go on with clone.
	answer(unix.SYS_CLONE3, bpf.RetConstant{Val: absent})
	answer(unix.SYS_TGKILL, oneOf(0, kill, pid)...)
	answer(unix.SYS_KILL, oneOf(0, kill, pid)...)
	answer(unix.SYS_PRLIMIT64, oneOf(0, refuse, 0, pid)...)
	answer(unix.SYS_PRCTL, oneOf(0, refuse, unix.PR_SET_VMA)...)
	answer(unix.SYS_FCNTL, oneOf(1, refuse, unix.F_GETFL, unix.F_GETFD)...)
	for _, call := range hostileCalls() {
		answer(call, bpf.RetConstant{Val: kill})
	}
	return append(program, bpf.RetConstant{Val: refuse})
}

// argument loads the part of an argument that is an int.
func argument(number uint32) bpf.Instruction {
	return bpf.LoadAbsolute{Off: offsetOfArguments + argumentSize*number, Size: wordSize}
}

// oneOf allows a call whose argument is one of the values.
func oneOf(number, otherwise uint32, values ...uint32) []bpf.Instruction {
	program := []bpf.Instruction{argument(number)}
	for _, value := range values {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: 1},
			bpf.RetConstant{Val: allow})
	}
	return append(program, bpf.RetConstant{Val: otherwise})
}

// allowedCalls are what a child makes, for its pipes, memory, threads and time;
// the most frequent come first.
func allowedCalls() []uint32 {
	return append([]uint32{
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_MADVISE,
		unix.SYS_MPROTECT, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGPROCMASK,
		unix.SYS_RT_SIGACTION, unix.SYS_SIGALTSTACK, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
		unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_CREATE1, unix.SYS_EVENTFD2, unix.SYS_CLOSE,
		unix.SYS_GETRANDOM, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY, unix.SYS_GETPID,
		unix.SYS_GETTID, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_RESTART_SYSCALL, unix.SYS_MREMAP,
		unix.SYS_MINCORE, unix.SYS_BRK, unix.SYS_FSTAT, unix.SYS_GETRUSAGE, unix.SYS_SYSINFO,
		unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SET_TID_ADDRESS, unix.SYS_MEMBARRIER, unix.SYS_GETCPU,
	}, moreAllowedCalls()...)
}

// hostileCalls are what only code makes that has broken out of its function.
func hostileCalls() []uint32 {
	return append([]uint32{
		unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
		unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN,
		unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT,
		unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_SENDTO, unix.SYS_SENDMSG,
		unix.SYS_SENDMMSG, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_BPF,
		unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
		unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
		unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
		unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID, unix.SYS_SETREUID,
		unix.SYS_SETREGID, unix.SYS_SETGROUPS, unix.SYS_CAPSET, unix.SYS_PERSONALITY, unix.SYS_SECCOMP,
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_MQ_OPEN,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_MEMFD_CREATE, unix.SYS_PROCESS_MADVISE,
	}, moreHostileCalls()...)
}
