package objects

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const removesOpen = true

// descriptors is how many files the process may have open.
func descriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 256
	}
	return int(min(limit.Cur, 1<<20))
}

// createNameless makes a file that never has a name where the file system can.
func createNameless(dir string) (file, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return diskFile{os.NewFile(uintptr(fd), dir)}, nil
	}
	f, err := createNamed(dir)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

func punchHole(f *os.File, offset, length int64) error {
	const mode = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	return control(f, func(fd int) error { return unix.Fallocate(fd, mode, offset, length) })
}

// available is how many bytes the file system of a directory has left for this user,
// and in all.
func available(dir string) (left, total int64, known bool) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, 0, false
	}
	return int64(stat.Bavail) * stat.Bsize, int64(stat.Blocks) * stat.Bsize, true
}

// memorySeals are what a file in memory has once its content is complete.
const memorySeals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// createMemory makes a file in memory that other processes can map.
func createMemory() (*os.File, error) {
	fd, err := unix.MemfdCreate("futura-object", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "futura-object"), nil
}

// seal makes a file in memory immutable for everybody.
func seal(f *os.File) error {
	return control(f, func(fd int) error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, memorySeals)
		return err
	})
}

// isSealed returns an error unless a file has size bytes and can't change.
func isSealed(f *os.File, size int64) error {
	return control(f, func(fd int) error {
		seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
		if err != nil {
			return err
		}
		if seals&memorySeals != memorySeals {
			return errors.New("the file is not sealed")
		}
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil {
			return err
		}
		if stat.Size != size {
			return fmt.Errorf("the file has %d bytes, not %d", stat.Size, size)
		}
		return nil
	})
}

// mapFile maps the first size bytes of a file for reading.
func mapFile(f *os.File, size int64) (mapped []byte, err error) {
	err = control(f, func(fd int) (err error) {
		mapped, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
		return err
	})
	return mapped, err
}

func unmap(mapped []byte) error { return unix.Munmap(mapped) }

// control calls a function with the descriptor of a file.
func control(f *os.File, call func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for {
			if failed = call(int(fd)); failed != syscall.EINTR {
				return
			}
		}
	})
	return errors.Join(err, failed)
}
