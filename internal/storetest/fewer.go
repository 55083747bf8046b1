package storetest

import "os"

// Fewer returns how many futures, rounds or seeds a test has: on a server, which takes
// longer, fewer unless the run is a long one.
func Fewer(n, fewer int) int {
	if OnServer && os.Getenv("FUTURA_LONG") != "1" {
		return fewer
	}
	return n
}
