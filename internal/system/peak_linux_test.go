package system

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

var highWater = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peakMemory is the most memory that a process took so far, in bytes. What the
// system says of ended processes would include what their parent took when it made
// them.
func peakMemory(process int) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	found := highWater.FindSubmatch(status)
	if found == nil {
		return 0
	}
	kilobytes, _ := strconv.ParseInt(string(found[1]), 10, 64)
	return kilobytes << 10
}
