package wasm

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Names of walls, as Executor.Walls gives them.
const (
	wallPrivileges = "no_new_privs"
	wallLimits     = "rlimits"
	wallLandlock   = "landlock"
	wallSeccomp    = "seccomp"
)

// dropPrivileges makes what this thread starts unable to gain privileges.
func dropPrivileges() { _ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }

// raiseWalls takes from this process for good what a function never needs: files,
// sockets, other processes. Each wall is raised where the kernel has it. It
// returns the names of those that stand, and why others don't.
func raiseWalls() (standing, missing []string) {
	raise := func(name string, err error) {
		if err == nil {
			standing = append(standing, name)
		} else {
			missing = append(missing, fmt.Sprintf("%s: %v", name, err))
		}
	}
	raise(wallPrivileges, checkPrivileges())
	raise(wallLimits, lowerLimits())
	raise(wallLandlock, closeFileSystem())
	raise(wallSeccomp, filterSystemCalls())
	return standing, missing
}

func checkPrivileges() error {
	set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err == nil && set != 1 {
		err = errors.New("it could not be set")
	}
	return err
}

// openFiles is how many descriptors a child may have: its pipes and those of the
// runtime.
const openFiles = 32

// lowerLimits forbids core dumps, which would contain arguments, growing files,
// and many descriptors. The number of processes is not limited: the kernel counts
// the threads of all of the user's processes.
func lowerLimits() error {
	var errs []error
	for resource, most := range map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: openFiles, unix.RLIMIT_MEMLOCK: 0,
	} {
		errs = append(errs, unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}))
	}
	return errors.Join(errs...)
}

// landlockABIs are the file system rights, the network rights and the scopes that
// a version of Landlock knows beyond those of the version before it.
var landlockABIs = []struct{ files, network, scopes uint64 }{
	{files: unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM},
	{files: unix.LANDLOCK_ACCESS_FS_REFER},
	{files: unix.LANDLOCK_ACCESS_FS_TRUNCATE},
	{network: unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
	{files: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	{scopes: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL},
	{}, // about logs
	{}, // about threads
	{files: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
	{network: unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP},
}

// landlockAllThreads is the version from which on the kernel itself restricts all
// threads of a process.
const landlockAllThreads = 8

// closeFileSystem allows no file, no TCP and no signals to other processes.
func closeFileSystem() error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return fmt.Errorf("the kernel does not have it: %w", errno)
	}
	var rules unix.LandlockRulesetAttr
	for _, abi := range landlockABIs[:min(int(version), len(landlockABIs))] {
		rules.Handled_access_fs |= abi.files
		rules.Handled_access_net |= abi.network
		rules.Scoped |= abi.scopes
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)),
		unsafe.Sizeof(rules), 0)
	if errno != 0 {
		return fmt.Errorf("the rules are refused: %w", errno)
	}
	defer func() { _ = unix.Close(int(set)) }() // the kernel has its own copy
	if version >= landlockAllThreads {
		_, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, unix.LANDLOCK_RESTRICT_SELF_TSYNC, 0)
	} else {
		_, _, errno = syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0)
	}
	switch {
	case errno == syscall.ENOTSUP:
		return errors.New("this program is linked with C, where the kernel must restrict all threads at once, " +
			"as Linux 7 does; build it with CGO_ENABLED=0")
	case errno != 0:
		return errno
	}
	return nil
}
