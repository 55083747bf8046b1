package embedded

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// MemoryMin is the least value that Options.Memory defaults to.
const MemoryMin = 256 << 20

// unknownMemory is taken for the memory of a machine that does not tell.
const unknownMemory = 4 << 30

// systemMemory returns how much memory the process may have: that of the machine, or less
// if its control group or GOMEMLIMIT allow less.
func systemMemory() int64 {
	most := min(groupMemory("/sys/fs/cgroup", "/proc/self/cgroup"), debug.SetMemoryLimit(-1))
	if machine, ok := machineMemory("/proc/meminfo"); ok {
		return min(machine, most)
	}
	return min(unknownMemory, most)
}

// machineMemory reads the first line of the file of Linux: "MemTotal: 8140364 kB".
func machineMemory(path string) (int64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 2 || fields[0] != "MemTotal:" {
		return 0, false
	}
	kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
	return kilobytes << 10, err == nil && kilobytes < math.MaxInt64>>10
}

// groupMemory returns the least limit of the process's control group and those around it.
func groupMemory(root, self string) int64 {
	least := int64(math.MaxInt64)
	b, err := os.ReadFile(self)
	if err != nil {
		return least
	}
	for line := range strings.Lines(string(b)) {
		group, found := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for dir := filepath.Clean("/" + group); found; dir = filepath.Dir(dir) {
			limit, err := os.ReadFile(filepath.Join(root, dir, "memory.max"))
			if err == nil {
				if n, err := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64); err == nil {
					least = min(least, n)
				}
			}
			if dir == "/" {
				break
			}
		}
	}
	return least
}
