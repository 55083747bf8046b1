package workers

import "golang.org/x/sys/unix"

// machineMemory is the machine's memory in bytes, 0 if it can't be told.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit))
}
