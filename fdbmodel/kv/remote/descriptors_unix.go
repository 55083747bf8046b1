//go:build unix

package remote

import "syscall"

// maxDescriptors is how many files and connections the process may have open.
func maxDescriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return manyDescriptors
	}
	return int(min(uint64(limit.Cur), manyDescriptors))
}
