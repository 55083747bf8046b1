package workers

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machineMemory is the memory that this process may use, in bytes: the
// machine's, or the least that a control group around the process allows. It is
// 0 if it is unknown.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return min(int64(uint64(info.Totalram)*uint64(info.Unit)), groupMemory(os.DirFS("/")))
}

const unlimited = 1<<63 - 1

// groupMemory is the least limit of the control groups that this process is in,
// of version 1 or 2, up to their root, and unlimited if there is none.
func groupMemory(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return unlimited
	}
	limit := int64(unlimited)
	for lines := bufio.NewScanner(bytes.NewReader(groups)); lines.Scan(); {
		// A line is number:controllers:path.
		fields := strings.SplitN(lines.Text(), ":", 3)
		switch {
		case len(fields) < 3:
		case fields[1] == "":
			limit = min(limit, leastLimit(root, "sys/fs/cgroup", fields[2], "memory.max"),
				leastLimit(root, "sys/fs/cgroup", fields[2], "memory.high"))
		case strings.Contains(","+fields[1]+",", ",memory,"):
			limit = min(limit, leastLimit(root, "sys/fs/cgroup/memory", fields[2], "memory.limit_in_bytes"))
		}
	}
	return limit
}

// leastLimit reads a file of a group and of those above it. In a container the
// group's own root is mounted, and the path does not exist there.
func leastLimit(root fs.FS, mount, group, name string) int64 {
	limit := int64(unlimited)
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		text, err := fs.ReadFile(root, path.Join(mount, group, name))
		// The only value that is not a number is "max".
		if n, notOne := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && notOne == nil && n > 0 {
			limit = min(limit, n)
		}
		if group == "/" {
			return limit
		}
	}
}
