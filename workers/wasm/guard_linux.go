package wasm

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// memoryGuard bounds the memory of a child as a whole, by the kernel. It is a
// second line of defence: the engine itself holds a function to its limit.
type memoryGuard struct {
	base    uint64 // what the process has before the first call
	allowed uint64
}

// guardSlack is for the engine: code, stacks, tables and the collector.
const guardSlack = 1536 * mebibyte

func (g *memoryGuard) allow(memoryLimit uint64, limits limits) {
	if g.base == 0 {
		g.base = max(writableMemory(), 1)
	}
	allowed := g.base + memoryLimit + uint64(limits.maxInput+4*limits.maxOutput) + guardSlack
	if allowed <= g.allowed {
		return
	}
	g.allowed = allowed
	limit := syscall.Rlimit{}
	const rlimitData = 2
	if syscall.Getrlimit(rlimitData, &limit) == nil {
		limit.Cur = min(allowed, limit.Max)
		_ = syscall.Setrlimit(rlimitData, &limit)
	}
}

// limitMemory bounds what a process may have beyond what it has.
func limitMemory(more uint64) error {
	const rlimitData = 2
	most := max(writableMemory(), 1) + more
	return syscall.Setrlimit(rlimitData, &syscall.Rlimit{Cur: most, Max: most})
}

// writableMemory returns how much writable memory of its own the process has
// mapped.
func writableMemory() uint64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmData:"); ok {
			kibibytes, _ := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(size), "kB")), 10, 64)
			return kibibytes * kibibyte
		}
	}
	return 0
}

// preferAsVictim makes the kernel kill this process, not its parent, when the
// machine runs out of memory.
func preferAsVictim() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("800"), 0)
}

// closeInherited closes the files, pipes and sockets that the parent inherited
// itself in a way that passes them on. What the runtime of Go holds is of other
// kinds.
func closeInherited() {
	const directory = "/proc/self/fd/"
	entries, _ := os.ReadDir(directory)
	for _, entry := range entries {
		descriptor, err := strconv.Atoi(entry.Name())
		if err != nil || descriptor <= haltPipe {
			continue
		}
		target, err := os.Readlink(directory + entry.Name())
		if err == nil && !strings.HasPrefix(target, "anon_inode:") {
			_ = syscall.Close(descriptor)
		}
	}
}
